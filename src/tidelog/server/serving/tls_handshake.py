"""The TLS handshakes of one listener: what happens between a connection's first byte and its first request.

A stranger must cost next to nothing. Nothing is allocated for a connection before its first byte, which also tells a client
that speaks plain text. Handshakes take turns: at most ``TURN_NS`` of the loop at a time, then other connections are served. A
handshake that is not complete within ``WITHIN_S`` is closed, and of more than ``MOST_AT_ONCE`` an old one.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from tidelog.security.principal import ANONYMOUS, KafkaPrincipal
from tidelog.security.principal_mapping import NoRuleMatches
from tidelog.server.runtime import LoopRuntime
from tidelog.server.serving.newcomers import Newcomers
from tidelog.server.serving.tls_listener import TlsListener
from tidelog.server.serving.tls_transport import TlsTransport

log = logging.getLogger(__name__)

WITHIN_S = 10.0
MOST_AT_ONCE = 1000
"""Handshakes of one listener that have begun and are not complete."""
TURN_NS = 2_000_000
_TLS_RECORD = 0x16
_LETTERS = frozenset(b"GPHDOCT")
"""The first letters of HTTP's methods."""

Secured = Callable[[TlsTransport, str, KafkaPrincipal], None]


class Handshake:
    """One connection that is not secured yet."""

    __slots__ = ("alarm", "connected", "host", "secure")

    def __init__(self, connected: socket.socket, host: str) -> None:
        self.connected = connected
        self.host = host
        self.secure: ssl.SSLSocket | None = None
        """From its first byte on."""
        self.alarm: asyncio.TimerHandle | None = None

    @property
    def fd(self) -> int:
        return (self.secure or self.connected).fileno()


class Handshakes:
    """Takes connections of a listener from ``accept`` to ``secured``, or to ``ended``."""

    def __init__(
        self,
        tls: TlsListener,
        runtime: LoopRuntime,
        secured: Secured,
        ended: Callable[[str], None],
        newcomers: Newcomers,
    ) -> None:
        """``secured`` gets the transport, the address and the principal; ``ended`` the address of a connection that was
        closed instead."""
        self._newcomers = newcomers
        self._tls = tls
        self._runtime = runtime
        self._loop = runtime.loop
        self._secured = secured
        self._ended = ended
        self._waiting: dict[Handshake, None] = {}
        """No byte has arrived."""
        self._begun: dict[Handshake, None] = {}
        """The oldest first."""
        self._ready: deque[Handshake] = deque()

    def __len__(self) -> int:
        return len(self._waiting) + len(self._begun)

    def accept(self, connected: socket.socket, host: str) -> None:
        """Begins with a connected, non-blocking socket, which belongs to this object from now on."""
        handshake = Handshake(connected, host)
        handshake.alarm = self._loop.call_later(WITHIN_S, self._too_late, handshake)
        self._waiting[handshake] = None
        self._newcomers.add(handshake, host, partial(self._drop, handshake))
        self._loop.add_reader(handshake.fd, self._readable, handshake)

    def close(self) -> None:
        """Closes all connections that are not secured."""
        for handshake in [*self._waiting, *self._begun]:
            self._drop(handshake)

    # -- turns ------------------------------------------------------------------------------------------------------------

    def _readable(self, handshake: Handshake) -> None:
        self._loop.remove_reader(handshake.fd)
        self._queue(handshake)

    def _writable(self, handshake: Handshake) -> None:
        self._loop.remove_writer(handshake.fd)
        self._queue(handshake)

    def _queue(self, handshake: Handshake) -> None:
        self._ready.append(handshake)
        if len(self._ready) == 1:
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        end = self._runtime.busy_ns() + TURN_NS
        while self._ready:
            handshake = self._ready.popleft()
            if handshake in self._begun or handshake in self._waiting:
                self._step(handshake)
            if self._runtime.busy_ns() >= end:
                break
        if self._ready:
            self._loop.call_soon(self._turn)

    # -- one handshake ----------------------------------------------------------------------------------------------------

    def _step(self, handshake: Handshake) -> None:
        try:
            secure = handshake.secure or self._begin(handshake)
            if secure is None:
                return
            secure.do_handshake()
        except ssl.SSLWantReadError:
            self._loop.add_reader(handshake.fd, self._readable, handshake)
        except ssl.SSLWantWriteError:
            self._loop.add_writer(handshake.fd, self._writable, handshake)
        except (OSError, ValueError) as error:
            self._fail(handshake, explain(error))
        else:
            self._complete(handshake, secure)

    def _begin(self, handshake: Handshake) -> ssl.SSLSocket | None:
        """Looks at the first byte; None when the connection was closed, or nothing was there."""
        try:
            first = handshake.connected.recv(1, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            self._loop.add_reader(handshake.fd, self._readable, handshake)
            return None
        if not first:
            # A probe of the port; nothing went wrong.
            self._drop(handshake)
            return None
        if first[0] != _TLS_RECORD:
            self._tls.plain_bytes += 1
            kind = "HTTP" if first[0] in _LETTERS else "plain text (security.protocol of the client)"
            self._fail(handshake, f"the client speaks {kind}, and this listener TLS")
            return None
        del self._waiting[handshake]
        if len(self._begun) >= MOST_AT_ONCE:
            # Of the same address, if it has others: a flood closes its own.
            own = (each for each in self._begun if each.host == handshake.host)
            oldest = next(own, None) or next(iter(self._begun))
            self._fail(oldest, f"more than {MOST_AT_ONCE} handshakes are under way, and this is the oldest")
        self._begun[handshake] = None
        handshake.secure = self._tls.context.wrap_socket(handshake.connected, server_side=True, do_handshake_on_connect=False)
        return handshake.secure

    def _complete(self, handshake: Handshake, secure: ssl.SSLSocket) -> None:
        try:
            principal = self._principal(secure)
        except (NoRuleMatches, ValueError) as error:
            self._fail(handshake, str(error))
            return
        self._forget(handshake)
        self._tls.completed += 1
        self._secured(TlsTransport(secure), handshake.host, principal)

    def _principal(self, secure: ssl.SSLSocket) -> KafkaPrincipal:
        """Who shows the certificate. NoRuleMatches; ValueError for a name that cannot be read."""
        certificate = secure.getpeercert(True)
        return ANONYMOUS if certificate is None else self._tls.principal_of(certificate)

    def _too_late(self, handshake: Handshake) -> None:
        if handshake in self._waiting:
            self._fail(handshake, f"the client sent nothing within {WITHIN_S:.0f} s")
        else:
            self._fail(handshake, f"it was not complete within {WITHIN_S:.0f} s")

    def _fail(self, handshake: Handshake, reason: str) -> None:
        self._tls.failed(handshake.host, reason, self._runtime.real_ms())
        self._drop(handshake)

    def _drop(self, handshake: Handshake) -> None:
        fd = handshake.fd
        if fd >= 0:
            self._loop.remove_reader(fd)
            self._loop.remove_writer(fd)
        self._forget(handshake)
        (handshake.secure or handshake.connected).close()
        self._ended(handshake.host)

    def _forget(self, handshake: Handshake) -> None:
        if handshake.alarm is not None:
            handshake.alarm.cancel()
        self._newcomers.remove(handshake)
        self._waiting.pop(handshake, None)
        self._begun.pop(handshake, None)


_REASONS = {
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "the client shows no certificate, and ssl.client.auth is required",
    "NO_SHARED_CIPHER": "the client offers no cipher suite that this listener has (ssl.cipher.suites, kind of the key)",
    "UNSUPPORTED_PROTOCOL": "the client offers no TLS version that this listener has (ssl.enabled.protocols)",
    "NO_PROTOCOLS_AVAILABLE": "the client offers no TLS version that this listener has (ssl.enabled.protocols)",
    "WRONG_VERSION_NUMBER": "the client sends what is no TLS",
}
_DISTRUST = frozenset({"UNKNOWN_CA", "CERTIFICATE_UNKNOWN", "BAD_CERTIFICATE", "CERTIFICATE_EXPIRED", "UNSUPPORTED_CERTIFICATE"})


def explain(error: Exception) -> str:
    """Why a handshake failed, for the log."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the client's certificate is not accepted: {error.verify_message}"
    if isinstance(error, ssl.SSLEOFError | ConnectionError):
        return "the client closed the connection; it may not trust this node's certificate"
    reason = error.reason if isinstance(error, ssl.SSLError) and error.reason else ""
    if reason in _REASONS:
        return _REASONS[reason]
    _, alert, name = reason.partition("_ALERT_")
    if alert and name in _DISTRUST:
        return f"the client does not accept this node's certificate ({_words(name)})"
    return f"the client refuses it ({_words(name)})" if alert else _words(reason) or str(error)


def _words(name: Any) -> str:
    return str(name).replace("_", " ").lower()
