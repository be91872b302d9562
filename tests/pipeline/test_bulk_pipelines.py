"""Pipelines that say engine: bulk: rows land once as with Spark's engine, over the same accidents."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka.admin import AdminClient

pytest.importorskip("pyspark", reason="the extra pipeline is not installed")
pytest.importorskip("deltalake", reason="the extra delta is not installed")

from tests.pipeline import landed
from tests.pipeline.world import Lake
from tidelog.pipeline.failures import PipelineFailure
from tidelog.pipeline.status import rows_of
from tidelog.testing import Broker

LANDING = """\
pipeline: landing
engine: bulk
kafka: {bootstrap.servers: "BOOTSTRAP"}
checkpoint: FOLDER/checkpoints
sources:
  plain: {topics: [t]}
  delta: {topics: [t], headers: true}
sinks:
  plain: {type: parquet, from: plain, path: FOLDER/plain}
  delta: {type: delta, from: delta, path: FOLDER/delta, partition_by: [date]}
"""


def test_topics_land_once_though_a_checkpoint_is_lost_and_a_lost_table_is_refused(
    spark: Any, broker: Broker, tmp_path: Path
) -> None:
    broker.create_topic("t", 2)
    broker.produce("t", *[(f"key {i}", f"value {i}") for i in range(5)], partition=0)
    lake = Lake(spark, broker.bootstrap_servers, tmp_path, LANDING)
    assert lake.run().records == 10
    assert [line.split("  ")[:2] for line in sorted(lake.lines)] == [
        ["delta: batch 0", "5 records"],
        ["plain: batch 0", "5 records"],
    ]
    shutil.rmtree(tmp_path / "checkpoints" / "source-plain")
    (tmp_path / "checkpoints" / "source-plain.start.json").unlink()
    broker.produce("t", ("key 5", "value 5"), partition=1)
    assert lake.run().records == 2
    places = ["0:0", "0:1", "0:2", "0:3", "0:4", "1:0"]
    assert sorted(landed.places(landed.manifest_files(tmp_path / "plain"))) == places
    assert sorted(landed.places(landed.delta_files(tmp_path / "delta"))) == places
    rows = {(row["query"], row["partition"]): (row["offset"], row["lag"]) for row in rows_of(lake.model())}
    assert rows == {("plain", 0): (5, 0), ("plain", 1): (1, 0), ("delta", 0): (5, 0), ("delta", 1): (1, 0)}
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    (asked,) = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions("tidelog-pipeline-landing")]).values()
    assert {found.partition: found.offset for found in asked.result(30).topic_partitions} == {0: 5, 1: 1}
    shutil.rmtree(tmp_path / "plain")
    with pytest.raises(PipelineFailure, match=r"The sink plain has no batch of this pipeline.*--from-here plain"):
        lake.run()
