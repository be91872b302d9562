"""How fast a group reads and producers write, from samples of its offsets: robust slopes, which one odd sample changes little."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

MAX_SAMPLES: Final = 720
LEAST_SAMPLES: Final = 3
WINDOW_MS: Final = 300_000
MOST_PAIRED: Final = 40
"""Samples of a window that slopes are made of: pairs grow with the square."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Sums over the partitions of a group that have a committed offset."""

    at_ms: int
    committed: int
    end: int

    @property
    def lag(self) -> int:
        return max(0, self.end - self.committed)


@dataclass(frozen=True, slots=True)
class Rates:
    """Records a second over a time. ``caught_up_seconds``: until nothing is left, None when it is not coming closer."""

    written: float
    read: float
    seconds: float
    caught_up_seconds: float | None
    never: bool

    def as_json(self) -> dict[str, Any]:
        return {
            "written": round(self.written, 3),
            "read": round(self.read, 3),
            "seconds": round(self.seconds, 1),
            "caught_up_seconds": None if self.caught_up_seconds is None else round(self.caught_up_seconds, 1),
            "never": self.never,
        }


class History:
    """The samples of one group, newest last."""

    def __init__(self) -> None:
        self._samples: deque[Sample] = deque(maxlen=MAX_SAMPLES)

    def add(self, sample: Sample) -> None:
        """Samples before offsets went back, by a reset or another set of partitions, count no more."""
        if self._samples and (sample.committed < self._samples[-1].committed or sample.end < self._samples[-1].end):
            self._samples.clear()
        if not self._samples or sample.at_ms > self._samples[-1].at_ms:
            self._samples.append(sample)

    @property
    def samples(self) -> Sequence[Sample]:
        return tuple(self._samples)

    def rates(self) -> Rates | None:
        """Over the last five minutes; None with fewer than three samples."""
        if not self._samples:
            return None
        last = self._samples[-1]
        window = [each for each in self._samples if each.at_ms >= last.at_ms - WINDOW_MS]
        if len(window) < LEAST_SAMPLES:
            return None
        step = math.ceil(len(window) / MOST_PAIRED)
        used = window[::-1][::step]
        written = slope([(each.at_ms / 1000, each.end) for each in used])
        read = slope([(each.at_ms / 1000, each.committed) for each in used])
        closing = read - written
        left = 0.0 if last.lag == 0 else last.lag / closing if closing > 0 else None
        return Rates(written, read, (last.at_ms - window[0].at_ms) / 1000, left, last.lag > 0 and closing <= 0 < written)


def slope(points: Sequence[tuple[float, int]]) -> float:
    """The median of the slopes of all pairs (Theil-Sen); 0 for fewer than two points."""
    slopes = [
        (second[1] - first[1]) / (second[0] - first[0])
        for position, first in enumerate(points)
        for second in points[position + 1 :]
        if second[0] != first[0]
    ]
    return float(median(slopes)) if slopes else 0.0
