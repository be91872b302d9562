"""Connections from this node to others, for whoever has a question and waits for its answer.

A channel is one TCP connection for one purpose, so that a long poll never holds up what is urgent. It is opened when somebody
asks, agrees on versions once, and carries several requests, which are answered in their order. When the connection cannot be
opened or is lost, everybody who waits is told at once, and whoever asks next waits for what is left of the pause after that:
``BACKOFF_MS``, doubled with each failure in a row up to ``LONGEST_BACKOFF_MS``, a fifth more or less by chance
(reconnect.backoff.ms, reconnect.backoff.max.ms).

An answer belongs to who asked for it: views of records stay valid for as long as they are held. A request that was sent and
whose asker has gone keeps its place, for its answer still comes; when that is overdue too, the connection is given up, because
nothing behind it can be answered.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from ipaddress import ip_address
from typing import Any, cast

from tidelog.client.connection import ClientConnection, UnsupportedByBroker
from tidelog.model.errors import ProtocolViolation
from tidelog.protocol import registry
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.framing import FrameReader
from tidelog.server.runtime import LoopRuntime

log = logging.getLogger(__name__)

BACKOFF_MS = 50
LONGEST_BACKOFF_MS = 1000
SETUP_TIMEOUT_S = 10.0
"""For name, connection and versions together (socket.connection.setup.timeout.ms)."""
IN_FLIGHT = 16
"""Requests sent and not answered; more wait for their turn."""
LARGEST_ANSWER_BYTES = 256 * 1024 * 1024
LARGEST_FIRST_BUFFER = 1 << 20
"""A connection whose answers are large begins each of them with a buffer of up to this size."""
MOST_IDLE_CHANNELS = 256

_BULK = (ApiKey.FETCH, ApiKey.FETCH_SNAPSHOT)
"""Their answers hold views of what was received."""


class Failure(Enum):
    """Why a request has no answer."""

    DISCONNECTED = "disconnected"
    """Nobody knows whether the other side has acted on it."""
    REFUSED = "refused"
    """Nobody listens at that address; the request was never sent."""
    UNSUPPORTED = "unsupported"
    """The other side does not serve the request, or not in a version that can say what it says; the connection goes on."""
    TIMEOUT = "timeout"
    """As with DISCONNECTED."""


class ChannelError(Exception):
    """A request without an answer."""

    def __init__(self, kind: Failure, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class RawAnswer:
    """A response that was not decoded: its body, in the agreed version."""

    version: int
    body: memoryview


@dataclass(eq=False, slots=True)
class _Asked:
    request: Any
    raw: bool
    answer: asyncio.Future[Any]
    highest: int | None = field(default=None)
    alarm: asyncio.TimerHandle | None = field(default=None)

    def settle(self, result: Any) -> None:
        if self.alarm is not None:
            self.alarm.cancel()
        if not self.answer.done():
            if isinstance(result, Exception):
                self.answer.set_exception(result)
            else:
                self.answer.set_result(result)


class _Line(asyncio.BufferedProtocol):
    """One connection: bytes to answers, in the order of the requests."""

    def __init__(self, channel: Channel, client_id: str) -> None:
        self._channel = channel
        self._client = ClientConnection(client_id)
        self._reader = FrameReader(LARGEST_ANSWER_BYTES, max_plain_bytes=LARGEST_ANSWER_BYTES)
        self._transport: asyncio.Transport | None = None
        self.asked: deque[_Asked] = deque()
        self.paused = False
        self.lost: Exception | None = None

    async def hello(self, loop: asyncio.AbstractEventLoop) -> None:
        """Agree on versions. OSError or ProtocolViolation when that fails."""
        frame: bytes | None = self._client.hello()
        while frame is not None:
            asked = _Asked(None, False, loop.create_future())
            self._write(frame, asked)
            frame = self._client.welcomed(await asked.answer)

    def send(self, asked: _Asked) -> None:
        """UnsupportedByBroker or ValueError when that cannot be said to the other side."""
        self._write(self._client.request(asked.request, asked.highest), asked)

    def _write(self, frame: bytes, asked: _Asked) -> None:
        if self.lost is not None:
            raise self.lost
        assert self._transport is not None
        self.asked.append(asked)
        self._transport.write(frame)

    def close(self, reason: Exception) -> None:
        """Everybody who waits for an answer is told ``reason``."""
        if self.lost is None:
            self.lost = reason
            if self._transport is not None:
                self._transport.abort()
            asked, self.asked = self.asked, deque()
            for each in asked:
                each.settle(ChannelError(Failure.DISCONNECTED, str(reason)) if each.request is not None else reason)

    # What the transport calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if self.lost is not None:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._channel.line_lost(self, exc or ConnectionResetError("the other side closed the connection"))

    def pause_writing(self) -> None:
        self.paused = True

    def resume_writing(self) -> None:
        self.paused = False
        self._channel.pump()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._reader.writable()

    def buffer_updated(self, nbytes: int) -> None:
        try:
            self._reader.received(nbytes)
            while self.lost is None and (frame := self._reader.next_frame()) is not None:
                self._answered(frame)
        except ProtocolViolation as violation:
            self._channel.line_lost(self, violation)
        else:
            self._channel.pump()

    def _answered(self, frame: memoryview) -> None:
        api_key, version, body = self._client.accept(frame)
        asked = self.asked[0]
        # Who asked stays among those who wait until the answer has been read: one that cannot be ends the connection.
        answer = RawAnswer(version, body) if asked.raw else registry.response_class(api_key).decode(body, version)
        self.asked.popleft()
        if asked.raw or api_key in _BULK:
            self._give_buffer_away(len(frame))
        asked.settle(answer)

    def _give_buffer_away(self, size: int) -> None:
        """The answer keeps the buffer that it came in; what came after it moves to a new one."""
        former = self._reader
        self._reader = FrameReader(LARGEST_ANSWER_BYTES, min(size + 4096, LARGEST_FIRST_BUFFER), LARGEST_ANSWER_BYTES)
        rest = former.take_pending()
        while rest:
            room = self._reader.writable()
            count = min(len(room), len(rest))
            room[:count] = rest[:count]
            self._reader.received(count)
            rest = rest[count:]


class Channel:
    """One connection to one node for one purpose; made by ``Channels.to``."""

    def __init__(self, runtime: LoopRuntime, client_id: str, host: str, port: int, purpose: str) -> None:
        self._runtime = runtime
        self._client_id = client_id
        self.host, self.port, self.purpose = host, port, purpose
        self._line: _Line | None = None
        self._opening: asyncio.Task[None] | None = None
        self._unsent: deque[_Asked] = deque()
        self._failures = 0
        self._failed_s = 0.0
        self._closed = False

    def __str__(self) -> str:
        return f"{self.host}:{self.port} ({self.purpose})"

    @property
    def idle(self) -> bool:
        """Not connected, and nobody waits for it."""
        return self._line is None and self._opening is None

    async def ask(self, request: Any, *, timeout_ms: int, raw: bool = False, version: int | None = None) -> Any:
        """The response to ``request`` (with ``raw``: a ``RawAnswer``), within ``timeout_ms`` of the machine's time.

        ``version``: the highest to ask in; whoever passes a client's request on asks in the client's, which may say what later
        ones cannot, and is answered in it. ChannelError when there is no response; it says why.
        """
        asked = self._asked(request, timeout_ms, raw, version)
        try:
            return await asked.answer
        finally:
            if asked in self._unsent:
                self._unsent.remove(asked)
                asked.settle(None)
            asked.answer.cancel()

    def begin(self, request: Any, *, timeout_ms: int) -> asyncio.Future[Any]:
        """The same for who asks all the time: what ``ask`` returns or raises, without a coroutine. It may be cancelled."""
        return self._asked(request, timeout_ms, False, None).answer

    def _asked(self, request: Any, timeout_ms: int, raw: bool, version: int | None) -> _Asked:
        loop = self._runtime.loop
        asked = _Asked(request, raw, loop.create_future(), version)
        if self._closed:
            asked.settle(ChannelError(Failure.DISCONNECTED, f"{self}: this node closed the connection"))
        else:
            asked.alarm = loop.call_later(max(0, timeout_ms) / 1000, self._overdue, asked, timeout_ms)
            self._unsent.append(asked)
            self.pump()
        return asked

    def pump(self) -> None:
        """Send what can be sent."""
        if self._closed:
            return
        line = self._line
        if line is None:
            if self._unsent and self._opening is None:
                self._opening = self._runtime.spawn(self._open(), f"connecting to {self}")
            return
        while self._unsent and len(line.asked) < IN_FLIGHT and not line.paused and line.lost is None:
            asked = self._unsent.popleft()
            if asked.answer.done():
                asked.settle(None)
                continue
            try:
                line.send(asked)
            except (UnsupportedByBroker, ValueError) as error:
                asked.settle(ChannelError(Failure.UNSUPPORTED, f"{self}: {error}"))

    def _overdue(self, asked: _Asked, timeout_ms: int) -> None:
        detail = f"{self}: no answer to {type(asked.request).__name__} within {timeout_ms} ms"
        line = self._line
        asked.settle(ChannelError(Failure.TIMEOUT, detail))
        if line is not None and asked in line.asked:
            self.line_lost(line, ConnectionAbortedError(detail))

    async def _open(self) -> None:
        if self._failures:
            longest = min(BACKOFF_MS << min(self._failures - 1, 10), LONGEST_BACKOFF_MS)
            pause_s = longest * (0.8 + 0.4 * self._runtime.rng.random()) / 1000
            # Who asks again long afterwards does not wait: it may be the first of the node's next life to ask.
            await asyncio.sleep(max(0.0, self._failed_s + pause_s - self._runtime.loop.time()))
        line = _Line(self, self._client_id)
        try:
            async with asyncio.timeout(SETUP_TIMEOUT_S):
                await self._connect(line)
                await line.hello(self._runtime.loop)
        except (OSError, ValueError, ProtocolViolation) as error:  # ValueError: a name that cannot be one
            self._failures += 1
            self._failed_s = self._runtime.loop.time()
            self._opening = None
            line.close(error)
            self._tell_all(error)
        except asyncio.CancelledError:
            line.close(ConnectionAbortedError("this node closed the connection"))
            raise
        else:
            self._failures = 0
            self._opening, self._line = None, line
            self.pump()

    async def _connect(self, line: _Line) -> None:
        if is_address(self.host):
            # No thread: those may all wait for a slow disk.
            await self._runtime.loop.create_connection(lambda: line, self.host, self.port)
            return
        # In a thread of ours: names are looked up as the system does it, and whoever stops can wait for that.
        found = await self._runtime.run_blocking(lambda: socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM))
        addresses = sorted(found, key=lambda each: each[0] != socket.AF_INET)
        address = addresses[self._failures % len(addresses)][4]
        await self._runtime.loop.create_connection(lambda: line, str(address[0]), self.port)

    def line_lost(self, line: _Line, reason: Exception) -> None:
        """A line has ended, or must end."""
        line.close(reason)
        if line is not self._line:
            return
        self._line = None
        self._failures = 1
        self._failed_s = self._runtime.loop.time()
        log.debug("%s: %s", self, reason)
        self._tell_all(reason)

    def _tell_all(self, reason: Exception) -> None:
        kind = Failure.REFUSED if isinstance(reason, ConnectionRefusedError) else Failure.DISCONNECTED
        unsent, self._unsent = self._unsent, deque()
        for asked in unsent:
            asked.settle(ChannelError(kind, f"{self}: {reason}"))

    def close(self) -> None:
        """Everybody who waits is told; nobody is asked any more."""
        self._closed = True
        reason = ConnectionAbortedError("this node closed the connection")
        if self._opening is not None:
            self._opening.cancel()
            self._opening = None
        if self._line is not None:
            self.line_lost(self._line, reason)
        self._tell_all(reason)


def is_address(host: str) -> bool:
    """Is it an IP address, and no name that would have to be looked up?"""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


class Channels:
    """The channels of one node."""

    def __init__(self, runtime: LoopRuntime, client_id: str) -> None:
        self._runtime = runtime
        self._client_id = client_id
        self._channels: dict[tuple[str, int, str], Channel] = {}
        self._closed = False

    def to(self, host: str, port: int, purpose: str) -> Channel:
        """The channel for ``purpose`` to who listens there; it is connected when it is first asked.

        To be called for each question: addresses change, and channels that nobody has used are given up when there are many.
        """
        key = (host, port, purpose)
        found = self._channels.get(key)
        if found is None:
            if len(self._channels) >= MOST_IDLE_CHANNELS:
                for old in [where for where, each in self._channels.items() if each.idle]:
                    self._channels.pop(old).close()
            found = self._channels[key] = Channel(self._runtime, self._client_id, host, port, purpose)
            if self._closed:
                found.close()
        return found

    def close(self) -> None:
        """Everybody who waits is told; nobody is asked any more."""
        self._closed = True
        for channel in list(self._channels.values()):
            channel.close()
