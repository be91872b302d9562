"""When a JVM counts as warm: two runs of a row in a row cost about the same."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

STEADY = 0.05
"""Two runs of a warm JVM differ by less than this share of the lower one."""
LEAST_WARM_RUNS, MOST_WARM_RUNS = 4, 16


def is_steady(costs: Sequence[float]) -> bool:
    """Whether the last two runs are alike; the first ones may be so by chance."""
    return len(costs) >= LEAST_WARM_RUNS and abs(costs[-1] - costs[-2]) < STEADY * min(costs[-2:])


def until_steady(run: Callable[[], float], most: int = MOST_WARM_RUNS) -> list[float]:
    """The costs of runs until two in a row are alike, or of as many as are allowed."""
    costs: list[float] = []
    while len(costs) < most and not is_steady(costs):
        costs.append(run())
    return costs


def still_falling(costs: Sequence[float]) -> bool:
    """Whether costs are lower by 5 % in the last third of the rounds than in the first: the JVM was not warm yet."""
    part = len(costs) // 3
    return part > 0 and statistics.median(costs[-part:]) < (1 - STEADY) * statistics.median(costs[:part])
