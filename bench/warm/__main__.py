"""``python -m bench.warm``: tidelog beside a warm Apache Kafka and a minimal broker in C (make bench).

A generator in C puts the same requests on all sides, which take turns slice by slice: a fresh node of this tree, one Apache Kafka
whose JVM has run each row until two runs in a row differed by less than 5 %, and the C limit. A ratio is the median of the
rounds' paired ratios, with the exact interval of the sign test. A round does not count where the limit moved or others used the
machine; a row gets up to four more rounds until as many as asked for count.

All samples are in the file of --json, whole after each round. Rows that it has in full, of this commit and machine, are not
measured again: the same command resumes where it was ended.

Exit status: 0, or 1 when something is wrong, or 3 when a row that was measured is void.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from bench.java_load import LoadFailed
from bench.pair.checkouts import ROOT
from bench.pair.holding import held_memory
from bench.pair.processes import Failed, ended_by_signals
from bench.pair.programs import NoCompiler
from bench.warm import loads, report
from bench.warm.cluster import cluster_group
from bench.warm.loads import Group, Plan
from bench.warm.others import cold_group, java_group
from bench.warm.page import write_between_marks
from bench.warm.results import Record, Results, machine_text
from bench.warm.rows import ROWS, Row
from bench.warm.sides import this_tree
from bench.warm.standing import idle_group, start_group
from tests.interop.java import JavaFailed
from tests.interop.nodes import NodeFailed
from tools.jars import JarsMissing

ROUNDS, MORE_ROUNDS = 7, 4
ROUND_S, ROW_S = 24.0, 30.0
"""A round and a row's preparation, as long as none was seen."""
SHORT = ("<!-- short: written by make bench -->", "<!-- end of short -->")
TABLES = ("<!-- warm: written by make bench -->", "<!-- end of warm -->")
DONE, BROKEN, VOID = 0, 1, 3
GROUPS: dict[str, Callable[[Path, Plan], AbstractContextManager[Group]]] = {
    "node": loads.node_group,
    "start": start_group,
    "cold": cold_group,
    "cluster": cluster_group,
    "idle": idle_group,
    "java": java_group,
}
"""In the order in which they are measured."""
FAILURES = (Failed, LoadFailed, NodeFailed, JavaFailed, AssertionError, OSError)


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.warm", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"that count, of each row [{ROUNDS}]")
    parser.add_argument("--rows", default="", metavar="REGEX", help="only rows whose name matches")
    parser.add_argument("--groups", default="", help=f"only rows of these groups, of {','.join(GROUPS)}")
    parser.add_argument("--smoke", action="store_true", help="one short round of each row: does it run")
    parser.add_argument("--json", type=Path, help="the file of all samples [below bench/results, by commit]")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the tables into this page, between its marks")
    parser.add_argument("--report", action="store_true", help="measure nothing: only tables from the file")
    parser.add_argument("--data", type=Path, help="a folder below which nodes keep their data [the system's temporary folder]")
    return parser.parse_args(words)


def selected(pattern: str, groups: str = "") -> list[Row]:
    """The rows of these groups (all without any) whose names match."""
    wanted = groups.split(",") if groups else list(GROUPS)
    if unknown := set(wanted) - set(GROUPS):
        raise SystemExit(f"there is no group {', '.join(sorted(unknown))}; there are {', '.join(GROUPS)}")
    return [row for row in ROWS if row.group in wanted and re.search(pattern, row.name)]


def wants_more(record: Record, rounds: int, more: int = MORE_ROUNDS) -> bool:
    """Whether too few rounds count, and more may be tried."""
    return len(record.counted()) < rounds and len(record.rounds) + len(record.failed) < rounds + more


class Progress:
    """How long it will take, as far as rounds so far tell."""

    def __init__(self, rows: int, rounds: int) -> None:
        self._left_rows, self._rounds, self._left_of_row = rows, rounds, rounds
        self._round_s: list[float] = []
        self._row_s: list[float] = []

    def prepared(self, seconds: float, rounds: int) -> None:
        """A row is ready, with so many rounds to come."""
        self._left_rows -= 1
        self._left_of_row = rounds
        self._row_s.append(seconds)

    def round_done(self, seconds: float) -> None:
        """One more."""
        self._left_of_row = max(0, self._left_of_row - 1)
        self._round_s.append(seconds)

    def minutes_left(self) -> float:
        """An estimate."""
        a_round = sum(self._round_s) / len(self._round_s) if self._round_s else ROUND_S
        a_row = sum(self._row_s) / len(self._row_s) if self._row_s else ROW_S
        return ((self._left_rows * self._rounds + self._left_of_row) * a_round + self._left_rows * a_row) / 60


def tell(text: str) -> None:
    """On standard error."""
    print(f"{time.strftime('%H:%M:%S', time.gmtime())} {text}", file=sys.stderr, flush=True)


def measure_row(group: Group, row: Row, results: Results, record: Record, rounds: int, more: int, progress: Progress) -> None:
    """All rounds of a row; a failure ends the row, not the run."""
    began = time.monotonic()
    results.begin(row.name, record)
    try:
        costs = group.prepare(row)
        record.warm.append(costs)
        progress.prepared(time.monotonic() - began, rounds - len(record.rounds))
        tell(f"{row.name}: warm: {', '.join(f'{cost:.4g}' for cost in costs)}; about {progress.minutes_left():.0f} min left")
        while wants_more(record, rounds, more):
            began = time.monotonic()
            number = len(record.rounds)
            samples = group.one_round(row, number)
            results.add(row.name, samples)
            progress.round_done(time.monotonic() - began)
            said = ", ".join(f"{side} {one.sample.cost:.4g}, {one.load.rate:,.0f}/s" for side, one in samples.items())
            counts = "" if number in record.counted() else " (does not count)"
            tell(f"{row.name}: round {number + 1}{counts}: {said}; about {progress.minutes_left():.0f} min left")
        group.finish(row)
    except FAILURES as error:
        record.failed.append(str(error) or type(error).__name__)
        results.save()
        tell(f"{row.name}: failed: {error}")


def measure(args: argparse.Namespace, rows: Sequence[Row], results: Results, folder: Path) -> None:
    """Every row that is not there in full, group by group."""
    commit, machine = this_tree().label, machine_text()
    plan, rounds, more = (loads.SMOKE, 1, 0) if args.smoke else (loads.FULL, args.rounds, MORE_ROUNDS)
    wanted = [(row, results.resumed(row.name, commit, machine)) for row in rows]
    for _, record in wanted:
        record.failed.clear()
    wanted = [(row, record) for row, record in wanted if wants_more(record, rounds, more)]
    progress = Progress(len(wanted), rounds)
    for name, opened in GROUPS.items():
        those = [(row, record) for row, record in wanted if row.group == name]
        if not those:
            continue
        home = folder / name
        home.mkdir()
        try:
            with opened(home, plan) as group:
                for row, record in those:
                    measure_row(group, row, results, record, rounds, more, progress)
        except FAILURES as error:
            for row, record in those:
                record.failed.append(str(error) or type(error).__name__)
                results.begin(row.name, record)
            tell(f"group {name} failed: {error}")
        shutil.rmtree(home, ignore_errors=True)


def main() -> int:
    args = arguments()
    rows = selected(args.rows, args.groups)
    if not rows:
        print("no row has such a name", file=sys.stderr)
        return BROKEN
    path = args.json or ROOT / "bench" / "results" / f"{this_tree().label}-warm{'-smoke' * args.smoke}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    results = Results.load(path)
    folder = Path(tempfile.mkdtemp(prefix="tidelog-warm-", dir=args.data))
    try:
        with ended_by_signals():
            if not args.report:
                with contextlib.ExitStack() as stack:
                    if not args.smoke:
                        tell(stack.enter_context(held_memory()))
                    measure(args, rows, results, folder)
    except (Failed, NoCompiler, JarsMissing) as error:
        print(f"bench: {error}", file=sys.stderr)
        return BROKEN
    except KeyboardInterrupt:
        print(f"bench: interrupted; the same command resumes from {path}", file=sys.stderr)
        return BROKEN
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    found = report.findings(ROWS, results)
    print(report.document(found))
    tell(f"all samples: {path}")
    if args.write:
        write_between_marks(args.write, SHORT, report.falls_short(found, ROWS))
        write_between_marks(args.write, TABLES, report.document(found))
    failed = any(results.records[row.name].failed for row in rows if row.name in results.records)
    void = any(finding.is_void for finding in found if finding.row in rows)
    return BROKEN if failed else VOID if void and not args.smoke else DONE


if __name__ == "__main__":
    sys.exit(main())
