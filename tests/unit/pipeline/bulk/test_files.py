"""Rows into files: by day, up to a size, with what is said of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="the extra spark is not installed")

import pyarrow as pa
import pyarrow.parquet as pq

from tidelog.model.ids import TopicPartition
from tidelog.pipeline.bulk import files
from tidelog.pipeline.bulk.files import FileWriter, range_of
from tidelog.pipeline.lake.table import DataFile, Layout
from tidelog.spark.arrow import TYPES
from tidelog.spark.reader import ReadTask

DAY = 86_400_000_000
TASK = ReadTask(TopicPartition("t", 3), 10, 90, bytes(16), None)
NAMES = ("key", "value", "topic", "partition", "offset", "timestamp")


def rows(*micros: int, offset: int = 10, value: bytes = b"v") -> Any:
    count = len(micros)
    columns = [[None] * count, [value] * count, ["t"] * count, [3] * count, list(range(offset, offset + count)), list(micros)]
    arrays = [pa.array(column, TYPES[name]) for name, column in zip(NAMES, columns, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([(name, TYPES[name]) for name in NAMES]))


def writer(root: Path, **layout: Any) -> FileWriter:
    return FileWriter(Layout(str(root), **layout), TASK, topic_id="an-id", token="tok")


def offsets(root: Path, found: list[DataFile]) -> list[list[int]]:
    return [pq.ParquetFile(root / file.path).read(columns=["offset"]).column("offset").to_pylist() for file in found]


def test_rows_of_several_days_go_to_a_file_for_each(tmp_path: Path) -> None:
    made = writer(tmp_path)
    made.write(rows(-1, 0, DAY - 1, DAY, -1))
    made.write(rows(DAY, offset=15))
    found = sorted(made.close(), key=lambda file: file.partition["date"])
    assert [file.partition["date"] for file in found] == ["1969-12-31", "1970-01-01", "1970-01-02"]
    assert offsets(tmp_path, found) == [[10, 14], [11, 12], [13, 15]]
    assert [file.columns["timestamp"] for file in found] == [(-1, -1, 0), (0, DAY - 1, 0), (DAY, DAY, 0)]
    assert found[2].path.startswith("topic=t/date=1970-01-02/part-an-id-3-10-90-")
    assert (found[0].rows, found[0].size) == (2, (tmp_path / found[0].path).stat().st_size)
    assert found[0].columns["key"] == (None, None, 2)


def test_columns_of_directories_stay_out_of_the_files_unless_they_are_kept(tmp_path: Path) -> None:
    for keep in (False, True):
        made = writer(tmp_path, keep=keep, grouped=not keep)
        made.write(rows(0))
        [file] = made.close()
        assert ("topic" in pq.ParquetFile(tmp_path / file.path).schema_arrow.names) is keep
        assert file.path.startswith("topic=t/" if keep else "batch=tok/topic=t/date=1970-01-01/")


def test_a_full_file_is_followed_by_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "ROW_GROUP_BYTES", 1)
    made = writer(tmp_path, partition_by=(), target_file_bytes=600, compression="none")
    for offset in range(10, 16):
        made.write(rows(0, offset=offset, value=b"x" * 250))
    found = made.close()
    assert offsets(tmp_path, found) == [[10, 11], [12, 13], [14, 15]]
    assert pq.ParquetFile(tmp_path / found[0].path).metadata.num_row_groups == 2
    assert {range_of(file.path) for file in found} == {("an-id", 3, 10, 90)}


def test_too_many_days_at_once_close_the_one_that_waited_longest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "OPEN_FILES", 2)
    made = writer(tmp_path)
    for number, day in enumerate((0, 1, 0, 2, 0, 1)):
        made.write(rows(day * DAY, offset=10 + number))
    assert sorted(offsets(tmp_path, made.close())) == [[10, 12, 14], [11], [13], [15]]


def test_memory_is_bounded_over_all_open_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_SPREAD_BYTES", 1)
    made = writer(tmp_path)
    made.write(rows(0, DAY))
    assert [file.gathered for file in made._open.values()] == [[], []]
    assert len(made.close()) == 2


def test_a_failed_task_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "ROW_GROUP_BYTES", 1)
    made = writer(tmp_path, target_file_bytes=1)
    made.write(rows(0, DAY))
    monkeypatch.setattr(files, "ROW_GROUP_BYTES", 1 << 20)
    made.write(rows(0))
    made.discard()
    assert list(tmp_path.rglob("*.parquet")) == []


def test_an_empty_task_writes_no_file(tmp_path: Path) -> None:
    made = writer(tmp_path)
    made.write(rows())
    assert made.close() == []


def test_names_of_others_are_not_ours() -> None:
    assert range_of("date=1/part-_id-with-dashes-0-5-10-0123abcd-7.parquet") == ("_id-with-dashes", 0, 5, 10)
    assert range_of("part-00000-6d8b5b2e-snappy.parquet") is None
