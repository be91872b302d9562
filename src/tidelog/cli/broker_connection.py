"""A blocking connection to a cluster, for commands: one socket, one request at a time."""

from __future__ import annotations

import socket
from importlib.metadata import PackageNotFoundError, version
from types import TracebackType
from typing import Any, Self

from tidelog.cli.refusal import text_of
from tidelog.client.connection import ClientConnection
from tidelog.config.listeners import address_text, parse_address
from tidelog.config.properties import parse
from tidelog.model.errors import ConfigError
from tidelog.protocol.structure import Message

RECEIVE_BYTES = 1 << 16
DEFAULT_TIMEOUT_MS = 60_000


class CannotConnect(Exception):
    """None of the bootstrap servers answers; the text says which and why."""


class BrokerConnection:
    """Connected to the first bootstrap server that answers. A context manager."""

    def __init__(self, bootstrap: str, command_config: str | None = None, client_id: str = "tidelog-cli") -> None:
        """``command_config``: a properties file for the client, as Kafka's tools take it."""
        settings = _settings(command_config)
        self.timeout_ms = int(settings.get("request.timeout.ms", DEFAULT_TIMEOUT_MS))
        self._machine = ClientConnection(settings.get("client.id", client_id), _version())
        self._socket = self._connect(bootstrap)
        answer = self._exchange(self._machine.hello())
        again = self._machine.welcomed(answer)
        if again is not None:
            self._machine.welcomed(self._exchange(again))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._socket.close()

    def version_of(self, api_key: int) -> int:
        """The version at which requests of this API go out."""
        return self._machine.version_of(api_key)

    def ask(self, request: Message) -> Any:
        """The response to ``request``. CannotConnect when the connection ends instead."""
        return self._exchange(self._machine.request(request))

    def _connect(self, bootstrap: str) -> socket.socket:
        problems = []
        for server in filter(None, (part.strip() for part in bootstrap.split(","))):
            host, port = parse_address("--bootstrap-server", server)
            try:
                return socket.create_connection((host, port), timeout=self.timeout_ms / 1000)
            except OSError as error:
                problems.append(f"{address_text(host, port)} ({error.strerror or error})")
        raise CannotConnect(f"No broker answers at {', '.join(problems) or repr(bootstrap)}. Is it running, and listening there?")

    def _exchange(self, frame: bytes) -> Any:
        try:
            self._socket.sendall(frame)
            while True:
                data = self._socket.recv(RECEIVE_BYTES)
                if not data:
                    raise CannotConnect("The broker closed the connection: it does not serve this request, or speaks TLS here.")
                for response in self._machine.receive(data):
                    return response
        except TimeoutError as error:
            raise CannotConnect(f"The broker did not answer within {self.timeout_ms} ms (request.timeout.ms).") from error
        except OSError as error:
            raise CannotConnect(f"The connection to the broker ended: {error.strerror or error}") from error


def _settings(path: str | None) -> dict[str, str]:
    if path is None:
        return {}
    settings = parse(text_of(path))
    protocol = settings.get("security.protocol", "PLAINTEXT")
    if protocol != "PLAINTEXT":
        raise ConfigError(f"security.protocol is {protocol} in {path}, and this command speaks PLAINTEXT only.")
    timeout = settings.get("request.timeout.ms", str(DEFAULT_TIMEOUT_MS))
    if not timeout.isdecimal() or int(timeout) == 0:
        raise ConfigError(f"request.timeout.ms is {timeout!r} in {path}, and must be a number of milliseconds.")
    return settings


def _version() -> str:
    try:
        return version("tidelog")
    except PackageNotFoundError:
        return "0"
