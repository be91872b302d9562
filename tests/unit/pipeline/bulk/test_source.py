"""The bulk stream's tasks, without Spark's JVM: files on the disk, and a row that says which."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")
import pyarrow.parquet as pq

from tidelog.model.errors import ConfigError
from tidelog.pipeline.bulk import source
from tidelog.pipeline.bulk.source import LAYOUT, BulkDataSource, BulkStreamReader
from tidelog.pipeline.lake.table import Layout
from tidelog.testing import Broker


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as found:
        found.create_topic("t", 2)
        found.produce("t", *"abcdefgh", partition=0)
        found.produce("t", *"xyz", partition=1)
        yield found


def reader(broker: Broker, root: Path) -> BulkStreamReader:
    options = {"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribe": "t", "startingOffsets": "earliest"}
    made = BulkDataSource({**options, LAYOUT: Layout(str(root)).to_json()}).streamReader(None)  # type: ignore[arg-type]
    assert isinstance(made, BulkStreamReader)
    return made


def told(made: BulkStreamReader) -> list[dict[str, Any]]:
    """The rows of all tasks, run as executors would."""
    made.prepareForTriggerAvailableNow()
    start = made.initialOffset()
    found = []
    for part in made.partitions(start, made.latestOffset(start, made.getDefaultReadLimit())):
        there, task = pickle.loads(pickle.dumps((made, part)))
        found += [row for batch in there.read(task) for row in batch.to_pylist()]
    return found


def test_a_task_gives_one_row_and_its_files_hold_the_records(broker: Broker, tmp_path: Path) -> None:
    rows = told(reader(broker, tmp_path))
    assert [(row["topic"], row["partition"], row["start"], row["end"]) for row in rows] == [("t", 0, 0, 8), ("t", 1, 0, 3)]
    assert len(rows[0]["topic_id"]) == 22
    values = []
    for row in rows:
        [file] = json.loads(row["files"])
        found = pq.ParquetFile(tmp_path / file["path"]).read()
        assert found.column("offset").to_pylist() == list(range(row["start"], row["end"]))
        values.append(b"".join(found.column("value").to_pylist()).decode())
    assert values == ["abcdefgh", "xyz"]


def test_a_task_that_fails_takes_its_files_along(broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Any) -> Iterator[Any]:
        yield from batches(self)
        raise OSError("the disk is full")

    batches = source.PartitionReader.batches
    monkeypatch.setattr(source.PartitionReader, "batches", broken)
    with pytest.raises(OSError, match="the disk is full"):
        told(reader(broker, tmp_path))
    assert list(tmp_path.rglob("*.parquet")) == []


def test_it_is_a_stream_only() -> None:
    with pytest.raises(ConfigError, match=r"use tidelog\.pipeline\.bulk\.ingest"):
        BulkDataSource({}).reader(None)  # type: ignore[arg-type]
    assert BulkDataSource.name() == "tidelog-bulk"
