"""Logs why connections were closed, without letting a client fill the disk with log lines.

The first five of each second are logged in full, with address and client id; the rest are only counted.
"""

from __future__ import annotations

import logging

log = logging.getLogger(__name__)

TOLD_PER_SECOND = 5
LONGEST_CLIENT_ID = 100
_METHODS = (b"GET ", b"HEAD ", b"POST ", b"PUT ", b"PATCH ", b"DELETE ", b"OPTIONS ", b"CONNECT ", b"TRACE ", b"PRI * ")
"""The beginnings of HTTP requests, the last one of HTTP/2."""
LOOKED_AT = 8


class LogLimit:
    """Which events of a kind are logged: the first ``per_second`` of each second; the others are counted."""

    __slots__ = ("_per_second", "_second", "_told", "_untold", "total")

    def __init__(self, per_second: int = TOLD_PER_SECOND) -> None:
        self.total = 0
        self._per_second = per_second
        self._second = -1
        self._told = 0
        self._untold = 0

    def untold(self, now_ms: int) -> int:
        """How many events of the last second were not logged, once that second is over; then 0."""
        second = now_ms // 1000
        if second == self._second:
            return 0
        untold, self._second, self._told, self._untold = self._untold, second, 0, 0
        return untold

    def takes(self) -> bool:
        """Whether this event is logged; called once for each."""
        self.total += 1
        taken = self._told < self._per_second
        self._told += taken
        self._untold += not taken
        return taken


class Violations:
    """One per listener."""

    __slots__ = ("_limit",)

    def __init__(self) -> None:
        self._limit = LogLimit()

    @property
    def total(self) -> int:
        return self._limit.total

    def tell(self, peer: str, client_id: str | None, error: Exception, now_ms: int, head: bytes = b"") -> None:
        """Logs that a connection is closed because of ``error``. ``head``: the first bytes that were not handled, at least
        ``LOOKED_AT`` of them where there are so many."""
        if untold := self._limit.untold(now_ms):
            log.info("closed %d more connections that sent what cannot be read or is not served", untold)
        if self._limit.takes():
            log.info("closing the connection of %s (client id %s): %s", peer, _quoted(client_id), _http(head) or error)


def _http(head: bytes) -> str:
    """What an HTTP client did wrong; empty for another one. As the size of a frame, such a method is more than a billion."""
    if not head.startswith(_METHODS):
        return ""
    return "an HTTP request, but this listener speaks Kafka's protocol; metrics and health are at tidelog.http.listener"


def _quoted(client_id: str | None) -> str:
    """On one line, and at most 100 characters of it."""
    return "none" if client_id is None else repr(client_id[:LONGEST_CLIENT_ID])
