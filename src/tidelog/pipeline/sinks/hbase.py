"""Rows into a table of HBase by its REST server: by key, or each record under the place that it came from.

HBase has no transaction over rows, and needs none here: row keys, cells and their timestamps depend on the records alone, so a
batch that is written again leaves the table as it was. After all rows, the batch's identity goes into the table
``tidelog_batches`` beside it; without the identity a batch counts as not written. Why REST: docs/adr/0018-hbase-by-rest.md.

Name: ``hbase``. Options: ``url``, ``table``, ``family``, ``columns``, ``encoding``, ``user``, ``password``. Example::

    sinks:
      rides: {type: hbase, from: silver, mode: upsert, keys: [ride_id], url: "http://gateway:8080", table: rides, family: d}
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tidelog.model.errors import ConfigError
from tidelog.pipeline.model import Evolution, Mode, PipelineModel, SinkSpec
from tidelog.pipeline.sinks.base import BatchIdentity, SinkError, is_there
from tidelog.pipeline.sinks.delta import newest_by_key
from tidelog.pipeline.sinks.hbase_cells import PACKED, Cells
from tidelog.pipeline.sinks.hbase_gateway import Address, Gateway

if TYPE_CHECKING:
    import pyarrow as pa

BATCHES, BATCH_FAMILY = "tidelog_batches", "b"
LAST = f"{BATCH_FAMILY}:last"
PLACE = ("_topic", "_partition", "_offset")
TIME = "_timestamp"
FAMILY = "d"
PATIENCE_S = 60.0
"""How long a running pipeline waits for a REST server that is down."""
_AT, _KEY = "_tidelog_at", "_tidelog_key_"
_WHOLE = ("tinyint", "smallint", "int", "bigint")
_PLACED = re.compile(r"([^\s:,]+):([^\s,]+)")


def make(spec: SinkSpec, pipeline: PipelineModel) -> HBaseSink:
    return HBaseSink(spec, pipeline.name)


class HBaseSink:
    """One table."""

    remembers = True

    def __init__(self, spec: SinkSpec, pipeline: str) -> None:
        self._spec = spec
        self._table = spec.option("table")
        self._application = BatchIdentity(pipeline, spec.name, 0, ()).application
        self._address = Address.read(spec.option("url"), spec.option("user"), spec.option("password"))
        self._family = spec.option("family", FAMILY)
        self._placed = placed_columns(spec)
        # Dates as other writers to HBase use them: a delete hides what is older, and nothing else.
        self._order = spec.order_by or TIME
        self._last: BatchIdentity | None = None
        if spec.option("encoding", "text") not in ("text", "binary"):
            raise ConfigError(f"The sink {spec.name} has encoding: {spec.option('encoding')!r}, and it must be text or binary.")

    def check(self, spark: Any) -> None:
        """Check that HBase answers, create missing tables, and read the newest batch."""
        spec = self._spec
        if spec.partition_by or spec.evolution is not Evolution.NONE:
            raise SinkError(
                f"The sink {spec.name} has partition_by or schema_evolution, and HBase has neither partitions nor columns to be "
                "declared: leave them out."
            )
        with Gateway(self._address, patience_s=0) as gateway:
            gateway.version()
            self._made(gateway, BATCHES, {BATCH_FAMILY})
            self._made(
                gateway, self._table, {self._family, *(column.partition(b":")[0].decode() for column in self._placed.values())}
            )
            self._last = self._remembered(gateway)

    def last_committed(self) -> BatchIdentity | None:
        """From the table of batches."""
        return self._last

    def committed(self, identity: BatchIdentity) -> bool:
        """Whether the table has this batch. SinkError when its number is there with other offsets."""
        return is_there(self._last, identity, f"The table {self._table}")

    def fill_in(self, place: tuple[str, ...], unplaced: str = "") -> None:
        """Nothing to do: rows that exist are written with the same values."""

    def write(self, batch: Any, identity: BatchIdentity) -> None:
        with Gateway(self._address, patience_s=PATIENCE_S) as gateway:
            self._last = self._remembered(gateway)
            if self.committed(identity):
                return
            upsert = self._spec.mode is Mode.UPSERT
            rows, cells = self._prepared(newest_by_key(batch, replace(self._spec, order_by=self._order)) if upsert else batch)
            rows = rows.persist()
            try:
                self._judge(rows, cells)
                written = rows.mapInArrow(Putting(self._address, self._table, cells), "written bigint").collect()
                if sum(row[0] for row in written) != rows.count():
                    raise SinkError(f"Rows of sink {self._spec.name} changed while they were written: run the batch again.")
            finally:
                rows.unpersist()
            # Dated by HBase's clock: with an earlier date it would stay hidden after a user deleted the row.
            for body, _ in Cells({"last": LAST.encode()}, ("row",)).requests(
                [{"row": self._application, "last": identity.to_json()}]
            ):
                gateway.put(BATCHES, body)
            self._last = identity

    def _made(self, gateway: Gateway, table: str, families: set[str]) -> None:
        there = gateway.families(table)
        if there is None:
            gateway.create(table, sorted(families))
            return
        lacking = sorted(families - set(there))
        if lacking:
            raise SinkError(
                f"The table {table} of sink {self._spec.name} has the families {', '.join(there)}, and not {', '.join(lacking)}: "
                f"add them in HBase's shell (alter '{table}', '{lacking[0]}'), or say another family."
            )

    def _remembered(self, gateway: Gateway) -> BatchIdentity | None:
        found = gateway.cell(BATCHES, self._application, LAST)
        return None if found is None else BatchIdentity.from_json(found.decode(errors="replace"))

    def _prepared(self, batch: Any) -> tuple[Any, Cells]:
        """The rows with the columns to write, those of the row key and the cells' timestamp; and how to write them."""
        from pyspark.sql import functions as F

        spec = self._spec
        keys = spec.keys if spec.mode is Mode.UPSERT else PLACE
        order = self._order
        kinds = {field.name: field.dataType.simpleString() for field in batch.schema.fields}
        lacking = [name for name in dict.fromkeys((*keys, order, *self._placed)) if name not in kinds]
        if lacking:
            raise SinkError(
                f"The rows of sink {spec.name} have no column {', '.join(lacking)}: keep it in the transform. Appended rows "
                f"have the key {', '.join(PLACE)}, and cells are dated by order_by, or else by {TIME}."
            )
        packed = {name: kind for name, kind in kinds.items() if kind in PACKED} if spec.option("encoding") == "binary" else {}
        columns = {name: self._placed.get(name, f"{self._family}:{name}".encode()) for name in kinds}
        values = [_as_written(name, kinds[name], name in packed) for name in columns]
        named = [f"{_KEY}{number}" for number in range(len(keys))]
        parts = [_as_key(key, kinds[key]).alias(name) for key, name in zip(keys, named, strict=True)]
        if not (kinds[order] in _WHOLE or kinds[order].startswith("timestamp")):
            raise SinkError(
                f"The column {order} of sink {spec.name} dates its cells, and is {kinds[order]}: say order_by, a whole number "
                "or a time."
            )
        at = F.col(order).cast("bigint") if kinds[order] in _WHOLE else F.unix_millis(F.col(order).cast("timestamp"))
        cells = Cells(columns, tuple(named), _AT, packed)
        return batch.select(*values, *parts, at.alias(_AT)), cells

    def _judge(self, rows: Any, cells: Cells) -> None:
        """SinkError, before a cell is written, for rows without a key or a date, or two rows with one key."""
        from pyspark.sql import functions as F

        spec = self._spec
        nameless = F.coalesce(*(F.when(F.col(key).isNull(), 1) for key in cells.keys))
        undated = F.when(F.col(_AT).isNull() | (F.col(_AT) < 0), 1)
        asked = [F.count(F.lit(1)), F.count(nameless), F.count(undated)]
        if spec.mode is Mode.APPEND:
            asked.append(F.count_distinct(*cells.keys))
        total, without_key, without_date, *distinct = rows.agg(*asked).first()
        said = ""
        if without_key:
            said = f"{without_key} rows have NULL in {' or '.join(spec.keys or PLACE)}: leave them out in a transform."
        elif without_date:
            said = f"{without_date} rows have NULL or a negative number in {self._order}: it dates the cells."
        elif distinct and distinct[0] != total:
            said = (
                f"{total:,} rows come from {distinct[0]:,} records, and one would replace the other: say mode: upsert and keys "
                "that tell them apart."
            )
        if said:
            raise SinkError(f"The sink {spec.name}: {said} Nothing of this batch was written.")


class Putting:
    """Runs on executors: rows become cells, and cells go to the REST server."""

    def __init__(self, address: Address, table: str, cells: Cells) -> None:
        self._address = address
        self._table = table
        self._cells = cells

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The number of rows written."""
        import pyarrow as pa

        written = 0
        with Gateway(self._address, patience_s=PATIENCE_S) as gateway:
            for batch in batches:
                for body, rows in self._cells.requests(batch.to_pylist()):
                    gateway.put(self._table, body)
                    written += rows
        yield pa.RecordBatch.from_pydict({"written": pa.array([written], pa.int64())})


def placed_columns(spec: SinkSpec) -> dict[str, bytes]:
    """``columns``: the family of each column, as ``family:column``. ConfigError for another form."""
    found = {}
    for text in spec.option("columns").replace(",", " ").split():
        match = _PLACED.fullmatch(text)
        if match is None:
            raise ConfigError(
                f"The sink {spec.name} has columns with {text!r}: say family:column, several with commas between them."
            )
        found[match[2]] = text.encode()
    return found


def _as_written(name: str, kind: str, packed: bool) -> Any:
    from pyspark.sql import functions as F

    column = F.col(f"`{name}`")
    if packed or kind == "binary":
        return column
    if kind.startswith(("struct", "array", "map")):
        return F.to_json(column).alias(name)
    return column.cast("string").alias(name)


def _as_key(name: str, kind: str) -> Any:
    """A part of the row key. Offsets and partitions are padded with zeros, so that a scan finds records in their order."""
    from pyspark.sql import functions as F

    digits = {"_partition": 10, "_offset": 19}.get(name)
    return _as_written(name, kind, False) if digits is None else F.lpad(F.col(name).cast("string"), digits, "0")
