"""Connections from this node to others, for requests whose callers wait for the answer.

A channel is one TCP connection for one purpose, so that a long poll never delays urgent requests. It connects on the first
request, negotiates versions once, and carries several requests, answered in order. When connecting fails or the connection is
lost, all waiting requests fail immediately, and the next request waits for the rest of a back-off: ``BACKOFF_MS``, doubled with
each consecutive failure up to ``LONGEST_BACKOFF_MS``, with 20 % jitter (reconnect.backoff.ms, reconnect.backoff.max.ms).

The caller owns the answer: views of records stay valid as long as they are held. A request that was sent and whose caller gave up
keeps its place, because its answer will still arrive; when that is overdue too, the connection is closed, because nothing behind
it can be answered.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import deque
from enum import Enum
from typing import Any

from tidelog.client.connection import ClientConnection, UnsupportedByBroker
from tidelog.client.connection_opening import SetupTimeout
from tidelog.client.failures import NotAuthenticated
from tidelog.client.net.async_connection import Asked, Line, OnFrame
from tidelog.model.addresses import is_address
from tidelog.model.errors import ProtocolViolation
from tidelog.server.cluster.node_login import PLAIN_TEXT, NodeLogin, log_in, open_line
from tidelog.server.runtime import LoopRuntime

log = logging.getLogger(__name__)

BACKOFF_MS = 50
LONGEST_BACKOFF_MS = 1000
SETUP = SetupTimeout()
IN_FLIGHT = 16
"""Requests sent but unanswered; further ones are queued."""
MOST_IDLE_CHANNELS = 256
_EXPECTED = (OSError, ValueError, ProtocolViolation, NotAuthenticated)
"""Why a connection does not open; ValueError: a name that cannot be one. Any other error is a bug: it fails the task, which logs
it, but not the connections after it."""


class Failure(Enum):
    """Why a request has no answer."""

    DISCONNECTED = "disconnected"
    """The outcome is unknown."""
    REFUSED = "refused"
    """No process listens at that address; the request was never sent."""
    UNSUPPORTED = "unsupported"
    """The other side does not serve the request, or no version that can express it; the connection stays open."""
    TIMEOUT = "timeout"
    """The outcome is unknown."""


class ChannelError(Exception):
    """A request without an answer."""

    def __init__(self, kind: Failure, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind


class Channel:
    """One connection to one node for one purpose; created by ``Channels.to``."""

    def __init__(
        self,
        runtime: LoopRuntime,
        client_id: str,
        host: str,
        port: int,
        purpose: str,
        login: NodeLogin = PLAIN_TEXT,
        setup: SetupTimeout = SETUP,
    ) -> None:
        self._runtime = runtime
        self._login, self._setup = login, setup
        self._client_id = client_id
        self.host, self.port, self.purpose = host, port, purpose
        self._line: Line | None = None
        self._opening: asyncio.Task[None] | None = None
        self._unsent: deque[Asked] = deque()
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_s = 0.0
        self._failures = 0
        self._failed_s = 0.0
        self._closed = False

    def __str__(self) -> str:
        return f"{self.host}:{self.port} ({self.purpose})"

    @property
    def idle(self) -> bool:
        """Not connected and not connecting."""
        return self._line is None and self._opening is None

    async def ask(self, request: Any, *, timeout_ms: int, raw: bool = False, version: int | None = None) -> Any:
        """The response to ``request`` (with ``raw``: a ``RawAnswer``), within ``timeout_ms`` of real time.

        ``version``: the highest version to use. A forwarded client request is sent in the client's version, which may contain
        fields that later ones lack, and answered in it. ChannelError, with the reason, when there is no response.
        """
        asked = self._asked(request, timeout_ms, raw, version)
        try:
            return await asked.answer
        finally:
            if asked in self._unsent:
                self._unsent.remove(asked)
                asked.settle(None)
            asked.answer.cancel()

    def begin(self, request: Any, *, timeout_ms: int, on_frame: OnFrame | None = None) -> asyncio.Future[Any]:
        """``ask`` without a coroutine: a future with its result or exception. It may be cancelled. ``timeout_ms`` counts for
        each request that ``on_frame`` sends after this one."""
        return self._asked(request, timeout_ms, False, None, on_frame).answer

    def _asked(self, request: Any, timeout_ms: int, raw: bool, version: int | None, on_frame: OnFrame | None = None) -> Asked:
        loop = self._runtime.loop
        asked = Asked(request, raw, loop.create_future(), version, on_frame)
        if self._closed:
            asked.settle(ChannelError(Failure.DISCONNECTED, f"{self}: this node closed the connection"))
        else:
            asked.timeout_ms = timeout_ms
            asked.due_s = due_s = loop.time() + max(0, timeout_ms) / 1000
            if self._alarm is None or due_s < self._alarm_s:
                self._set_alarm(due_s)
            self._unsent.append(asked)
            self.pump()
        return asked

    def pump(self) -> None:
        """Sends as many queued requests as possible."""
        if self._closed:
            return
        line = self._line
        if line is None:
            if self._unsent and self._opening is None:
                self._opening = self._runtime.spawn(self._open(), f"connecting to {self}")
            return
        if self._unsent and self._opening is None and line.session_ends(self._runtime.loop.time()):
            self._opening = self._runtime.spawn(self._renew(line), f"logging in again on {self}")
        if self._opening is None:  # Nothing may be sent in the middle of a login.
            self._send(line)

    def _send(self, line: Line) -> None:
        while self._unsent and len(line.asked) < IN_FLIGHT and not line.paused and line.lost is None:
            asked = self._unsent.popleft()
            if asked.answer.done():
                asked.settle(None)
                continue
            try:
                line.send(asked)
            except (UnsupportedByBroker, ValueError) as error:
                asked.settle(ChannelError(Failure.UNSUPPORTED, f"{self}: {error}"))
            except Exception as error:
                # A bug in this request or its codec. Its caller gets an answer, and the requests behind it are sent.
                log.exception("%s: %s cannot be sent", self, type(asked.request).__name__)
                asked.settle(ChannelError(Failure.UNSUPPORTED, f"{self}: {error}"))

    def _set_alarm(self, due_s: float) -> None:
        """One timer for all requests, not one for each: it stays set when its request is answered, and then finds nothing due."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_s = due_s
        self._alarm = self._runtime.loop.call_at(due_s, self._look_for_overdue)

    def _look_for_overdue(self) -> None:
        self._alarm = None
        for asked in self._waiting():
            if asked.due_s <= self._alarm_s:
                self._overdue(asked)
        due_s = min((asked.due_s for asked in self._waiting()), default=None)
        if due_s is not None:
            self._set_alarm(due_s)

    def _waiting(self) -> list[Asked]:
        """The requests that an answer may be overdue to: of those that are not sent yet only the ones whose caller waits. A login
        has its own limit."""
        sent = self._line.asked if self._line is not None else ()
        return [
            *(asked for asked in sent if asked.request is not None),
            *(asked for asked in self._unsent if not asked.answer.done()),
        ]

    def _overdue(self, asked: Asked) -> None:
        detail = f"{self}: no answer to {type(asked.request).__name__} within {asked.timeout_ms} ms"
        line = self._line
        asked.settle(ChannelError(Failure.TIMEOUT, detail))
        if line is not None and asked in line.asked:
            self.line_lost(line, ConnectionAbortedError(detail))

    async def _open(self) -> None:
        spread = 1.0
        if self._failures:
            spread = 0.8 + 0.4 * self._runtime.rng.random()
            longest = min(BACKOFF_MS << min(self._failures - 1, 10), LONGEST_BACKOFF_MS)
            pause_s = longest * spread / 1000
            # The back-off counts from the failure, so a request long afterwards does not wait; the node may have restarted.
            await asyncio.sleep(max(0.0, self._failed_s + pause_s - self._runtime.loop.time()))
        line = Line(ClientConnection(self._client_id), self.line_lost, self.pump, _without_answer)
        try:
            async with asyncio.timeout(self._setup.after(self._failures, spread) / 1000):
                await open_line(self._runtime, line, self._login, self.host, self.port, await self._address())
        except Exception as error:
            self._failures += 1
            if isinstance(error, NotAuthenticated) and self._failures == 1:
                log.error("this node cannot log in: %s", error)
            self._failed_s = self._runtime.loop.time()
            self._opening = None
            line.close(error)
            self._tell_all(error)
            if not isinstance(error, _EXPECTED):
                raise
        except asyncio.CancelledError:
            self._opening = None
            line.close(_closed_here())
            self._tell_all(_closed_here())
            raise
        else:
            self._failures = 0
            self._opening, self._line = None, line
            self.pump()

    async def _renew(self, line: Line) -> None:
        """Logs in again (KIP-368). Answers that are still to come arrive first, hence the longest limit."""
        try:
            async with asyncio.timeout(self._setup.longest_ms / 1000):
                await log_in(self._runtime, line, self._login, self.host, self.port)
        except Exception as error:
            if isinstance(error, NotAuthenticated):
                log.error("this node cannot log in again: %s", error)
            self._opening = None
            self.line_lost(line, error)
            self.pump()
            if not isinstance(error, _EXPECTED):
                raise
        except asyncio.CancelledError:
            self._opening = None
            self.line_lost(line, _closed_here())
            raise
        else:
            self._opening = None
            self._send(line)

    async def _address(self) -> str:
        if is_address(self.host):
            # No thread needed: all threads may be waiting for a slow disk.
            return self.host
        # Looked up by the system in one of our worker threads, so that a stop can wait for it.
        found = await self._runtime.run_blocking(lambda: socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM))
        addresses = sorted(found, key=lambda each: each[0] != socket.AF_INET)
        return str(addresses[self._failures % len(addresses)][4][0])

    def line_lost(self, line: Line, reason: Exception) -> None:
        """Handles a lost line, or ends one."""
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
        """Closes the channel; all pending and later requests fail."""
        self._closed = True
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        reason = _closed_here()
        if self._opening is not None:
            self._opening.cancel()
            self._opening = None
        if self._line is not None:
            self.line_lost(self._line, reason)
        self._tell_all(reason)


def _closed_here() -> ConnectionAbortedError:
    return ConnectionAbortedError("this node closed the connection")


def _without_answer(reason: Exception) -> Exception:
    return ChannelError(Failure.DISCONNECTED, str(reason))


class Channels:
    """The channels of one node."""

    def __init__(self, runtime: LoopRuntime, client_id: str, login: NodeLogin = PLAIN_TEXT, setup: SetupTimeout = SETUP) -> None:
        """``login``: what the listeners ask of this node. ``setup``: how long opening a connection may take."""
        self._runtime = runtime
        self._client_id = client_id
        self._login, self._setup = login, setup
        self._channels: dict[tuple[str, int, str], Channel] = {}
        self._closed = False

    def to(self, host: str, port: int, purpose: str) -> Channel:
        """The channel for ``purpose`` to that address; it connects on its first request.

        Call it for every request: addresses change, and idle channels are closed when there are ``MOST_IDLE_CHANNELS`` channels
        or more.
        """
        key = (host, port, purpose)
        found = self._channels.get(key)
        if found is None:
            if len(self._channels) >= MOST_IDLE_CHANNELS:
                for old in [where for where, each in self._channels.items() if each.idle]:
                    self._channels.pop(old).close()
            found = Channel(self._runtime, self._client_id, host, port, purpose, self._login, self._setup)
            self._channels[key] = found
            if self._closed:
                found.close()
        return found

    def close(self) -> None:
        """Closes all channels; pending and later requests fail."""
        self._closed = True
        for channel in list(self._channels.values()):
            channel.close()
