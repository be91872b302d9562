"""Rows into an Iceberg table, a batch in one snapshot, on PySpark 4.1 (Iceberg 1.12 has no release for later ones).

Iceberg's append retries on top of other commits, so two drivers that both checked first would both land a batch. Therefore
a batch is staged before it is published (write-audit-publish): rows become a snapshot that is in no branch, with the batch in
its summary and ``wap.id`` = application and number; publishing it is one atomic commit, in which Iceberg refuses a ``wap.id``
that was published before. What a dead driver staged is invisible, and ``expire_snapshots`` removes it. The newest batch is read
from the table's snapshots; if another writer committed in between, publishing makes a snapshot without the summary, so the
batch is in a table property too. ``expire_snapshots`` must keep snapshots for longer than a pipeline may be down.

Name: ``iceberg``. Options: ``table`` (catalog.namespace.name; the catalog is declared by ``spark.sql.catalog.*`` under
``spark:``). Example::

    sinks:
      lake: {kind: iceberg, table: lake.rides.orders, mode: append, partition_by: [day(event_time)]}
"""

from __future__ import annotations

import json
import secrets
from typing import Any

from tidelog.pipeline.lake.landed import Progress, Verdict, judge
from tidelog.pipeline.model import Evolution, Mode, PipelineModel, SinkSpec
from tidelog.pipeline.sinks.base import RECORD, BatchIdentity, SinkError
from tidelog.pipeline.sinks.partitions import partition_columns
from tidelog.pipeline.sinks.widening import added, changed, grown

JARS = {(4, 1): "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"}
SETTINGS = {"spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"}
INSTALL = "pip install 'pyspark==4.1.3'"
WAP_ID = "spark.wap.id"
PROGRESS = "tidelog-progress"
ATTEMPT = "tidelog-attempt"
_PROPERTIES = "spark.sql.iceberg.snapshot-property."
_TRANSFORMS = {"year": "years", "month": "months", "day": "days", "hour": "hours"}


def make(spec: SinkSpec, pipeline: PipelineModel) -> IcebergSink:
    return IcebergSink(spec, pipeline.name)


class IcebergSink:
    """One table of a catalog of the Spark session."""

    remembers = True

    def __init__(self, spec: SinkSpec, pipeline: str) -> None:
        self._spec = spec
        self._table = spec.option("table")
        self._application = BatchIdentity(pipeline, spec.name, 0, ()).application
        self._parts = partition_columns(spec.partition_by)
        self._spark: Any = None

    def check(self, spark: Any) -> None:
        """Check that the versions fit, Iceberg's classes and the catalog are there, and snapshots of the table can be staged."""
        version = tuple(int(part) for part in spark.version.split(".")[:2])
        if version not in JARS:
            raise SinkError(
                f"The sink {self._spec.name} writes Iceberg, which has no release for PySpark {spark.version}: {INSTALL}. Or use "
                "the bulk lane, which writes Iceberg tables from any PySpark."
            )
        catalog = self._table.split(".", maxsplit=1)[0]
        if self._table.count(".") < 2 or spark.conf.get(f"spark.sql.catalog.{catalog}", "") == "":
            raise SinkError(
                f"The sink {self._spec.name} names the table {self._table!r}, and it must be catalog.namespace.name, with a "
                "catalog "
                f"that the session knows: set spark.sql.catalog.{catalog} = org.apache.iceberg.spark.SparkCatalog and its type."
            )
        if "IcebergSparkSessionExtensions" not in spark.conf.get("spark.sql.extensions", ""):
            raise SinkError(
                f"The sink {self._spec.name} writes Iceberg, and this Spark session has no Iceberg: let "
                f"`tidelog pipeline run` make the session, or set spark.jars.packages={JARS[version]} and "
                f"spark.sql.extensions={SETTINGS['spark.sql.extensions']}."
            )
        self._spark = spark
        if self._exists():
            self._stageable()
            self._keep(self._progress())

    def last_committed(self) -> BatchIdentity | None:
        """From the table's snapshots."""
        return self._progress().last

    def committed(self, identity: BatchIdentity) -> bool:
        return judge(self._progress(), identity) is Verdict.LANDED

    def write(self, batch: Any, identity: BatchIdentity) -> None:
        self._spark = batch.sparkSession
        if not self._exists():
            self._create(batch)
        progress = self._progress()
        if judge(progress, identity) is Verdict.LANDED:
            return
        self._fit(batch.schema)
        staged = self._stage(batch, identity, progress.after(identity))
        try:
            published = self._call("cherrypick_snapshot", f"{staged}L")[0]["current_snapshot_id"]
        except Exception as error:
            if "DuplicateWAPCommit" not in str(error):
                raise
            if not self.committed(identity):  # Raises when other offsets landed under this number.
                raise SinkError(
                    f"{self._table}: batch {identity.batch_id} was published, but the table does not have it."
                ) from error
            return
        if published != staged:
            self._keep(progress.after(identity))

    def _fit(self, rows: Any) -> None:
        """SinkError for columns that the table may not get, and for types that it cannot hold: Spark would drop the columns
        and cut the values (1.5 to 1) silently. An append adds new columns itself; MERGE cannot, so the table gets them first."""
        spec, table = self._spec, self._spark.table(self._table).schema
        wider, other = changed(table, rows)
        if spec.evolution is not Evolution.MERGE:
            other += wider
        new = added(table, rows)
        if spec.evolution is Evolution.NONE:
            other += [f"{'.'.join(path)} ({kind} in the rows, not in the table)" for path, kind in new]
        if other:
            raise SinkError(
                f"The rows of sink {spec.name} do not fit the table {self._table}: {', '.join(other)}. Say schema_evolution: add "
                "(new columns) or merge (wider types too) for this sink, cast them or leave them out in a transform. Nothing of "
                "this batch is in the table."
            )
        if spec.mode is Mode.UPSERT:
            alter = f"ALTER TABLE {self._table}"
            for path, kind in new:
                self._spark.sql(f"{alter} ADD COLUMNS ({_quoted(path)} {kind})")
            for path, kind in grown(table, rows):
                self._spark.sql(f"{alter} ALTER COLUMN {_quoted(path)} TYPE {kind}")

    def _stage(self, batch: Any, identity: BatchIdentity, after: Progress) -> int:
        """Write the rows into a snapshot that is in no branch; its id."""
        attempt = secrets.token_hex(8)
        properties = {RECORD: identity.to_json(), PROGRESS: json.dumps(after.to_json()), ATTEMPT: attempt}
        spark = self._spark
        spark.conf.set(WAP_ID, f"{identity.application}:{identity.batch_id}")
        try:
            if self._spec.mode is Mode.UPSERT:
                self._merge(batch, properties)
            else:
                writer = batch.writeTo(self._table)
                for name, text in properties.items():
                    writer = writer.option(f"snapshot-property.{name}", text)
                if self._spec.evolution is not Evolution.NONE:
                    writer = writer.option("mergeSchema", "true")
                writer.append()
        finally:
            spark.conf.unset(WAP_ID)
        mine = f"summary['{ATTEMPT}'] = '{attempt}'"
        return int(spark.sql(f"SELECT snapshot_id FROM {self._table}.snapshots WHERE {mine}").collect()[0][0])

    def _merge(self, batch: Any, properties: dict[str, str]) -> None:
        from tidelog.pipeline.sinks.delta import newest_by_key, not_older

        spark, spec = self._spark, self._spec
        view = f"tidelog_upsert_{spec.name}"
        rows = newest_by_key(batch, spec)
        rows.createOrReplaceTempView(view)
        same = " AND ".join(f"t.`{key}` <=> s.`{key}`" for key in spec.keys)
        for name, text in properties.items():
            spark.conf.set(_PROPERTIES + name, text)
        try:
            spark.sql(
                f"MERGE INTO {self._table} t USING {view} s ON {same} "
                f"WHEN MATCHED AND {not_older(spec)} THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
            )
        finally:
            for name in properties:
                spark.conf.unset(_PROPERTIES + name)
            spark.catalog.dropTempView(view)

    def _create(self, batch: Any) -> None:
        from pyspark.sql import functions as F

        parts = [getattr(F, _TRANSFORMS[part.unit])(part.source) if part.unit else F.col(part.source) for part in self._parts]
        writer = batch.limit(0).writeTo(self._table).using("iceberg").tableProperty("format-version", "2")
        for name, value in self._properties().items():
            writer = writer.tableProperty(name, value)
        if parts:
            writer = writer.partitionedBy(*parts)
        writer.create()

    def _properties(self) -> dict[str, str]:
        wanted = {"write.wap.enabled": "true"}
        if self._spec.mode is Mode.UPSERT:  # In a table that accepts any schema, MERGE finds no columns.
            return wanted | {"write.spark.accept-any-schema": "false"}
        return wanted if self._spec.evolution is Evolution.NONE else wanted | {"write.spark.accept-any-schema": "true"}

    def _stageable(self) -> None:
        there = self._table_properties()
        missing = {name: value for name, value in self._properties().items() if there.get(name) != value}
        if missing:
            self._set(missing)

    def _exists(self) -> bool:
        return bool(self._spark.catalog.tableExists(self._table))

    def _table_properties(self) -> dict[str, str]:
        return {row[0]: row[1] for row in self._spark.sql(f"SHOW TBLPROPERTIES {self._table}").collect()}

    def _set(self, properties: dict[str, str]) -> None:
        said = ", ".join(f"'{name}' = {json.dumps(value)}" for name, value in properties.items())
        self._spark.sql(f"ALTER TABLE {self._table} SET TBLPROPERTIES ({said})")

    def _keep(self, progress: Progress) -> None:
        """Store it outside of the snapshots too: snapshots of other writers may push ours out."""
        if progress.batch_id >= 0:
            self._set({f"{PROGRESS}.{self._application}": json.dumps(progress.to_json())})

    def _progress(self) -> Progress:
        """The newest batch among the table's own snapshots and properties."""
        if not self._exists():
            return Progress()
        # Each session caches loaded tables for half a minute, and batches are written in another session.
        self._spark.catalog.refreshTable(self._table)
        rows = self._spark.sql(f"SELECT snapshot_id, parent_id, summary FROM {self._table}.snapshots").collect()
        heads = self._spark.sql(f"SELECT snapshot_id FROM {self._table}.refs WHERE name = 'main'").collect()
        kept = self._table_properties().get(f"{PROGRESS}.{self._application}")
        return newest(rows, heads[0][0] if heads else None, self._application, kept)

    def _call(self, procedure: str, argument: str) -> Any:
        catalog, _, name = self._table.partition(".")
        return self._spark.sql(f"CALL {catalog}.system.{procedure}('{name}', {argument})").collect()


def newest(rows: list[Any], head: int | None, application: str, kept: str | None) -> Progress:
    """The newest batch of an application in the published snapshots. ``rows``: all (snapshot_id, parent_id, summary);
    ``head``: main's."""
    by_id = {row[0]: row for row in rows}
    found = Progress() if kept is None else Progress.from_json(json.loads(kept))
    at = by_id.get(head)
    while at is not None:
        summary = at[2]
        wap = summary.get("published-wap-id") or summary.get("wap.id") or ""
        name, _, number = wap.rpartition(":")
        if name == application and number.isdecimal():
            if int(number) <= found.batch_id:
                return found
            said = summary.get(PROGRESS)
            source = by_id.get(int(summary.get("source-snapshot-id") or -1))
            if said is None and source is not None:
                said = source[2].get(PROGRESS)
            if said is None:
                raise SinkError(
                    f"Batch {number} of {application} is in the table, and the snapshot that says which offsets it had was "
                    "expired. "
                    "Look where the rows end, and give the pipeline another name and those offsets to start from."
                )
            return Progress.from_json(json.loads(said))
        at = by_id.get(at[1])
    return found


def _quoted(path: tuple[str, ...]) -> str:
    return ".".join("`" + name.replace("`", "``") + "`" for name in path)
