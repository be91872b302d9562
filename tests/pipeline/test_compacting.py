"""`pipeline compact` for plain tables that Spark wrote: the same rows, and Spark reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="the extra pipeline is not installed")

from tests.pipeline.world import Lake
from tidelog.pipeline.compacting import Compacted, compact
from tidelog.pipeline.failures import PipelineFailure
from tidelog.pipeline.lake.reading import read_table
from tidelog.testing import Broker

RIDES = """\
pipeline: rides
kafka: {bootstrap.servers: "BOOTSTRAP"}
checkpoint: FOLDER/checkpoints
sources:
  rides: {topics: [rides], value: text}
transforms:
  rides:
    from: raw
    sql: SELECT value, _timestamp AS at, named_struct('at', array(_timestamp)) AS deep, _offset % 2 AS odd FROM raw
sinks:
  rides: {type: parquet, from: rides, path: FOLDER/rides, partition_by: [odd], schema_evolution: add}
""".replace("  rides: {topics", "  raw: {topics")


def test_rows_stay_the_same_and_the_pipeline_goes_on(spark: Any, broker: Broker, tmp_path: Path) -> None:
    broker.create_topic("rides", 1)
    lake = Lake(spark, broker.bootstrap_servers, tmp_path, RIDES)
    for number in range(2):
        broker.produce("rides", *[("key", f"value {number} {each}") for each in range(4)])
        lake.run()
    table = str(tmp_path / "rides")
    before = sorted(tuple(row) for row in read_table(spark, table).collect())
    assert len(before) == 8

    def no_session() -> Any:
        raise AssertionError("plain tables need no Spark")

    assert list(compact(lake.model(), no_session, retain_hours=168)) == [Compacted("rides", 4, 2, 0)]
    assert sorted(tuple(row) for row in read_table(spark, table).collect()) == before
    broker.produce("rides", ("key", "one more"))
    assert lake.run().records == 1
    assert read_table(spark, table).count() == 9


def test_a_pipeline_without_such_tables_is_told(tmp_path: Path) -> None:
    lake = Lake(
        None,
        "localhost:1",
        tmp_path,
        RIDES.replace("type: parquet, from: rides, path: FOLDER/rides", "type: console, from: rides"),
    )
    lake.change(", partition_by: [odd], schema_evolution: add", "")
    with pytest.raises(PipelineFailure, match="rides has no table to compact here"):
        list(compact(lake.model(), lambda: None))
