"""``python -m tests.judges.registry``: judges of the schema registry that are not tidelog's.

Apicurio Registry is asked the golden transcripts; ``--write`` marks in them which answers it confirms, and writes
``docs/registry-judge.md``. Every call of franz-go's package sr is made against tidelog's registry, and its results are compared
with ``franz/results.jsonl``. The exit status is 1 for a difference without a reason, and
for a reason without a difference.
"""

from __future__ import annotations

import argparse
import datetime
import subprocess
import sys
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

from tests.judges.registry.apicurio import NAME, apicurio, empty
from tests.judges.registry.transcripts import DOCUMENTS, FOLDER, TIMEOUT_S, Session, Transcript, read_all, write_sources
from tests.judges.registry.verdicts import Judged, page, reason, source, unused
from tidelog.testing.schema_registry.server import SchemaRegistry
from tools.jars import JarsMissing

FRANZ = Path(__file__).with_name("franz")
RESULTS = FRANZ / "results.jsonl"
PAGE = Path(__file__).resolve().parents[3] / "docs" / "registry-judge.md"


def judged_by_apicurio() -> list[Judged]:
    """All transcripts without a setup, against Apicurio. Now and then it leaves a request without an answer: the transcript is
    then asked once more."""
    found = []
    with apicurio() as url:
        for transcript in read_all():
            if not transcript.setup:
                try:
                    found += asked(url, transcript)
                except TimeoutError as problem:
                    print(f"{problem}: asked again", file=sys.stderr)
                    found += asked(url, transcript)
    return found


def asked(url: str, transcript: Transcript) -> list[Judged]:
    """TimeoutError names the exchange that has no answer."""
    empty(url)
    session = Session(url)
    found = []
    for exchange in transcript.exchanges:
        try:
            answer = session.send(exchange)
        except TimeoutError as problem:
            where = f"{transcript.file}:{exchange.line} {exchange.method} {exchange.target}"
            raise TimeoutError(f"{where} has no answer within {TIMEOUT_S} s") from problem
        found.append(Judged(transcript.file, exchange, tuple(session.differences(exchange, answer))))
    session.close()
    return found


def write(judged: list[Judged]) -> None:
    """Sources into the transcripts, and the page, which names the lines where exchanges are then."""
    sources: dict[str, dict[int, str]] = defaultdict(dict)
    for transcript in read_all():
        for exchange in transcript.exchanges:
            sources[transcript.file][exchange.line] = DOCUMENTS
    for each in judged:
        sources[each.file][each.exchange.line] = source(NAME, each.differences)
    for name, found in sources.items():
        write_sources(FOLDER / name, found)
    moved = [each for transcript in read_all() if not transcript.setup for each in transcript.exchanges]
    now = [replace(one, exchange=exchange) for one, exchange in zip(judged, moved, strict=True)]
    PAGE.write_text(page(NAME, now, datetime.datetime.now(datetime.UTC).date().isoformat()))


def franz_results() -> str:
    """What franz-go says of tidelog's registry, a line for each call."""
    with SchemaRegistry() as registry:
        command = ["go", "run", "-mod=readonly", "-buildvcs=false", ".", registry.url]
        done = subprocess.run(command, cwd=FRANZ, capture_output=True, text=True, check=False)
    if done.returncode:
        raise JarsMissing(f"franz-go's program ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return done.stdout


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.judges.registry", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the page, the sources and franz-go's results")
    args = parser.parse_args()
    try:
        results = franz_results()
        judged = judged_by_apicurio()
    except JarsMissing as missing:
        print(missing, file=sys.stderr)
        return 1
    if args.write:
        RESULTS.write_text(results)
        write(judged)
    lines, known = results.splitlines(), RESULTS.read_text().splitlines()
    others = [line for line, expected in zip(lines, known, strict=False) if line != expected]
    print(f"franz-go: {len(lines)} calls, {len(others)} otherwise than in {RESULTS.name}")
    print("\n".join(others))
    different = [each for each in judged if source(NAME, each.differences) == DOCUMENTS]
    unexplained, idle = [each for each in different if not reason(each)], unused(different)
    print(f"{NAME}: {len(judged)} exchanges, {len(different)} answered otherwise, {len(unexplained)} without a reason")
    for each in unexplained:
        print(f"{each.file}:{each.exchange.line} {each.exchange.method} {each.exchange.target}: {'; '.join(each.differences)}")
    for line in idle:
        print(f"a reason without a difference: {line}")
    return 1 if unexplained or idle or others or len(lines) != len(known) else 0


if __name__ == "__main__":
    sys.exit(main())
