"""``python -m tests.upgrade [REF]``: a rolling upgrade from REF to HEAD and back, under load (``make upgrade``).

REF is a tag or a commit; by default the newest tag, and without one the first commit that ran the matrix. Results are kept in a
file, and with --write they go into a page.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import time
from pathlib import Path

from tests.interop.nodes import ROOT
from tests.matrix.report import append
from tests.matrix.running import LAYOUTS
from tests.upgrade import report
from tests.upgrade.rolling import run
from tests.upgrade.versions import FIRST_CLUSTER, checked_out, newest_tag

NOTE = ROOT / ".cache" / "upgrade.jsonl"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.upgrade", description=__doc__)
    parser.add_argument("ref", nargs="?", default=newest_tag() or FIRST_CLUSTER, metavar="REF", help="[%(default)s]")
    parser.add_argument("--to", default="HEAD", metavar="REF", help="the newer version [%(default)s]")
    parser.add_argument("--layout", action="append", choices=LAYOUTS, help="combined by default")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--note", type=Path, default=NOTE, help="the results file")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put all results into this page")
    parser.add_argument("--home", type=Path, default=ROOT / "build" / "upgrade", help="for sources, data and histories")
    return parser.parse_args()


def main() -> int:
    args = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started is ended, as after ^C
    bad = 0
    for layout in args.layout or LAYOUTS[:1]:
        shutil.rmtree(args.home / layout, ignore_errors=True)
        older, newer = (checked_out(each, args.home / "versions") for each in (args.ref, args.to))
        began = time.monotonic()

        def say(what: str, began: float = began) -> None:
            print(f"  {time.monotonic() - began:5.0f} s  {what}", flush=True)

        print(f"{older.name} to {newer.name} and back, {layout}", flush=True)
        result = run(older, newer, layout, args.home / layout, say, args.seed)
        append(args.note, result)
        if result.wrong:
            bad += 1
            print("\n".join(result.wrong), flush=True)
            print(f"  WRONG after {result.seconds:.0f} s; data and histories are in {args.home / layout}", flush=True)
        else:
            shutil.rmtree(args.home / layout, ignore_errors=True)
            told = f"{result.records:,} records, {result.commits:,} commits, longest wait {result.longest_wait_s:.1f} s"
            print(f"  good, {result.seconds:.0f} s: {told}", flush=True)
    if args.write is not None:
        report.write(args.write, report.load(args.note))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
