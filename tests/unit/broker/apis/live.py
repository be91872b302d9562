"""A client of one connection for tests at the level of messages, and the broker in memory that it talks to."""

from __future__ import annotations

import socket
import struct
import time
from typing import Any

from tidelog.model.errors import ErrorCode
from tidelog.protocol import registry
from tidelog.protocol.framing import RequestHeader, encode_request_header, response_header_is_flexible
from tidelog.protocol.messages.find_coordinator import FindCoordinatorRequest

RETRY = {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR}


class Talk:
    """Asks at any version and decodes the answer at it."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), 10)
        self._socket.settimeout(20)

    def ask(self, request: Any, version: int) -> Any:
        """The response to ``request``."""
        self.send(request, version)
        return self.receive(request, version)

    def send(self, request: Any, version: int) -> None:
        data = encode_request_header(RequestHeader(request.API_KEY, version, 5, "talk")) + request.encode(version)
        self._socket.sendall(struct.pack(">i", len(data)) + data)

    def receive(self, request: Any, version: int) -> Any:
        size = struct.unpack(">i", self._exactly(4))[0]
        body = self._exactly(size)
        assert struct.unpack_from(">i", body)[0] == 5
        start = 5 if response_header_is_flexible(request.API_KEY, version) else 4
        return registry.response_class(request.API_KEY).decode(body[start:], version)

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            part = self._socket.recv(count - len(data))
            assert part, "the broker closed the connection"
            data += part
        return data

    def find(self, group: str) -> None:
        """Asks for the group's coordinator until there is one, as a client does."""
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            answer = self.ask(FindCoordinatorRequest(coordinator_keys=[group]), 4).coordinators[0]
            if answer.error_code not in RETRY:
                assert answer.error_code == 0, answer
                return
            time.sleep(0.01)
        raise AssertionError("no coordinator in 10 s")

    def close(self) -> None:
        self._socket.close()
