"""One connection of one user that sends requests in versions of the caller's choice."""

from __future__ import annotations

import socket
import struct
import time
from typing import Any

from tests.security_matrix.principals import PASSWORD
from tidelog.protocol import registry
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.framing import RequestHeader, decode_response_header, encode_request, response_header_is_flexible
from tidelog.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from tidelog.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tidelog.protocol.structure import Message

LIMIT_S = 30


class ClosedByNode(Exception):
    """The node closed the connection instead of answering."""


class Connection:
    """A blocking connection with one request in flight; ``user`` logs in with PLAIN, None sends no login."""

    def __init__(self, port: int, user: str | None) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), LIMIT_S)
        self._socket.settimeout(LIMIT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._correlation = 0
        if user is not None:
            shaken = self.ask(ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest("PLAIN"))
            login = SaslAuthenticateRequest(f"\0{user}\0{PASSWORD}".encode())
            authenticated = self.ask(ApiKey.SASL_AUTHENTICATE, 2, login)
            assert (shaken.error_code, authenticated.error_code) == (0, 0), f"{user} cannot log in"

    def send(self, key: int, version: int, request: Message) -> None:
        """One request. ClosedByNode when the connection is gone."""
        self._correlation += 1
        self._sent = key, version
        try:
            self._socket.sendall(encode_request(RequestHeader(key, version, self._correlation, "matrix"), request))
        except OSError as error:
            raise ClosedByNode from error

    def receive(self, deadline: float = float("inf")) -> Any:
        """The answer to the request in flight. ClosedByNode when the connection ends, TimeoutError at the deadline."""
        self._socket.settimeout(max(0.001, min(LIMIT_S, deadline - time.monotonic())))
        key, version = self._sent
        (size,) = struct.unpack(">i", self._read(4))
        frame = memoryview(self._read(size))
        answered, position = decode_response_header(frame, response_header_is_flexible(key, version))
        assert answered == self._correlation, "the answer is to another request"
        return registry.response_class(key).decode(frame[position:], version)

    def ask(self, key: int, version: int, request: Message) -> Any:
        """The answer to a request."""
        self.send(key, version, request)
        return self.receive()

    def close(self) -> None:
        self._socket.close()

    def _read(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            try:
                part = self._socket.recv(count - len(data))
            except ConnectionError as error:
                raise ClosedByNode from error
            if not part:
                raise ClosedByNode
            data += part
        return bytes(data)
