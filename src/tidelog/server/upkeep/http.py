"""A small HTTP/1.1 server for /metrics, /facts and health: GET and HEAD only.

It limits what a client may cost: header bytes, connections, idle time and the time for a request are bounded, bodies are not
read, and an answer that the client does not read is dropped. When there are too many connections, the oldest makes room: clients
that say nothing do not keep a supervisor's probe out. h11 implements the protocol, asyncio the sockets, since nothing here
is hot. ``h11`` is imported with the first request.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from tidelog.config.listeners import address_text
from tidelog.model.errors import ConfigError
from tidelog.security.principal import ANONYMOUS, KafkaPrincipal

if TYPE_CHECKING:
    import socket
    import ssl

    import h11

log = logging.getLogger(__name__)

MAX_HEADER_BYTES: Final = 16 * 1024
MAX_CONNECTIONS: Final = 64
READ_BYTES: Final = 16 * 1024


class Answer(NamedTuple):
    status: int
    body: bytes
    content_type: str = "text/plain; charset=utf-8"


UNAUTHORIZED: Final = Answer(401, b"This page needs a login.\n")


class Guard(Protocol):
    """Access to the pages, and TLS under them (``upkeep.http_security``)."""

    async def context(self) -> ssl.SSLContext | None:
        """For a new connection; None for plain text."""

    def admits(self, path: str, authorization: bytes | None, peer: str) -> bool:
        """Whether a client may read a page."""

    def principal(self, authorization: bytes | None) -> KafkaPrincipal:
        """Whom a client that was admitted counts as, where a page asks the authorizer."""

    def handshake_failed(self, peer: str, problem: Exception) -> None:
        """A client did not get as far as a request."""


class Stream(Protocol):
    """The bytes of a connection, encrypted or not."""

    async def read(self, size: int) -> bytes: ...
    def write(self, data: bytes) -> None: ...
    async def drain(self) -> None: ...
    def write_eof(self) -> None: ...


class PlainStream:
    """A connection in plain text."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.read = reader.read
        self.write = writer.write
        self.drain = writer.drain
        self.write_eof = writer.write_eof


class Reader(NamedTuple):
    """The client that asks for a page."""

    principal: KafkaPrincipal
    host: str
    """The address, without a port."""
    query: str = ""
    """What stands behind the path's question mark; at most as long as a header may be."""


Page = Callable[[Reader], Awaitable[Answer]]
"""Makes the answer for one path."""


class HttpServer:
    """Serves ``pages`` by path. ``timeout_s`` bounds reading a request, sending an answer, and idling between the two."""

    def __init__(self, pages: Mapping[str, Page], *, timeout_s: float = 10.0) -> None:
        self._pages = pages
        self.guard: Guard | None = None
        """None: plain text, for everyone. Set before ``start``."""
        self._timeout_s = timeout_s
        self._server: asyncio.Server | None = None
        self._conversations: dict[asyncio.Task[Any], None] = {}
        """The oldest first."""

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Starts listening and returns the bound address. An empty host means every interface, port 0 a free port. ConfigError
        when the address cannot be bound."""
        try:
            self._server = await asyncio.start_server(self._converse, host or None, port, limit=MAX_HEADER_BYTES)
        except OSError as error:
            where = address_text(host, port)
            raise ConfigError(f"tidelog.http.listener is {where}, but the node cannot listen there: {error.strerror}.") from error
        bound = self._server.sockets[0].getsockname()
        return bound[0], bound[1]

    async def start_shared(self, listening: socket.socket) -> None:
        """Accepts from a socket that other processes accept from, too."""
        self._server = await asyncio.start_server(self._converse, sock=listening, limit=MAX_HEADER_BYTES)

    async def start_local(self, path: str) -> None:
        """Starts listening on a Unix socket, for this user alone. OSError when that cannot be made."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        self._server = await asyncio.start_unix_server(self._converse, path, limit=MAX_HEADER_BYTES)
        os.chmod(path, 0o600)

    async def close(self) -> None:
        """Stops listening and ends all conversations."""
        if self._server is None:
            return
        self._server.close()
        for task in tuple(self._conversations):
            task.cancel()
        await asyncio.gather(*self._conversations, return_exceptions=True)
        await self._server.wait_closed()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self._conversations) >= MAX_CONNECTIONS:
            oldest = next(iter(self._conversations))
            del self._conversations[oldest]
            oldest.cancel()
        self._conversations[task] = None
        # With a limit of 0, drain() waits until everything was sent; bytes left in the buffer are lost when the connection
        # closes.
        writer.transport.set_write_buffer_limits(0)
        try:
            peer = str((writer.get_extra_info("peername") or ("unknown",))[0])
            stream = await self._secured(peer, reader, writer)
            await _Conversation(self._pages, stream, self._timeout_s, self.guard, peer).run()
        except (OSError, TimeoutError, asyncio.CancelledError):
            # The client disconnected or is too slow, or the node stops: no answer can be sent.
            pass
        finally:
            self._conversations.pop(task, None)
            writer.transport.abort()

    async def _secured(self, peer: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Stream:
        """The connection after its TLS handshake, if it needs one. OSError or TimeoutError when that fails."""
        guard = self.guard
        context = None if guard is None else await guard.context()
        if guard is None or context is None:
            return PlainStream(reader, writer)
        from tidelog.server.upkeep.http_tls import TlsStream  # most nodes serve plain text on loopback

        stream = TlsStream(context, reader, writer)
        try:
            async with asyncio.timeout(self._timeout_s):
                await stream.handshake()
        except (OSError, TimeoutError) as problem:
            guard.handshake_failed(peer, problem)
            raise
        return stream


class _Conversation:
    """One connection: requests read and answered one after another, until the peer or an error ends it."""

    def __init__(self, pages: Mapping[str, Page], stream: Stream, timeout_s: float, guard: Guard | None, peer: str) -> None:
        import h11

        self._pages = pages
        self._stream = stream
        self._timeout_s = timeout_s
        self._guard = guard
        self._peer = peer
        self._h11 = h11
        self._connection = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEADER_BYTES)

    async def run(self) -> None:
        h11 = self._h11
        while True:
            try:
                request = await self._request()
            except h11.RemoteProtocolError as error:
                if self._connection.our_state in (h11.IDLE, h11.SEND_RESPONSE):
                    await self._answer(Answer(error.error_status_hint, b"The request cannot be read.\n"), close=True)
                return
            if request is None:
                return
            answer, close = await self._respond(request)
            await self._answer(answer, close=close, head=request.method == b"HEAD")
            if self._connection.our_state is not h11.DONE or self._connection.their_state is not h11.DONE:
                return
            self._connection.start_next_cycle()

    async def _request(self) -> h11.Request | None:
        """The next complete request; None when the client closed."""
        request: h11.Request | None = None
        async with asyncio.timeout(self._timeout_s):
            while True:
                event = self._connection.next_event()
                if event is self._h11.NEED_DATA:
                    self._connection.receive_data(await self._stream.read(READ_BYTES))
                elif isinstance(event, self._h11.Request):
                    request = event
                    if _has_body(event):
                        return event
                elif isinstance(event, self._h11.EndOfMessage):
                    return request
                else:
                    return None

    async def _respond(self, request: h11.Request) -> tuple[Answer, bool]:
        """The answer, and whether to close the connection after it, as when an unread body follows."""
        close = _has_body(request)
        if request.method not in (b"GET", b"HEAD"):
            return Answer(405, b"Only GET and HEAD are served.\n"), close
        path, _, query = request.target.decode("ascii", "replace").partition("?")
        if self._guard is not None and not self._guard.admits(path, _authorization(request), self._peer):
            # Each further guess costs a connection.
            return UNAUTHORIZED, True
        page = self._pages.get(path)
        if page is None:
            return Answer(404, f"There is {' and '.join(sorted(self._pages))}.\n".encode()), close
        try:
            return await page(self._reader(request, query)), close
        except Exception:  # a failing page must not end the server
            log.exception("GET %s failed", path)
            return Answer(500, b"The node's log says what failed.\n"), True

    def _reader(self, request: h11.Request, query: str) -> Reader:
        guard = self._guard
        return Reader(ANONYMOUS if guard is None else guard.principal(_authorization(request)), self._peer, query)

    async def _answer(self, answer: Answer, *, close: bool, head: bool = False) -> None:
        headers = [("Content-Type", answer.content_type), ("Content-Length", str(len(answer.body)))]
        if answer.status == 405:
            headers.append(("Allow", "GET, HEAD"))
        if answer.status == 401:
            from tidelog.security.http_login import CHALLENGE

            headers.append(("WWW-Authenticate", CHALLENGE))
        if close:
            headers.append(("Connection", "close"))
        h11 = self._h11
        parts = [self._connection.send(h11.Response(status_code=answer.status, headers=headers))]
        if not head:
            parts.append(self._connection.send(h11.Data(answer.body)))
        parts.append(self._connection.send(h11.EndOfMessage()))
        self._stream.write(b"".join(part for part in parts if part))
        async with asyncio.timeout(self._timeout_s):
            await self._stream.drain()
            if close:
                self._stream.write_eof()


def _has_body(request: h11.Request) -> bool:
    """Whether the request announces a body; no page needs one."""
    announced = {name: value for name, value in request.headers if name in (b"content-length", b"transfer-encoding")}
    return announced.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in announced


def _authorization(request: h11.Request) -> bytes | None:
    """The header; None without one, and when several leave open which one counts."""
    found = [value for name, value in request.headers if name == b"authorization"]
    return found[0] if len(found) == 1 else None
