"""A stopped node's directory under the eyes of Kafka's DumpLogSegments: every log, index, producer snapshot and the metadata."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.interop.java import JavaSide

DUMP = "org.apache.kafka.tools.DumpLogSegments"
DUMPED = (".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".checkpoint")
GOING = re.compile(r"\.[0-9a-f]{32}-(delete|stray)$")  # folders that wait to be removed
METADATA = "__cluster_metadata-0"
# How it says that something is wrong (it ends with 0 all the same).
TROUBLE = re.compile(
    r"Mismatches in|Non-consecutive offsets|Found timestamp mismatch|Found out of order timestamp|indexed offsets are not found"
    r"|Found \d+ invalid bytes|[iI]s[vV]alid: false|Ignoring unknown file|Exception|^Could not|[Ee]rror"
)
HEADING = re.compile(r"^(?P<what>\S.*) in ?:?(?P<path>/.*)$")
GAP = re.compile(r"\s+(?P<before>-?\d+) is followed by (?P<after>\d+)")
BATCH = re.compile(r"^baseOffset: (?P<base>\d+) lastOffset: (?P<last>\d+) count: (?P<count>\d+)")


@dataclass(frozen=True, slots=True)
class Dump:
    """What was printed: how many files, batches and metadata records it looked at, and what it found wrong."""

    files: int
    batches: int
    metadata_records: int
    trouble: tuple[str, ...]


def dumped_files(data: Path) -> tuple[list[Path], list[Path]]:
    """The files of ordinary partitions, and those of the metadata partition."""
    every = sorted(
        path for path in data.rglob("*") if path.suffix in DUMPED and path.is_file() and not GOING.search(path.parent.name)
    )
    metadata = [path for path in every if path.parent.name == METADATA or path.name == "bootstrap.checkpoint"]
    return [path for path in every if path not in metadata], metadata


def complaints(printed: str, compacted: Container[str]) -> Iterator[str]:
    """What standard error says is wrong.

    Not wrong, though the tool says so: the first record of a segment that does not begin at 0 is no gap; nor is what
    compaction removed; and it takes a time index for wrong that speaks of a batch of which compaction left the header
    alone (log timestamp -1), because it looks for that timestamp among the batch's records.
    """
    heading, path = "", Path()
    for line in filter(str.strip, printed.splitlines()):
        if found := HEADING.match(line):
            heading, path = found["what"], Path(found["path"])
            continue
        may_miss = path.parent.name.rpartition("-")[0] in compacted
        if heading.startswith("Non-consecutive") and (gap := GAP.fullmatch(line)):
            begins = gap["before"] == "-1" and int(gap["after"]) >= int(path.stem)
            if begins or may_miss:
                continue
        if heading.startswith("Found timestamp mismatch") and may_miss and line.endswith("log timestamp: -1"):
            continue
        yield f"{heading} {path}: {line.strip()}"


def dump(java: JavaSide, data: Path, compacted: Container[str] = ()) -> Dump:
    """Dump everything in a log directory that no process has open; topics in ``compacted`` may have gaps."""
    ordinary, metadata = dumped_files(data)
    printed: list[str] = []
    trouble: list[str] = []
    for files, how in ((ordinary, "--deep-iteration"), (metadata, "--cluster-metadata-decoder")):
        if not files:
            continue
        answer = java.tool(DUMP, how, "--files", ",".join(map(str, files)))
        if answer["status"]:
            trouble.append(f"it ended with {answer['status']}")
        trouble += complaints(answer["err"], compacted)
        lines = answer["out"].splitlines()
        for number, line in enumerate(lines):
            if TROUBLE.search(line):
                trouble.append("\n  ".join(lines[number : number + 3]))
        missing = len(files) - sum(line.startswith("Dumping ") for line in lines)
        if missing:
            trouble.append(f"{missing} of {len(files)} files were not dumped")
        printed += lines
    batches = sum(BATCH.match(line) is not None for line in printed)
    return Dump(len(ordinary) + len(metadata), batches, sum('payload: {"type"' in line for line in printed), tuple(trouble))
