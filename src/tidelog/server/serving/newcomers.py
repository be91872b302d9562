"""The connections of one listener whose clients have not authenticated, and how many of them there may be.

Beyond the limit of an address, the oldest of that address is closed. Beyond the limit of the listener it is the oldest of the
address that has just connected; where that is its only connection, the oldest of all. So a flood from a few addresses closes its
own. A client that logs in needs milliseconds for it, hence connections that only wait go first, and none of a client that has
authenticated is ever closed. Connections that a quota holds back before they are closed (KIP-612) count here, too.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from tidelog.server.serving.violations import LogLimit

log = logging.getLogger(__name__)


class Newcomers:
    """Counts connections by address, the oldest first."""

    __slots__ = ("_by_host", "_close", "_late", "_limit", "_listener", "_most", "_most_per_ip", "_real_ms", "turned_away")

    def __init__(self, listener: str, real_ms: Callable[[], int]) -> None:
        """``real_ms``: the clock of log limits."""
        self.turned_away = 0
        """Connections closed because of a limit."""
        self._listener = listener
        self._real_ms = real_ms
        self._most = self._most_per_ip = 0
        self._close: dict[object, tuple[str, Callable[[], None]]] = {}
        self._by_host: dict[str, dict[object, None]] = {}
        self._limit, self._late = LogLimit(), LogLimit()

    def __len__(self) -> int:
        return len(self._close)

    def allow(self, most: int, most_per_ip: int) -> None:
        """The limits from the next connection on."""
        self._most, self._most_per_ip = most, most_per_ip

    def add(self, connection: object, host: str, close: Callable[[], None]) -> None:
        """A connection of a client that is unknown. ``close`` ends it, and leads to ``remove``."""
        of_host = self._by_host.setdefault(host, {})
        of_host[connection] = None
        self._close[connection] = host, close
        if len(of_host) > self._most_per_ip:
            self._turn_away(
                next(iter(of_host)), f"{self._most_per_ip} of its address (tidelog.max.unauthenticated.connections.per.ip)"
            )
        elif len(self._close) > self._most:
            self._turn_away(
                next(iter(of_host if len(of_host) > 1 else self._close)),
                f"{self._most} of the listener (tidelog.max.unauthenticated.connections)",
            )

    def remove(self, connection: object) -> None:
        """The connection is closed, or its client has authenticated."""
        found = self._close.pop(connection, None)
        if found is None:
            return
        of_host = self._by_host[found[0]]
        del of_host[connection]
        if not of_host:
            del self._by_host[found[0]]

    def _turn_away(self, connection: object, limit: str) -> None:
        host, close = self._close[connection]
        self.turned_away += 1
        if self._is_logged(self._limit, logging.WARNING):
            log.warning(
                "listener %s closes a connection of %s that has not authenticated: it is the oldest, and there are more than %s",
                self._listener,
                host,
                limit,
            )
        self.remove(connection)
        close()

    def too_late(self, host: str, within_s: float) -> None:
        """Logs that a connection is closed because its client has not authenticated in time. The closing leads to ``remove``."""
        if self._is_logged(self._late, logging.INFO):
            log.info("closing the connection of %s: it did not authenticate within %d s", host, within_s)

    def _is_logged(self, limit: LogLimit, level: int) -> bool:
        if untold := limit.untold(self._real_ms()):
            log.log(level, "listener %s: closed %d more connections that had not authenticated", self._listener, untold)
        return limit.takes()
