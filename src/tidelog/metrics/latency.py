"""Quantiles of durations in little memory: counts by log-linear buckets of integers, over the last one to two minutes.

A value of n bits falls into one of 32 buckets of equal width between 2**(n-1) and 2**n; values below 64 have their own bucket. A
quantile is the middle of the bucket that holds the value of its rank, so it deviates by at most 1/64 of that value.

Kafka's histograms forget as well: their samples lose half of their weight in 46 s.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from typing import Final

WINDOW_NS: Final = 60_000_000_000
QUANTILES: Final = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)
"""Those of Kafka's histograms."""
_HALF_BITS: Final = 5
_HALF: Final = 1 << _HALF_BITS
RELATIVE_ERROR: Final = 1 / (2 * _HALF)


def bucket_of(value: int) -> int:
    """The bucket of ``value``, which is not negative."""
    shift = value.bit_length() - _HALF_BITS - 1
    return value if shift <= 0 else (shift << _HALF_BITS) + (value >> shift)


def middle_of(bucket: int) -> float:
    """The middle of the values that fall into ``bucket``."""
    shift = (bucket >> _HALF_BITS) - 1
    if shift <= 0:
        return bucket
    return ((_HALF + (bucket & _HALF - 1)) << shift) + ((1 << shift) - 1) / 2


def quantiles(counts: Mapping[int, int], wanted: Sequence[float] = QUANTILES) -> list[float]:
    """For each share of ``wanted``, which rise: the smallest value that at least this share of all values does not exceed. Empty
    when nothing was counted."""
    total = sum(counts.values())
    if not total:
        return []
    found: list[float] = []
    seen = 0
    for bucket in sorted(counts):
        seen += counts[bucket]
        while len(found) < len(wanted) and seen >= ceil(wanted[len(found)] * total):
            found.append(middle_of(bucket))
    return found


class Latencies:
    """Durations in ns. ``count`` and ``sum_ns`` are over all time, the buckets over this minute and the one before."""

    __slots__ = ("_before", "count", "minute", "now", "sum_ns")

    def __init__(self) -> None:
        self.count = 0
        self.sum_ns = 0
        self.now: dict[int, int] = {}
        self._before: dict[int, int] = {}
        self.minute = 0

    def record(self, value_ns: int, minute: int, weight: int = 1) -> None:
        """Count ``value_ns``, which may not be negative, as often as ``weight`` says. ``minute`` never goes back."""
        record_all((self,), (value_ns,), minute, weight)

    def recent(self, minute: int) -> dict[int, int]:
        """The counts by bucket of this minute and the one before."""
        if minute != self.minute:
            self.turn(minute)
        return added((self._before, self.now))

    def turn(self, minute: int) -> None:
        """A new minute begins."""
        self._before = self.now if minute == self.minute + 1 else {}
        self.now = {}
        self.minute = minute


def record_all(latencies: Sequence[Latencies], values_ns: Sequence[int], minute: int, weight: int) -> None:
    """Record one value in each, without a call for each."""
    for each, value_ns in zip(latencies, values_ns, strict=True):
        if minute != each.minute:
            each.turn(minute)
        shift = value_ns.bit_length() - _HALF_BITS - 1  # as bucket_of
        bucket = value_ns if shift <= 0 else (shift << _HALF_BITS) + (value_ns >> shift)
        now = each.now
        now[bucket] = now.get(bucket, 0) + weight
        each.count += weight
        each.sum_ns += value_ns * weight


def added(counts: Iterable[Mapping[int, int]]) -> dict[int, int]:
    """The sum of several counts by bucket."""
    total: dict[int, int] = {}
    for each in counts:
        for bucket, count in each.items():
            total[bucket] = total.get(bucket, 0) + count
    return total
