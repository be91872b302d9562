"""The file of results: every sample of every row, whole after each round, so that a run resumes where it was ended.

A row's rounds belong to one commit on one machine. A row that was measured on another is measured from its first round; the
others stay as they are, with the commit that they are of.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.pair.sampling import LoadResult, Sample
from bench.pair.voids import Noise, counted
from bench.report import machine
from bench.warm.measured import Measured
from bench.warm.sides import LIMIT

Round = Mapping[str, Measured[LoadResult]]


@dataclass
class Record:
    """What was measured of one row. ``warm``: what Kafka's runs before the first round cost, once for each time that the harness
    was started; ``failed``: why a round came to nothing."""

    commit: str
    machine: str
    date: str = ""
    rounds: list[Round] = field(default_factory=list)
    warm: list[list[float]] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def counted(self) -> list[int]:
        """The numbers of the rounds that count: the limit did not move, and the machine was ours."""
        limits = [each[LIMIT].sample.cost for each in self.rounds if LIMIT in each]
        noise = [[one.sample.noise for one in each.values() if one.sample.noise is not None] for each in self.rounds]
        return counted(limits, noise)


def machine_text() -> str:
    """The machine, without what it does at the moment."""
    return machine().partition(", load ")[0]


class Results:
    """The records of all rows, by name, in one file."""

    def __init__(self, path: Path, records: dict[str, Record] | None = None) -> None:
        self.path = path
        self.records = records or {}

    @classmethod
    def load(cls, path: Path) -> Results:
        """What the file holds; nothing where there is none."""
        if not path.exists():
            return cls(path)
        return cls(path, {name: _record(found) for name, found in json.loads(path.read_text())["rows"].items()})

    def resumed(self, row: str, commit: str, machine: str) -> Record:
        """That of a row on this commit and machine, or a new one; one of another commit stays until ``begin``."""
        found = self.records.get(row)
        return found if found and (found.commit, found.machine) == (commit, machine) else Record(commit, machine)

    def begin(self, row: str, record: Record) -> None:
        """The row's rounds go into this record from now on."""
        self.records[row] = record

    def add(self, row: str, samples: Round) -> None:
        """One more round, and the file is written."""
        record = self.records[row]
        record.rounds.append(samples)
        record.date = time.strftime("%Y-%m-%d %H:%M", time.gmtime())
        self.save()

    def save(self) -> None:
        """The whole file, in one step."""
        rows = {name: _to_json(record) for name, record in self.records.items() if record.rounds or record.failed}
        lines = ",\n".join(f" {json.dumps(name)}: {_text(found)}" for name, found in rows.items())
        fresh = self.path.with_suffix(".new")
        fresh.write_text(f'{{"rows": {{\n{lines}\n}}}}\n')
        fresh.replace(self.path)


def _to_json(record: Record) -> dict[str, Any]:
    rounds = [{side: one.to_json() for side, one in each.items()} for each in record.rounds]
    return {
        "commit": record.commit,
        "machine": record.machine,
        "date": record.date,
        "warm": record.warm,
        "failed": record.failed,
        "rounds": rounds,
    }


def _text(found: dict[str, Any]) -> str:
    """One line for each round, with five digits."""
    rounds = ",\n".join(f"   {json.dumps(_short(each))}" for each in found.pop("rounds"))
    return f'{json.dumps(_short(found))[:-1]}, "rounds": [\n{rounds}\n ]}}'


def _short(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {key: _short(each) for key, each in value.items()}
    return [_short(each) for each in value] if isinstance(value, list | tuple) else value


def _record(found: dict[str, Any]) -> Record:
    rounds: list[Round] = [{side: _measured(one) for side, one in each.items()} for each in found["rounds"]]
    return Record(found["commit"], found["machine"], found["date"], rounds, found["warm"], found["failed"])


def _measured(found: dict[str, Any]) -> Measured[LoadResult]:
    noise = None if found["noise"] is None else Noise(**found["noise"])
    own = {name: found[name] for name in ("cost", "amount", "user", "system", "switches", "seconds", "generator")}
    sample = Sample(**own, noise=noise, slices=tuple(found["slices"]))
    seconds = found["amount"] / found["rate"] if found["rate"] else 0.0
    return Measured(sample, LoadResult(found["amount"], seconds, 0.0, 0.0, found["moved"], found["latencies"]))
