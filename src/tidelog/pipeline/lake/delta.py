"""Delta tables without Spark: files that tasks wrote are added through ``deltalake``, with the application's progress.

The commit has the files with their statistics and ``txn`` actions: (application, batch id) as Spark's Delta sink writes it, and
for each partition where its offsets begin and end (``<application>:<topic id>:<partition>:first|next``). In Delta, two commits of
one application never succeed concurrently: a writer that read an older version fails, reads again and decides again. The identity
is in ``commitInfo`` as ``userMetadata``, where Spark's Delta has it too.

``deltalake`` instead of the JVM's DeltaLog: it needs no jar and no private Scala interface, and measured no cost on the driver
(docs/adr/0016-bulk-lane.md).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from tidelog.pipeline.bulk.files import file_system
from tidelog.pipeline.lake.landed import PartitionKey, Progress, Verdict, judge
from tidelog.pipeline.lake.manifests import DATE
from tidelog.pipeline.lake.table import DataFile, Layout
from tidelog.pipeline.sinks.base import BatchIdentity, OffsetRange, SinkError
from tidelog.spark.arrow import TYPES

INSTALL = "pip install 'tidelog[delta]'"
SOME_HISTORY = 100
"""How many commits are searched before all are."""
_ATTEMPTS = 20
"""How often a commit is tried while others write."""
_MEASURED = ("partition", "offset", "timestamp")


class DeltaFiles:
    """A Delta table at a path or URI. ``storage_options`` are deltalake's, for object stores."""

    def __init__(
        self,
        uri: str,
        *,
        partition_by: Sequence[str] = ("topic", DATE),
        storage_options: dict[str, str] | None = None,
        target_file_bytes: int = 128 << 20,
        compression: str = "snappy",
    ) -> None:
        self._uri = uri
        self._storage = storage_options
        self._layout = Layout(uri, tuple(partition_by), target_file_bytes=target_file_bytes, compression=compression)

    def check(self) -> None:
        try:
            import deltalake  # noqa: F401
        except ImportError as error:
            raise SinkError(f"The bulk lane writes Delta tables with deltalake, which is not installed: {INSTALL}.") from error

    def prepare(self, names: Sequence[str]) -> Layout:
        from deltalake import DeltaTable, Schema

        partition_by = list(self._layout.partition_by)
        fields = [pa.field(name, TYPES[name]) for name in names]
        if DATE in partition_by:
            fields.append(pa.field(DATE, pa.date32()))
        if not DeltaTable.is_deltatable(self._uri, self._storage):
            schema = Schema.from_arrow(pa.schema(fields))
            # "ignore": another driver may create it at the same time.
            DeltaTable.create(self._uri, schema, mode="ignore", partition_by=partition_by, storage_options=self._storage)
        table = self._table()
        found = list(table.metadata().partition_columns)
        if found != partition_by:
            raise SinkError(
                f"The table {self._uri} is partitioned by {', '.join(found) or 'nothing'}, and {', '.join(partition_by)} is "
                "asked for: "
                "say the former, or take another table."
            )
        missing = sorted({field.name for field in fields} - {field.name for field in table.schema().fields})
        if missing:
            raise SinkError(f"The table {self._uri} has no column {', '.join(missing)}: add it, or take another table.")
        return self._layout

    def progress(self, application: str, keys: Sequence[PartitionKey] = ()) -> Progress:
        """Of other applications, only the partitions that the newest commits name: Delta cannot list them all."""
        table = self._table()
        written = self._written(table, application, SOME_HISTORY) or self._written(table, application, None)
        named = [_key(piece) for identity in written for piece in identity.ranges]
        found = _progress(table, application, [*dict.fromkeys([*keys, *named])])
        return replace(found, last=next((identity for identity in written if identity.batch_id == found.batch_id), None))

    def commit(self, identity: BatchIdentity, files: Sequence[DataFile]) -> bool:
        from deltalake.exceptions import CommitFailedError

        problem: Exception | None = None
        for _ in range(_ATTEMPTS):
            table = self._table()
            progress = _progress(table, identity.application, [_key(piece) for piece in identity.ranges])
            if judge(progress, identity) is Verdict.LANDED:
                return False
            try:
                self._add(table, identity, progress, files)
            except CommitFailedError as error:
                problem = error
            else:
                return True
        raise SinkError(f"The table {self._uri} was changed by others {_ATTEMPTS} times while a batch was committed: {problem}.")

    def paths(self) -> set[str]:
        """All paths in the table's log, removed files included: older versions need them until VACUUM."""
        fs, base = file_system(self._uri)
        import pyarrow.fs as pafs

        found: set[str] = set()
        for info in fs.get_file_info(pafs.FileSelector(f"{base}/_delta_log")):
            if info.path.endswith(".json"):
                with fs.open_input_stream(info.path) as stream:
                    for line in bytes(stream.read()).splitlines():
                        action = json.loads(line) if line.strip() else {}
                        found.update(unquote(action[kind]["path"]) for kind in ("add", "remove") if kind in action)
            elif info.path.endswith(".parquet") and ".checkpoint" in info.path:
                found.update(_in_checkpoint(fs, info.path))
        return found

    def _table(self) -> Any:
        from deltalake import DeltaTable

        return DeltaTable(self._uri, storage_options=self._storage)

    def _written(self, table: Any, application: str, commits: int | None) -> list[BatchIdentity]:
        """The batches of this application in the newest commits, or in the whole log; newest first."""
        if table.transaction_version(application) is None:
            return []
        found = (BatchIdentity.from_json(commit.get("userMetadata")) for commit in table.history(commits))
        return [identity for identity in found if identity is not None and identity.application == application]

    def _add(self, table: Any, identity: BatchIdentity, progress: Progress, files: Sequence[DataFile]) -> None:
        from deltalake import CommitProperties, Transaction
        from deltalake.transaction import AddAction

        adds = [AddAction(f.path, f.size, dict(f.partition), f.created_ms, True, statistics(f)) for f in files]
        after = progress.after(identity)
        marks = [Transaction(identity.application, identity.batch_id)]
        for piece in identity.ranges:
            first, following = after.positions[_key(piece)]
            marks += [
                Transaction(_mark(identity.application, _key(piece), "first"), first),
                Transaction(_mark(identity.application, _key(piece), "next"), following),
            ]
        properties = CommitProperties(app_transactions=marks, custom_metadata={"userMetadata": identity.to_json()})
        table.create_write_transaction(
            adds, "append", table.schema(), list(self._layout.partition_by), commit_properties=properties
        )


def statistics(file: DataFile) -> str:
    """A file's statistics in the form of Delta's log: timestamps in milliseconds, the highest one rounded up."""
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    for name in _MEASURED:
        span = file.columns.get(name)
        if span is None or span[0] is None or name in file.partition:
            continue
        micros = name == "timestamp"
        low[name] = _moment(span[0] // 1000) if micros else span[0]
        high[name] = _moment(-(-span[1] // 1000)) if micros else span[1]
    # Delta has no statistics for lists, nor for columns that are only in directory names.
    counts = {name: span[2] for name, span in file.columns.items() if name != "headers" and name not in file.partition}
    return json.dumps({"numRecords": file.rows, "minValues": low, "maxValues": high, "nullCount": counts})


def _moment(milliseconds: int) -> str | None:
    """ISO 8601 in UTC; None for a time that calendars do not have."""
    import datetime

    try:
        epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
        moment = epoch + datetime.timedelta(milliseconds=milliseconds)
    except OverflowError:
        return None
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03}Z" if moment.year >= 1000 else None


def _key(piece: OffsetRange) -> PartitionKey:
    return piece.topic, piece.topic_id, piece.partition


def _mark(application: str, key: PartitionKey, which: str) -> str:
    return f"{application}:{key[1] or key[0]}:{key[2]}:{which}"


def _progress(table: Any, application: str, keys: Sequence[PartitionKey]) -> Progress:
    batch_id = table.transaction_version(application)
    positions = {}
    for key in keys:
        first = table.transaction_version(_mark(application, key, "first"))
        following = table.transaction_version(_mark(application, key, "next"))
        if first is not None and following is not None:
            positions[key] = (first, following)
    return Progress(-1 if batch_id is None else batch_id, None, positions)


def _in_checkpoint(fs: Any, path: str) -> set[str]:
    import pyarrow.parquet as pq

    table = pq.read_table(path, columns=["add.path", "remove.path"], filesystem=fs)
    return {
        unquote(row["path"])
        for kind in ("add", "remove")
        if kind in table.column_names
        for row in table.column(kind).to_pylist()
        if row and row.get("path")
    }
