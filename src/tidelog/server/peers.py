"""Connections from this node to others, for requests that a machine wants sent: one exchange at a time with each node.

A connection is kept while it serves. When the machine asks anew before there was an answer, it has given up on the old one:
that connection is closed, because its answers come in order. How an exchange failed is told, as far as it matters: nobody
listens there (``refused``), or the other side does not know the request in that version (``unsupported``).
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import Any, Protocol

from tidelog.client.connection import ClientConnection, UnsupportedByBroker
from tidelog.model.errors import ErrorCode, ProtocolViolation
from tidelog.protocol.messages.api_versions import ApiVersionsRequest
from tidelog.raft.effects import Node
from tidelog.server.runtime import LoopRuntime

log = logging.getLogger(__name__)

RECEIVE_BYTES = 1 << 16
LARGEST_ANSWER_BYTES = 64 * 1024 * 1024


class Answers(Protocol):
    """Who takes what becomes of a request."""

    def answered(self, request_id: int, message: Any) -> None: ...

    def failed(self, request_id: int, *, refused: bool, unsupported: bool) -> None: ...


class _Line:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, name: str) -> None:
        self._reader = reader
        self._writer = writer
        self._client = ClientConnection(name, max_response_bytes=LARGEST_ANSWER_BYTES)

    async def hello(self) -> None:
        """Agree on versions."""
        frame: bytes | None = self._client.hello()
        while frame is not None:
            frame = self._client.welcomed(await self._exchange(frame))

    async def ask(self, request: Any) -> Any:
        if isinstance(request, ApiVersionsRequest):
            return await self._exchange(self._client.hello())
        return await self._exchange(self._client.request(request))

    async def _exchange(self, frame: bytes) -> Any:
        self._writer.write(frame)
        await self._writer.drain()
        while True:
            data = await self._reader.read(RECEIVE_BYTES)
            if not data:
                raise ConnectionResetError("the other side closed the connection")
            found = self._client.receive(data)
            if found:
                return found[0]

    def close(self) -> None:
        self._writer.close()


class Peers:
    """See the module."""

    def __init__(self, runtime: LoopRuntime, answers: Answers, client_id: str) -> None:
        self._runtime = runtime
        self._answers = answers
        self._client_id = client_id
        self._lines: dict[Node, _Line] = {}
        self._tasks: dict[int, asyncio.Task[Any]] = {}
        self._strangers: set[Node] = set()
        self._closed = False

    def send(self, request_id: int, to: Node, request: Any) -> None:
        """The answer, or the failure, is told to ``answers`` later."""
        running = self._tasks.pop(to.id, None)
        if running is not None and not running.done():
            running.cancel()
            self._drop(to)
        if not self._closed:
            self._tasks[to.id] = self._runtime.spawn(self._run(request_id, to, request), f"asking node {to.id}")

    async def _run(self, request_id: int, to: Node, request: Any) -> None:
        tell: Callable[[], None]
        try:
            line = self._lines.get(to) or await self._connect(to)
            message = await line.ask(request)
            self._look(to, message)

            def tell() -> None:
                self._answers.answered(request_id, message)
        except (UnsupportedByBroker, ValueError) as error:
            log.debug("node %d at %s:%d: %s", to.id, to.host, to.port, error)

            def tell() -> None:
                self._answers.failed(request_id, refused=False, unsupported=True)
        except (OSError, EOFError, ProtocolViolation) as error:
            log.debug("node %d at %s:%d: %s", to.id, to.host, to.port, error)
            refused = isinstance(error, ConnectionRefusedError)
            self._drop(to)

            def tell() -> None:
                self._answers.failed(request_id, refused=refused, unsupported=False)

        if self._tasks.get(to.id) is asyncio.current_task():
            # Before it is told: the next request may go out from there.
            del self._tasks[to.id]
        if not self._closed:
            tell()

    def _look(self, to: Node, message: Any) -> None:
        """Who has the wrong disk, or asks at a wrong address, would wait for a leader for ever and not know why."""
        if getattr(message, "error_code", 0) == ErrorCode.INCONSISTENT_CLUSTER_ID and to not in self._strangers:
            self._strangers.add(to)
            log.error(
                "node %d at %s:%d is of another cluster than this node. Compare cluster.id in the meta.properties of both nodes' "
                "log dirs: one has the wrong disk or was formatted with another id, or controller.quorum.* names a wrong address",
                to.id,
                to.host,
                to.port,
            )

    async def _connect(self, to: Node) -> _Line:
        for old in [each for each in self._lines if each.id == to.id]:
            self._drop(old)
        # In a thread of ours: names are looked up as the system does it, and whoever stops can wait for that.
        found = await self._runtime.run_blocking(lambda: socket.getaddrinfo(to.host, to.port, type=socket.SOCK_STREAM))
        address = min(found, key=lambda each: each[0] != socket.AF_INET)[4]
        reader, writer = await asyncio.open_connection(str(address[0]), to.port, limit=LARGEST_ANSWER_BYTES)
        line = self._lines[to] = _Line(reader, writer, self._client_id)
        await line.hello()
        return line

    def _drop(self, to: Node) -> None:
        line = self._lines.pop(to, None)
        if line is not None:
            line.close()

    def close(self) -> None:
        """Nobody is asked any more, nobody is told."""
        self._closed = True
        for task in self._tasks.values():
            task.cancel()
        for node in list(self._lines):
            self._drop(node)
