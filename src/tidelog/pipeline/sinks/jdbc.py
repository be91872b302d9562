"""Rows into a table of a database, by Spark's JDBC writer and one transaction of the driver (``sql_publishing`` has the steps).

The database needs transactions; ``spark: {jars.packages: ...}`` brings its driver's jar. A missing table is created from the rows
of the first batch. Staging tables are called ``tidelog_<application>_<random>`` and are beside the table.

Name: ``jdbc``. Options: ``url``, ``driver`` (a class), ``table``, ``user``, ``password``. Example::

    sinks:
      fares: {type: jdbc, from: silver, url: "jdbc:postgresql://db/rides", driver: org.postgresql.Driver, table: fares}
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tidelog.pipeline.model import Evolution, Mode, PipelineModel, SinkSpec
from tidelog.pipeline.sinks import sql_publishing
from tidelog.pipeline.sinks.base import BatchIdentity, SinkError, is_there
from tidelog.pipeline.sinks.delta import newest_by_key
from tidelog.pipeline.sinks.jdbc_connection import JvmConnection, connect, long_text, quoted
from tidelog.pipeline.sinks.sql_publishing import StageTorn, Target

ATTEMPTS = 3
"""How often a staging table is filled again after a task filled a part of it twice."""
_TABLE = re.compile(r"\w+(\.\w+){0,2}")


def make(spec: SinkSpec, pipeline: PipelineModel) -> JdbcSink:
    return JdbcSink(spec, pipeline.name)


class JdbcSink:
    """One table."""

    remembers = True

    def __init__(self, spec: SinkSpec, pipeline: str) -> None:
        self._spec = spec
        self._table = spec.option("table")
        self._application = BatchIdentity(pipeline, spec.name, 0, ()).application
        self._spark: Any = None
        self._last: BatchIdentity | None = None

    def check(self, spark: Any) -> None:
        """Check that the driver's class is there and the database answers, and read the newest batch."""
        spec = self._spec
        if not _TABLE.fullmatch(self._table):
            raise SinkError(f"The sink {spec.name} has table: {self._table!r}, and it must be a name, or schema.name.")
        if spec.partition_by or spec.evolution is not Evolution.NONE:
            raise SinkError(
                f"The sink {spec.name} has partition_by or schema_evolution, which a database decides by itself: leave them out, "
                "and change the table with ALTER TABLE."
            )
        self._spark = spark
        with self._connected() as connection:
            sql_publishing.create_batches(connection, long_text(spark, spec.option("url")))
            self._last = sql_publishing.known(connection, self._application).last

    def last_committed(self) -> BatchIdentity | None:
        """From the database."""
        return self._last

    def committed(self, identity: BatchIdentity) -> bool:
        """Whether the table has this batch. SinkError when its number is there with other offsets."""
        return is_there(self._last, identity, f"The table {self._table}")

    def write(self, batch: Any, identity: BatchIdentity) -> None:
        with self._connected() as connection:
            # Asked again: a commit whose answer was lost may have succeeded.
            self._last = sql_publishing.known(connection, identity.application).last
            if self.committed(identity):
                return
            rows = newest_by_key(batch, self._spec) if self._spec.mode is Mode.UPSERT else batch
            rows = rows.persist()
            try:
                self._publish(connection, rows, identity)
            finally:
                rows.unpersist()
            self._last = identity

    def _publish(self, connection: JvmConnection, rows: Any, identity: BatchIdentity) -> None:
        count = int(rows.count())
        if not sql_publishing.exists(connection, self._table):
            self._writer(rows.limit(0), self._table).save()
        target = self._target(rows)
        for attempt in range(1, ATTEMPTS + 1):
            stage = self._stage_name()
            sql_publishing.begin(connection, identity.application, stage)
            self._writer(rows.toDF(*self._names(rows)), stage).save()
            try:
                sql_publishing.publish(connection, target, stage, count, identity)
            except StageTorn:
                if attempt == ATTEMPTS:
                    raise
                continue
            sql_publishing.drop(connection, stage)
            return

    def _names(self, rows: Any) -> list[str]:
        """The rows' columns in the table's spelling. SinkError for a column that the table lacks."""
        there = {name.lower(): name for name in self._reader(self._table).load().columns}
        lacking = [name for name in rows.columns if name.lower() not in there]
        if lacking:
            raise SinkError(
                f"The rows of sink {self._spec.name} have columns that the table {self._table} lacks: {', '.join(lacking)}. Add "
                "them with ALTER TABLE, or leave them out in a transform. Nothing of this batch was written."
            )
        return [there[name.lower()] for name in rows.columns]

    def _target(self, rows: Any) -> Target:
        spec, quote = self._spec, quoted(self._spark, self._spec.option("url"))
        spelled = dict(zip(rows.columns, self._names(rows), strict=True))
        columns = tuple(quote(name) for name in spelled.values())
        if spec.mode is not Mode.UPSERT:
            return Target(self._table, columns)
        keys = tuple(quote(spelled[key]) for key in spec.keys)
        return Target(self._table, columns, keys, quote(spelled[spec.order_by or "_offset"]))

    def _stage_name(self) -> str:
        schema, dot, _ = self._table.rpartition(".")
        return f"{schema}{dot}tidelog_{hashlib.sha256(self._application.encode()).hexdigest()[:8]}_{secrets.token_hex(4)}"

    def _options(self, table: str) -> dict[str, str]:
        names = ("url", "driver", "user", "password")
        return {name: self._spec.option(name) for name in names if self._spec.option(name)} | {"dbtable": table}

    def _writer(self, rows: Any, table: str) -> Any:
        return rows.write.format("jdbc").mode("append").options(**self._options(table))

    def _reader(self, table: str) -> Any:
        return self._spark.read.format("jdbc").options(**self._options(table))

    @contextmanager
    def _connected(self) -> Iterator[JvmConnection]:
        connection = connect(self._spark, self._spec.name, self._options(self._table))
        try:
            yield connection
        finally:
            connection.close()
