"""Rows into a database, once: appended and by key, in a real one (H2) inside Spark's JVM."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="the extra pipeline is not installed")

from tests.pipeline.world import Lake
from tidelog.pipeline.failures import PipelineFailure
from tidelog.pipeline.sinks.base import SinkError
from tidelog.pipeline.sinks.jdbc_connection import JvmConnection, connect
from tidelog.testing import Broker

DRIVER = "org.h2.Driver"
FARES = """\
pipeline: fares
kafka: {bootstrap.servers: "BOOTSTRAP"}
checkpoint: FOLDER/checkpoints
sources:
  rides: {topics: [rides], value: {format: json, schema: "id string, fare double"}, on_error: drop}
transforms:
  fares: {from: rides, sql: "SELECT id, fare, _offset FROM rides"}
sinks:
  every: {type: jdbc, from: fares, url: "jdbc:h2:FOLDER/db", driver: org.h2.Driver, table: every_fare}
  newest:
    {type: jdbc, from: fares, mode: upsert, keys: [id], url: "jdbc:h2:FOLDER/db", driver: org.h2.Driver, table: public.newest}
"""


def ride(name: str, fare: float) -> tuple[str, str]:
    return name, f'{{"id": "{name}", "fare": {fare}}}'


def database(spark: Any, folder: Path) -> JvmConnection:
    return connect(spark, "test", {"url": f"jdbc:h2:{folder}/db", "driver": DRIVER})


def test_rows_are_in_a_database_once_though_a_batch_is_run_again_and_the_checkpoint_is_lost(
    spark: Any, broker: Broker, tmp_path: Path
) -> None:
    broker.create_topic("rides", 1)
    # A table that somebody made, with columns as H2 spells them.
    held = database(spark, tmp_path)
    held.execute("CREATE TABLE newest (id VARCHAR(20) PRIMARY KEY, fare DOUBLE PRECISION, _offset BIGINT, note VARCHAR(20))")
    held.execute("INSERT INTO newest VALUES ('z', 1, 0, 'old')")
    held.commit()
    lake = Lake(spark, broker.bootstrap_servers, tmp_path, FARES)
    broker.produce("rides", ride("a", 1), ride("b", 2), ride("a", 3))
    assert lake.run().records == 3
    query = tmp_path / "checkpoints" / "source-rides"
    # Spark did not hear that the batch was written.
    for name in ("0", ".0.crc"):
        (query / "commits" / name).unlink(missing_ok=True)
    broker.produce("rides", ride("b", 4))
    lake.run()
    shutil.rmtree(query)
    (tmp_path / "checkpoints" / "source-rides.start.json").unlink()
    broker.produce("rides", ride("c", 5))
    assert lake.run().records == 1
    every = held.rows('SELECT "id", "fare" FROM every_fare ORDER BY "_offset"')
    assert every == [("a", "1.0"), ("b", "2.0"), ("a", "3.0"), ("b", "4.0"), ("c", "5.0")]
    newest = held.rows("SELECT id, fare, note FROM newest ORDER BY id")
    assert newest == [("a", "3.0", None), ("b", "4.0", None), ("c", "5.0", None), ("z", "1.0", "old")]
    stages = held.rows("SELECT table_name FROM information_schema.tables WHERE lower(table_name) LIKE 'tidelog!_%' ESCAPE '!'")
    assert stages == [("TIDELOG_BATCHES",)]
    held.execute("ALTER TABLE newest DROP COLUMN fare")
    held.commit()
    broker.produce("rides", ride("d", 6))
    with pytest.raises(PipelineFailure, match=r"columns that the table public.newest lacks: fare. Add them with ALTER TABLE"):
        lake.run()
    held.close()


def test_a_driver_that_is_not_there_is_told_with_what_to_say(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(SinkError, match=r"needs the JDBC driver org.nobody.Driver.*jars.packages"):
        connect(spark, "every", {"url": "jdbc:nobody:x", "driver": "org.nobody.Driver"})
    with pytest.raises(SinkError, match="does not know the URL jdbc:nobody:x"):
        connect(spark, "every", {"url": "jdbc:nobody:x", "driver": DRIVER})
