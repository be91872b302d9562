"""Iceberg tables without Spark: files that tasks wrote are added through ``pyiceberg``, on any version of PySpark.

One commit adds the files as a snapshot, whose summary has the batch (``tidelog``), and sets the table property
``tidelog-progress.<application>``, which survives expired snapshots. A commit names the snapshot that it builds on, and the
catalog accepts it only while that is the newest: a writer that comes second reads again and decides again.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from tidelog.pipeline.lake.landed import PartitionKey, Progress, Verdict, judge
from tidelog.pipeline.lake.manifests import DATE
from tidelog.pipeline.lake.table import DataFile, Layout
from tidelog.pipeline.sinks.base import RECORD, BatchIdentity, SinkError
from tidelog.spark.arrow import TYPES

INSTALL = "pip install 'tidelog[iceberg]'"
PROGRESS = "tidelog-progress"
_RETRIES = "commit.retry.num-retries"
_ATTEMPTS = 20


class IcebergFiles:
    """A table of an Iceberg catalog: ``catalog`` are pyiceberg's properties (type, uri, warehouse, ...), ``table``
    namespace.name.

    ``partition_by`` as for the other tables; ``date`` is Iceberg's ``day(timestamp)``. Partition columns stay in the files, as
    Iceberg requires.
    """

    def __init__(
        self,
        catalog: Mapping[str, str],
        table: str,
        *,
        partition_by: Sequence[str] = ("topic", DATE),
        target_file_bytes: int = 128 << 20,
        compression: str = "snappy",
    ) -> None:
        self._properties = dict(catalog)
        self._name = table
        self._partition_by = tuple(partition_by)
        self._size, self._compression = target_file_bytes, compression
        self._loaded: Any = None

    def check(self) -> None:
        try:
            import pyiceberg  # noqa: F401
        except ImportError as error:
            raise SinkError(f"The bulk lane writes Iceberg tables with pyiceberg, which is not installed: {INSTALL}.") from error

    def prepare(self, names: Sequence[str]) -> Layout:
        from pyiceberg.exceptions import NamespaceAlreadyExistsError, TableAlreadyExistsError

        catalog = self._catalog()
        schema = pa.schema([pa.field(name, TYPES[name]) for name in names])
        if not catalog.table_exists(self._name):
            with contextlib.suppress(NamespaceAlreadyExistsError):
                catalog.create_namespace(self._name.rpartition(".")[0])
            with contextlib.suppress(TableAlreadyExistsError):  # Another driver was faster.
                self._create(schema)
        table = self._table()
        found = tuple(field.name for field in table.spec().fields)
        if found != self._partition_by:
            raise SinkError(
                f"The table {self._name} is partitioned by {', '.join(found) or 'nothing'}, and "
                f"{', '.join(self._partition_by)} is asked for: say the former, or take another table."
            )
        missing = sorted(set(names) - {field.name for field in table.schema().fields})
        if missing:
            raise SinkError(f"The table {self._name} has no column {', '.join(missing)}: add it, or take another table.")
        return Layout(
            f"{table.location()}/data", self._partition_by, keep=True, target_file_bytes=self._size, compression=self._compression
        )

    def _create(self, schema: Any) -> None:
        made = self._catalog().create_table_transaction(self._name, schema, properties={"format-version": "2"})
        with made, made.update_spec() as spec:
            for name in self._partition_by:
                spec.add_field(*(("timestamp", "day", DATE) if name == DATE else (name, "identity", name)))

    def progress(self, application: str, keys: Sequence[PartitionKey] = ()) -> Progress:
        return _progress(self._table(), application)

    def commit(self, identity: BatchIdentity, files: Sequence[DataFile]) -> bool:
        from pyiceberg.exceptions import CommitFailedException

        problem: Exception | None = None
        for _ in range(_ATTEMPTS):
            table = self._table()
            progress = _progress(table, identity.application)
            if judge(progress, identity) is Verdict.LANDED:
                return False
            try:
                self._add(table, identity, progress.after(identity), files)
            except CommitFailedException as error:
                problem = error
            else:
                return True
        raise SinkError(f"The table {self._name} was changed by others {_ATTEMPTS} times while a batch was committed: {problem}.")

    def paths(self) -> set[str]:
        """The files of all snapshots that are kept."""
        table = self._table()
        root = f"{table.location()}/data/"
        found = table.inspect.all_files().column("file_path").to_pylist()
        return {path.removeprefix(root) for path in found}

    def _catalog(self) -> Any:
        from pyiceberg.catalog import load_catalog

        if self._loaded is None:
            self._loaded = load_catalog("tidelog", **self._properties)
        return self._loaded

    def _table(self) -> Any:
        return self._catalog().load_table(self._name)

    def _add(self, table: Any, identity: BatchIdentity, after: Progress, files: Sequence[DataFile]) -> None:
        root = f"{table.location()}/data"
        # In this copy only: pyiceberg would retry on top of the other commit without deciding again.
        table.metadata.properties[_RETRIES] = "0"
        with table.transaction() as commit:
            commit.set_properties({f"{PROGRESS}.{identity.application}": json.dumps(after.to_json())})
            if not files:
                # An empty batch makes a snapshot too: a driver that came second recognizes it.
                with commit.update_snapshot({RECORD: identity.to_json()}).fast_append():
                    pass
            else:
                paths = [f"{root}/{file.path}" for file in files]
                # File names are random: there is no need to search all manifests for duplicates.
                commit.add_files(paths, snapshot_properties={RECORD: identity.to_json()}, check_duplicate_files=False)


def _progress(table: Any, application: str) -> Progress:
    kept = table.properties.get(f"{PROGRESS}.{application}")
    return Progress() if kept is None else Progress.from_json(json.loads(kept))
