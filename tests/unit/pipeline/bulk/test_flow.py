"""A query of a pipeline on the bulk lane: what it commits of what tasks said, and what it answers about its table."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="the extra spark is not installed")
pytest.importorskip("pyspark", reason="the extra spark is not installed")

from tests.unit.pipeline.samples import model_of
from tidelog.pipeline.bulk.flow import BulkWriter, table_of
from tidelog.pipeline.bulk.source import LAYOUT
from tidelog.pipeline.flows import flows
from tidelog.pipeline.lake.table import DataFile, Layout
from tidelog.pipeline.model import SinkSpec
from tidelog.pipeline.sinks.base import BatchIdentity, OffsetRange, SinkError

KINDS = ("parquet", "delta")


@dataclass(frozen=True)
class Said:
    """A row of ``source.ROW``."""

    topic: str
    topic_id: str
    partition: int
    start: int
    end: int
    files: str


class Frame:
    """A batch as Spark gives it."""

    def __init__(self, *rows: Said) -> None:
        self._rows = rows

    def collect(self) -> list[Said]:
        return list(self._rows)


class Spark:
    """A session that can register a source."""

    def __init__(self) -> None:
        self.dataSource = self
        self.registered: list[object] = []

    def register(self, source: object) -> None:
        self.registered.append(source)


def writer(folder: Path, kind: str) -> BulkWriter:
    if kind == "delta":
        pytest.importorskip("deltalake", reason="the extra delta is not installed")
    text = (
        "pipeline: p\nengine: bulk\nkafka: {bootstrap.servers: 'localhost:1'}\nsources: {s: {topics: [t]}}\n"
        f"sinks: {{lake: {{type: {kind}, from: s, path: {folder}/lake}}}}\n"
    )
    model = model_of(text)
    made = BulkWriter(model, flows(model)[0])
    made.check(Spark())
    return made


def task(partition: int, start: int, end: int) -> Said:
    file = DataFile(f"part-id-{partition}-{start}-{end}-00000000-0.parquet", end - start, 1, {"topic": "t", "date": "2026-01-01"})
    return Said("t", "id", partition, start, end, json.dumps([file.to_json()]))


def ranges(*ends: tuple[int, int]) -> tuple[OffsetRange, ...]:
    return tuple(OffsetRange("t", "id", partition, start, end) for partition, (start, end) in enumerate(ends))


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_is_committed_once_with_every_partition_and_found_again(tmp_path: Path, kind: str) -> None:
    made = writer(tmp_path, kind)
    assert made.remembered() == {"lake": None}
    first = ranges((0, 9), (7, 7))
    # However it was cut into tasks, and though one partition had no news.
    made.write(Frame(task(0, 5, 9), task(0, 0, 5)), 0, first)
    made.write(Frame(task(0, 0, 9)), 0, first)
    again = writer(tmp_path, kind)
    assert again.remembered() == {"lake": BatchIdentity("p", "lake", 0, first)}
    table = table_of(SinkSpec("lake", kind, options=(("path", f"{tmp_path}/lake"),)))
    assert sorted(path.rpartition("/")[2][:14] for path in table.paths()) == ["part-id-0-0-5-", "part-id-0-5-9-"]
    assert made.counts.records == 18


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_without_records_is_remembered_too(tmp_path: Path, kind: str) -> None:
    made = writer(tmp_path, kind)
    made.write(Frame(), 0, ranges((7, 7)))
    made.write(Frame(task(0, 7, 9)), 1, ranges((7, 9)))
    made.write(Frame(), 2, ranges((9, 9)))
    assert writer(tmp_path, kind).remembered() == {"lake": BatchIdentity("p", "lake", 2, ranges((9, 9)))}
    (sink,) = made.sinks.values()
    assert sink.committed(BatchIdentity("p", "lake", 1, ranges((7, 9))))
    assert not sink.committed(BatchIdentity("p", "lake", 3, ranges((9, 10))))


def test_a_batch_that_is_far_back_in_the_log_of_a_delta_table_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = writer(tmp_path, "delta")
    made.write(Frame(), 0, ranges((7, 7)))
    monkeypatch.setattr("tidelog.pipeline.lake.delta.SOME_HISTORY", 1)
    other = table_of(SinkSpec("lake", "delta", options=(("path", f"{tmp_path}/lake"),)))
    other.commit(BatchIdentity("another", "lake", 0, ranges((0, 0))), [])
    assert made.remembered() == {"lake": BatchIdentity("p", "lake", 0, ranges((7, 7)))}


def test_tasks_that_read_what_nobody_planned_are_not_committed(tmp_path: Path) -> None:
    made = writer(tmp_path, "parquet")
    with pytest.raises(SinkError, match=r"read t-0 0 to 8, which is not what the checkpoint says"):
        made.write(Frame(task(0, 0, 9)), 0, ranges((1, 9)))
    assert made.remembered() == {"lake": None}
    # Less is what on_data_loss: log allows.
    made.write(Frame(task(0, 3, 9)), 0, ranges((1, 9)))


def test_tasks_are_told_how_the_table_lies(tmp_path: Path) -> None:
    made = writer(tmp_path, "parquet")
    layout = Layout.from_json(made.options[LAYOUT])
    assert (layout.partition_by, layout.root) == (("topic", "date"), f"{tmp_path}/lake/data")
    assert made.format == "tidelog-bulk"
