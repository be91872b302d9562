"""Delta tables by deltalake: what a commit has, and drivers that race for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("deltalake", reason="the extra delta is not installed")
pytest.importorskip("pyarrow", reason="the extra spark is not installed")

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from tidelog.pipeline.lake.delta import DeltaFiles, statistics
from tidelog.pipeline.lake.table import DataFile
from tidelog.pipeline.sinks.base import BatchIdentity, OffsetRange, SinkError

NAMES = ("value", "topic", "offset", "timestamp")


def batch(number: int, start: int, end: int) -> BatchIdentity:
    return BatchIdentity("p", "s", number, (OffsetRange("t", "id", 0, start, end),))


def table(path: Path) -> DeltaFiles:
    made = DeltaFiles(str(path))
    made.check()
    made.prepare(NAMES)
    return made


def file(root: Path, name: str, start: int, end: int) -> DataFile:
    path = f"topic=t/date=2026-01-01/{name}.parquet"
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    micros = pa.array([1_767_225_600_000_000] * (end - start), pa.int64()).cast(pa.timestamp("us", tz="UTC"))
    pq.write_table(
        pa.table({"value": [b"v"] * (end - start), "offset": list(range(start, end)), "timestamp": micros}), root / path
    )
    columns = {
        "offset": (start, end - 1, 0),
        "timestamp": (1_767_225_600_000_000, 1_767_225_600_000_001, 0),
        "value": (None, None, 0),
    }
    partition = {"topic": "t", "date": "2026-01-01"}
    return DataFile(path, end - start, (root / path).stat().st_size, partition, columns, 1)


def offsets(root: Path) -> list[int]:
    return sorted(pa.table(DeltaTable(root).to_pyarrow_table(columns=["offset"])).column("offset").to_pylist())


def test_a_batch_lands_once_with_its_identity_and_its_statistics(tmp_path: Path) -> None:
    made = table(tmp_path)
    assert made.commit(batch(0, 0, 5), [file(tmp_path, "a", 0, 5)])
    assert made.commit(batch(1, 5, 8), [file(tmp_path, "b", 5, 8)])
    for number, start, end in ((0, 0, 5), (1, 5, 8)):
        assert not DeltaFiles(str(tmp_path)).commit(batch(number, start, end), [file(tmp_path, "again", start, end)])
    assert offsets(tmp_path) == list(range(8))
    found = DeltaTable(tmp_path)
    assert BatchIdentity.from_json(found.history(1)[0]["userMetadata"]) == batch(1, 5, 8)
    assert found.transaction_version("tidelog:p:s") == 1
    progress = made.progress("tidelog:p:s")
    assert (progress.batch_id, progress.positions) == (1, {("t", "id", 0): (0, 8)})
    assert made.paths() == {"topic=t/date=2026-01-01/a.parquet", "topic=t/date=2026-01-01/b.parquet"}


def test_of_two_drivers_one_lands_a_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The zombie has judged, and the other one commits before it does."""
    zombie, driver = table(tmp_path), DeltaFiles(str(tmp_path))
    add = DeltaFiles._add

    def interrupted(self: DeltaFiles, *args: Any) -> None:
        if self is zombie:
            driver.commit(batch(0, 0, 5), [file(tmp_path, "driver", 0, 5)])
        add(self, *args)

    monkeypatch.setattr(DeltaFiles, "_add", interrupted)
    assert not zombie.commit(batch(0, 0, 5), [file(tmp_path, "zombie", 0, 5)])
    assert offsets(tmp_path) == list(range(5))


def test_a_checkpoint_that_begins_before_the_table_does_is_told(tmp_path: Path) -> None:
    made = table(tmp_path)
    made.commit(batch(4, 100, 110), [])
    with pytest.raises(SinkError, match="the table is at batch 4 with t-0 100 to 109"):
        made.commit(batch(0, 0, 50), [])


def test_another_partitioning_or_too_few_columns_are_refused(tmp_path: Path) -> None:
    table(tmp_path)
    with pytest.raises(SinkError, match="partitioned by topic, date, and topic is asked for"):
        DeltaFiles(str(tmp_path), partition_by=("topic",)).prepare(NAMES)
    with pytest.raises(SinkError, match="has no column headers"):
        DeltaFiles(str(tmp_path)).prepare((*NAMES, "headers"))


def test_statistics_are_deltas() -> None:
    columns = {"timestamp": (1_500, 2_001, 0), "offset": (1, 3, 0), "key": (None, None, 2), "topic": (None, None, 0)}
    said = json.loads(statistics(DataFile("a", 3, 9, {"topic": "t"}, columns)))
    assert said["minValues"] == {"offset": 1, "timestamp": "1970-01-01T00:00:00.001Z"}
    assert said["maxValues"] == {"offset": 3, "timestamp": "1970-01-01T00:00:00.003Z"}
    assert (said["numRecords"], said["nullCount"]) == (3, {"timestamp": 0, "offset": 0, "key": 2})
    far = DataFile("a", 1, 9, {}, {"timestamp": (9_223_372_036_854_775_000, 9_223_372_036_854_775_000, 0)})
    assert json.loads(statistics(far))["maxValues"] == {"timestamp": None}
