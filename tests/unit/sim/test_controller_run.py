"""The simulated controller, in a short form; the long one is ``make sim-controller``."""

import os
import subprocess
import sys

import pytest

from sim.controller_bugs import BUGS
from sim.controller_run import digest, run_seed, seed_that_finds

SEEDS = int(os.environ.get("TIDELOG_CONTROLLER_SEEDS", "25"))


def test_the_controller_keeps_its_promises_under_faults_and_everything_is_in_order_when_they_end() -> None:
    elections = sum(run_seed(seed).counts["leader elected"] for seed in range(SEEDS))
    assert elections > SEEDS


@pytest.mark.timeout(600)  # the rarest one takes a minute
@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(bug: str) -> None:
    assert seed_that_finds(bug, 1000) is not None, bug


def test_a_seed_gives_the_same_run_under_every_hash_seed() -> None:
    command = [sys.executable, "-m", "sim.controller_run", "--digest", "--first", "3", "--seeds", "2"]
    printed = set()
    for hash_seed in ("0", "4242"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        printed.add(tuple(done.stdout.splitlines()[:2]))
    assert printed == {tuple(f"{seed} {digest(run_seed(seed))}" for seed in (3, 4))}
