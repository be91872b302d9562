"""Compact the small files of a plain table, and delete files that were replaced long ago, while writers run.

Rows stay as they are: one commit replaces files of a partition by one file with the same rows. Readers that started earlier read
the old files until ``expire`` deletes them. A compaction that dies leaves a file that no commit names.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidelog.pipeline.lake.manifests import ManifestTable, Superseded, TableState
from tidelog.pipeline.lake.table import DataFile
from tidelog.pipeline.sinks.base import SinkError

TARGET_BYTES = 128 << 20
SMALL = 0.75
"""A file of at least this share of the target is left alone: rewriting it would gain little."""
FEWEST = 2
PREFIX = "batch=compacted-"
_SPARKS_OWN = frozenset({"_SUCCESS", "._SUCCESS.crc"})
"""What Spark writes beside the files of a batch. Each file also has a checksum, ``.<name>.crc``."""
BATCH_ROWS = 64 << 10
ROW_GROUP_BYTES = 32 << 20
"""Bytes of Arrow data that are gathered before a row group is written."""


@dataclass(frozen=True, slots=True)
class Exchanged:
    """How many files were removed and added."""

    removed: int
    added: int


def groups(state: TableState, target_bytes: int = TARGET_BYTES) -> Iterator[tuple[DataFile, ...]]:
    """Files to join: each group in one partition, in the order of paths, together at most the target size. Pure."""
    waiting: dict[tuple[tuple[str, str], ...], list[DataFile]] = {}
    for path in sorted(state.files):
        file = state.files[path]
        if file.size >= SMALL * target_bytes:
            continue
        held = waiting.setdefault(tuple(sorted(file.partition.items())), [])
        if held and sum(each.size for each in held) + file.size > target_bytes:
            if len(held) >= FEWEST:
                yield tuple(held)
            held.clear()
        held.append(file)
    yield from (tuple(held) for held in waiting.values() if len(held) >= FEWEST)


def compact(table: ManifestTable, target_bytes: int = TARGET_BYTES) -> Exchanged:
    """Join every group into one file. SinkError when another process compacts the table at the same time, or a file is
    damaged."""
    removed = added = 0
    for group in list(groups(table.state(), target_bytes)):
        made = _joined(table.data, group, table.state().columns)
        try:
            table.replace([file.path for file in group], [made])
        except Superseded:
            (table.data / made.path).unlink(missing_ok=True)
            raise
        removed, added = removed + len(group), added + 1
    return Exchanged(removed, added)


def expire(table: ManifestTable, before_ms: int) -> int:
    """Delete files that a commit before this time removed from the table (by the commit file's time). Returns how many.

    Files that compactions which died before this time left behind are deleted too.
    """
    there = set(table.state().files)
    gone = [path for path in table.replaced(before_ms) if path not in there and (table.data / path).exists()]
    for path in gone:
        file = table.data / path
        file.unlink(missing_ok=True)
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    for folder in sorted({(table.data / path).parent for path in gone}, key=lambda each: len(each.parts), reverse=True):
        _remove_empty(folder, table.data)
    dead = [folder for folder in table.data.glob(f"{PREFIX}*") if folder.stat().st_mtime_ns // 1_000_000 < before_ms]
    kept = {path.partition("/")[0] for path in table.paths()} if dead else set()
    for folder in dead:
        if folder.name not in kept:
            shutil.rmtree(folder, ignore_errors=True)
    return len(gone)


def _remove_empty(folder: Path, below: Path) -> None:
    while folder != below and all(entry.name in _SPARKS_OWN for entry in folder.iterdir()):
        for entry in list(folder.iterdir()):
            entry.unlink(missing_ok=True)
        folder.rmdir()
        folder = folder.parent


def _joined(data: Path, group: tuple[DataFile, ...], kinds: Mapping[str, str]) -> DataFile:
    """One file on the disk with the rows of all. ``kinds``: Spark's types of the table's columns."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    levels = group[0].path.split("/")[1:-1]
    token = secrets.token_hex(8)
    path = "/".join((f"{PREFIX}{token}", *levels, f"part-{token}.parquet"))
    target = data / path
    target.parent.mkdir(parents=True)
    rows = sum(file.rows for file in group)
    try:
        # Newer columns are NULL in older files; of two types the wider one holds both.
        schema = pa.unify_schemas(_schemas(data, group, kinds), promote_options="permissive")
        _write(target, schema, _batches(data, group))
        found = pq.read_metadata(target).num_rows
        if found != rows:
            raise SinkError(f"{target} has {found} rows, and the files that it replaces have {rows}: one of them is damaged.")
    except (OSError, pa.ArrowException, SinkError) as error:
        target.unlink(missing_ok=True)
        _remove_empty(target.parent, data)
        if isinstance(error, SinkError):
            raise
        raise SinkError(f"The files of {data / group[0].path} and others cannot be joined: {error}.") from error
    _sync((target, *(parent for parent in target.parents if parent.is_relative_to(data))))
    status = target.stat()
    return DataFile(path, rows, status.st_size, dict(group[0].partition), measured(group), status.st_mtime_ns // 1_000_000)


def _open(path: Path) -> Any:
    """One at a time: there may be more small files than a process may have open."""
    import pyarrow.parquet as pq

    # Spark writes times as INT96; pyarrow would turn them into nanoseconds, which Spark does not read.
    return pq.ParquetFile(path, coerce_int96_timestamp_unit="us")


def _schemas(data: Path, group: tuple[DataFile, ...], kinds: Mapping[str, str]) -> list[Any]:
    """The distinct schemas."""
    found: list[Any] = []
    for each in group:
        with _open(data / each.path) as file:
            schema = _instants(file.schema_arrow.remove_metadata(), kinds)
        if schema not in found:
            found.append(schema)
    return found


def _batches(data: Path, group: tuple[DataFile, ...]) -> Iterator[Any]:
    for each in group:
        with _open(data / each.path) as file:
            yield from file.iter_batches(BATCH_ROWS)


def _write(target: Path, schema: Any, batches: Iterable[Any]) -> None:
    """Rows of many files in one row group: a group for each would keep them small."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetWriter(target, schema) as writer:
        gathered: list[Any] = []
        size = 0
        for batch in batches:
            gathered.append(_fitted(batch, schema))
            size += gathered[-1].nbytes
            if size >= ROW_GROUP_BYTES:
                writer.write_table(pa.Table.from_batches(gathered, schema))
                gathered, size = [], 0
        if gathered:
            writer.write_table(pa.Table.from_batches(gathered, schema))


def _instants(schema: Any, kinds: Mapping[str, str]) -> Any:
    """Mark the times of ``timestamp`` columns as UTC: INT96 does not say so."""
    import pyarrow as pa

    def known(kind: Any) -> Any:
        if pa.types.is_timestamp(kind):
            return pa.timestamp(kind.unit, "UTC")
        if pa.types.is_struct(kind):
            return pa.struct([field.with_type(known(field.type)) for field in kind])
        if pa.types.is_list(kind):
            return pa.list_(kind.value_field.with_type(known(kind.value_type)))
        if pa.types.is_map(kind):
            return pa.map_(known(kind.key_type), kind.item_field.with_type(known(kind.item_type)))
        return kind

    def is_instant(name: str) -> bool:
        return "timestamp_ntz" not in kinds.get(name, "timestamp_ntz")

    return pa.schema([field.with_type(known(field.type)) if is_instant(field.name) else field for field in schema])


def _fitted(batch: Any, schema: Any) -> Any:
    import pyarrow as pa

    columns = []
    for field in schema:
        at = batch.schema.get_field_index(field.name)
        columns.append(pa.nulls(batch.num_rows, field.type) if at < 0 else batch.column(at).cast(field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def measured(group: Iterable[DataFile]) -> dict[str, tuple[Any, Any, int]]:
    """Lowest value, highest value and nulls of the columns that every file has statistics for."""
    files = tuple(group)
    shared = [name for name in files[0].columns if all(name in file.columns for file in files)]
    found = {}
    for name in shared:
        spans = [file.columns[name] for file in files]
        lowest = [span[0] for span in spans if span[0] is not None]
        highest = [span[1] for span in spans if span[1] is not None]
        found[name] = (min(lowest, default=None), max(highest, default=None), sum(span[2] for span in spans))
    return found


def _sync(paths: Iterable[Path]) -> None:
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
