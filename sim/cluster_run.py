"""Runs of a simulated cluster, seed by seed: ``python -m sim.cluster_run --seeds 100 --from 1 [--file FILE]``.

A seed counts when it had at least 60 virtual seconds, 500 acknowledged operations, 5 faults and one change of a leader; the
report says how many do. Each finished seed is a line of JSON in the file, and a seed that is there is not run again. ``--jobs
N`` runs N seeds at a time, each in a process of its own. Exit status 1 with the first violation, which names its seed: ``--from
SEED --seeds 1`` plays it again. ``--report FILE...`` runs nothing: it sums what is in the files, for docs/simulation.md.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import gc
import json
import logging
import multiprocessing
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from sim.cluster_checks import Violation
from sim.cluster_world import ClusterRun, Report

LEAST = {"virtual_s": 60, "operations": 500, "leader_changes": 1}
LEAST_FAULTS = 5


def counts(report: dict[str, Any]) -> bool:
    """Whether a run was hard enough to say something."""
    return all(report[name] >= least for name, least in LEAST.items()) and sum(report["faults"].values()) >= LEAST_FAULTS


def summary(reports: list[dict[str, Any]]) -> str:
    """All of them together, for people."""
    faults: collections.Counter[str] = collections.Counter()
    rare: collections.Counter[str] = collections.Counter()
    reached: collections.Counter[str] = collections.Counter()
    for report in reports:
        faults.update(report["faults"])
        rare.update(report.get("rare", {}))
        reached.update(report.get("rare", {}).keys())
    total = {
        name: sum(report[name] for report in reports) for name in ("virtual_s", "operations", "acked", "committed", "aborted")
    }
    changes = {name: sum(report[name] for report in reports) for name in ("leader_changes", "controller_changes")}
    enough = sum(map(counts, reports))
    words = ", ".join(f"{count:,} {name}" for name, count in sorted(faults.items()))
    branches = ", ".join(f"{name} {count:,} ({reached[name]:,} seeds)" for name, count in sorted(rare.items()))
    return (
        f"{len(reports):,} seeds, {enough:,} of them hard enough; {total['virtual_s'] / 3600:,.1f} virtual hours, "
        f"{total['operations']:,} operations acknowledged, {total['acked']:,} records, "
        f"{total['committed']:,} transactions committed, "
        f"{total['aborted']:,} aborted; {changes['leader_changes']:,} changes of a partition's leader, "
        f"{changes['controller_changes']:,} of the controller; faults: {words}; rare branches: {branches or 'none'}"
    )


def read_reports(paths: Iterable[Path]) -> list[dict[str, Any]]:
    """Finished seeds, each once, by seed."""
    rows = [json.loads(line) for path in paths if path.exists() for line in path.read_text().splitlines()]
    return list({row["seed"]: row for row in sorted(rows, key=lambda row: int(row["seed"]))}.values())


class Played(NamedTuple):
    """A seed, its report as a row, or its violation; ``took_s`` of real time."""

    seed: int
    row: dict[str, Any]
    violation: str
    took_s: float


def play(seed: int, busy_s: float, log_level: str | None, secure: bool) -> Played:
    """Runs one seed, in this process."""
    gc.set_threshold(50_000, 50, 100)  # a fifth of the time went into looking through what a whole cluster keeps
    logging.basicConfig(level=(log_level or "critical").upper(), format="%(levelname)s %(name)s %(message)s")
    began = time.monotonic()
    try:
        report: Report = ClusterRun(seed, busy_s=busy_s, secure=secure).run()
    except Violation as violation:
        return Played(seed, {}, str(violation), time.monotonic() - began)
    return Played(seed, dataclasses.asdict(report), "", time.monotonic() - began)


def _played(seeds: Sequence[int], jobs: int, busy_s: float, log_level: str | None, secure: bool) -> Iterator[Played]:
    """The seeds as they end; with several jobs that is not their order."""
    one = partial(play, busy_s=busy_s, log_level=log_level, secure=secure)
    if jobs <= 1:
        for seed in seeds:  # map() would take a StopIteration of a run for the end of the seeds
            yield one(seed)
        return
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap_unordered(one, seeds)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--from", type=int, default=1, dest="first")
    parser.add_argument("--busy", type=float, default=60.0, help="virtual seconds with faults")
    parser.add_argument("--secure", action="store_true", help="with logins and an authorizer, while rights come and go")
    parser.add_argument("--file", type=Path, help="where finished seeds are kept, one a line; those in it are not run again")
    parser.add_argument("--jobs", type=int, default=1, help="seeds at a time, one process each")
    parser.add_argument("--log", help="log level of the nodes, for one seed that is played again")
    parser.add_argument("--report", type=Path, nargs="+", metavar="FILE", help="sum up finished seeds, and run none")
    args = parser.parse_args()
    if args.report:
        sys.stdout.write(summary(read_reports(args.report)) + "\n")
        return 0
    known = read_reports([args.file] if args.file else [])
    done = {report["seed"] for report in known}
    seeds = [seed for seed in range(args.first, args.first + args.seeds) if seed not in done]
    for played in _played(seeds, args.jobs, args.busy, args.log, args.secure):
        if played.violation:
            sys.stderr.write(f"VIOLATION: {played.violation}\n")
            return 1
        known.append(played.row)
        if args.file:
            with args.file.open("a") as file:
                file.write(json.dumps(played.row) + "\n")
        sys.stdout.write(f"seed {played.seed}: {played.took_s:.1f} s; {json.dumps(played.row)}\n")
        sys.stdout.flush()
    sys.stdout.write(summary(known) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
