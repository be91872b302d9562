"""Which rounds say nothing, because the machine was not ours or did not stay the same, and when that makes a run void.

The C limit is the same program in every round; where it moves, the machine has moved. Rounds are left out by the limit and by
what other processes used, never by what they measured. Rules and numbers: docs/benchmarks.md.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

LIMIT_MOVES = 0.15
OTHERS, STEAL = 0.05, 0.05
LEAST_COUNTED, LEAST_SHARE = 7, 2 / 3


@dataclass(frozen=True, slots=True)
class Noise:
    """Beside one sample: the shares of the machine's CPU that other processes and the hypervisor had."""

    others: float
    steal: float


def counted(limits: Sequence[float], noise: Sequence[Sequence[Noise]]) -> list[int]:
    """The rounds of a row that count, by number.

    ``limits``: the limit's cost in each round; empty where it was not measured. ``noise``: that of each round's samples. The
    limits of the rounds that count differ by at most 15 %.
    """
    quiet = [
        number for number, samples in enumerate(noise) if all(each.others <= OTHERS and each.steal <= STEAL for each in samples)
    ]
    if not limits or not quiet:
        return quiet
    middle, reach = statistics.median(limits[number] for number in quiet), math.sqrt(1 + LIMIT_MOVES)
    return [number for number in quiet if middle / reach <= limits[number] <= middle * reach]


def reasons(rounds: int, left: Mapping[str, int]) -> Iterator[str]:
    """Why the run is void, row by row; nothing when it is not. ``left``: how many of the rounds count, by row."""
    for row, count in left.items():
        if count < min(rounds, LEAST_COUNTED) or count < rounds * LEAST_SHARE:
            yield (
                f"{row}: only {count} of {rounds} rounds count; in the others the C limit was too far from its median, or other "
                f"processes or the hypervisor had more than {OTHERS:.0%} of the CPU"
            )
