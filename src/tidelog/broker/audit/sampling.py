"""Which events are written, and which are only counted. Pure: the time comes in with each event, in ms of the even clock."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

K = TypeVar("K")

LEFT_OUT = -1
MOST_KINDS = 10_000
"""Kinds of reads that are remembered at a time, about 5 MB."""


class PerSecond:
    """The first ``limit`` events of each second; the others are counted."""

    __slots__ = ("_limit", "_second", "_taken", "left_out")

    def __init__(self, limit: int) -> None:
        self.left_out = 0
        self._limit = limit
        self._second = -1
        self._taken = 0

    def takes(self, now_ms: int) -> bool:
        """Whether this event is among the first of its second; called once for each."""
        second = now_ms // 1000
        if second != self._second:
            self._second, self._taken = second, 0
        if self._taken < self._limit:
            self._taken += 1
            return True
        self.left_out += 1
        return False


class _Seen:
    """A kind of event: when the next one is written, and how many were left out since the last."""

    __slots__ = ("left_out", "until_ms")

    def __init__(self, until_ms: int) -> None:
        self.until_ms = until_ms
        self.left_out = 0


class Sampling(Generic[K]):
    """The first event of each kind in each interval; the others are counted with their kind.

    So every kind that happens at all is written once an interval, however rare it is. A kind over ``limit`` is not remembered,
    and its next event is as good as its first.
    """

    __slots__ = ("_interval_ms", "_limit", "_most", "_seen", "left_out")

    def __init__(self, interval_ms: int, limit: PerSecond, most: int = MOST_KINDS) -> None:
        self.left_out = 0
        """Events that were not written, since the start, those over ``limit`` included."""
        self._interval_ms = interval_ms
        self._limit = limit
        self._most = most
        self._seen: dict[K, _Seen] = {}
        """In the order of ``until_ms``."""

    def __len__(self) -> int:
        """How many kinds are remembered."""
        return len(self._seen)

    def take(self, kind: K, now_ms: int) -> int:
        """How many events of this kind were left out since the last one that was written, when this one is to be written;
        LEFT_OUT when it is not."""
        seen = self._seen.get(kind)
        if seen is not None and now_ms < seen.until_ms:
            seen.left_out += 1
            self.left_out += 1
            return LEFT_OUT
        if not self._has_room(seen, now_ms) or not self._limit.takes(now_ms):
            self.left_out += 1
            if seen is not None:
                seen.left_out += 1
            return LEFT_OUT
        before = 0 if seen is None else self._seen.pop(kind).left_out
        self._seen[kind] = _Seen(now_ms + self._interval_ms)
        return before

    def _has_room(self, seen: _Seen | None, now_ms: int) -> bool:
        """Whether the kind can be remembered. A kind whose interval is over makes room if nothing of it was left out."""
        if seen is not None or len(self._seen) < self._most:
            return True
        oldest = next(iter(self._seen))
        if self._seen[oldest].until_ms <= now_ms and not self._seen[oldest].left_out:
            del self._seen[oldest]
            return True
        return False

    def forget(self, now_ms: int) -> Iterator[tuple[K, int]]:
        """Forgets the kinds whose interval is over; yields those of which events were left out, with their number."""
        over = []
        for kind, seen in self._seen.items():
            if now_ms < seen.until_ms:
                break
            over.append(kind)
        for kind in over:
            if left_out := self._seen.pop(kind).left_out:
                yield kind, left_out
