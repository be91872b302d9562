"""Rows into a Delta table, a batch in one commit.

The commit carries the batch twice: as Delta's transaction (``txnAppId``, ``txnVersion``), for which Delta refuses a second
commit, and as JSON in ``userMetadata`` with the offsets, so that the table alone has the position. ``DESCRIBE HISTORY`` shows it.
"""

from __future__ import annotations

from typing import Any

from tidelog.pipeline.delta_names import delta_name
from tidelog.pipeline.model import Evolution, Mode, PipelineModel, SinkSpec
from tidelog.pipeline.sinks.base import BatchIdentity, SinkError, is_there
from tidelog.pipeline.sinks.partitions import partition_columns
from tidelog.pipeline.sinks.widening import changed

APPLICATION = "spark.databricks.delta.write.txnAppId"
VERSION = "spark.databricks.delta.write.txnVersion"
METADATA = "spark.databricks.delta.commitInfo.userMetadata"
MERGE_SCHEMA = "spark.databricks.delta.schema.autoMerge.enabled"
KEEPS_SOURCE = "spark.databricks.delta.merge.materializeSource"
WIDENING = "delta.enableTypeWidening"
SOME_HISTORY = 20
# Delta's error for the slower of two writers that create a table, such as dead letters of two sources. Nothing was committed.
MADE_MEANWHILE = ("DELTA_PROTOCOL_CHANGED", "DELTA_METADATA_CHANGED")


def make(spec: SinkSpec, pipeline: PipelineModel) -> DeltaSink:
    return DeltaSink(spec, pipeline.name)


class _Lacking(SinkError):
    """Columns that the table lacks; the message says what to do."""


class DeltaSink:
    """One table, by its path."""

    remembers = True

    def __init__(self, spec: SinkSpec, pipeline: str) -> None:
        self._spec = spec
        self._pipeline = pipeline
        self._path = spec.option("path")
        self._spark: Any = None
        self._last: BatchIdentity | None = None
        self._parts = partition_columns(spec.partition_by)
        self._place: tuple[str, ...] = ()
        self._unplaced = ""

    def check(self, spark: Any) -> None:
        """Check that Delta's classes are there, and read the table's newest batch."""
        if spark.conf.get("spark.sql.extensions", "").find("DeltaSparkSessionExtension") < 0:
            raise SinkError(
                f"The sink {self._spec.name} writes Delta, and this Spark session has no Delta: let `tidelog pipeline run` make "
                "the session, or set spark.jars.packages, spark.sql.extensions and spark.sql.catalog.spark_catalog as Delta's "
                "guide says."
            )
        self._spark = spark
        self._last = self._remembered()

    def last_committed(self) -> BatchIdentity | None:
        """From the table's history."""
        return self._last

    def committed(self, identity: BatchIdentity) -> bool:
        """Whether the table has this batch. SinkError when its number is there with other offsets."""
        return is_there(self._last, identity, f"The table {self._path}")

    @property
    def takes_once(self) -> bool:
        """Appending reads rows once, and so does choosing the newest of each key. Delta's merge keeps its source before it joins,
        unless the session says otherwise: a batch comes from no Delta table, so another reading could differ."""
        if self._place:
            return False
        return self._spec.mode is Mode.APPEND or str(self._spark.conf.get(KEEPS_SOURCE, "auto")).lower() != "none"

    def fill_in(self, place: tuple[str, ...], unplaced: str = "") -> None:
        if self._spec.mode is Mode.APPEND:
            self._place, self._unplaced = place, unplaced

    def write(self, batch: Any, identity: BatchIdentity) -> None:
        if self.committed(identity):
            return
        for part in self._parts:
            batch = batch.withColumn(part.name, part.column())
        try:
            try:
                self._put(batch, identity)
            except Exception as error:
                if not any(said in str(error) for said in MADE_MEANWHILE):
                    raise
                self._put(batch, identity)
        except Exception as error:
            raise self._explained(error) from error
        self._last = identity

    def _put(self, batch: Any, identity: BatchIdentity) -> None:
        merges = self._spec.mode is Mode.UPSERT or bool(self._place)
        table = None
        if (merges or self._spec.evolution is Evolution.MERGE) and self._exists():
            table = batch.sparkSession.read.format("delta").load(self._path).schema
            self._types(batch, table)
        if merges and table is not None:
            self._merge(batch, identity, table)
        else:
            self._append(batch, identity)

    def _append(self, batch: Any, identity: BatchIdentity) -> None:
        if self._spec.mode is Mode.UPSERT:
            batch = newest_by_key(batch, self._spec)
        writer = batch.write.format("delta").mode("append")
        writer = writer.option("txnAppId", identity.application).option("txnVersion", str(identity.batch_id))
        writer = writer.option("userMetadata", identity.to_json())
        if self._spec.evolution is not Evolution.NONE:
            writer = writer.option("mergeSchema", "true")
        if self._spec.partition_by and not self._exists():
            writer = writer.partitionBy(*(part.name for part in self._parts))
        writer.save(self._path)

    def _merge(self, batch: Any, identity: BatchIdentity, table: Any) -> None:
        spark, spec = batch.sparkSession, self._spec
        view = "tidelog_upsert_" + spec.name.replace(".", "_")
        lacking = [column for column in self._place if column not in batch.columns]
        if lacking:
            raise SinkError(
                f"The sink {spec.name} does not know which rows it has: keep {', '.join(lacking)} in its transform, or upsert."
            )
        (batch if self._place else newest_by_key(batch, spec)).createOrReplaceTempView(view)
        same = " AND ".join(f"t.`{key}` <=> s.`{key}`" for key in self._place or spec.keys)
        if self._unplaced:
            same = same_place(self._place, self._unplaced, frozenset(table.names))
        newer = f"WHEN MATCHED AND {not_older(spec)} THEN UPDATE SET *"
        settings = {
            APPLICATION: identity.application,
            VERSION: str(identity.batch_id),
            METADATA: identity.to_json(),
            MERGE_SCHEMA: str(spec.evolution is not Evolution.NONE).lower(),
        }
        if spec.evolution is Evolution.NONE:
            self._same_columns(batch, table)
        for name, value in settings.items():
            spark.conf.set(name, value)
        try:
            spark.sql(
                f"MERGE INTO {delta_name(spark, self._path)} t USING {view} s ON {same} "
                f"{'' if self._place else newer} WHEN NOT MATCHED THEN INSERT *"
            )
        finally:
            for name in settings:
                spark.conf.unset(name)
            spark.catalog.dropTempView(view)

    def _types(self, batch: Any, table: Any) -> None:
        """SinkError for a type that the table's column cannot hold: MERGE would cut 1.5 to 1 silently. If the sink may widen
        types, the table gets the permission here; Delta widens in the batch's own commit."""
        wider, other = changed(table, batch.schema)
        if self._spec.evolution is not Evolution.MERGE:
            wider, other = [], other + wider
        if other:
            raise SinkError(
                f"The rows of sink {self._spec.name} have other types than the columns of the table {self._path}: "
                f"{', '.join(other)}. Cast them in a transform, say schema_evolution: merge if they only grew wider, or give the "
                "sink a new path. Nothing of this batch is in the table."
            )
        if wider:
            name = delta_name(self._spark, self._path)
            if str(self._spark.sql(f"SHOW TBLPROPERTIES {name} ('{WIDENING}')").first()[1]).lower() != "true":
                self._spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('{WIDENING}' = 'true')")

    def _same_columns(self, batch: Any, table: Any) -> None:
        """SinkError for columns that the table lacks: MERGE would drop them silently."""
        known = {name.lower() for name in table.names}
        more = [name for name in batch.columns if name.lower() not in known]
        if more:
            raise _Lacking(f"columns {', '.join(more)} are not in the table")

    def _exists(self) -> bool:
        return bool(self._spark._jvm.io.delta.tables.DeltaTable.isDeltaTable(self._spark._jsparkSession, self._path))

    def _remembered(self) -> BatchIdentity | None:
        if not self._exists():
            return None
        for limit in (SOME_HISTORY, None):
            history = self._spark.sql(
                f"DESCRIBE HISTORY {delta_name(self._spark, self._path)}" + (f" LIMIT {limit}" if limit else "")
            )
            for row in (
                history.where("userMetadata is not null").orderBy("version", ascending=False).select("userMetadata").collect()
            ):
                found = BatchIdentity.from_json(row[0])
                if found is not None and (found.pipeline, found.sink) == (self._pipeline, self._spec.name):
                    return found
        return None

    def _explained(self, error: Exception) -> Exception:
        text = str(error)
        name = self._spec.name
        if isinstance(error, SinkError) and not isinstance(error, _Lacking):
            return error
        if (
            isinstance(error, _Lacking)
            or "DELTA_METADATA_MISMATCH" in text
            or "mergeSchema" in text
            or "A schema mismatch" in text
        ):
            return SinkError(
                f"The rows of sink {name} have columns that the table {self._path} does not have in this form: "
                f"{_columns(error, text)}. Say schema_evolution: add (new columns) or merge (wider types too) for this sink, or "
                "leave them out in a transform. Nothing of this batch is in the table."
            )
        if "DELTA_FAILED_TO_MERGE_FIELDS" in text or "DELTA_MERGE_INCOMPATIBLE_DATATYPE" in text:
            first = text.split("\n", maxsplit=1)[0][:300]
            return SinkError(
                f"A column of sink {name} has another type than in the table {self._path}: {first} Cast it in a transform, say "
                "schema_evolution: merge if it only grew wider, or give the sink a new path."
            )
        if "ConcurrentTransactionException" in text or "DELTA_CONCURRENT_TRANSACTION" in text:
            return SinkError(
                f"Another process wrote batch numbers of this pipeline into {self._path} at the same time: stop one of the two."
            )
        return error


def _columns(error: Exception, text: str) -> str:
    if isinstance(error, SinkError):
        return str(error)
    table, _, rest = text.partition("Data schema:")
    known = {line.split("--")[-1].split(":")[0].strip() for line in table.split("\n") if "-- " in line}
    more = [line.split("-- ")[-1].split(" (")[0] for line in rest.split("\n") if "-- " in line]
    new = [column for column in more if column.split(":")[0].strip() not in known]
    return ", ".join(new) or text.split("\n", maxsplit=1)[0][:200]


def same_place(place: tuple[str, ...], unplaced: str, known: frozenset[str]) -> str:
    """Whether a row (s) is one of the table's (t), as SQL: by its place, or by ``unplaced`` where the place has a NULL.

    ``known``: the table's columns; others are NULL in its rows.
    """
    placed = " AND ".join(f"{f't.`{key}`' if key in known else 'NULL'} = s.`{key}`" for key in place)
    return f"(({placed}) OR (({placed}) IS NULL AND t.`{unplaced}` <=> s.`{unplaced}`))"


def not_older(spec: SinkSpec) -> str:
    """Whether a row (s) may replace the table's (t), as SQL. An older record may come later: by a replay, or late by its own
    order."""
    order = spec.order_by or "_offset"
    return f"(t.`{order}` IS NULL OR s.`{order}` >= t.`{order}`)"


def newest_by_key(batch: Any, spec: SinkSpec) -> Any:
    """The newest row of each key: by ``order_by``, else by the record's offset, which orders the records of a key."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    order = spec.order_by or "_offset"
    if order not in batch.columns:
        raise SinkError(
            f"The sink {spec.name} upserts, and its rows have no column {order}: say order_by, the column that tells which of "
            "two rows with one key is newer, or keep _offset in the transform."
        )
    window = Window.partitionBy(*(f"`{key}`" for key in spec.keys)).orderBy(  # A name may contain a dot.
        *(F.col(f"`{name}`").desc() for name in dict.fromkeys([order, "_offset"]) if name in batch.columns)
    )
    numbered = batch.withColumn("_tidelog_rank", F.row_number().over(window))
    return numbered.where("_tidelog_rank = 1").drop("_tidelog_rank")
