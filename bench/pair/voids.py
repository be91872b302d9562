"""When a run says nothing: the machine was not ours, or did not stay the same.

The C limit is the same program in every round; where it moves, the machine has moved. Rules and numbers: docs/benchmarks.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

LIMIT_MOVES = 0.15
OTHERS, STEAL = 0.05, 0.05


@dataclass(frozen=True, slots=True)
class Noise:
    """Beside one sample: the shares of the machine's CPU that other processes and the hypervisor had."""

    others: float
    steal: float


def moved(costs: Sequence[float]) -> float:
    """By how much the dearest round of the limit is above the cheapest; 0.15 is 15 %."""
    return max(costs) / min(costs) - 1 if costs else 0.0


def reasons(limits: Mapping[str, Sequence[float]], noise: Mapping[str, Sequence[Noise]]) -> Iterator[str]:
    """Why the run is void, row by row; nothing when it is not. ``limits``: the limit's cost in each round."""
    for row, costs in limits.items():
        if moved(costs) > LIMIT_MOVES:
            yield f"{row}: the C limit moved by {moved(costs):.0%} between rounds, more than {LIMIT_MOVES:.0%}"
    for row, samples in noise.items():
        others, steal = max(each.others for each in samples), max(each.steal for each in samples)
        if others > OTHERS:
            yield f"{row}: other processes had {others:.0%} of the CPU in a sample, more than {OTHERS:.0%}"
        if steal > STEAL:
            yield f"{row}: the hypervisor took {steal:.0%} of the CPU in a sample, more than {STEAL:.0%}"
