"""Rows into a table of plain Parquet files, a batch in one commit of the table's own log (``lake.manifests`` has the format).

Spark writes the files into a directory for this attempt, ``data/batch=<application>-<number>-<random>``; then one commit names
them, with the batch and its offsets. A driver that dies in between leaves a directory that no commit names: readers
(``read_table``) do not see it, and it is removed after a batch of that number has landed.

Name: ``parquet``. Options: ``path``. Example::

    sinks:
      lake: {kind: parquet, path: lake/orders, partition_by: [day(event_time)]}
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from tidelog.pipeline.lake.landed import Verdict, judge
from tidelog.pipeline.lake.manifests import ManifestTable
from tidelog.pipeline.lake.table import DataFile
from tidelog.pipeline.model import Evolution, PipelineModel, SinkSpec
from tidelog.pipeline.sinks.base import BatchIdentity, SinkError
from tidelog.pipeline.sinks.partitions import partition_columns

WIDER = {("tinyint", "smallint"), ("tinyint", "int"), ("smallint", "int"), ("int", "bigint"), ("float", "double")}
"""(in the table, in the rows): types that readers of the wider one read from older files too."""


def make(spec: SinkSpec, pipeline: PipelineModel) -> ParquetSink:
    return ParquetSink(spec, pipeline.name)


class ParquetSink:
    """One table, in a directory of a local or mounted disk."""

    remembers = True

    def __init__(self, spec: SinkSpec, pipeline: str) -> None:
        self._spec = spec
        self._parts = partition_columns(spec.partition_by)
        self._names = tuple(part.name for part in self._parts)
        self._table = ManifestTable(spec.option("path"), partition_by=self._names)
        self._application = BatchIdentity(pipeline, spec.name, 0, ()).application

    def check(self, spark: Any) -> None:
        """Check that the table can be read and has the partitions asked for. Delete what dead drivers left."""
        state = self._table.state()
        if state.version >= 0 and state.partition_by != self._names:
            self._table.create({}, self._names)  # Raises if not.
        self.clear_orphans()

    def last_committed(self) -> BatchIdentity | None:
        """From the table's log."""
        return self._table.progress(self._application).last

    def committed(self, identity: BatchIdentity) -> bool:
        return judge(self._table.progress(identity.application), identity) is Verdict.LANDED

    def write(self, batch: Any, identity: BatchIdentity) -> None:
        if self.committed(identity):
            return
        for part in self._parts:
            batch = batch.withColumn(part.name, part.column())
        columns = self._columns(batch)
        state = self._table.state()
        if state.version < 0:
            self._table.create(columns, self._names)
            state = self._table.state()
        self._evolved(state.columns, columns)  # Raises for what does not fit before anything is written.
        token = f"{_short(identity.application)}-{identity.batch_id}-{secrets.token_hex(4)}"
        folder = self._table.data / f"batch={token}"
        batch.write.partitionBy(*self._names).parquet(str(folder))
        files = files_in(self._table.data, folder)
        if not self._table.commit_as(identity, files, lambda there: self._evolved(there, columns)):
            shutil.rmtree(folder, ignore_errors=True)

    def clear_orphans(self) -> int:
        """Remove the directories of attempts that were not committed, up to the newest batch. Returns how many."""
        newest = self._table.progress(self._application).batch_id
        mine = f"batch={_short(self._application)}-"
        dead = []
        for folder in sorted(self._table.data.glob(f"{mine}*")):
            number = folder.name.removeprefix(mine).partition("-")[0]
            if number.isdecimal() and int(number) <= newest:
                dead.append(folder)
        if dead:
            kept = {path.partition("/")[0] for path in self._table.paths()}
            dead = [folder for folder in dead if folder.name not in kept]
        for folder in dead:
            shutil.rmtree(folder, ignore_errors=True)
        return len(dead)

    def _columns(self, batch: Any) -> dict[str, str]:
        return {field.name: field.dataType.simpleString() for field in batch.schema.fields}

    def _evolved(self, table: dict[str, str], rows: dict[str, str]) -> dict[str, str]:
        """The table's columns from this batch on. SinkError when the sink may not change them."""
        spec, evolution = self._spec, self._spec.evolution
        merged = dict(table)
        for name, kind in rows.items():
            there = table.get(name)
            if there is None and evolution is Evolution.NONE:
                raise SinkError(
                    f"The rows of sink {spec.name} have a column {name} ({kind}), which the table "
                    f"{spec.option('path')} lacks. Say schema_evolution: add for this sink, or leave it out in a transform. "
                    "Nothing of this batch is in the table."
                )
            grows = (there or "", kind) in WIDER
            fits = there in (None, kind) or (kind, there or "") in WIDER
            if not fits and not (grows and evolution is Evolution.MERGE):
                raise SinkError(
                    f"The column {name} is {kind} in the rows of sink {spec.name}, and {there} in the table "
                    f"{spec.option('path')}. Cast it in a transform, say schema_evolution: merge if it only grew wider, or "
                    "give the sink a new path. Nothing of this batch is in the table."
                )
            if there is None or grows:
                merged[name] = kind
        return merged


def files_in(data: Path, folder: Path) -> list[DataFile]:
    """The Parquet files that Spark wrote below ``folder``, synced, with their numbers of rows."""
    import pyarrow.parquet as pq

    found = []
    for path in sorted(folder.rglob("*.parquet")):
        relative = path.relative_to(data)
        _sync(path)
        levels = [level.partition("=") for level in relative.parts[1:-1]]
        partition = {name: unquote(text) for name, _, text in levels}
        status = path.stat()
        found.append(
            DataFile(
                str(relative), pq.read_metadata(path).num_rows, status.st_size, partition, {}, status.st_mtime_ns // 1_000_000
            )
        )
    for directory in (folder, *(path for path in folder.rglob("*") if path.is_dir()), folder.parent):
        _sync(directory)
    return found


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _short(application: str) -> str:
    return hashlib.sha256(application.encode()).hexdigest()[:12]
