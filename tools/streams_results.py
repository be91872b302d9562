"""Results of Apache Kafka's Streams integration tests: ``compat/streams.json``, and their part of ``docs/compat.md``.

``python -m tests.judges.streams --write`` makes them. ``compat/streams-left-out.txt`` has the classes that are not run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

JUDGE = "streams"
"""Under which ``compat/gaps.txt`` has the reasons."""
COMPAT = Path(__file__).resolve().parent.parent / "compat"
FILE = COMPAT / "streams.json"
LEFT_OUT = COMPAT / "streams-left-out.txt"


@dataclass(frozen=True, slots=True)
class StreamsResult:
    """What a test class said of the revision ``revision``."""

    name: str
    passed: int
    failed: int
    skipped: int
    streams_passed: int
    """Of the cases that use the streams protocol, all of which are ``streams_cases``."""
    streams_cases: int
    seconds: int
    date: str
    revision: str
    failures: list[str]
    skips: list[str]
    apache: str = ""
    """The same class with Kafka's own brokers, ``passed/failed/skipped``; empty when it was not run."""

    @property
    def counts(self) -> str:
        """Like ``apache``."""
        return f"{self.passed}/{self.failed}/{self.skipped}"

    @property
    def summary(self) -> str:
        """For people."""
        cases = f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"
        return f"{self.name}: {cases}; with the streams protocol {self.streams_passed} of {self.streams_cases} passed"

    def beside(self, before: StreamsResult | None, apache: bool) -> StreamsResult:
        """With what is known of the other broker; ``apache``: these counts are Kafka's, ``before`` has ours.

        ValueError when Kafka was judged first: the row would have nothing of ours.
        """
        if not apache:
            return replace(self, apache=before.apache if before else "")
        if before is None:
            raise ValueError(f"{self.name}: run it against tidelog first")
        return replace(before, apache=self.counts)


def load(file: Path) -> dict[str, StreamsResult]:
    """By class; nothing when there is no such file."""
    if not file.exists():
        return {}
    return {name: StreamsResult(**row) for name, row in json.loads(file.read_text()).items()}


def save(file: Path, results: Mapping[str, StreamsResult]) -> None:
    """Sorted by class."""
    file.write_text(json.dumps({name: asdict(row) for name, row in sorted(results.items())}, indent=1) + "\n")


def read_left_out(text: str) -> dict[str, str]:
    """``CLASS REASON`` by line, as a reason for each class."""
    pairs = (line.split(None, 1) for line in text.splitlines() if line.strip() and not line.startswith("#"))
    return {name: reason.strip() for name, reason in pairs}


def section(results: Mapping[str, StreamsResult], left_out: Mapping[str, str]) -> list[str]:
    """The lines of the page's table, and the classes that were not run; none without results."""
    if not results:
        return []
    lines = [
        "",
        "## Apache Kafka's integration tests of Kafka Streams, 4.3.1",
        "",
        "Written by `make judge-streams`. Each class starts the nodes it wants. Cases with `group.protocol=streams` use a",
        "streams group (KIP-1071), the others the classic protocol. The last column has the same class with Kafka's own",
        "brokers: passed/failed/skipped, where it was run.",
        "",
        "| class | passed | failed | skipped | passed with the streams protocol | seconds | date | revision | Kafka's own |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for r in results.values():
        by_streams = f"{r.streams_passed} of {r.streams_cases}"
        counts = f"{r.passed} | {r.failed} | {r.skipped} | {by_streams} | {r.seconds} | {r.date} | {r.revision}"
        lines.append(f"| {r.name} | {counts} | {r.apache or 'not run'} |")
    passed, failed = sum(r.passed for r in results.values()), sum(r.failed for r in results.values())
    by_streams = f"{sum(r.streams_passed for r in results.values())} of {sum(r.streams_cases for r in results.values())}"
    skipped, seconds = sum(r.skipped for r in results.values()), sum(r.seconds for r in results.values())
    lines.append(f"| {len(results)} classes | {passed} | {failed} | {skipped} | {by_streams} | {seconds} | | | |")
    reasons: dict[str, list[str]] = {}
    for name, reason in left_out.items():
        if name not in results:
            reasons.setdefault(reason, []).append(name)
    if reasons:
        lines += ["", "Classes that run in such clusters and are left out:", ""]
        lines += [f"- {reason}: {', '.join(f'`{name}`' for name in names)}" for reason, names in reasons.items()]
    return lines
