"""Runs the simulated share groups for many seeds: ``python -m sim.share_run --seeds 2000`` (``make sim-shares``).

Resumable, as ``sim.raft_run`` is: what is done is noted in a file, and a run that was stopped goes on there. A broken promise
prints the seed that replays it (``--seed N``) and ends with status 1.
"""

from __future__ import annotations

import sys

from sim import noted_run
from sim.share_bugs import BUGS, planted
from sim.share_world import ShareWorld, Violation

EXPECTED = (
    "delivered",
    "delivered again",
    "last delivery",
    "acknowledged",
    "rolled back",
    "renewed",
    "lock timed out",
    "at the limit",
    "leader moved",
    "coordinator moved",
    "no coordinator",
    "killed",
    "compacted",
    "log start moved",
    "offsets reset",
    "ordered twice",
    "pruned",
    "cold snapshot",
    "read that blocks",
    "member crashed",
    "connection lost",
    "session on another connection",
    "session closed",
    "answer to a member lost",
    "answer of the coordinator lost",
    "request to the coordinator late",
    "acknowledgement INVALID_RECORD_STATE",
)
"""Faults and rare branches that a long run has to have reached."""


def run_seed(seed: int) -> ShareWorld:
    """One run. Violation when a promise is broken, AssertionError when an invariant is."""
    world = ShareWorld(seed)
    world.run()
    return world


def seed_that_finds(bug: str, limit: int) -> int | None:
    """The first seed below ``limit`` that a planted bug fails with."""
    with planted(bug):
        for seed in range(limit):
            try:
                run_seed(seed)
            except AssertionError:
                return seed
    return None


if __name__ == "__main__":
    sys.exit(noted_run.main("share groups", run_seed, seed_that_finds, BUGS, Violation, EXPECTED))
