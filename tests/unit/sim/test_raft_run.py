"""The simulated metadata quorum, in a short form; the long one is ``make sim-raft``."""

import os
import subprocess
import sys

import pytest

from sim.raft_bugs import ALL_BUGS
from sim.raft_run import digest, run_seed, seed_that_finds

SEEDS = int(os.environ.get("TIDELOG_RAFT_SEEDS", "60"))


def test_a_quorum_keeps_its_promises_under_faults_and_comes_back_when_they_end() -> None:
    elections = sum(run_seed(seed).counts["leader elected"] for seed in range(SEEDS))
    assert elections > SEEDS


@pytest.mark.parametrize("bug", ALL_BUGS)
def test_a_planted_bug_is_found(bug: str) -> None:
    assert seed_that_finds(bug, 100) is not None, bug


def test_a_seed_gives_the_same_run_under_every_hash_seed() -> None:
    command = [sys.executable, "-m", "sim.raft_run", "--digest", "--first", "3", "--seeds", "3"]
    printed = {
        subprocess.run(
            command, env={**os.environ, "PYTHONHASHSEED": hash_seed}, capture_output=True, text=True, check=True
        ).stdout
        for hash_seed in ("0", "1", "4242")
    }
    assert printed == {"".join(f"{seed} {digest(run_seed(seed))}\n" for seed in (3, 4, 5))}
