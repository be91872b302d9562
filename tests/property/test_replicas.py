"""Replicas of a partition under simulated faults, in a short form; the long one is ``make sim-replicas``."""

from __future__ import annotations

import os
from collections import Counter

import pytest

from sim.replica_run import run_seed, seed_that_finds

SEEDS = int(os.environ.get("TIDELOG_REPLICA_SEEDS", "5"))
STORM_MS = 8_000


def test_acknowledged_records_survive_and_replicas_agree() -> None:
    counts = Counter[str]()
    for seed in range(SEEDS):
        counts += run_seed(seed, STORM_MS).counts
    assert counts["acknowledged"] > 50 * SEEDS and counts["power loss"] and counts["diverged"]


@pytest.mark.parametrize(
    "bug",
    [
        "divergence ignored",
        "cut at the high watermark",
        "leader alone acknowledges",
        "mended across leader epochs",
        "forgotten, not mended",
    ],
)
def test_a_planted_bug_is_found(bug: str) -> None:
    assert seed_that_finds(bug, 40, STORM_MS) is not None, bug


def test_a_seed_gives_the_same_run_each_time() -> None:
    first, second = run_seed(3, 3_000), run_seed(3, 3_000)
    assert first.counts == second.counts and first.acknowledged == second.acknowledged
