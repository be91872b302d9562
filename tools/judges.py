"""Other people's test suites against tidelog: ``python tools/judges.py DIR [NAME...]`` runs them and writes ``docs/compat.md``.

DIR holds the judges: a program of each name in JUDGES below, and ``broker.properties``, the settings they expect of a broker.
A judge takes the address of a node, or ``launch:PROGRAM`` for a program that starts nodes (``compat/launcher``); it prints a line
``FAIL  CASE | ...`` for each case that failed, and last ``NAME: P passed, F failed, S skipped``. Each gets a fresh node.
``compat/gaps.txt`` has the reason for each failure that we know of; the exit status is 1 when one fails without a reason.
Named judges only are run when names are given; the others keep the rows they have on the page.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GAPS = ROOT / "compat" / "gaps.txt"
PAGE = ROOT / "docs" / "compat.md"
RESULTS = ROOT / "compat" / "results.json"
LAUNCHER = ROOT / "compat" / "launcher"
TALLY = re.compile(r"^[\w-]+: (\d+) passed, (\d+) failed, (\d+) skipped$", re.MULTILINE)
FAILED = re.compile(r"^FAIL  (\S+) \|", re.MULTILINE)
LIMIT_S = 1800
START_LIMIT_S = 30
NOT_SERVED = ("authorizer.class.name", "super.users", "allow.everyone.if.no.acl.found", "replica.selector.class")
"""Settings of the judges' broker that tidelog does not have yet: a node refuses to start with what it would ignore."""

FRANZ_GO = (
    "Test(848|GroupETL|TxnEtl|Issue|Consume|DirectPartitionPurge|AddRemovePartitions|Pause|Pooling|GroupSimple|HookPollStart|LookbackMilli"
    "|Ping|UnknownGroupOffsetFetchPinned|ProcessHooks|Client_Produce|MaxVersions|Pool|Hook|Consumer|Producer|PreferLagFn|Manual"
    "|.*Rack)"
)
"""Its tests of what a node serves: those for share groups and SCRAM would only wait for their time limit."""


@dataclass(frozen=True, slots=True)
class Judge:
    """A test suite: its program, what it is made of, and how it is run; ``settings`` go into its environment."""

    name: str
    what: str
    mode: str = "full"
    launched: bool = False
    settings: tuple[tuple[str, str], ...] = ()


JUDGES = (
    Judge("apache-requests", "Apache Kafka's raw-protocol request tests, 4.3.1", launched=True),
    Judge("apache-tools", "Apache Kafka's tests of its command-line tools, 4.3.1", launched=True),
    Judge("kafka-cli", "Apache Kafka's command-line tools, 4.3.1"),
    Judge("kafka-python", "integration tests of kafka-python 3.0.12"),
    Judge("connect", "kcat, Kafka Connect 4.3.1 with exactly once, MirrorMaker 2"),
    Judge("verifiable", "workers of Apache Kafka's system tests, 4.3.1", mode="quick"),
    Judge(
        "franz-go",
        "tests of the Go client franz-go v1.22.2, but for share groups and SCRAM",
        mode="quick",
        settings=(("RUN", FRANZ_GO),),
    ),
)


@dataclass(slots=True)
class Result:
    """What a judge said of the revision ``revision``."""

    name: str
    passed: int
    failed: int
    skipped: int
    seconds: int
    date: str
    revision: str
    failures: list[str] = field(default_factory=list)


class NoVerdict(Exception):
    """A judge or a node did not run; the text has the end of what it printed."""


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def expected_settings(text: str) -> list[str]:
    """``key=value`` for what the judges want of a broker and tidelog has."""
    lines = [line.strip() for line in text.splitlines()]
    return [line for line in lines if line and line[0] not in "#!" and line.partition("=")[0] not in NOT_SERVED]


@contextmanager
def node(settings: list[str]) -> Iterator[str]:
    """A fresh tidelog node; its address. What it logged is in the exception when it did not start."""
    home = Path(tempfile.mkdtemp(prefix="tidelog-judged-"))
    here = f"PLAINTEXT://127.0.0.1:{free_port()}"
    own = ["node.id=0", "broker.rack=RACK1", f"listeners={here}", f"advertised.listeners={here}", "tidelog.http.listener="]
    command = [sys.executable, "-m", "tidelog.cli.main", "start", "--data", str(home / "data")]
    for setting in settings + own:
        command += ["--override", setting]
    with open(home / "node.log", "wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment())
    try:
        deadline = time.monotonic() + START_LIMIT_S
        while "tidelog is ready" not in (said := (home / "node.log").read_text()):
            if process.poll() is not None or time.monotonic() > deadline:
                raise NoVerdict(f"the node did not start:\n{said[-2000:]}")
            time.sleep(0.05)
        yield here.removeprefix("PLAINTEXT://")
    finally:
        process.terminate()
        process.wait(START_LIMIT_S)
        shutil.rmtree(home, ignore_errors=True)


def environment() -> dict[str, str]:
    """For children: our sources first, and compiled modules are kept, which halves the start of a node."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPATH": str(ROOT / "src"), "TIDELOG_PYTHON": sys.executable}


def judge_environment() -> dict[str, str]:
    """For judges: their Python programs must not see our sources."""
    return {name: value for name, value in environment().items() if name != "PYTHONPATH"}


def run(judge: Judge, folder: Path, revision: str) -> Result:
    """Run one judge on a fresh node. Raises NoVerdict when it ends without a tally."""
    program = str(folder / judge.name)
    began = time.monotonic()
    if judge.launched:
        said = ask([program, f"launch:{LAUNCHER}", judge.mode], dict(judge.settings))
    else:
        with node(expected_settings((folder / "broker.properties").read_text())) as address:
            said = ask([program, address, judge.mode], dict(judge.settings))
    return verdict(judge.name, said, int(time.monotonic() - began), revision)


def ask(command: list[str], settings: Mapping[str, str]) -> str:
    """What the judge printed."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env={**judge_environment(), **settings},
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        raise NoVerdict(f"{Path(command[0]).name} took more than {LIMIT_S} s") from late
    return done.stdout + done.stderr


def verdict(name: str, said: str, seconds: int, revision: str) -> Result:
    """The tally and the failing cases in a judge's output."""
    tallies = TALLY.findall(said)
    if not tallies:
        raise NoVerdict(f"{name} ended without a tally:\n{said[-2000:]}")
    passed, failed, skipped = (int(count) for count in tallies[-1])
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    return Result(name, passed, failed, skipped, seconds, date, revision, sorted(set(FAILED.findall(said))))


def read_gaps(text: str) -> list[tuple[str, re.Pattern[str], str]]:
    """``JUDGE CASE REASON`` by line; JUDGE and CASE are regular expressions for the whole name."""
    gaps = []
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            judge, case, reason = line.split(None, 2)
            gaps.append((judge, re.compile(case), reason.strip()))
    return gaps


def reason_for(gaps: list[tuple[str, re.Pattern[str], str]], judge: str, case: str) -> str | None:
    """Why the case fails, when we know."""
    return next((why for name, cases, why in gaps if re.fullmatch(name, judge) and cases.fullmatch(case)), None)


def page(results: Mapping[str, Result], gaps: list[tuple[str, re.Pattern[str], str]]) -> str:
    """``docs/compat.md``."""
    lines = [
        "# Other people's test suites",
        "",
        "What the tests of clients, tools and Apache Kafka itself say of one tidelog node. Written by `make compat JUDGES=DIR`;",
        "do not edit. A case counts as skipped when the suite itself skips it, or when it wants a cluster that tidelog refuses",
        "to start: several brokers, security, a feature level it does not have.",
        "",
        f"Measured with {platform.python_implementation()} {platform.python_version()} on {platform.system()}.",
        "",
        "| suite | what it is | passed | failed | skipped | seconds | date | revision |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for judge in JUDGES:
        if judge.name in results:
            r = results[judge.name]
            lines.append(
                f"| {r.name} ({judge.mode}) | {judge.what} | {r.passed} | {r.failed} | {r.skipped} | {r.seconds} | {r.date} "
                f"| {r.revision} |"
            )
    lines += ["", "## Each failure and its reason"]
    for judge in JUDGES:
        failures = results[judge.name].failures if judge.name in results else []
        if not failures:
            continue
        lines += ["", f"### {judge.name}", ""]
        reasons: dict[str, list[str]] = {}
        for case in failures:
            reasons.setdefault(reason_for(gaps, judge.name, case) or "**not explained yet**", []).append(case)
        lines += [f"- {reason}: {', '.join(f'`{case}`' for case in cases)}" for reason, cases in reasons.items()]
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    """Run, write, and say what has no reason."""
    if not arguments:
        print("usage: make compat JUDGES=DIR  (DIR: the folder with the judges; see tools/judges.py)", file=sys.stderr)
        return 2
    folder, wanted = Path(arguments[0]).resolve(), set(arguments[1:])
    unknown = wanted - {judge.name for judge in JUDGES}
    if unknown or not (folder / "broker.properties").exists():
        print(f"no judge is called {sorted(unknown)}" if unknown else f"{folder} has no broker.properties", file=sys.stderr)
        return 2
    gaps = read_gaps(GAPS.read_text())
    results = {name: Result(**row) for name, row in json.loads(RESULTS.read_text()).items()} if RESULTS.exists() else {}
    revision = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False)
    status = 0
    for judge in JUDGES:
        if wanted and judge.name not in wanted:
            continue
        try:
            result = results[judge.name] = run(judge, folder, revision.stdout.strip() or "unknown")
        except NoVerdict as failure:
            print(f"{judge.name}: {failure}", file=sys.stderr)
            status = 2
            continue
        print(f"{result.name}: {result.passed} passed, {result.failed} failed, {result.skipped} skipped, {result.seconds} s")
        for case in result.failures:
            if reason_for(gaps, judge.name, case) is None:
                print(f"  not explained: {case}")
                status = status or 1
        RESULTS.write_text(json.dumps({name: asdict(row) for name, row in sorted(results.items())}, indent=1) + "\n")
        PAGE.write_text(page(results, gaps))
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
