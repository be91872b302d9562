"""A Delta table and a checkpoint in HDFS: a cluster of two datanodes, and the Hadoop client that PySpark brings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="the extra pipeline is not installed")

from tests.pipeline.served import served
from tests.pipeline.world import Lake
from tidelog.testing import Broker

LANDING = """\
pipeline: landing
kafka: {bootstrap.servers: "BOOTSTRAP"}
checkpoint: HDFS/checkpoints
sources: {t: {topics: [t], value: text}}
sinks: {table: {type: delta, from: t, path: HDFS/table}}
"""


@pytest.fixture
def hdfs(tmp_path: Path) -> Iterator[str]:
    """Its URI."""
    with served("hadoop", tmp_path) as address:
        yield address


def test_rows_are_once_in_a_table_in_hdfs_also_after_its_checkpoint_there_is_lost(
    spark: Any, broker: Broker, hdfs: str, tmp_path: Path
) -> None:
    broker.create_topic("t", 1)
    broker.produce("t", *[("key", f"value {number}") for number in range(100)])
    lake = Lake(spark, broker.bootstrap_servers, tmp_path, LANDING.replace("HDFS", hdfs))
    assert lake.run().records == 100
    path = spark._jvm.org.apache.hadoop.fs.Path(f"{hdfs}/checkpoints")
    files = path.getFileSystem(spark._jsc.hadoopConfiguration())
    names = {status.getPath().getName() for status in files.listStatus(path)}
    assert names == {"source-t", "source-t.start.json"}
    files.delete(path, True)
    broker.produce("t", ("key", "value 100"))
    assert lake.run().records == 1
    rows = spark.read.format("delta").load(f"{hdfs}/table").select("_offset", "value").collect()
    assert sorted((row[0], row[1]) for row in rows) == [(number, f"value {number}") for number in range(101)]
