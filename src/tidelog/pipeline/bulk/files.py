"""Record batches into Parquet files: which file a row goes to, when a file is full, and what is reported about it.

A file's name says which offsets of which partition its task read, so that files of dead attempts differ from those that may
still be committed: ``part-<topic id>-<partition>-<start>-<end>-<random>-<number>.parquet``. A file is invisible until a commit
names it. On a local disk it is synced before it is reported: a commit is never older than the bytes that it names.
"""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from tidelog.pipeline.lake.table import DataFile, Layout
from tidelog.spark.reader import ReadTask

ROW_GROUP_BYTES = 32 << 20
"""Bytes of Arrow data that are gathered before a row group is written."""
OPEN_FILES = 64
"""Dates that a task writes at the same time. For one more, the file that was written to least recently is closed."""
_MICROS_A_DAY = 86_400_000_000
_DICTIONARY = ("topic", "partition", "timestampType")
_MEASURED = ("partition", "offset", "timestamp")
_NAME = re.compile(r"part-(.+)-(\d+)-(\d+)-(\d+)-[0-9a-f]{8}-\d+\.parquet")
_SPREAD_BYTES = 4 * ROW_GROUP_BYTES
"""Arrow bytes that all open files together may hold back."""


def file_system(root: str) -> tuple[Any, str]:
    """pyarrow's file system for a URI or a local path, and the path in it."""
    if "://" in root:
        found: tuple[Any, str] = pafs.FileSystem.from_uri(root)
        return found
    return pafs.LocalFileSystem(), os.path.abspath(root)


def range_of(path: str) -> tuple[str, int, int, int] | None:
    """(topic id or name, partition, start, end) from a file's name; None for a name of another form."""
    found = _NAME.fullmatch(path.rpartition("/")[2])
    return None if found is None else (found[1], int(found[2]), int(found[3]), int(found[4]))


@dataclass(slots=True)
class _Open:
    """A file under construction."""

    path: str
    partition: dict[str, str]
    sink: Any
    writer: Any
    gathered: list[Any] = field(default_factory=list)
    gathered_bytes: int = 0
    rows: int = 0
    spans: dict[str, list[int]] = field(default_factory=dict)
    nulls: dict[str, int] = field(default_factory=dict)


class FileWriter:
    """Writes the rows of one task."""

    def __init__(self, layout: Layout, task: ReadTask, *, topic_id: str, token: str) -> None:
        self._layout = layout
        self._task = task
        self._fs, base = file_system(layout.root)
        self._local = isinstance(self._fs, pafs.LocalFileSystem)
        self._base = base
        self._directory = f"batch={token}/" if layout.grouped else ""
        # "part-" comes first because Spark skips names that begin with "_", as a topic id may.
        self._name = f"part-{topic_id or task.at.topic}-{task.at.partition}-{task.start}-{task.end}-{secrets.token_hex(4)}"
        self._number = 0
        self._open: dict[int, _Open] = {}
        self._done: list[DataFile] = []

    def write(self, batch: Any) -> None:
        """Add a pyarrow.RecordBatch of the source."""
        if not batch.num_rows:
            return
        for day, rows in self._by_day(batch):
            self._add(day, rows)
        if sum(file.gathered_bytes for file in self._open.values()) > _SPREAD_BYTES:
            for file in self._open.values():
                self._flush(file)

    def close(self) -> list[DataFile]:
        """Close the open files; returns all files."""
        for day in list(self._open):
            self._finish(day)
        return self._done

    def discard(self) -> None:
        """The task failed: its files will not be committed."""
        for file in self._open.values():
            file.writer.close()
            file.sink.close()
            self._done.append(DataFile(file.path, 0, 0))
        self._open.clear()
        for known in self._done:
            self._fs.delete_file(f"{self._base}/{known.path}")
        self._done.clear()

    def _by_day(self, batch: Any) -> Iterator[tuple[int, Any]]:
        """Rows by the UTC day of their timestamp, as days since 1970; one group where the day does not matter."""
        if "date" not in self._layout.partition_by:
            yield 0, batch
            return
        micros = batch.column("timestamp").cast(pa.int64())
        span = pc.min_max(micros)
        first, last = span["min"].as_py() // _MICROS_A_DAY, span["max"].as_py() // _MICROS_A_DAY
        if first == last:
            yield first, batch
            return
        # Arrow divides towards zero: shifted so that days before 1970 are whole ones too.
        days = pc.divide(pc.subtract(micros, first * _MICROS_A_DAY), _MICROS_A_DAY)
        for day in sorted(pc.unique(days).to_pylist()):
            yield first + day, batch.filter(pc.equal(days, day))

    def _add(self, day: int, batch: Any) -> None:
        file = self._open.pop(day, None) or self._create(day, batch.schema)
        self._open[day] = file  # The youngest comes last.
        for name in _MEASURED:
            if name in batch.schema.names:
                column = batch.column(name)
                found = pc.min_max(column.cast(pa.int64()) if name == "timestamp" else column)
                low, high = found["min"].as_py(), found["max"].as_py()
                span = file.spans.setdefault(name, [low, high])
                span[0], span[1] = min(span[0], low), max(span[1], high)
        for name in batch.schema.names:
            file.nulls[name] = file.nulls.get(name, 0) + batch.column(name).null_count
        file.rows += batch.num_rows
        file.gathered.append(batch)
        file.gathered_bytes += batch.nbytes
        if file.gathered_bytes >= ROW_GROUP_BYTES:
            self._flush(file)
            if file.sink.tell() >= self._layout.target_file_bytes:
                self._finish(day)
        if len(self._open) > OPEN_FILES:
            self._finish(next(iter(self._open)))

    def _create(self, day: int, schema: Any) -> _Open:
        layout, at = self._layout, self._task.at
        values = {"topic": at.topic, "partition": str(at.partition), "date": _date(day)}
        partition = {name: values[name] for name in layout.partition_by}
        folder = self._directory + "".join(f"{name}={text}/" for name, text in partition.items())
        path = f"{folder}{self._name}-{self._number}.parquet"
        self._number += 1
        if self._local:
            os.makedirs(f"{self._base}/{folder}", exist_ok=True)
        sink = self._fs.open_output_stream(f"{self._base}/{path}")
        kept = pa.schema([part for part in schema if layout.keep or part.name not in partition])
        writer = pq.ParquetWriter(
            sink,
            kept,
            compression=layout.compression,
            use_dictionary=[name for name in _DICTIONARY if name in kept.names],
            write_statistics=[name for name in (*_MEASURED, "topic") if name in kept.names],
            column_encoding={name: "DELTA_BINARY_PACKED" for name in ("offset", "timestamp") if name in kept.names},
        )
        return _Open(path, partition, sink, writer)

    def _flush(self, file: _Open) -> None:
        if file.gathered:
            table = pa.Table.from_batches(file.gathered).select(file.writer.schema.names)
            file.writer.write_table(table, row_group_size=table.num_rows)
            file.gathered, file.gathered_bytes = [], 0

    def _finish(self, day: int) -> None:
        file = self._open.pop(day)
        self._flush(file)
        file.writer.close()
        size = file.sink.tell()
        file.sink.close()
        if self._local:
            _sync(self._base, file.path)
        columns: dict[str, tuple[Any, Any, int]] = {name: (None, None, count) for name, count in file.nulls.items()}
        columns |= {name: (span[0], span[1], 0) for name, span in file.spans.items()}
        self._done.append(DataFile(file.path, file.rows, size, file.partition, columns, time.time_ns() // 1_000_000))


def _date(day: int) -> str:
    return str(pa.scalar(day, pa.int32()).cast(pa.date32()).as_py())


def _sync(base: str, path: str) -> None:
    """Sync the file and the directories above it."""
    parts = [path]
    while parts[-1]:
        parts.append(parts[-1].rpartition("/")[0])
    for part in parts:
        descriptor = os.open(f"{base}/{part}", os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
