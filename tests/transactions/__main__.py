"""``python -m tests.transactions``: the transactional workload, with other seeds again and again (``make transactions``)."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from pathlib import Path

from tests.interop.java import JavaSide
from tests.interop.nodes import FEATURES, ROOT
from tests.transactions.workload import Run


def main() -> int:
    parser = argparse.ArgumentParser(prog="make transactions", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="how many runs")
    parser.add_argument("--first-seed", type=int, default=int(time.time()))
    parser.add_argument("--seconds", type=float, default=240, help="of torment, at least")
    parser.add_argument("--commits", type=int, default=1000)
    parser.add_argument("--aborts", type=int, default=1000)
    parser.add_argument("--failures", type=int, default=100, help="of the coordinator")
    parser.add_argument("--broker", choices=("tidelog", "apache"), default="tidelog")
    parser.add_argument("--feature", action="append", default=[], metavar="NAME=LEVEL", help="a level other than the tests'")
    parser.add_argument("--keep", action="store_true", help="keep the histories of good runs as well")
    args = parser.parse_args()
    features = {**FEATURES, **{name: int(level) for name, _, level in (each.partition("=") for each in args.feature)}}
    bad = 0
    for seed in range(args.first_seed, args.first_seed + args.seeds):
        home = ROOT / "build" / "transactions" / f"{args.broker}-{seed}"
        shutil.rmtree(home, ignore_errors=True)
        java = JavaSide(Path(home).with_suffix(".java.log")) if args.broker == "apache" else None
        home.mkdir(parents=True)
        began = time.monotonic()
        run = Run(home, seed, args.broker, java, features)
        try:
            verdict = run.go(args.seconds, commits=args.commits, aborts=args.aborts, failures=args.failures)
            good, text = verdict.valid, verdict.text()
        except AssertionError as failed:
            good, text = False, str(failed)
        finally:
            if java is not None:
                java.close()
        deeds = ", ".join(f"{name} {count}" for name, count in sorted(run.told.items()))
        print(f"seed {seed}, {time.monotonic() - began:.0f} s, {run.counts['commit']} commits, {run.counts['abort']} aborts, "
              f"{run.failures} failures of the coordinator ({deeds})\n{text}", flush=True)  # fmt: skip
        bad += not good
        if good and not args.keep:
            shutil.rmtree(home)
        elif not good:
            print(f"All that was recorded is in {home.relative_to(ROOT)}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
