"""Other people's test suites against tidelog: ``python tools/judges.py DIR [--nodes N] [NAME...]`` runs them and writes
``docs/compat.md``.

DIR holds the judges: a program of each name in JUDGES below, and ``broker.properties``, the settings they expect of a broker.
A judge takes the addresses of nodes, or ``launch:PROGRAM`` for a program that starts them (``compat/launcher``); it prints a line
``FAIL  CASE | ...`` for each case that failed, and last ``NAME: P passed, F failed, S skipped``. Each gets fresh nodes, one or,
with ``--nodes 3``, three that are one cluster; how many the launcher starts, the judge says. ``compat/gaps.txt`` has the reason
for each failure that we know of, and for each skipped case where the judge's log names it (``log: FILE``, as `go test -v` writes
one); the exit status is 1 when one has no reason. Named judges only are run when names are given; the others keep the rows they
have on the page.
"""

from __future__ import annotations

import datetime
import json
import platform
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

if __package__ in (None, ""):  # run by its path, as the Makefile does
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools import streams_results
from tools.judged_nodes import PASSWORD, USER, NotStarted, environment, nodes
from tools.streams_results import StreamsResult

ROOT = Path(__file__).resolve().parent.parent
GAPS = ROOT / "compat" / "gaps.txt"
PAGE = ROOT / "docs" / "compat.md"
RESULTS = ROOT / "compat" / "results.json"
LAUNCHER = ROOT / "compat" / "launcher"
TALLY = re.compile(r"^[\w-]+: (\d+) passed, (\d+) failed, (\d+) skipped$", re.MULTILINE)
LOG = re.compile(r"^log: (.+)$", re.MULTILINE)
SKIPPED = re.compile(r"^\s*--- SKIP: (\S+)", re.MULTILINE)
FAILED = re.compile(r"^FAIL  (\S+) \|", re.MULTILINE)
LIMIT_S = 1800


@dataclass(frozen=True, slots=True)
class Judge:
    """A test suite: its program, what it is made of, and how it is run; ``settings`` go into its environment."""

    name: str
    what: str
    mode: str = "full"
    launched: bool = False
    settings: tuple[tuple[str, str], ...] = ()
    scram: tuple[str, str] | None = None
    """The environment variables that get the credentials of a SCRAM user and the addresses of listeners where it logs in."""
    of_several: bool = True
    """Whether it has something to say of several nodes; one that starts its nodes itself does so by the way."""


JUDGES = (
    Judge("apache-requests", "Apache Kafka's raw-protocol request tests, 4.3.1", launched=True, of_several=False),
    Judge("apache-tools", "Apache Kafka's tests of its command-line tools, 4.3.1", launched=True, of_several=False),
    Judge("kafka-cli", "Apache Kafka's command-line tools, 4.3.1"),
    Judge("kafka-python", "integration tests of kafka-python 3.0.12", of_several=False),
    Judge("connect", "kcat, Kafka Connect 4.3.1 with exactly once, MirrorMaker 2"),
    Judge("verifiable", "workers of Apache Kafka's system tests, 4.3.1", mode="quick"),
    Judge(
        "franz-go",
        "tests of the Go client franz-go v1.22.2",
        mode="quick",
        scram=("KGO_TEST_SCRAM", "KGO_TEST_SCRAM_SEEDS"),
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
    nodes: int = 1
    skips: list[str] = field(default_factory=list)
    """The skipped cases that the judge's log names."""

    @property
    def key(self) -> str:
        """Under which the result is kept."""
        return key_of(self.name, self.nodes)


def key_of(name: str, nodes: int) -> str:
    """The same for a judge that may not have been run yet."""
    return name if nodes == 1 else f"{name} on {nodes} nodes"


class NoVerdict(Exception):
    """A judge or a node did not run; the text has the end of what it printed."""


def expected_settings(text: str) -> list[str]:
    """``key=value`` for what the judges want of a broker."""
    lines = [line.strip() for line in text.splitlines()]
    return [line for line in lines if line and line[0] not in "#!"]


def judge_environment() -> dict[str, str]:
    """For judges: their Python programs must not see our sources."""
    return {name: value for name, value in environment().items() if name != "PYTHONPATH"}


def run(judge: Judge, folder: Path, revision: str, count: int) -> Result:
    """Run one judge on so many fresh nodes. Raises NoVerdict when it ends without a tally."""
    program = str(folder / judge.name)
    began = time.monotonic()
    if judge.launched:
        said = ask([program, f"launch:{LAUNCHER}", judge.mode], dict(judge.settings))
    else:
        try:
            wanted = expected_settings((folder / "broker.properties").read_text())
            with nodes(wanted, count, scram=judge.scram is not None) as at:
                login = dict(zip(judge.scram or (), (f"{USER}:{PASSWORD}", at.scram), strict=False))
                said = ask([program, at.plain, judge.mode], {**dict(judge.settings), **login})
        except NotStarted as failure:
            raise NoVerdict(str(failure)) from failure
    return verdict(judge.name, said, int(time.monotonic() - began), revision, count)


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


def verdict(name: str, said: str, seconds: int, revision: str, count: int = 1) -> Result:
    """The tally and the failing cases in a judge's output."""
    tallies = TALLY.findall(said)
    if not tallies:
        raise NoVerdict(f"{name} ended without a tally:\n{said[-2000:]}")
    passed, failed, skipped = (int(count) for count in tallies[-1])
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    failures = sorted(set(FAILED.findall(said)))
    return Result(name, passed, failed, skipped, seconds, date, revision, failures, count, skipped_cases(said))


def skipped_cases(said: str) -> list[str]:
    """The cases that a log named in the output calls skipped, as `go test -v` does; empty without such a log."""
    found: set[str] = set()
    for name in LOG.findall(said):
        if (path := Path(name)).is_file():
            found.update(SKIPPED.findall(path.read_text(errors="replace")))
    return sorted(found)


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


TABLE = ("| suite | what it is | passed | failed | skipped | seconds | date | revision |", "|---|---|---|---|---|---|---|---|")


def page(
    results: Mapping[str, Result],
    gaps: list[tuple[str, re.Pattern[str], str]],
    streams: Mapping[str, StreamsResult] | None = None,
    streams_left_out: Mapping[str, str] | None = None,
) -> str:
    """``docs/compat.md``. ``streams``: of Kafka's Streams integration tests, which ``make judge-streams`` runs; beside them the
    classes that it leaves out, with reasons."""
    streams = streams or {}
    lines = [
        "# Other people's test suites",
        "",
        "What the tests of clients, tools and Apache Kafka itself say of tidelog. Written by `make compat JUDGES=DIR`;",
        "do not edit. A case counts as skipped when the suite itself skips it, or when it wants a cluster that tidelog refuses",
        "to start: security, a feature level it does not have.",
        "",
        f"Measured with {platform.python_implementation()} {platform.python_version()} on {platform.system()}.",
    ]
    counts = sorted({result.nodes for result in results.values()})
    for count in counts:
        heading = (
            "One node, or as many as Kafka's own tests start" if count == 1 else f"{count} nodes, {count} replicas of everything"
        )
        lines += ["", f"## {heading}", "", *TABLE, *_rows(results, count)]
    lines += streams_results.section(streams, streams_left_out or {})
    lines += ["", "## Each failure and its reason"]
    for count in counts:
        for judge in JUDGES:
            found = results.get(key_of(judge.name, count))
            if found is not None and found.failures:
                lines += ["", f"### {found.key}", "", *_reasons(found.name, found.failures, gaps)]
            if found is not None and found.skips:
                lines += ["", f"### {found.key}: skipped", "", *_reasons(found.name, found.skips, gaps)]
    for name, cases in (
        ("Kafka Streams", [case for row in streams.values() for case in row.failures]),
        ("Kafka Streams: skipped", [case for row in streams.values() for case in row.skips]),
    ):
        if cases:
            lines += ["", f"### {name}", "", *_reasons(streams_results.JUDGE, cases, gaps)]
    return "\n".join(lines) + "\n"


def _rows(results: Mapping[str, Result], count: int) -> list[str]:
    rows = []
    for judge in JUDGES:
        r = results.get(key_of(judge.name, count))
        if r is not None:
            numbers = f"{r.passed} | {r.failed} | {r.skipped} | {r.seconds} | {r.date} | {r.revision}"
            rows.append(f"| {r.name} ({judge.mode}) | {judge.what} | {numbers} |")
    return rows


def _reasons(judge: str, named: list[str], gaps: list[tuple[str, re.Pattern[str], str]]) -> list[str]:
    reasons: dict[str, list[str]] = {}
    for case in named:
        reasons.setdefault(reason_for(gaps, judge, case) or "**not explained yet**", []).append(case)
    return [f"- {reason}: {', '.join(f'`{case}`' for case in cases)}" for reason, cases in reasons.items()]


def chosen(arguments: list[str]) -> tuple[int, set[str]]:
    """How many nodes, and which judges; ValueError when that is no number."""
    names, count = list(arguments), 1
    if "--nodes" in names:
        at = names.index("--nodes")
        count = int(names[at + 1]) if len(names) > at + 1 else 0
        if count < 1:
            raise ValueError("--nodes wants a number, such as 3")
        del names[at : at + 2]
    return count, set(names)


def uncommitted(root: Path) -> list[str]:
    """Tracked files with changes, but for those that this program writes."""
    status = ["git", "status", "--porcelain", "--untracked-files=no"]
    said = subprocess.run(status, cwd=root, capture_output=True, text=True, check=False).stdout
    written = {path.relative_to(ROOT).as_posix() for path in (RESULTS, streams_results.FILE, PAGE)}
    return sorted({line[3:] for line in said.splitlines()} - written)


def read_results() -> dict[str, Result]:
    """All that is kept."""
    return {name: Result(**row) for name, row in json.loads(RESULTS.read_text()).items()} if RESULTS.exists() else {}


def write_page() -> None:
    """From the results that are kept."""
    streams = streams_results.load(streams_results.FILE)
    left_out = streams_results.read_left_out(streams_results.LEFT_OUT.read_text())
    PAGE.write_text(page(read_results(), read_gaps(GAPS.read_text()), streams, left_out))


def main(arguments: list[str]) -> int:
    """Run, write, and say what has no reason."""
    if not arguments:
        print(
            "usage: make compat JUDGES=DIR [ARGS='--nodes 3']  (DIR: the folder with the judges; see tools/judges.py)",
            file=sys.stderr,
        )
        return 2
    folder = Path(arguments[0]).resolve()
    count, wanted = chosen(arguments[1:])
    unknown = wanted - {judge.name for judge in JUDGES}
    if unknown or not (folder / "broker.properties").exists():
        print(f"no judge is called {sorted(unknown)}" if unknown else f"{folder} has no broker.properties", file=sys.stderr)
        return 2
    gaps = read_gaps(GAPS.read_text())
    results = read_results()
    if changed := uncommitted(ROOT):
        print(f"commit first, so that the results name what was judged: {', '.join(changed)}", file=sys.stderr)
        return 2
    revision = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    status = 0
    for judge in JUDGES:
        if (wanted and judge.name not in wanted) or not (count == 1 or judge.of_several):
            continue
        try:
            result = run(judge, folder, revision.stdout.strip() or "unknown", count)
        except NoVerdict as failure:
            print(f"{judge.name}: {failure}", file=sys.stderr)
            status = 2
            continue
        results[result.key] = result
        print(f"{result.key}: {result.passed} passed, {result.failed} failed, {result.skipped} skipped, {result.seconds} s")
        for case in result.failures + result.skips:
            if reason_for(gaps, judge.name, case) is None:
                print(f"  not explained: {case}")
                status = status or 1
        RESULTS.write_text(json.dumps({name: asdict(row) for name, row in sorted(results.items())}, indent=1) + "\n")
        write_page()
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
