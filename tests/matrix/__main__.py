"""``python -m tests.matrix [SCENARIO...]``: Kafka's system-test matrix on real processes (``make matrix``).

Each scenario runs on a fresh cluster of each layout. What has run well is not run again, unless it is named; results are kept
in a file, and with --write they go into a page.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import time
from pathlib import Path

from tests.interop.nodes import ROOT
from tests.matrix import report
from tests.matrix.running import LAYOUTS, SECURE, Result, run
from tests.matrix.scenarios import MATRIX

NOTE = ROOT / ".cache" / "matrix.jsonl"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.matrix", description=__doc__)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=f"all by default: {', '.join(MATRIX)}")
    parser.add_argument("--layout", action="append", choices=LAYOUTS, help="both by default")
    parser.add_argument("--secure", action="store_true", help="listeners speak SASL_SSL, and nodes have an authorizer")
    parser.add_argument("--bounces", type=int, default=5)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--note", type=Path, default=NOTE, help="the results file")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put all results into this page")
    parser.add_argument("--home", type=Path, default=ROOT / "build" / "matrix", help="for data and histories")
    parser.add_argument("--list", action="store_true", help="name the scenarios")
    args = parser.parse_args()
    if unknown := sorted(set(args.scenarios) - set(MATRIX)):
        parser.error(f"no such scenario: {', '.join(unknown)}. There are {', '.join(MATRIX)}")
    return args


def one(name: str, layout: str, args: argparse.Namespace, place: str) -> Result:
    """Run it and tell how it goes."""
    home = args.home / f"{layout.replace(SECURE, '-secure')}-{name}"
    shutil.rmtree(home, ignore_errors=True)
    began = time.monotonic()

    def say(what: str) -> None:
        print(f"  {time.monotonic() - began:5.0f} s  {what}", flush=True)

    print(f"{place} {layout}: {name}", flush=True)
    result = run(name, MATRIX[name], layout, home, say, bounces=args.bounces, seed=args.seed)
    if result.wrong:
        print("\n".join(result.wrong), flush=True)
        print(f"  WRONG after {result.seconds:.0f} s; data and histories are in {home}", flush=True)
    else:
        shutil.rmtree(home, ignore_errors=True)
        found = f"; the planted violation was found: {', '.join(result.found)}" if result.found else ""
        told = f"{result.records:,} records, {result.commits:,} commits, longest wait {result.longest_wait_s:.1f} s"
        found += f"; {result.replaced} clients replaced" if result.replaced else ""
        print(f"  good, {result.seconds:.0f} s: {told}{found}", flush=True)
    return result


def main() -> int:
    args = arguments()
    if args.list:
        print("\n".join(MATRIX))
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started is ended, as after ^C
    known = report.load(args.note)
    layouts = [layout + SECURE * args.secure for layout in args.layout or LAYOUTS]
    todo = [(layout, name) for layout in layouts for name in args.scenarios or MATRIX]
    if not args.scenarios:
        todo = [each for each in todo if each not in known or known[each].wrong]
    bad = 0
    for number, (layout, name) in enumerate(todo, 1):
        result = one(name, layout, args, f"[{number}/{len(todo)}]")
        report.append(args.note, result)
        known[layout, name] = result
        bad += bool(result.wrong)
    if args.write is not None:
        rows = ((layout + suffix, name) for suffix in ("", SECURE) for layout in LAYOUTS for name in MATRIX)
        report.write(args.write, [known[key] for key in rows if key in known])
    print(f"{len(todo)} run, {bad} wrong; {len(known)} results in {args.note}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
