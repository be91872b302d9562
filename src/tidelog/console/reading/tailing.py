"""A live tail: rows as they come, at most so many a second; the rest is counted, and the count is shown."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Final

from tidelog.console.reading.walking import Walk

WAIT_MS: Final = 500
"""How long a broker may hold a request for new records."""
BEAT_S: Final = 5.0
"""A line comes at least so often, so that a tail of a quiet topic ends with its session, too."""


class Allowance:
    """Rows that may be shown: ``rate`` a second, and as many at once after a pause."""

    def __init__(self, rate: int, now: Callable[[], float]) -> None:
        """``now``: monotonic seconds."""
        self._rate = rate
        self._now = now
        self._left = float(rate)
        self._at = now()

    def take(self, wanted: int) -> int:
        """How many of these rows may be shown now."""
        now = self._now()
        self._left = min(float(self._rate), self._left + (now - self._at) * self._rate)
        self._at = now
        taken = min(wanted, int(self._left))
        self._left -= taken
        return taken


async def tail(
    walk: Walk, begin: Mapping[int, int], rows_per_second: int, now: Callable[[], float]
) -> AsyncIterator[Mapping[str, Any]]:
    """Lines for ever: the newest rows of each answer, how many were left out, and beats. Ends when no partition can be read."""
    allowance, said_s = Allowance(rows_per_second, now), now()
    async for rows, left_out in walk.arriving(begin, WAIT_MS):
        for problem in walk.take_problems():
            yield problem
        shown = allowance.take(len(rows))
        dropped = len(rows) - shown + left_out
        if dropped:
            yield {"kind": "dropped", "count": str(dropped)}
        for row in rows[len(rows) - shown :]:
            yield row.line
        if now() - said_s >= BEAT_S:
            said_s = now()
            yield {"kind": "beat"}
