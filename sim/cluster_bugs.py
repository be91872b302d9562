"""Bugs planted on purpose into whole nodes: runs of the simulated cluster have to find each of them, or they are worth nothing.

``python -m sim.cluster_bugs [--seeds 1000] [NAME...]`` looks for the first seed that finds each.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from sim import replica_bugs
from sim.cluster_checks import Violation
from sim.cluster_security_bugs import SECURITY_BUGS
from sim.cluster_world import ClusterRun
from tidelog.model.errors import ErrorCode
from tidelog.model.ports import FileSystem
from tidelog.raft import quorum_state
from tidelog.replication.partition import Partition
from tidelog.server import broker_parts
from tidelog.testing.simulation.patching import Patch, patched


def _vote_not_synced() -> list[Patch]:
    """The file with epoch and vote is written, and not synced."""

    def store(fs: FileSystem, directory: str, state: quorum_state.QuorumState) -> None:
        name = f"{directory}/quorum-state"
        file = fs.open(name, create=True)
        file.truncate(0)
        file.write(0, state.encode())
        file.close()

    return [(quorum_state, "store", store)]


def _marker_lost() -> list[Patch]:
    """One marker in ten is answered and never written."""
    honest = broker_parts.write_marker
    count = 0

    def write(*args: Any) -> Any:
        nonlocal count
        count += 1
        return ErrorCode.NONE if count % 10 == 0 else honest(*args)

    return [(broker_parts, "write_marker", write)]


def _stale_leader_answers() -> list[Patch]:
    """Who led once goes on answering writes, whatever it hears of the cluster."""
    honest = Partition.update_metadata

    def update(self: Partition, *args: Any, **named: Any) -> None:
        led, leadership = self.is_leader, self.leadership
        honest(self, *args, **named)
        if led and not self.is_leader and not self.deleted:
            self.is_leader, self.leadership = True, leadership

    return [(Partition, "update_metadata", update)]


BUGS: dict[str, Callable[[], list[Patch]]] = {
    "vote not synced": _vote_not_synced,
    "marker lost": _marker_lost,
    "stale leader answers": _stale_leader_answers,
    "ISR shrunk without the controller": replica_bugs.BUGS["ISR shrunk without the controller"],
    "high watermark moved back": replica_bugs.BUGS["high watermark moved back"],
    "divergence ignored": replica_bugs.BUGS["divergence ignored"],
    "min.insync.replicas ignored": replica_bugs.BUGS["min.insync.replicas ignored"],
    "leader alone acknowledges": replica_bugs.BUGS["leader alone acknowledges"],
    **SECURITY_BUGS,
}


def planted(name: str) -> AbstractContextManager[None]:
    """With one of the bugs."""
    return patched(BUGS[name]())


def seed_that_finds(name: str, seeds: int, *, busy_s: float = 60.0, told: Callable[[int], None] = lambda _: None) -> int | None:
    """The first seed whose run is a violation with the bug; None when none of them is."""
    with planted(name):
        for seed in range(1, seeds + 1):
            told(seed)
            try:
                ClusterRun(seed, busy_s=busy_s, secure=name in SECURITY_BUGS).run()
            except Violation:
                return seed
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[*BUGS, []])
    parser.add_argument("--seeds", type=int, default=1000)
    args = parser.parse_args()
    logging.disable(logging.CRITICAL)
    missed = 0
    for name in args.names or BUGS:
        began = time.monotonic()
        found = seed_that_finds(name, args.seeds)
        missed += found is None
        what = f"found by seed {found}" if found is not None else f"NOT found by {args.seeds} seeds"
        sys.stdout.write(f"{name}: {what}, {time.monotonic() - began:.0f} s\n")
        sys.stdout.flush()
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
