"""The simulated share groups, in a short form; the long one is ``make sim-shares``."""

from __future__ import annotations

import os

import pytest

from sim.share_bugs import BUGS
from sim.share_run import run_seed, seed_that_finds

SEEDS = int(os.environ.get("TIDELOG_SHARE_SEEDS", "12"))


def test_share_groups_keep_their_promises_under_faults_and_finish_everything_when_they_end() -> None:
    finished = [run_seed(seed).counts["acknowledged"] for seed in range(SEEDS)]
    assert all(finished)


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(bug: str) -> None:
    assert seed_that_finds(bug, 100) is not None, bug


def test_a_seed_gives_the_same_run_again() -> None:
    assert run_seed(3).counts == run_seed(3).counts
