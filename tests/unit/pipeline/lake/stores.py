"""The three tables of files under one hand: for tests that hold for each of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="the extra spark is not installed")

import pyarrow as pa
import pyarrow.parquet as pq

from tidelog.model.ids import TopicPartition
from tidelog.pipeline.bulk.files import FileWriter, file_system
from tidelog.pipeline.lake.manifests import ManifestTable
from tidelog.pipeline.lake.table import DataFile, FileTable
from tidelog.pipeline.sinks.base import BatchIdentity, OffsetRange
from tidelog.spark.arrow import TYPES
from tidelog.spark.reader import ReadTask

NAMES = ("value", "topic", "offset", "timestamp")
APPLICATION = "tidelog:p:s"
START_MICROS = 1_767_225_600_000_000


def plain(root: Path) -> FileTable:
    return ManifestTable(str(root / "plain"))


def delta(root: Path) -> FileTable:
    pytest.importorskip("deltalake", reason="the extra delta is not installed")
    from tidelog.pipeline.lake.delta import DeltaFiles

    return DeltaFiles(str(root / "delta"))


def iceberg(root: Path) -> FileTable:
    pytest.importorskip("pyiceberg", reason="the extra iceberg is not installed")
    pytest.importorskip("sqlalchemy", reason="pyiceberg's catalog in SQLite needs it")
    from tidelog.pipeline.lake.iceberg import IcebergFiles

    catalog = {"type": "sql", "uri": f"sqlite:///{root}/catalog.db", "warehouse": f"file://{root}/iceberg"}
    return IcebergFiles(catalog, "db.t")


STORES: tuple[Callable[[Path], FileTable], ...] = (plain, delta, iceberg)


def batch(number: int, start: int, end: int) -> BatchIdentity:
    """Offsets of one partition."""
    return BatchIdentity("p", "s", number, (OffsetRange("t", "id", 0, start, end),))


def files(table: FileTable, start: int, end: int) -> list[DataFile]:
    """What a task would write for these offsets."""
    writer = FileWriter(
        table.prepare(NAMES), ReadTask(TopicPartition("t", 0), start, end, bytes(16), None), topic_id="id", token="x"
    )
    columns = [[b"v"], ["t"], None, None]
    columns = [column * (end - start) if column else column for column in columns]
    columns[2:] = [list(range(start, end)), [START_MICROS + offset for offset in range(start, end)]]
    arrays = [pa.array(column, TYPES[name]) for name, column in zip(NAMES, columns, strict=True)]
    writer.write(pa.RecordBatch.from_arrays(arrays, schema=pa.schema([(name, TYPES[name]) for name in NAMES])))
    return writer.close()


def offsets(table: FileTable) -> list[int]:
    """Of all rows of the newest version, read from the files that the store names."""
    fs, base = file_system(table.prepare(NAMES).root)
    found: list[int] = []
    for path in current(table):
        found += (
            pq.read_table(f"{base}/{path}", columns=["offset"], filesystem=fs, partitioning=None).column("offset").to_pylist()
        )
    return sorted(found)


def current(table: Any) -> Sequence[str]:
    """The files of the newest version, each as often as the store names it."""
    if isinstance(table, ManifestTable):
        return list(table.state().files)
    if type(table).__name__ == "DeltaFiles":
        root = table.prepare(NAMES).root
        return [uri.removeprefix("file://").removeprefix(root).lstrip("/") for uri in table._table().file_uris()]
    root = table.prepare(NAMES).root
    return [task.file.file_path.removeprefix(root).lstrip("/") for task in table._table().scan().plan_files()]
