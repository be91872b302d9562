"""What rounds of paired samples say: the median of the ratios, an exact interval for it, and a verdict.

The interval is the sign test's: for n independent ratios the k-th smallest and the k-th largest enclose the true median with
probability 1 - 2 P(X < k), X binomial(n, 1/2), whatever the distribution of the ratios. The largest k that still has the
confidence asked for is taken; with fewer than six rounds no k has 95 %, and the interval is the whole range, with its coverage.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from math import comb

CONFIDENCE = 0.95
BOUND = 1.03


class Outcome(Enum):
    """What a row's interval says of the bound."""

    PASS = "pass"
    FAIL = "fail"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Interval:
    """The median of paired ratios (new over old), the interval around it, and the probability that the interval covers it."""

    median: float
    low: float
    high: float
    coverage: float


def coverage(rounds: int, rank: int) -> float:
    """How surely the ``rank``-th smallest and largest of ``rounds`` values enclose the median."""
    outside: int = sum(comb(rounds, k) for k in range(rank))
    return 1 - 2 * outside / (1 << rounds)


def interval(ratios: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """The exact interval. ValueError without ratios."""
    if not ratios:
        raise ValueError("no ratios")
    ordered, count = sorted(ratios), len(ratios)
    rank = 1
    while rank + 1 <= (count + 1) // 2 and coverage(count, rank + 1) >= confidence:
        rank += 1
    return Interval(statistics.median(ordered), ordered[rank - 1], ordered[-rank], coverage(count, rank))


def paired_ratios(old: Sequence[float], new: Sequence[float]) -> list[float]:
    """New over old, round by round. ValueError where the rounds are not pairs."""
    if len(old) != len(new):
        raise ValueError(f"{len(old)} samples of the old side, {len(new)} of the new one")
    return [after / before for before, after in zip(old, new, strict=True)]


def outcome(found: Interval, bound: float = BOUND) -> Outcome:
    """PASS: the whole interval is at or below the bound; FAIL: the whole interval is above it."""
    if found.high <= bound:
        return Outcome.PASS
    return Outcome.FAIL if found.low > bound else Outcome.UNDECIDED
