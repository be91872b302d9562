"""``python -m bench.fifty``: a suite of fifty tests with a fresh tidelog each, beside the same one with one Apache Kafka.

Each round runs every side once as pytest does, in a process of its own; which side comes first turns. The table has medians
and ranges. Wall time is from the start of pytest to its end, the brokers' starts included.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.report import machine
from bench.suite.conftest import KINDS
from tests.interop.java import classes
from tests.interop.nodes import ROOT, environment

SIDES = {
    "tidelog": "a fresh tidelog for each test",
    "tidelog-session": "one tidelog for all",
    "apache": "one Apache Kafka for all",
}
PAGE = ROOT / "docs" / "benchmarks.md"
MARKS = ("<!-- fifty: written by python -m bench.fifty --write-page -->", "<!-- end of fifty -->")
LIMIT_S = 900


def run(kind: str) -> dict[str, float]:
    """One session: seconds of wall time and what it said about itself. SystemExit with its output when a test fails."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "report.json")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--broker", kind, "bench/suite"]
        began = time.perf_counter()
        done = subprocess.run(
            command, cwd=ROOT, env={**environment(), "SUITE_REPORT": str(path)}, capture_output=True, text=True,
            timeout=LIMIT_S, check=False,
        )  # fmt: skip
        wall = time.perf_counter() - began
        passed = re.search(r"(\d+) passed", done.stdout)
        if done.returncode or passed is None or int(passed[1]) != 50:
            raise SystemExit(f"{kind}: not fifty tests passed\n{done.stdout[-5000:]}{done.stderr[-2000:]}")
        found: dict[str, float] = json.loads(path.read_text())
    found["wall_s"] = wall
    found["peak_mib"] = found["broker_peak_mib"] + found["test_peak_mib"]
    return found


COLUMNS = {
    "wall_s": "wall time, s",
    "start_s": "of it waiting for brokers to start, s",
    "broker_peak_mib": "peak memory of the broker's process, MiB",
    "test_peak_mib": "of the tests' process, MiB",
    "peak_mib": "of both, MiB",
}


def shown(values: list[float]) -> str:
    """Median and range; a dash where there is nothing."""
    if not any(values):
        return "-"
    middle, low, high = statistics.median(values), min(values), max(values)
    return f"{middle:,.3g} ({low:,.3g}-{high:,.3g})" if middle < 1000 else f"{middle:,.0f} ({low:,.0f}-{high:,.0f})"


def table(results: dict[str, list[dict[str, float]]]) -> str:
    """In Markdown."""
    lines = [f"| 50 tests with | {' | '.join(COLUMNS.values())} |", "|---" * (len(COLUMNS) + 1) + "|"]
    for kind, rounds in results.items():
        lines.append(f"| {SIDES[kind]} | {' | '.join(shown([each[key] for each in rounds]) for key in COLUMNS)} |")
    return "\n".join(lines)


def write_page(text: str) -> None:
    """Between the marks of this section."""
    page = PAGE.read_text()
    before, _, rest = page.partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    if not rest or not after:
        raise SystemExit(f"{PAGE.name} has no section between {MARKS[0]} and {MARKS[1]}")
    PAGE.write_text(f"{before}{MARKS[0]}\n\n{text}\n\n{MARKS[1]}{after}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.fifty", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="how often every side runs [5]")
    parser.add_argument("--sides", default=",".join(KINDS), help=f"which, from {', '.join(KINDS)} [all]")
    parser.add_argument("--write-page", action="store_true", help="put the table into docs/benchmarks.md")
    arguments = parser.parse_args()
    sides = arguments.sides.split(",")
    if "apache" in sides:
        classes()
    about = f"{time.strftime('%Y-%m-%d %H:%M', time.gmtime())} UTC, {arguments.rounds} rounds. {machine()}"
    results: dict[str, list[dict[str, float]]] = {kind: [] for kind in sides}
    for number in range(arguments.rounds):
        for kind in sides if number % 2 == 0 else reversed(sides):
            results[kind].append(run(kind))
            print(f"round {number + 1}, {kind}: {results[kind][-1]}", file=sys.stderr, flush=True)
    target = ROOT / "bench" / "results" / f"fifty-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps({"about": about, "results": results}, indent=1) + "\n")
    text = f"{about}.\n\n{table(results)}"
    print(text)
    if arguments.write_page:
        write_page(text)


if __name__ == "__main__":
    main()
