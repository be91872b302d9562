"""The child of ``Broker(process=True)``: a broker that serves calls from stdin, and ends with it."""

from __future__ import annotations

import logging
import os
import pickle
import sys
from functools import reduce
from typing import IO, Any

from tidelog.testing.child import receive, send
from tidelog.testing.local import LocalBroker


def main() -> None:
    """Serve until stdin ends. Prints go to stderr: stdout belongs to the results."""
    commands, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    serve(commands, answers)
    # The caller is gone or has stopped the broker: only idle threads are left.
    sys.stderr.flush()
    os._exit(0)


def serve(commands: IO[bytes], answers: IO[bytes]) -> None:
    """Serve calls until the stream ends or ``stop`` arrives."""
    broker: LocalBroker | None = None
    while True:
        try:
            method, args, named = receive(commands)
        except EOFError:
            return
        try:
            if method == "start":
                broker = LocalBroker(**args[0], clock=None)
                broker.start()
                result: Any = broker.port
            else:
                assert broker is not None, "started first"
                result = call(broker, method, args, named)
            answer = (True, result)
        except Exception as error:  # The parent raises it.
            answer = (False, portable(error))
        send(answers, answer)
        if method == "stop":
            return


def call(broker: LocalBroker, method: str, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Call a method or property by its name, which may be in ``faults``."""
    found = reduce(getattr, method.split("."), broker)
    return found(*args, **named) if callable(found) else found


def portable(error: Exception) -> Exception:
    """The error, or its text if it cannot be pickled."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # Pickling an error may raise anything.
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


if __name__ == "__main__":
    main()
