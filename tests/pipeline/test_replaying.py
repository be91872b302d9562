"""Dead letters after a fix, and records that a table lacks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="the extra pipeline is not installed")

from tests.pipeline.test_run import RIDES, ride
from tests.pipeline.world import Lake
from tidelog.pipeline.backfilling import Backfilled, backfill
from tidelog.pipeline.compacting import compact
from tidelog.pipeline.replaying import Replayed, replay
from tidelog.pipeline.sinks.delta import DeltaSink
from tidelog.testing import Broker


def test_letters_that_are_good_now_land_once_also_over_a_crash(
    spark: Any, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create_topic("rides", 1)
    lake = Lake(spark, broker.bootstrap_servers, tmp_path, RIDES)
    broker.produce("rides", ride("a", 1), ("b", '{"id": "b", "fare": 2, "tip": 1}'), ("x", "garbage"))
    lake.run()
    garbage = "value: it is not JSON: expecting value at byte 0"
    extra = "value: the schema has no field tip: add it to the schema of the source"
    assert replay(lake.model(), spark) == [Replayed("rides", 0, {garbage: 1, extra: 1})]
    # The fix: the schema gets the field, the table the column.
    lake.change("fare double", "fare double, tip double")
    lake.change("partition_by: day(_timestamp)", "partition_by: day(_timestamp), schema_evolution: add")
    write = DeltaSink.write

    def dies(self: DeltaSink, batch: Any, identity: Any) -> None:
        if identity.sink == "replay.silver":
            raise RuntimeError("killed here")
        write(self, batch, identity)

    monkeypatch.setattr(DeltaSink, "write", dies)
    with pytest.raises(RuntimeError, match="killed here"):
        replay(lake.model(), spark)
    monkeypatch.setattr(DeltaSink, "write", write)
    assert replay(lake.model(), spark) == [Replayed("rides", 1, {garbage: 1})]
    assert lake.values("bronze", "id", "_offset") == [("a", 0), ("b", 1)]
    assert lake.values("silver", "id") == ["a", "b"]
    assert [bytes(row.value) for row in lake.table("dead").collect()] == [b"garbage"]


def test_a_letter_that_fails_for_another_reason_now_says_that_one(spark: Any, broker: Broker, tmp_path: Path) -> None:
    broker.create_topic("rides", 1)
    lake = Lake(spark, broker.bootstrap_servers, tmp_path, RIDES)
    broker.produce("rides", ("b", '{"id": "b", "fare": 2, "tip": "no"}'), ("b", '{"fare": 2, "tip": 1}'), ("x", '{"id": "x"'))
    lake.run()
    lake.change("fare double", "fare double, tip double")
    (found,) = replay(lake.model(), spark)
    reasons = {
        "value: it is not JSON: expecting ',' delimiter at byte 10": 1,
        "value: the field id is missing": 1,
        "value: the field tip is no double: no": 1,
    }
    assert (found.landed, found.left, found.reasons) == (0, 3, reasons)
    assert sorted(row.error for row in lake.table("dead").collect()) == sorted(reasons)
    before = spark.sql(f"DESCRIBE HISTORY delta.`{tmp_path / 'dead'}`").count()
    replay(lake.model(), spark)
    assert spark.sql(f"DESCRIBE HISTORY delta.`{tmp_path / 'dead'}`").count() == before


def test_a_backfill_quarantines_no_row_a_second_time(spark: Any, broker: Broker, tmp_path: Path) -> None:
    broker.create_topic("rides", 1)
    lake = Lake(spark, broker.bootstrap_servers, tmp_path, RIDES)
    broker.produce("rides", ride("a", -1), ride("b", 2), ride("a", -1), ride("c", -3))
    lake.run()
    rows = [("silver", 0), ("silver", 2), ("silver", 3)]
    assert lake.values("quarantine", "transform", "offset") == rows
    spark.sql(f"DELETE FROM delta.`{tmp_path / 'quarantine'}` WHERE offset = 3")
    for _ in range(2):
        list(backfill(lake.model(), spark, 0, None))
        assert lake.values("quarantine", "transform", "offset") == rows
    # A table of an older version: without a place rows are told apart by what is in them.
    spark.sql(f"ALTER TABLE delta.`{tmp_path / 'quarantine'}` SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    spark.sql(f"ALTER TABLE delta.`{tmp_path / 'quarantine'}` DROP COLUMNS (topic, partition, offset)")
    list(backfill(lake.model(), spark, 0, None))
    assert lake.values("quarantine", "transform") == ["silver"] * 3


def test_a_backfill_puts_in_what_is_missing_and_nothing_twice(spark: Any, broker: Broker, tmp_path: Path) -> None:
    broker.create_topic("rides", 1)
    lake = Lake(spark, broker.bootstrap_servers, tmp_path, RIDES)
    broker.produce("rides", ride("a", 1), ride("b", 2), ("x", "garbage"))
    lake.run()
    for table in ("bronze", "silver"):
        spark.sql(f"DELETE FROM delta.`{tmp_path / table}` WHERE id = 'a'")
    for _ in range(2):
        assert list(backfill(lake.model(), spark, 0, None)) == [Backfilled("rides", 3, ())]
        broker.produce("rides", ride("c", 3))  # the run has not come to these: they are left to it
    assert lake.values("bronze", "id", "_offset") == [("a", 0), ("b", 1)]
    assert lake.values("silver", "id", "fare") == [("a", 1.0), ("b", 2.0)]
    assert lake.table("dead").count() == 1
    # The live run knows its own batches still.
    lake.run()
    assert lake.values("bronze", "id") == ["a", "b", "c", "c"]
    assert [found.sink for found in compact(lake.model(), lambda: spark)] == ["bronze", "silver", "dead_letters"]
    lake.run()
    assert lake.values("bronze", "id") == ["a", "b", "c", "c"]
