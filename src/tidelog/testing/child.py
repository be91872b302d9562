"""``Broker(process=True)``: the same broker in a child process, by remote control; it can be killed and started again.

Calls go over the child's stdin and results come back over its stdout, one at a time, pickled: both ends are this package, of one
version and one user. The child ends when its stdin closes, so it cannot outlive its parent, however that ends. Its log goes to a
file, whose end is part of the message when something fails.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import struct
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from tidelog.model.errors import ErrorCode
from tidelog.protocol.api_keys import ApiKey
from tidelog.testing.faults import HELD_TIMEOUT_S
from tidelog.testing.node_thread import NOT_RUNNING, START_TIMEOUT_S, settings_of
from tidelog.testing.records import Message, Text

if TYPE_CHECKING:
    from tidelog.testing.users import Users

LOG_LINES = 40
_LENGTH = struct.Struct(">I")


def send(stream: IO[bytes], value: Any) -> None:
    """Write one value, with its length in front."""
    data = pickle.dumps(value)
    stream.write(_LENGTH.pack(len(data)) + data)
    stream.flush()


def receive(stream: IO[bytes]) -> Any:
    """The next value. EOFError when the other end has closed."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError
    data = stream.read(_LENGTH.unpack(head)[0])
    return pickle.loads(data)


CHILDREN: weakref.WeakSet[ChildBroker] = weakref.WeakSet()
"""All live children: pytest shows their logs beside a failed test."""


class ChildFailed(RuntimeError):
    """The child ended, or did not start; the text has the end of its log."""


class ChildFaults:
    """``Faults`` of a broker in a child."""

    def __init__(self, child: ChildBroker) -> None:
        self._child = child

    def refuse(self, api: ApiKey | str, error: ErrorCode | str, times: int = 1) -> None:
        self._child.ask("faults.refuse", api, error, times)

    def delay(self, api: ApiKey | str, seconds: float, times: int = 1) -> None:
        self._child.ask("faults.delay", api, seconds, times)

    def drop(self, api: ApiKey | str, times: int = 1) -> None:
        self._child.ask("faults.drop", api, times)

    def hold(self, api: ApiKey | str, times: int = 1) -> None:
        self._child.ask("faults.hold", api, times)

    def lose_answer(self, api: ApiKey | str, times: int = 1) -> None:
        self._child.ask("faults.lose_answer", api, times)

    def repeat(self, api: ApiKey | str, times: int = 1, *, seconds: float = 0.0) -> None:
        self._child.ask("faults.repeat", api, times, seconds=seconds)

    def release(self, api: ApiKey | str | None = None) -> int:
        freed: int = self._child.ask("faults.release", api)
        return freed

    def wait_held(self, api: ApiKey | str, count: int = 1, timeout_s: float = HELD_TIMEOUT_S) -> None:
        self._child.ask("faults.wait_held", api, count, timeout_s)

    def clear(self) -> None:
        self._child.ask("faults.clear")

    @property
    def pending(self) -> int:
        pending: int = self._child.ask("faults.pending")
        return pending


class ChildBroker:
    """``Broker(process=True)`` by remote control; the methods are documented in ``Broker``."""

    _process: subprocess.Popen[bytes] | None = None
    _owner = 0
    """The process that started it: a fork has a copy of this object and must leave the child alone."""
    _log = Path()
    _last_log = ""

    def __init__(
        self, data: str | PathLike[str] | None, port: int, config: Mapping[str, str | int] | None, users: Users | None = None
    ) -> None:
        settings_of(config)  # Mistakes in it are reported here, not in the child.
        self._arguments = {"data": None if data is None else str(data), "config": dict(config or {}), "users": users}
        self._given_port = port
        self._turn = threading.Lock()
        CHILDREN.add(self)
        self.faults = ChildFaults(self)

    # -- life ----------------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        if self._process is not None:
            raise RuntimeError("the broker runs already")
        handle, name = tempfile.mkstemp(prefix="tidelog-", suffix=".log")
        self._forget_log()
        self._log = Path(name)
        self._owner = os.getpid()
        with os.fdopen(handle, "wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tidelog.testing.child_process"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        watchdog = threading.Timer(START_TIMEOUT_S, self._process.kill)
        watchdog.start()
        try:
            self._given_port = self.ask("start", {**self._arguments, "port": self._given_port})
        except BaseException:
            self.kill()
            raise
        finally:
            watchdog.cancel()

    def stop(self) -> None:
        """Stop cleanly, as by SIGTERM. The port stays reserved for the next start."""
        process = self._process
        if process is None:
            return
        watchdog = threading.Timer(START_TIMEOUT_S, process.kill)
        watchdog.start()
        try:
            self.ask("stop")
        finally:
            watchdog.cancel()
            self.kill()
            self._forget_log()

    def kill(self) -> None:
        """``kill -9``: nothing is flushed, clients are not notified. Data in memory is lost; a folder has what was written."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    def restart(self) -> None:
        self.stop()
        self.start()

    @property
    def pid(self) -> int:
        """The child's process id."""
        if self._process is None:
            raise RuntimeError(NOT_RUNNING)
        return self._process.pid

    @property
    def runs(self) -> bool:
        """Whether there is a child, as far as is known."""
        return self._process is not None

    @property
    def log(self) -> str:
        """The child's log since its last start."""
        return self._log.read_text(errors="replace") if self._log.name else self._last_log

    def _forget_log(self) -> None:
        """Delete the file and keep its content."""
        self._last_log = self.log
        if self._log.name:
            self._log.unlink(missing_ok=True)
            self._log = Path()

    def __del__(self) -> None:
        if self._owner != os.getpid():
            return
        self.kill()
        self._forget_log()

    # -- calls ---------------------------------------------------------------------------------------------------------------

    def ask(self, method: str, *args: Any, **named: Any) -> Any:
        """Let the child's broker do it: its result, or its exception."""
        process = self._process
        if process is None:
            raise RuntimeError(NOT_RUNNING)
        assert process.stdin is not None
        assert process.stdout is not None
        with self._turn:
            try:
                send(process.stdin, (method, args, named))
                done, answer = receive(process.stdout)
            except (EOFError, OSError) as gone:
                raise ChildFailed(f"the broker's process ended ({process.poll()}) during {method}{_log_end(self.log)}") from gone
        if done:
            return answer
        answer.add_note(f"in the broker's process{_log_end(self.log)}")
        raise answer

    @property
    def port(self) -> int:
        if self._process is None:
            raise RuntimeError(NOT_RUNNING)
        return self._given_port

    @property
    def where(self) -> str:
        """Its address and process for messages; "not running" without one."""
        return f"127.0.0.1:{self._given_port}, pid {self._process.pid}" if self._process is not None else "not running"

    @property
    def last_port(self) -> int:
        """The port, also after a stop; 0 before the first start."""
        return self._given_port

    def create_topic(self, name: str, partitions: int, replicas: int, config: Mapping[str, str | int]) -> None:
        self.ask("create_topic", name, partitions, replicas, dict(config))

    @property
    def topics(self) -> list[str]:
        topics: list[str] = self.ask("topics")
        return topics

    def produce(self, topic: str, *values: Text | tuple[Text, Text] | Message, partition: int) -> None:
        self.ask("produce", topic, *values, partition=partition)

    def messages(self, topic: str, partition: int | None, committed: bool) -> list[Message]:
        messages: list[Message] = self.ask("messages", topic, partition, committed)
        return messages

    def advance(self, seconds: float) -> None:
        self.ask("advance", seconds)

    def groups(self) -> list[str]:
        groups: list[str] = self.ask("groups")
        return groups

    def committed_offsets(self, group: str) -> dict[tuple[str, int], int]:
        offsets: dict[tuple[str, int], int] = self.ask("committed_offsets", group)
        return offsets

    def expire_member(self, group: str, member_id: str | None) -> list[str]:
        gone: list[str] = self.ask("expire_member", group, member_id)
        return gone

    def reload_coordinators(self) -> None:
        self.ask("reload_coordinators")

    def reset(self) -> None:
        self.ask("reset")

    def fill_disk(self, full: bool) -> None:
        self.ask("fill_disk", full)


def _log_end(log: str) -> str:
    """The last lines of a log, for the end of a message."""
    lines = log.splitlines()[-LOG_LINES:]
    return "; its log ends:\n" + "\n".join(lines) if lines else ", which logged nothing"
