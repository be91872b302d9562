"""Runs the simulated replicas for many seeds: ``python -m sim.replica_run --seeds 2000`` (``make sim-replicas``).

Resumable, as ``sim.raft_run`` is: what is done is noted in a file, and a run that was stopped goes on there. A broken promise
prints the seed that replays it (``--seed N``) and ends with status 1.
"""

from __future__ import annotations

import sys

from sim import noted_run
from sim.replica_bugs import BUGS, planted
from sim.replica_world import ReplicaWorld, Violation

EXPECTED = (
    "plain request",
    "acknowledged",
    "power loss",
    "kill",
    "stop",
    "pause",
    "cut",
    "cut from controller",
    "diverged",
    "isr changed",
    "flip",
    "flip of other records",
    "found by the scrub",
    "mended",
    "changed under repair",
)
"""Faults and rare branches that a long run has to have reached."""
STORM_MS = 20_000


def run_seed(seed: int, storm_ms: int = STORM_MS) -> ReplicaWorld:
    """One run. Violation when a promise is broken, AssertionError when an invariant is."""
    world = ReplicaWorld(seed)
    world.run(storm_ms)
    return world


def seed_that_finds(bug: str, limit: int, storm_ms: int = STORM_MS) -> int | None:
    """The first seed below ``limit`` that a planted bug fails with."""
    with planted(bug):
        for seed in range(limit):
            try:
                run_seed(seed, storm_ms)
            except AssertionError:
                return seed
    return None


if __name__ == "__main__":
    sys.exit(
        noted_run.main(
            "replicas",
            run_seed,
            seed_that_finds,
            BUGS,
            Violation,
            EXPECTED,
            length=f" of {STORM_MS / 1000:.0f} virtual seconds under faults",
        )
    )
