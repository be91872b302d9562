"""`pipeline preview`: what the newest records become, and nothing that is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="the extra pipeline is not installed")

from tests.pipeline.world import Lake
from tidelog.pipeline.previewing import preview
from tidelog.testing import Broker

RIDES = """\
pipeline: rides
kafka: {bootstrap.servers: "BOOTSTRAP"}
checkpoint: FOLDER/checkpoints
sources:
  rides:
    topics: [rides]
    value: {format: json, schema: "id string not null, fare double, at timestamp"}
transforms:
  silver:
    from: rides
    sql: SELECT id, fare, at FROM rides
    expect:
      positive: {check: fare >= 0, otherwise: fail}
  hours:
    from: silver
    watermark: at 1 hour
    dedupe: [id]
    sql: SELECT id, at, fare * 2 AS twice FROM silver
sinks:
  silver: {type: delta, from: silver, path: FOLDER/silver}
  hours: {type: delta, from: hours, path: FOLDER/hours}
dead_letters: {type: delta, path: FOLDER/dead}
"""


def test_rows_are_shown_after_each_transform_and_nothing_is_written(spark: Any, tmp_path: Path) -> None:
    with Broker() as broker:
        broker.create_topic("rides", 2)
        rides = [{"id": f"r{n % 4}", "fare": n - 1.0, "at": f"2026-01-01T0{n}:00:00"} for n in range(8)]
        for n, ride in enumerate(rides):
            broker.produce("rides", json.dumps(ride).encode(), partition=n % 2)
        broker.produce("rides", b'{"id": ', partition=0)
        lake = Lake(spark, broker.bootstrap_servers, tmp_path, RIDES)
        found = {each.name: (each.rows.collect(), each.problems) for each in preview(lake.model(), spark, 100)}
        groups = broker.groups()
    rows, problems = found["rides"]
    assert len(rows) == 8
    assert problems[0] == "1 records cannot be decoded:"
    rows, problems = found["silver"]
    assert sorted(row.fare for row in rows) == [float(n) for n in range(7)]
    assert problems == ("1 rows break the rule positive (otherwise: fail)",)
    assert sorted(row.id for row in found["hours"][0]) == ["r0", "r1", "r2", "r3"]
    assert list(tmp_path.iterdir()) == []
    assert not groups


def test_only_the_newest_records_are_read(spark: Any, tmp_path: Path) -> None:
    with Broker() as broker:
        broker.create_topic("rides", 1)
        for n in range(20):
            broker.produce("rides", json.dumps({"id": str(n), "fare": 1.0, "at": "2026-01-01T00:00:00"}).encode())
        lake = Lake(spark, broker.bootstrap_servers, tmp_path, RIDES)
        rides = next(iter(preview(lake.model(), spark, 5)))
        assert [row._offset for row in rides.rows.collect()] == [15, 16, 17, 18, 19]
