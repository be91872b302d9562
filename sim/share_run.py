"""Runs the simulated share groups for many seeds: ``python -m sim.share_run --seeds 2000`` (``make sim-shares``).

Resumable, as ``sim.raft_run`` is: what is done is noted in a file, and a run that was stopped goes on there. A broken promise
prints the seed that replays it (``--seed N``) and ends with status 1.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections import Counter
from pathlib import Path

from sim.share_bugs import BUGS, planted
from sim.share_world import ShareWorld, Violation

CHUNK = 20
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


def run_all(first: int, count: int, note: Path | None) -> tuple[int, Counter[str]]:
    """All seeds from ``first`` on, or those that the note says are left; how many in all, and what happened."""
    done, counts = 0, Counter[str]()
    if note is not None:
        note.parent.mkdir(parents=True, exist_ok=True)
        if note.exists():
            done, noted = json.loads(note.read_text())
            counts = Counter(noted)
    for seed in range(first + done, first + count):
        counts += run_seed(seed).counts
        done += 1
        if note is not None and (done % CHUNK == 0 or done == count):
            note.write_text(json.dumps([done, counts]))
    return done, counts


def main() -> int:
    parser = argparse.ArgumentParser(description="The simulated share groups, for many seeds.")
    parser.add_argument("--seeds", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, help="replay this one")
    parser.add_argument("--note", type=Path, help="the file that a stopped run goes on from")
    parser.add_argument("--bugs", type=int, metavar="LIMIT", help="plant each bug, and look for it in so many seeds")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    if options.bugs is not None:
        found = {bug: seed_that_finds(bug, options.bugs) for bug in BUGS}
        sys.stdout.writelines(f"{bug}: {'NOT FOUND' if seed is None else f'seed {seed}'}\n" for bug, seed in found.items())
        return int(None in found.values())
    try:
        if options.seed is not None:
            sys.stdout.write(f"{dict(run_seed(options.seed).counts)}\n")
            return 0
        done, counts = run_all(options.first, options.seeds, options.note)
    except Violation as violation:
        sys.stdout.write(f"{violation}\n")
        return 1
    sys.stdout.write(f"{done} seeds; no promise was broken\n")
    sys.stdout.writelines(f"  {what}: {counts[what]}\n" for what in EXPECTED)
    missing = [what for what in EXPECTED if not counts[what]]
    sys.stdout.write(f"never reached: {', '.join(missing)}\n" if missing else "")
    return int(bool(missing) and done >= 100)


if __name__ == "__main__":
    sys.exit(main())
