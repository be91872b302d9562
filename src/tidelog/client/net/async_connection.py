"""One connection on asyncio: turns bytes into responses, in the order of the requests; several may be in flight."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias, cast

from tidelog.client.connection import ClientConnection
from tidelog.client.connection_opening import Opening, SessionClock
from tidelog.model.errors import ProtocolViolation
from tidelog.protocol import registry
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.framing import FrameReader

LARGEST_ANSWER_BYTES = 256 * 1024 * 1024
LARGEST_FIRST_BUFFER = 1 << 20
"""On a connection with large responses, the buffer for each starts with up to this size."""
COPIED_BYTES = 8192
"""A response of up to this size is copied where it would hold views of the receive buffer: cheaper than another buffer."""
_BULK = (ApiKey.FETCH, ApiKey.FETCH_SNAPSHOT)
"""Responses of these APIs hold views of what was received."""


class RawAnswer(NamedTuple):
    """A response that is not decoded: its body, in the negotiated version."""

    version: int
    body: memoryview


class Over(NamedTuple):
    """A caller's answer to the last response that it read by itself: the future gets ``result``, a value or an exception."""

    result: Any


OnFrame: TypeAlias = "Callable[[Line, memoryview], bytes | Over | None]"
"""Reads the response in a frame where it lies, for requests that follow each other closely. It returns the frame of the next
request, whose response is waited for in turn, by the same caller; or that this is over; or None for a response that the classes
have to decode. What it reads and sends it settles with ``Line.machine``. It raises nothing."""


class Asked:
    """A request and the future of its response. ``request`` is None for those that open the connection.

    ``due_s``: by the loop's clock, when the response is overdue, ``timeout_ms`` after the request.
    """

    __slots__ = ("answer", "due_s", "highest", "on_frame", "raw", "request", "timeout_ms")

    def __init__(
        self, request: Any, raw: bool, answer: asyncio.Future[Any], highest: int | None = None, on_frame: OnFrame | None = None
    ) -> None:
        self.request = request
        self.raw = raw
        self.answer = answer
        self.highest = highest
        self.on_frame = on_frame
        self.due_s = 0.0
        self.timeout_ms = 0

    def settle(self, result: Any) -> None:
        """Set the result or exception, unless the caller was cancelled."""
        if not self.answer.done():
            if isinstance(result, Exception):
                self.answer.set_exception(result)
            else:
                self.answer.set_result(result)


class Line(asyncio.BufferedProtocol):
    """The connection. A response belongs to its caller: views of records stay valid as long as they are referenced."""

    def __init__(
        self,
        machine: ClientConnection,
        on_lost: Callable[[Line, Exception], None],
        on_room: Callable[[], None] = lambda: None,
        failure: Callable[[Exception], Exception] = lambda reason: reason,
    ) -> None:
        """``on_lost``: called when the connection breaks; it must call ``close``. ``on_room``: called when more can be sent.

        ``failure``: builds the exception for callers that get no response, from the reason.
        """
        self.machine = machine
        self._on_lost, self._on_room, self._failure = on_lost, on_room, failure
        self._reader = FrameReader(LARGEST_ANSWER_BYTES, max_plain_bytes=LARGEST_ANSWER_BYTES)
        self._transport: asyncio.Transport | None = None
        self._open = False
        self.asked: deque[Asked] = deque()
        self.paused = False
        self.lost: Exception | None = None
        self._session = SessionClock()
        self._time: Callable[[], float] = float

    async def log_in(self, login: Opening, loop: asyncio.AbstractEventLoop, spread: float) -> None:
        """Run a login, the first or a later one; nothing else may be sent meanwhile. Raises what ``converse`` raises, and
        NotAuthenticated. ``spread``: see ``SessionClock``."""
        asked_s = loop.time()
        lifetime_ms = await self.converse(login, loop)
        self._session.began(lifetime_ms, asked_s, loop.time(), spread)

    def session_ends(self, now_s: float) -> bool:
        """Whether the client has to log in again before it sends more. ``now_s``: the time of the loop."""
        return self._session.is_due(now_s)

    async def converse(self, conversation: Opening, loop: asyncio.AbstractEventLoop) -> int:
        """Run the opening of the connection, and return its result. OSError or ProtocolViolation when that fails."""
        try:
            frame = next(conversation)
            while True:
                asked = Asked(None, False, loop.create_future())
                self._write(frame, asked)
                frame = conversation.send(await asked.answer)
        except StopIteration as end:
            self._open = True
            return int(end.value)

    def send(self, asked: Asked) -> None:
        """Send a request. UnsupportedByBroker or ValueError if the negotiated versions cannot encode it."""
        self._write(self.machine.request(asked.request, asked.highest), asked)

    def _write(self, frame: bytes, asked: Asked) -> None:
        if self.lost is not None:
            raise self.lost
        assert self._transport is not None
        self.asked.append(asked)
        self._transport.write(frame)

    def close(self, reason: Exception) -> None:
        """Close the connection and fail every waiting caller."""
        if self.lost is None:
            self.lost = reason
            if self._transport is not None:
                self._transport.abort()
            asked, self.asked = self.asked, deque()
            for each in asked:
                each.settle(self._failure(reason) if each.request is not None else reason)

    # asyncio callbacks

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._time = asyncio.get_running_loop().time
        if self.lost is not None:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._on_lost(self, exc or ConnectionResetError("the other side closed the connection"))

    def pause_writing(self) -> None:
        self.paused = True

    def resume_writing(self) -> None:
        self.paused = False
        self._on_room()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._reader.writable()

    def buffer_updated(self, nbytes: int) -> None:
        waiting = len(self.asked)
        try:
            self._reader.received(nbytes)
            if not self._open:
                self.machine.check_first(self._reader.head(4))
            while self.lost is None and (frame := self._reader.next_frame()) is not None:
                more = self._reader.more
                self._answered(frame)
                if not more:
                    break
        except ProtocolViolation as violation:
            self._on_lost(self, violation)
        else:
            if len(self.asked) < waiting:
                self._on_room()

    def _taken(self, frame: memoryview) -> bool:
        """Whether the caller of the only request has read the response itself, and perhaps sent the next request."""
        asked = self.asked[0]
        if asked.on_frame is None or len(self.asked) > 1 or asked.answer.done():
            return False
        taken = asked.on_frame(self, frame)
        if taken is None:
            return False
        if isinstance(taken, Over):
            self.asked.popleft()
            asked.settle(taken.result)
        else:
            assert self._transport is not None
            asked.due_s = self._time() + asked.timeout_ms / 1000
            self._transport.write(taken)
        return True

    def _answered(self, frame: memoryview) -> None:
        if self.asked and self._taken(frame):
            return
        api_key, version, body = self.machine.accept(frame)
        asked = self.asked[0]
        # The request stays queued until its response is decoded: a failure to decode closes the connection and fails the request.
        bulk = asked.raw or api_key in _BULK
        if bulk and len(frame) <= COPIED_BYTES:
            body, bulk = memoryview(bytes(body)), False
        answer: Any
        if asked.raw:
            answer = RawAnswer(version, body)
        else:
            answer = registry.response_class(api_key).decode(body, version)
        self.asked.popleft()
        if bulk:
            self._give_buffer_away(len(frame))
        asked.settle(answer)

    def _give_buffer_away(self, size: int) -> None:
        """Leave the current buffer to the response; the bytes behind it move to a new one."""
        former = self._reader
        self._reader = FrameReader(LARGEST_ANSWER_BYTES, min(size + 4096, LARGEST_FIRST_BUFFER), LARGEST_ANSWER_BYTES)
        rest = former.take_pending()
        while rest:
            room = self._reader.writable()
            count = min(len(room), len(rest))
            room[:count] = rest[:count]
            self._reader.received(count)
            rest = rest[count:]
