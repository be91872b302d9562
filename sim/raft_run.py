"""Runs the simulated quorum for many seeds: ``python -m sim.raft_run --seeds 9000`` (``make sim-raft``).

Resumable: what is done is noted in a file after each hundred seeds, and a run that was stopped goes on there. Ends with a report
of faults and rare branches reached; a broken promise prints the seed that replays it (``--seed N``) and ends with status 1. The
run is deterministic, whatever the hash seed: ``--digest`` prints what has to be equal under all of them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from sim.raft_bugs import ALL_BUGS, planted
from sim.raft_checkers import Violation
from sim.raft_world import World

CHUNK = 100
EXPECTED = (
    "crash", "pause", "cut", "one way", "isolate", "stop", "stop all", "skew", "leader elected", "log truncated", "log cleaned",
    "snapshot loaded", "voters changed", "voter added", "voter removed", "log lost",
    "static quorum made dynamic", "rot", "damaged records fetched again",
    "damaged records of a dynamic quorum fetched again", "refused to start", "loss forgotten",
    "vote with less than was lost",
)  # fmt: skip
"""Faults and rare branches that a long run has to have reached."""


@dataclass(slots=True)
class Totals:
    """Over all seeds."""

    seeds: int = 0
    virtual_ms: int = 0
    acknowledged: int = 0
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, world: World) -> None:
        self.seeds += 1
        self.virtual_ms += world.now
        self.acknowledged += world.acknowledged
        self.counts += world.counts

    def encode(self) -> str:
        return json.dumps([self.seeds, self.virtual_ms, self.acknowledged, self.counts])

    @staticmethod
    def decode(text: str) -> Totals:
        seeds, virtual_ms, acknowledged, counts = json.loads(text)
        return Totals(seeds, virtual_ms, acknowledged, Counter(counts))

    def report(self) -> str:
        lines = [
            f"{self.seeds} seeds, {self.virtual_ms / 3_600_000:.1f} virtual hours, {self.acknowledged} acknowledged records, "
            f"{self.counts['leader elected']} elections; no promise was broken"
        ]
        lines += [f"  {what}: {self.counts[what]}" for what in EXPECTED]
        return "\n".join(lines)


def digest(world: World) -> str:
    """Of what happened: equal for equal seeds, in every process."""
    parts = [world.now, world.steps, world.acknowledged, sorted(world.counts.items())]
    parts += [(b.base_offset, b.epoch) for voter in world.voters.values() for b in voter.disk.log]
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def run_seed(seed: int, bugs: frozenset[str] = frozenset()) -> World:
    """One run. Violation when a promise is broken."""
    world = World(seed, bugs)
    world.run()
    return world


def seed_that_finds(bug: str, limit: int) -> int | None:
    """The first seed below ``limit`` that a planted bug fails with."""
    with planted(bug) as told:
        for seed in range(limit):
            try:
                run_seed(seed, told)
            except Violation:
                return seed
    return None


def run_all(first: int, count: int, note: Path | None) -> Totals:
    """All seeds from ``first`` on, or those that the note says are left."""
    if note is not None:
        note.parent.mkdir(parents=True, exist_ok=True)
    totals = Totals.decode(note.read_text()) if note is not None and note.exists() else Totals()
    for seed in range(first + totals.seeds, first + count):
        totals.add(run_seed(seed))
        if note is not None and totals.seeds % CHUNK == 0:
            note.write_text(totals.encode())
    if note is not None:
        note.write_text(totals.encode())
    return totals


def main() -> int:
    parser = argparse.ArgumentParser(description="The simulated metadata quorum, for many seeds.")
    parser.add_argument("--seeds", type=int, default=9000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, help="replay this one")
    parser.add_argument("--note", type=Path, help="the file that a stopped run goes on from")
    parser.add_argument("--bugs", type=int, metavar="LIMIT", help="plant each bug, and look for it in so many seeds")
    parser.add_argument("--digest", action="store_true")
    options = parser.parse_args()
    if options.bugs is not None:
        found = {bug: seed_that_finds(bug, options.bugs) for bug in ALL_BUGS}
        sys.stdout.writelines(f"{bug}: {'NOT FOUND' if seed is None else f'seed {seed}'}\n" for bug, seed in found.items())
        return int(None in found.values())
    try:
        if options.seed is not None or options.digest:
            seeds = [options.seed] if options.seed is not None else range(options.first, options.first + options.seeds)
            sys.stdout.writelines(f"{seed} {digest(run_seed(seed))}\n" for seed in seeds)
            return 0
        totals = run_all(options.first, options.seeds, options.note)
    except Violation as violation:
        sys.stdout.write(f"{violation}\n")
        return 1
    sys.stdout.write(totals.report() + "\n")
    missing = [what for what in EXPECTED if not totals.counts[what]]
    sys.stdout.write(f"never reached: {', '.join(missing)}\n" if missing else "")
    return int(bool(missing) and totals.seeds >= 1000)


if __name__ == "__main__":
    sys.exit(main())
