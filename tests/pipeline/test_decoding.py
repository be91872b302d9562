"""Decoding inside a running Spark: through a registry, with a schema that changes and a registry that goes away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="the extra pipeline is not installed")

from tests.pipeline.world import Lake
from tests.unit.pipeline.test_payloads import NEW, OLD, avro
from tests.unit.pipeline.test_registry import register
from tidelog.pipeline.failures import PipelineFailure
from tidelog.testing import Broker, SchemaRegistry

AVRO = """\
pipeline: avro
kafka: {bootstrap.servers: "BOOTSTRAP"}
registry: {url: "REGISTRY", timeout: 500ms}
checkpoint: FOLDER/checkpoints
sources:
  rides:
    topics: [rides]
    headers: true
    value: {format: avro, subject: rides-value}
sinks:
  rides: {type: delta, from: rides, path: FOLDER/rides}
dead_letters: {type: delta, path: FOLDER/dead}
"""


def test_a_schema_that_grows_stops_the_table_or_grows_it_and_a_registry_that_is_down_loses_nothing(
    spark: Any, broker: Broker, tmp_path: Path
) -> None:
    broker.create_topic("rides", 1)
    with SchemaRegistry() as registry:
        old = register(registry, "rides-value", OLD)
        lake = Lake(spark, broker.bootstrap_servers, tmp_path, AVRO.replace("REGISTRY", registry.url))
        broker.produce("rides", ("k", avro(OLD, {"id": "a"}, old)), ("k", avro(OLD, {"id": "b"}, 999)), ("k", b"\x00"))
        broker.produce("rides", None)
        assert lake.run().undecodable == 2
        assert sorted(lake.table("dead").toPandas().error) == [
            "value: 1 bytes are too few for the 5 of a registry's header",
            f"value: schema id 999 is not in the registry {registry.url}",
        ]
        assert [(row.id, row._offset) for row in lake.table("rides").orderBy("_offset").collect()] == [("a", 0), (None, 3)]
        # A producer has a schema with a new field.
        new = register(registry, "rides-value", NEW)
        broker.produce("rides", ("k", avro(NEW, {"id": "c", "tip": 3}, new)))
        with pytest.raises(PipelineFailure, match=r"does not have in this form: tip.*schema_evolution: add"):
            lake.run()
        lake.change("path: FOLDER/rides".replace("FOLDER", str(tmp_path)), f"path: {tmp_path}/rides, schema_evolution: add")
        lake.run()
        assert [(row.id, row.tip) for row in lake.table("rides").orderBy("_offset").collect()] == [
            ("a", None),
            (None, None),
            ("c", 3),
        ]
        broker.produce("rides", ("k", avro(NEW, {"id": "d", "tip": 4}, new)))
        url = registry.url
    with pytest.raises(PipelineFailure, match=f"schema registry {url} did not answer within 500 ms"):
        lake.run()
    assert lake.table("rides").count() == 3
    assert lake.table("dead").count() == 2


JSON = """\
pipeline: json
kafka: {bootstrap.servers: "BOOTSTRAP"}
checkpoint: FOLDER/checkpoints
sources:
  rides:
    topics: [rides]
    value: {format: json, schema: "`user.id` string, `at-time` struct<`the-hour`: int>, n double"}
transforms:
  good: {from: rides, sql: SELECT * FROM rides, expect: {known: {check: n IS NOT NULL, otherwise: quarantine}}}
sinks:
  rides: {type: delta, from: good, path: FOLDER/rides, mode: upsert, keys: [user.id]}
dead_letters: {type: delta, path: FOLDER/dead}
quarantine: {type: delta, path: FOLDER/quarantine}
"""


def test_fields_of_json_may_have_any_name(spark: Any, broker: Broker, tmp_path: Path) -> None:
    broker.create_topic("rides", 1)
    lake = Lake(spark, broker.bootstrap_servers, tmp_path, JSON)
    broker.produce("rides", '{"user.id": "a", "at-time": {"the-hour": 3}, "n": 1}', '{"user.id": "b"}')
    broker.produce("rides", '{"user.id": "a", "at-time": {"the-hour": 4}, "n": 2}')
    for _ in range(2):
        lake.run()
    assert [(row["user.id"], row["at-time"]["the-hour"], row.n) for row in lake.table("rides").collect()] == [("a", 4, 2.0)]
    assert [row.row[:15] for row in lake.table("quarantine").collect()] == ['{"user.id":"b",']


def test_what_is_behind_a_json_object_is_not_passed_over(spark: Any, broker: Broker, tmp_path: Path) -> None:
    broker.create_topic("rides", 1)
    lake = Lake(spark, broker.bootstrap_servers, tmp_path, JSON)
    broker.produce("rides", '{"user.id": "a", "n": NaN}', ' {"user.id": "b", "n": 1}\n')
    bad = ('{"n": 1}{"n": 2}', '{"n": 1}, {"n": 2}', '{"n": NaN} {"n": 2}', '{"n": 1} and more')
    broker.produce("rides", *bad)
    lake.run()
    assert lake.values("rides", "`user.id`") == ["a", "b"]
    letters = lake.table("dead").orderBy("offset").collect()
    assert [(bytes(row.value).decode(), row.error) for row in letters] == [
        (text, "value: there is more after its JSON object") for text in bad
    ]
