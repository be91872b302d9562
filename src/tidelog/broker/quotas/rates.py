"""The usage over the last windows, and the throttle time until it is within a limit.

Measured as in Kafka: a window begins with the first use after the previous one ended, one more is kept than is counted, and
missing windows count as unused. So the first seconds may use as much as all windows together.
"""

from __future__ import annotations

from typing import NamedTuple

LONGEST_MS = 2_147_483_647
"""The largest throttle time that fits in an answer."""


class Windows(NamedTuple):
    """The number of windows, and the size of each."""

    number: int = 11
    size_ms: int = 1000

    @property
    def whole_s(self) -> float:
        """The duration of the complete windows, without the current one."""
        return (self.number - 1) * self.size_ms / 1000


class Rate(NamedTuple):
    """Usage per second, over ``span_ms``."""

    value: float
    span_ms: int


class _Sample:
    """One window: its start, its last use, and the usage."""

    __slots__ = ("last_ms", "start_ms", "value")

    def __init__(self, now_ms: int) -> None:
        self.reset(now_ms)

    def reset(self, now_ms: int) -> None:
        self.start_ms = self.last_ms = now_ms
        self.value = 0.0


class SampledRate:
    """The usage of one client, or of several that share a limit."""

    __slots__ = ("_current", "_samples")

    def __init__(self) -> None:
        self._samples: list[_Sample] = []
        self._current = 0

    def record(self, value: float, now_ms: int, windows: Windows) -> None:
        """Add usage; a negative value removes what was recorded at the same time."""
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
        """The usage in the counted windows."""
        self._purge(now_ms, windows)
        return sum(sample.value for sample in self._samples)

    def measure(self, now_ms: int, windows: Windows) -> Rate:
        """The usage per second."""
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
    """How long nothing may be used until the rate is down to its bound: with O observed and T allowed over a span W, O * W /
    (W + X) = T gives X = (O - T) / T * W."""
    if rate.value <= bound:
        return 0
    if bound <= 0:
        return LONGEST_MS
    return int(min((rate.value - bound) / bound * rate.span_ms + 0.5, LONGEST_MS))  # the quotient may be infinite before the min
