"""``python -m tests.judges.streams [CLASS[#METHOD]...]``: Apache Kafka's own Streams integration tests against tidelog.

Each class runs in a JVM of its own, unchanged, from Kafka's published test jars. ``EmbeddedKafkaCluster.java`` stands in front of
the class that would run brokers inside that JVM, and has ``compat/launcher`` start nodes. ``--broker apache`` leaves Kafka's own
class in its place: Kafka's own count. With ``--write`` the results go into ``compat/streams.json`` and ``docs/compat.md``.
"""

from __future__ import annotations

import argparse
import datetime
import signal
import subprocess
import sys
from pathlib import Path

from tests.judges.streams.reports import Case, named
from tests.judges.streams.running import HOME, LAUNCHER, LIMIT_S, ROOT, NoVerdict, Setting, run
from tests.judges.streams.suites import SUITES, find
from tools.judges import GAPS, read_gaps, reason_for, uncommitted, write_page
from tools.streams_results import FILE, JUDGE, StreamsResult, load, save


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.judges.streams", description=__doc__)
    parser.add_argument("classes", nargs="*", metavar="CLASS[#METHOD]", help="all with the streams protocol by default")
    parser.add_argument("--broker", choices=("tidelog", "apache"), default="tidelog")
    parser.add_argument("--launcher", type=Path, default=LAUNCHER, help="another program that starts nodes")
    parser.add_argument("--limit", type=int, default=LIMIT_S, metavar="SECONDS", help="for a class")
    parser.add_argument("--home", type=Path, default=HOME, help="for logs and reports")
    parser.add_argument("--write", action="store_true", help="into compat/streams.json and docs/compat.md")
    parser.add_argument("--list", action="store_true", help="name the classes")
    return parser.parse_args()


def result(name: str, cases: list[Case], seconds: int, revision: str) -> StreamsResult:
    """For the record."""
    count = {verdict: len(named(cases, verdict)) for verdict in ("passed", "failed", "skipped")}
    by_streams = [case for case in cases if case.by_streams]
    return StreamsResult(
        name=name,
        **count,
        streams_passed=len(named(by_streams, "passed")),
        streams_cases=len(by_streams),
        seconds=seconds,
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
        revision=revision,
        failures=named(cases, "failed"),
        skips=named(cases, "skipped"),
    )


def one(name: str, args: argparse.Namespace, revision: str) -> bool:
    """Run a class and tell how it went; whether all its failures have a reason in ``compat/gaps.txt``."""
    name, _, method = name.partition("#")
    suite = find(name)
    own = args.broker == "apache"
    setting = Setting(own_cluster=own, launcher=args.launcher.resolve(), method=method, limit_s=args.limit, home=args.home)
    cases, seconds = run(suite, setting)
    found = result(suite.name, cases, seconds, revision)
    print(f"{found.summary} by {args.broker}, {seconds} s", flush=True)
    gaps = read_gaps(GAPS.read_text())
    explained = True
    for case in cases:
        if case.verdict != "passed":
            reason = reason_for(gaps, JUDGE, case.name)
            explained &= reason is not None or case.verdict == "skipped"
            print(f"  {case.verdict}: {case.name}: {case.why}" + (f" ({reason})" if reason else ""), flush=True)
    if args.write and not method:
        results = load(FILE)
        results[suite.name] = found.beside(results.get(suite.name), own)
        save(FILE, results)
        write_page()
    return explained


def main() -> int:
    args = arguments()
    if args.list:
        print("\n".join(suite.name for suite in SUITES))
        return 0
    if args.write and (changed := uncommitted(ROOT)):
        print(f"commit first, so that the results name what was judged: {', '.join(changed)}", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started is ended, as after ^C
    head = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    status = 0
    for name in args.classes or [suite.name for suite in SUITES]:
        try:
            explained = one(name, args, head.stdout.strip() or "unknown")
        except NoVerdict as failure:
            print(f"{name}: {failure}", file=sys.stderr, flush=True)
            status = 2
        else:
            status = status if explained else max(status, 1)
    return status


if __name__ == "__main__":
    sys.exit(main())
