"""Logs why connections were closed, without letting a client fill the disk with log lines.

The first five of each second are logged in full, with address and client id; the rest are only counted.
"""

from __future__ import annotations

import logging

log = logging.getLogger(__name__)

TOLD_PER_SECOND = 5
LONGEST_CLIENT_ID = 100


class Violations:
    """One per listener."""

    __slots__ = ("_second", "_told", "_untold", "total")

    def __init__(self) -> None:
        self.total = 0
        self._second = -1
        self._told = 0
        self._untold = 0

    def tell(self, peer: str, client_id: str | None, error: Exception, now_ms: int) -> None:
        """Logs that a connection is closed because of ``error``."""
        self.total += 1
        second = now_ms // 1000
        if second != self._second:
            if self._untold:
                log.info("closed %d more connections that sent what cannot be read or is not served", self._untold)
            self._second, self._told, self._untold = second, 0, 0
        if self._told < TOLD_PER_SECOND:
            self._told += 1
            log.info("closing the connection of %s (client id %s): %s", peer, _quoted(client_id), error)
        else:
            self._untold += 1


def _quoted(client_id: str | None) -> str:
    """On one line, and at most 100 characters of it."""
    return "none" if client_id is None else repr(client_id[:LONGEST_CLIENT_ID])
