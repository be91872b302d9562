"""``python -m bench.secure``: TLS and SASL_SSL beside a warm Apache Kafka and a minimal broker in C (make bench-tls).

One generator in C (``tls_load.c``) puts the same requests on all sides, which take turns within each round: a fresh node of this
tree, one Apache Kafka whose JVM has run each row until two runs in a row differed by less than 5 %, and the C limit
(``tls_limit.c``). A ratio is the median of paired ratios, with the exact 95 % interval of the sign test. Needs libssl-dev.
Fifteen minutes.

Exit status: 0, or 1 when something is wrong, or 3 when a row is void: fewer than seven of its rounds, or than two thirds, count,
because the limit moved or others used the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path

from bench.authorization import figures
from bench.pair.processes import Failed, ended_by_signals
from bench.pair.programs import NoCompiler
from bench.pair.voids import LEAST_COUNTED
from bench.secure import sides
from bench.secure.kernel_tls import kernel_tls
from bench.secure.report import MARKS, Findings, document, to_json
from bench.secure.rounds import one_round, tell, warm_apache
from bench.secure.rows import ROWS, TlsLoad
from bench.warm.measured import Measured
from bench.warm.page import write_between_marks
from bench.warm.steady import MOST_WARM_RUNS
from tools.jars import JarsMissing

ROOT = Path(__file__).resolve().parent.parent.parent
ROUNDS = 9
SHORT_SCALE = 0.01
DONE, BROKEN, VOID = 0, 1, 3


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.secure", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"how often everything is measured [{ROUNDS}]")
    parser.add_argument("--rows", default="", metavar="REGEX", help="only rows whose name matches")
    parser.add_argument("--scale", type=float, default=1.0, help="times the work of a sample [1]")
    parser.add_argument("--short", action="store_true", help="one round of a hundredth of the work: does it run")
    parser.add_argument("--without-apache", action="store_true", help="tidelog and the limit alone")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the tables into this page, between its marks")
    parser.add_argument("--json", type=Path, help="where all samples go, as JSON [a file under bench/results]")
    parser.add_argument("--data", type=Path, help="a folder below which nodes keep their data [the system's temporary folder]")
    found = parser.parse_args(words)
    if found.short:
        found.rounds, found.scale = 1, SHORT_SCALE
    return found


def about(args: argparse.Namespace) -> str:
    """When, of what, where."""
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty=+"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.strip()
    short = "" if args.scale >= 1 else f", {args.scale:g} of the work: shows only that it runs"
    return (
        f"{time.strftime('%Y-%m-%d %H:%M', time.gmtime())} UTC, commit {commit}, rounds: {args.rounds}{short}. "
        f"{os.cpu_count()} cores, {platform.system()} {platform.release().partition('-')[0]}, Python {platform.python_version()}."
    )


def measured(args: argparse.Namespace, folder: Path, path: Path) -> tuple[str, bool]:
    """All rounds; the document, and whether they are void. The file with all samples is whole after each round."""
    rows = [row for row in ROWS if re.search(args.rows, row.name)]
    if not rows:
        raise Failed(f"no row has a name that matches {args.rows}")
    pem = sides.make_certificate(folder)
    more = [kernel_tls(), *figures(10_000 if args.scale >= 1 else 1_000).lines()]
    rounds: list[dict[str, dict[str, Measured[TlsLoad]]]] = []
    most = MOST_WARM_RUNS if args.scale >= 1 else 2
    when = about(args)
    standing = nullcontext() if args.without_apache else warm_apache(rows, folder, pem, args.scale, most)
    with standing as warm:
        runs = warm.to_json() if warm else {}
        for number in range(args.rounds):
            tell(f"round {number + 1} of {args.rounds}")
            try:
                rounds.append(one_round(rows, number, warm, folder, pem, args.scale))
            except Failed as error:
                if len(rounds) < LEAST_COUNTED:
                    raise
                tell(str(error))
                more.append(f"Round {number + 1} of {args.rounds} failed, which ended the run.")
                break
            findings = Findings(rows, rounds)
            path.write_text(json.dumps(to_json(findings, when, runs, more), indent=1) + "\n")
    return document(findings, when, runs, more), bool(findings.void())


def main() -> int:
    args = arguments()
    results = ROOT / "bench" / "results"
    path = args.json or results / f"{time.strftime('%Y%m%d-%H%M', time.gmtime())}-secure{'-short' * args.short}.json"
    path.parent.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="tidelog-secure-", dir=args.data))
    try:
        with ended_by_signals():
            sides.load_program()
            sides.limit_program()
            text, void = measured(args, folder, path)
    except (Failed, NoCompiler, JarsMissing) as error:
        print(f"bench-tls: {error}", file=sys.stderr)
        return BROKEN
    except KeyboardInterrupt:
        print("bench-tls: interrupted", file=sys.stderr)
        return BROKEN
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(text)
    tell(f"all samples: {path}")
    if args.write:
        write_between_marks(args.write, MARKS, text)
    return VOID if void and args.scale >= 1 else DONE


if __name__ == "__main__":
    sys.exit(main())
