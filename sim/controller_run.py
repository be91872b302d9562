"""Runs the simulated controller for many seeds: ``python -m sim.controller_run --seeds 9000`` (``make sim-controller``).

Ends with a report of faults and rare branches reached; a broken promise prints the seed that replays it (``--seed N``) and ends
with status 1. ``--bugs LIMIT`` plants each bug and looks for it. The run is deterministic, whatever the hash seed: ``--digest``
prints what has to be equal under all of them.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections import Counter

from sim.controller_bugs import BUGS, planted
from sim.controller_world import World
from sim.raft_checkers import Violation

EXPECTED = (
    "killed", "power lost", "started", "stopped in order", "cut off", "controller replaced", "registered", "leader elected",
    "leader from ELR", "unclean leader", "truncated", "ISR changed", "ISR refused: INELIGIBLE_REPLICA",
    "ISR refused: FENCED_LEADER_EPOCH", "ISR refused: INVALID_UPDATE_VERSION", "ISR refused: NEW_LEADER_ELECTED",
    "refused DUPLICATE_BROKER_REGISTRATION", "refused STALE_BROKER_EPOCH", "lost by agreement",
    "ACLs created", "ACLs deleted", "ACLs of a snapshot", "credentials set", "credentials removed", "logins", "logins refused",
)  # fmt: skip
"""Faults and rare branches that a long run has to have reached."""


def run_seed(seed: int) -> World:
    """One run. Violation when a promise is broken; whatever else the controller raises is one as well."""
    world = World(seed)
    try:
        world.run()
    except Violation as violation:
        raise Violation(f"seed {seed}, {world.now_ms} ms: {violation}") from violation
    except Exception as problem:
        raise Violation(f"seed {seed}, {world.now_ms} ms: {type(problem).__name__}: {problem}") from problem
    world.counts["lost by agreement"] += world.acked.lost_by_agreement
    return world


def digest(world: World) -> str:
    """Of what happened: equal for equal seeds, in every process."""
    parts = [sorted(world.counts.items()), [(len(records), last) for records, last in world.written]]
    parts += [repr(record) for records, _ in world.written for record in records]
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def seed_that_finds(bug: str, limit: int) -> int | None:
    """The first seed below ``limit`` that a planted bug fails with."""
    with planted(bug):
        for seed in range(limit):
            try:
                run_seed(seed)
            except Violation:
                return seed
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description="The simulated controller, for many seeds.")
    parser.add_argument("--seeds", type=int, default=9000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, help="replay this one")
    parser.add_argument("--bugs", type=int, metavar="LIMIT", help="plant each bug, and look for it in so many seeds")
    parser.add_argument("--digest", action="store_true")
    options = parser.parse_args()
    if options.bugs is not None:
        found = {bug: seed_that_finds(bug, options.bugs) for bug in BUGS}
        sys.stdout.writelines(f"{bug}: {'NOT FOUND' if seed is None else f'seed {seed}'}\n" for bug, seed in found.items())
        return int(None in found.values())
    seeds = [options.seed] if options.seed is not None else range(options.first, options.first + options.seeds)
    counts: Counter[str] = Counter()
    try:
        for seed in seeds:
            world = run_seed(seed)
            counts += world.counts
            if options.digest:
                sys.stdout.write(f"{seed} {digest(world)}\n")
    except Violation as violation:
        sys.stdout.write(f"{violation}\n")
        return 1
    sys.stdout.write(
        f"{len(seeds)} seeds, {counts['records']} records, {counts['acknowledged']} acknowledged; no promise was broken\n"
    )
    sys.stdout.writelines(f"  {what}: {counts[what]}\n" for what in EXPECTED)
    missing = [what for what in EXPECTED if not counts[what]]
    sys.stdout.write(f"never reached: {', '.join(missing)}\n" if missing else "")
    return int(bool(missing) and len(seeds) >= 1000)


if __name__ == "__main__":
    sys.exit(main())
