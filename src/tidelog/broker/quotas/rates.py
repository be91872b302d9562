"""How much was used over the last windows, and how long to wait until that is within a limit again.

As Kafka measures it: a window begins with the first use after the one before has ended, one more is kept than are looked at, and
windows that are missing count as windows without use. So the first seconds may take as much as all windows together.
"""

from __future__ import annotations

from typing import NamedTuple

LONGEST_MS = 2_147_483_647
"""What an answer can say."""


class Windows(NamedTuple):
    """Over how many windows it is measured, and how long one is."""

    number: int = 11
    size_ms: int = 1000

    @property
    def whole_s(self) -> float:
        """The windows that have passed, without the one that goes on."""
        return (self.number - 1) * self.size_ms / 1000


class Rate(NamedTuple):
    """What was used by the second, over ``span_ms``."""

    value: float
    span_ms: int


class _Sample:
    """One window: when it began, when it was last used, how much."""

    __slots__ = ("last_ms", "start_ms", "value")

    def __init__(self, now_ms: int) -> None:
        self.reset(now_ms)

    def reset(self, now_ms: int) -> None:
        self.start_ms = self.last_ms = now_ms
        self.value = 0.0


class SampledRate:
    """What one client, or several that share a limit, have used."""

    __slots__ = ("_current", "_samples")

    def __init__(self) -> None:
        self._samples: list[_Sample] = []
        self._current = 0

    def record(self, value: float, now_ms: int, windows: Windows) -> None:
        """So much more was used; a negative value takes back what was recorded at the same time."""
        samples = self._samples
        if not samples:
            samples.append(_Sample(now_ms))
        sample = samples[self._current]
        if now_ms - sample.start_ms >= windows.size_ms:
            self._current = (self._current + 1) % (windows.number + 1)
            if self._current >= len(samples):
                samples.append(_Sample(now_ms))
            else:
                samples[self._current].reset(now_ms)
            sample = samples[self._current]
        sample.value += value
        sample.last_ms = now_ms

    def total(self, now_ms: int, windows: Windows) -> float:
        """What counts now."""
        self._purge(now_ms, windows)
        return sum(sample.value for sample in self._samples)

    def measure(self, now_ms: int, windows: Windows) -> Rate:
        """What was used by the second."""
        total = self.total(now_ms, windows)
        span_ms = now_ms - min((sample.start_ms for sample in self._samples), default=now_ms)
        missing = windows.number - 1 - span_ms // windows.size_ms
        if missing > 0:
            span_ms += missing * windows.size_ms
        span_ms = max(span_ms, 1)
        return Rate(total * 1000 / span_ms, span_ms)

    def _purge(self, now_ms: int, windows: Windows) -> None:
        oldest_ms = now_ms - windows.number * windows.size_ms
        for sample in self._samples:
            if sample.last_ms <= oldest_ms:
                sample.reset(now_ms)


def throttle_ms(rate: Rate, bound: float) -> int:
    """How long nothing may be used so that the rate is down to its bound: with O observed and T allowed over a span W,
    O * W / (W + X) = T has X = (O - T) / T * W."""
    if rate.value <= bound:
        return 0
    if bound <= 0:
        return LONGEST_MS
    return int(min((rate.value - bound) / bound * rate.span_ms + 0.5, LONGEST_MS))  # which may be infinite before
