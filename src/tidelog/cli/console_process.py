"""``--console`` of ``tidelog start`` and ``tidelog cluster``: a web console beside the nodes, in a process of its own.

The process is ``tidelog console`` with a pipe as its stdin. The other end belongs to the process that started it: when that
ends, by a signal that it cannot handle as well, the pipe closes and the console ends. Nothing of the extra is imported here.
"""

from __future__ import annotations

import contextlib
import shlex
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from typing import IO

from tidelog.cli.console import END_LIMIT_S, WITH_STDIN, missing_extra
from tidelog.config.listeners import address_text, parse_address
from tidelog.config.resolve import BrokerConfig
from tidelog.model.addresses import is_loopback
from tidelog.model.errors import ConfigError

FLAG = "--console"


def check(listen: str) -> None:
    """ConfigError when no console can be served at this address: the extra is missing, other machines reach the address, or it
    is in use."""
    problem = missing_extra()
    if problem is not None:
        raise ConfigError(f"{FLAG}: {problem}")
    if ":" not in listen:
        raise ConfigError(f"{FLAG} {listen}: its value is HOST:PORT. Give {FLAG} last, or write {FLAG}=HOST:PORT.")
    host, port = parse_address(FLAG, listen)
    if not is_loopback(host):
        raise ConfigError(
            f"{FLAG} {listen} can be reached from other machines. For people with logins run tidelog console beside it: tidelog "
            f"console --bootstrap-server HOST:PORT --listen {listen} --users FILE"
        )
    try:
        socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except OSError as error:
        raise ConfigError(
            f"{FLAG}: {address_text(host, port)} cannot be listened on: {error.strerror or error}. Give another address, such as "
            f"{FLAG}={address_text(host, 0)} for a free port."
        ) from None


def client_address(config: BrokerConfig, ports: Mapping[str, int], listen: str) -> str:
    """Where clients reach the node in plain text, without a login. ``ports``: those that listeners got, by listener name.
    ConfigError when there is no such listener."""
    points = config.advertised(ports, "localhost") if config.is_broker else ()
    for point in points:
        if point.protocol == "PLAINTEXT":
            return address_text(point.host, point.port)
    if not points:
        raise ConfigError(
            f"{FLAG}: this node is a controller, and clients have none of its listeners. Run it at a broker, or: tidelog console "
            "--bootstrap-server HOST:PORT"
        )
    raise locked(address_text(points[0].host, points[0].port), listen)


def locked(bootstrap: str, listen: str, client_file: str = "FILE") -> ConfigError:
    """The refusal where clients need TLS or a login. ``client_file``: settings of a client that has both."""
    return ConfigError(
        f"{FLAG}: clients need TLS or a login here. Start without {FLAG}, and run: tidelog console --bootstrap-server "
        f"{bootstrap} --command-config {client_file} --listen {listen}"
    )


class ConsoleProcess:
    """A console of the cluster at ``bootstrap``. It prints its URL on the stdout of this process when it is ready.

    ``say`` gets what it writes on stderr, line by line, and a line about its end if that was not asked for. It is called from
    another thread.
    """

    def __init__(self, bootstrap: str, listen: str, say: Callable[[str], None]) -> None:
        self._words = ("console", "--bootstrap-server", bootstrap, "--listen", listen)
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
            self._say(f"the console cannot be started: {error.strerror or error}. {self._again()}")
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
                    last = line.strip().removeprefix("tidelog console: ")
                    self._say(f"console: {line.rstrip()}")
        code = process.wait()
        if not self._ending:
            how = f"was ended by signal {-code} ({_name(-code)})" if code < 0 else f"ended with exit code {code}"
            self._say(f"the console {how}{last and ': '}{last}{'' if last.endswith('.') else '.'} {self._again()}")

    def _again(self) -> str:
        return f"Nothing else has ended. To start it again: tidelog {shlex.join(self._words)}"


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"
