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
    assert replay(lake.model(), spark) == [Replayed("rides", 0, 2)]
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
    assert replay(lake.model(), spark) == [Replayed("rides", 1, 1)]
    assert lake.values("bronze", "id", "_offset") == [("a", 0), ("b", 1)]
    assert lake.values("silver", "id") == ["a", "b"]
    assert [bytes(row.value) for row in lake.table("dead").collect()] == [b"garbage"]


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
