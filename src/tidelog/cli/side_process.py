"""What serves HTTP beside a node, in a process of its own: the web console, the schema registry.

The process is ``tidelog console`` or ``tidelog registry`` with a pipe as its stdin. The other end belongs to the process that
started it: when that ends, by a signal that it cannot handle as well, the pipe closes and the other process ends. Nothing of
the extras is imported here.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import IO, TYPE_CHECKING

from tidelog.config.listeners import address_text, parse_address
from tidelog.model.addresses import is_loopback
from tidelog.model.errors import ConfigError

if TYPE_CHECKING:
    from tidelog.config.resolve import BrokerConfig

END_LIMIT_S = 10.0
"""How long it may take to end after the process that it belongs to."""
WITH_STDIN = "--with-stdin"
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Side:
    """``name``: of the command, of the flag of ``tidelog start``, and of the extra with its ``packages``."""

    name: str
    packages: tuple[str, ...]

    @property
    def flag(self) -> str:
        """As users write it."""
        return f"--{self.name}"

    def missing(self) -> str | None:
        """What is missing of the extra and how to install it; None when all is there. Imports none of it."""
        missing = [name for name in self.packages if find_spec(name) is None]
        return f"it needs {' and '.join(missing)}: pip install 'tidelog[{self.name}]'" if missing else None

    def check(self, listen: str) -> None:
        """ConfigError when nothing can be served at this address: the extra is missing, other machines reach the address, or it
        is in use."""
        flag, problem = self.flag, self.missing()
        if problem is not None:
            raise ConfigError(f"{flag}: {problem}")
        if ":" not in listen:
            raise ConfigError(f"{flag} {listen}: its value is HOST:PORT. Give {flag} last, or write {flag}=HOST:PORT.")
        host, port = parse_address(flag, listen)
        if not is_loopback(host):
            raise ConfigError(
                f"{flag} {listen} can be reached from other machines. For people with logins run tidelog {self.name} beside it: "
                f"tidelog {self.name} --bootstrap-server HOST:PORT --listen {listen} --users FILE"
            )
        try:
            socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
        except OSError as error:
            raise ConfigError(
                f"{flag}: {address_text(host, port)} cannot be listened on: {error.strerror or error}. Give another address, "
                f"such as {flag}={address_text(host, 0)} for a free port."
            ) from None

    def client_address(self, config: BrokerConfig, ports: Mapping[str, int], listen: str) -> str:
        """Where clients reach the node in plain text, without a login. ``ports``: those that listeners got, by listener name.
        ConfigError when there is no such listener."""
        points = config.advertised(ports, "localhost") if config.is_broker else ()
        for point in points:
            if point.protocol == "PLAINTEXT":
                return address_text(point.host, point.port)
        if not points:
            raise ConfigError(
                f"{self.flag}: this node is a controller, and clients have none of its listeners. Run it at a broker, or: "
                f"tidelog {self.name} --bootstrap-server HOST:PORT"
            )
        raise self.locked(address_text(points[0].host, points[0].port), listen)

    def locked(self, bootstrap: str, listen: str, client_file: str = "FILE") -> ConfigError:
        """The refusal where clients need TLS or a login. ``client_file``: settings of a client that has both."""
        return ConfigError(
            f"{self.flag}: clients need TLS or a login here. Start without {self.flag}, and run: tidelog {self.name} "
            f"--bootstrap-server {bootstrap} --command-config {client_file} --listen {listen}"
        )


CONSOLE = Side("console", ("starlette", "uvicorn"))
REGISTRY = Side("registry", ("uvicorn",))
SIDES = (REGISTRY, CONSOLE)
"""In the order in which they start."""


def check(listens: Mapping[str, str], config: BrokerConfig) -> None:
    """ConfigError when one of these cannot serve this node. ``listens``: where, by name."""
    for side in SIDES:
        if side.name in listens:
            side.check(listens[side.name])
            side.client_address(config, {}, listens[side.name])


def start(listens: Mapping[str, str], config: BrokerConfig, ports: Mapping[str, int], say: Say) -> list[SideProcess]:
    """Start them beside a node that serves. The console shows the schemas of a registry whose port is known."""
    found = []
    for side in SIDES:
        if side.name in listens:
            listen, more = listens[side.name], []
            registry = listens.get(REGISTRY.name, ":0")
            if side is CONSOLE and not registry.endswith(":0"):
                more = ["--schema-registry", f"http://{registry}"]
            found.append(SideProcess(side, side.client_address(config, ports, listen), listen, say, *more))
            found[-1].start()
    return found


class SideProcess:
    """One of them, for the cluster at ``bootstrap``. It prints its URL on the stdout of this process when it is ready.

    ``say`` gets what it writes on stderr, line by line, and a line about its end if that was not asked for. It is called from
    another thread.
    """

    def __init__(self, side: Side, bootstrap: str, listen: str, say: Say, *more: str) -> None:
        self._name = side.name
        self._words = (side.name, "--bootstrap-server", bootstrap, "--listen", listen, *more)
        self._say = say
        self._process: subprocess.Popen[str] | None = None
        self._watcher: threading.Thread | None = None
        self._ending = False

    def start(self) -> None:
        """Starts the process. Does not wait for it, and does not fail: ``say`` gets the reason."""
        command = [sys.executable, "-m", "tidelog.cli.main", *self._words, WITH_STDIN]
        try:
            # In a session of its own: Ctrl-C reaches the process that started it, which ends it.
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True
            )
        except OSError as error:
            self._say(f"the {self._name} cannot be started: {error.strerror or error}. {self._again()}")
            return
        assert process.stderr is not None
        self._process = process
        self._watcher = threading.Thread(target=self._watch, args=(process, process.stderr), daemon=True)
        self._watcher.start()

    def end(self) -> None:
        """Asks it to end."""
        self._ending = True
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()

    def wait(self) -> None:
        """Waits until it has ended, and kills it when that takes too long. Call ``end`` first."""
        if self._process is None or self._watcher is None:
            return
        try:
            self._process.wait(END_LIMIT_S + 1)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._watcher.join()

    def _watch(self, process: subprocess.Popen[str], errors: IO[str]) -> None:
        last = ""
        with errors:
            for line in errors:
                if line.strip():
                    last = line.strip().removeprefix(f"tidelog {self._name}: ").removeprefix("tidelog: ")
                    self._say(f"{self._name}: {line.rstrip()}")
        code = process.wait()
        if not self._ending:
            how = f"was ended by signal {-code} ({_signal(-code)})" if code < 0 else f"ended with exit code {code}"
            end = "" if last.endswith(".") else "."
            self._say(f"the {self._name} {how}{last and ': '}{last}{end} {self._again()}")

    def _again(self) -> str:
        return f"Nothing else has ended. To start it again: tidelog {shlex.join(self._words)}"


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"


def end_with_stdin(stop: Callable[[], object]) -> None:
    """In a thread of the process itself: call ``stop`` when stdin is closed, whose other end belongs to the process that
    started this one, and closes with it, however that ends."""
    with contextlib.suppress(OSError):
        while os.read(0, 1024):
            pass
    stop()
    time.sleep(END_LIMIT_S)
    os._exit(1)
