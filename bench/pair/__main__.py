"""``python -m bench.pair OLD NEW``: two revisions of tidelog measured in turns on one machine (make bench-pair OLD=v1 NEW=HEAD).

OLD and NEW are what git can name, or the path of a work tree (``.`` for what is not committed). Each round has fresh nodes of
both and a minimal broker in C, the limit; every row is measured on all of them, one after another, in an order that turns. A
row's verdict is on the median of its paired ratios (new over old, round by round): pass when the upper end of the exact 95 %
interval of the sign test is at most 1.03, fail when the lower end is above it, else undecided. With --count instructions nodes
run under valgrind and their instructions in user mode are counted: slower, but the same on a busy machine.

Exit status: 0 all rows pass, 1 some row fails or is undecided, 2 something is wrong, 3 the run is void. A round of a row does not
count when the limit moved, or when other processes or the hypervisor had more than 5 % of the CPU; the run is void when fewer
than two thirds of a row's rounds count.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path

from bench.pair.checkouts import NoCheckout, checked_out
from bench.pair.counting import NoValgrind
from bench.pair.holding import held_memory
from bench.pair.processes import Failed, ended_by_signals
from bench.pair.programs import NoCompiler, program
from bench.pair.report import Verdict, counted_rounds, remarks, rows_per_second, table, to_json, verdict
from bench.pair.rounds import LIMIT, NEW, OLD, Plan, Side, one_round
from bench.pair.rows import LOADS, TASKS, Load, Task
from bench.pair.sampling import Sample
from bench.pair.statistics import Outcome
from bench.pair.voids import reasons

ROUNDS, COUNTED_ROUNDS = 21, 3
LEAST_ROUNDS = 7
FREE_BYTES = 12 << 30
PASSED, NOT_PASSED, BROKEN, VOID = 0, 1, 2, 3


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.pair", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("old", metavar="OLD", help="a revision, or the path of a work tree")
    parser.add_argument("new", metavar="NEW", help="a revision, or the path of a work tree")
    parser.add_argument("--rounds", type=int, help=f"how often everything is measured [{ROUNDS}, instructions {COUNTED_ROUNDS}]")
    parser.add_argument("--count", choices=("time", "instructions"), default="time", help="what a sample counts [time]")
    parser.add_argument("--rows", default="", metavar="REGEX", help="only rows whose name matches")
    parser.add_argument(
        "--scale", type=float, default=1.0, help="times the requests of a sample; below 1 shows only that it runs [1]"
    )
    parser.add_argument("--json", type=Path, help="where all samples go, as JSON [a file under bench/results]")
    cores = os.sched_getaffinity(0)
    parser.add_argument(
        "--core",
        type=int,
        default=max(cores),
        choices=sorted(cores),
        help="the core that everything runs on, nodes and load: two cores may be two threads of one, and then a node's time "
        f"depends on what the load does in that moment [{max(cores)}]",
    )
    parser.add_argument("--data", type=Path, help="a folder below which nodes keep their data [the system's temporary folder]")
    found = parser.parse_args(words)
    found.rounds = found.rounds or (ROUNDS if found.count == "time" else COUNTED_ROUNDS)
    if found.count == "time" and found.rounds < LEAST_ROUNDS and found.scale >= 1:
        parser.error(f"at least {LEAST_ROUNDS} rounds of time, or a --scale below 1")
    return found


def selected(pattern: str) -> list[Load | Task]:
    """The rows whose names match."""
    return [row for row in (*LOADS, *TASKS) if re.search(pattern, row.name)]


def enough_room(folder: Path, scale: float) -> None:
    """SystemExit when the disk is nearly full: a round writes up to some GiB a side."""
    free, wanted = shutil.disk_usage(folder).free, int(FREE_BYTES * max(0.2, scale))
    if free < wanted:
        raise SystemExit(f"{folder} has {free / 2**30:.1f} GiB free, a run needs {wanted / 2**30:.1f}: give another --data")


def measured(args: argparse.Namespace, rows: list[Load | Task], path: Path, folder: Path) -> tuple[list[Verdict], list[str]]:
    """All rounds; the file with all samples is whole after each of them."""
    plan = Plan(folder, args.count == "instructions", args.scale)
    with checked_out([args.old, args.new]) as (old, new):
        sides = [Side(OLD, old), Side(NEW, new)]
        if not plan.count:
            sides.append(Side(LIMIT, None))
        about = {
            "date": time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
            "old": old.label,
            "new": new.label,
            "counts": args.count,
            "scale": args.scale,
            "machine": f"{os.cpu_count()} cores, {platform.system()} {platform.release()}, Python {platform.python_version()}",
        }
        rounds: list[dict[str, dict[str, Sample]]] = []
        for number in range(args.rounds):
            print(f"round {number + 1} of {args.rounds}: {old.label} and {new.label}", file=sys.stderr, flush=True)
            rounds.append(one_round(sides, rows, number, plan))
            verdicts = [verdict(row.name, row.unit, rounds) for row in rows]
            void = list(reasons(len(rounds), {row.name: len(counted_rounds(row.name, rounds)) for row in rows}))
            path.write_text(json.dumps(to_json(verdicts, rounds, about, void), indent=1) + "\n")
    return verdicts, void


def main() -> int:
    args = arguments()
    rows = selected(args.rows)
    if not rows:
        print("no row has such a name", file=sys.stderr)
        return BROKEN
    default = Path(__file__).resolve().parent.parent / "results" / f"{time.strftime('%Y%m%d-%H%M', time.gmtime())}-pair.json"
    path = args.json or default
    os.sched_setaffinity(0, {args.core})
    enough_room(args.data or Path(tempfile.gettempdir()), args.scale)
    folder = Path(tempfile.mkdtemp(prefix="tidelog-pair-", dir=args.data))
    try:
        with ended_by_signals():
            for name in ("load", "limit"):
                program(name)
            with contextlib.ExitStack() as stack:
                if args.count == "time" and args.scale >= 1:
                    print(stack.enter_context(held_memory()), file=sys.stderr, flush=True)
                verdicts, void = measured(args, rows, path, folder)
    except (NoCheckout, NoCompiler, NoValgrind, Failed) as error:
        print(f"bench-pair: {error}", file=sys.stderr)
        return BROKEN
    except KeyboardInterrupt:
        print("bench-pair: interrupted", file=sys.stderr)
        return BROKEN
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(table(verdicts, count=args.count == "instructions"))
    for line in (*rows_per_second(verdicts), *remarks(verdicts)):
        print(f"\n{line}")
    print(f"\nall samples: {path}", file=sys.stderr)
    for reason in void:
        print(f"VOID: {reason}", file=sys.stderr)
    if void:
        return VOID
    return PASSED if all(each.outcome is Outcome.PASS for each in verdicts) else NOT_PASSED


if __name__ == "__main__":
    sys.exit(main())
