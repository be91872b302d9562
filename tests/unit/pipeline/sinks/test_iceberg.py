"""What the Iceberg sink reads out of snapshots, and what must be there. With Iceberg itself: tests/spark/test_iceberg.py."""

from __future__ import annotations

import json
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="the extra spark is not installed")

from tidelog.pipeline.lake.landed import Progress
from tidelog.pipeline.model import Evolution, Mode, PipelineModel, SinkSpec
from tidelog.pipeline.sinks import delta
from tidelog.pipeline.sinks.base import BatchIdentity, OffsetRange, SinkError
from tidelog.pipeline.sinks.iceberg import PROGRESS, SETTINGS, make, newest

APPLICATION = "tidelog:p:lake"


def progress(number: int) -> Progress:
    found = Progress()
    for each in range(number + 1):
        found = found.after(BatchIdentity("p", "lake", each, (OffsetRange("t", "id", 0, each, each + 1),)))
    return found


def snapshot(number: int, parent: int | None, batch: int | None = None, **summary: str) -> tuple[int, int | None, dict[str, str]]:
    if batch is not None:
        summary = {"wap.id": f"{APPLICATION}:{batch}", PROGRESS: json.dumps(progress(batch).to_json()), **summary}
    return number, parent, summary


def test_only_published_snapshots_count() -> None:
    rows = [snapshot(1, None, 0), snapshot(2, 1, 1), snapshot(3, 1, 1), snapshot(4, 3)]  # 2 was staged by a driver that died
    assert newest(rows, 4, APPLICATION, None) == progress(1)
    assert newest(rows, 1, APPLICATION, None) == progress(0)
    assert newest(rows, None, APPLICATION, None) == Progress()
    assert newest(rows, 4, "tidelog:other:lake", None) == Progress()


def test_a_snapshot_published_over_another_writers_is_found_by_its_source() -> None:
    published = (4, 3, {"published-wap-id": f"{APPLICATION}:1", "source-snapshot-id": "2"})
    rows = [snapshot(1, None, 0), snapshot(2, 1, 1), snapshot(3, 1), published]
    assert newest(rows, 4, APPLICATION, None) == progress(1)
    expired = [row for row in rows if row[0] != 2]
    assert newest(expired, 4, APPLICATION, json.dumps(progress(1).to_json())) == progress(1)
    with pytest.raises(SinkError, match=r"Batch 1 of tidelog:p:lake is in the table.*was expired"):
        newest(expired, 4, APPLICATION, json.dumps(progress(0).to_json()))


def test_what_is_kept_beside_the_snapshots_outlives_them() -> None:
    assert newest([snapshot(9, 8)], 9, APPLICATION, json.dumps(progress(5).to_json())) == progress(5)
    assert newest([snapshot(9, 8, 6)], 9, APPLICATION, json.dumps(progress(5).to_json())) == progress(6)


def session(version: str, **settings: str) -> Any:
    return SimpleNamespace(version=version, conf=SimpleNamespace(get=settings.get))


@pytest.mark.parametrize(
    ("spark", "table", "said"),
    [
        (session("4.2.1"), "lake.db.t", r"no release for PySpark 4\.2\.1: pip install 'pyspark==4\.1\.3'"),
        (session("4.1.3"), "lake.db.t", r"set spark\.sql\.catalog\.lake = "),
        (session("4.1.3", **{"spark.sql.catalog.lake": "x"}), "t", r"must be catalog\.namespace\.name"),
        (
            session("4.1.3", **{"spark.sql.catalog.lake": "x"}),
            "lake.db.t",
            r"has no Iceberg.*iceberg-spark-runtime-4\.1_2\.13:1\.12\.0",
        ),
    ],
)
def test_what_is_missing_is_told_with_what_to_do(spark: Any, table: str, said: str) -> None:
    spec = SinkSpec("lake", "iceberg", options=(("table", table),))
    with pytest.raises(SinkError, match=said):
        make(spec, PipelineModel("p", (), (), (spec,))).check(spark)
    assert list(SETTINGS) == ["spark.sql.extensions"]


@pytest.mark.parametrize(("order_by", "order"), [("", "_offset"), ("at", "at")])
def test_an_older_record_that_comes_later_replaces_nothing(monkeypatch: pytest.MonkeyPatch, order_by: str, order: str) -> None:
    said: list[str] = []
    settings = SimpleNamespace(set=lambda *_: None, unset=lambda _: None)
    catalog = SimpleNamespace(dropTempView=lambda _: None)
    monkeypatch.setattr(delta, "newest_by_key", lambda batch, spec: batch)
    options = (("table", "lake.db.t"),)
    made = make(SinkSpec("lake", "iceberg", "d", Mode.UPSERT, ("id",), order_by, options=options), PipelineModel("p", (), (), ()))
    monkeypatch.setattr(made, "_spark", SimpleNamespace(sql=said.append, conf=settings, catalog=catalog))
    made._merge(SimpleNamespace(createOrReplaceTempView=lambda _: None), {})
    # A row without an order is older than any.
    assert f"WHEN MATCHED AND (t.`{order}` IS NULL OR s.`{order}` >= t.`{order}`) THEN UPDATE" in said[0]


@pytest.mark.parametrize(
    ("evolution", "column", "kind", "says", "altered"),
    [
        (Evolution.NONE, "z", "string", r"z \(string in the rows, not in the table\)", []),
        (Evolution.ADD, "z", "string", "", ["ADD COLUMNS (`z` string)"]),
        (Evolution.ADD, "v", "long", r"v \(bigint in the rows, int in the table\)", []),
        (Evolution.MERGE, "v", "long", "", ["ALTER COLUMN `v` TYPE bigint"]),
        (Evolution.MERGE, "v", "double", r"v \(double in the rows, int in the table\)", []),
    ],
)
def test_rows_are_never_cut_to_fit_the_table(
    monkeypatch: pytest.MonkeyPatch, evolution: Evolution, column: str, kind: str, says: str, altered: list[str]
) -> None:
    types = pytest.importorskip("pyspark.sql.types", reason="the extra spark is not installed")
    said: list[str] = []
    table = types.StructType().add("v", "integer")
    options = (("table", "lake.db.t"),)
    made = make(
        SinkSpec("lake", "iceberg", "d", Mode.UPSERT, ("v",), "v", (), evolution, options), PipelineModel("p", (), (), ())
    )
    monkeypatch.setattr(made, "_spark", SimpleNamespace(sql=said.append, table=lambda _: SimpleNamespace(schema=table)))
    with pytest.raises(SinkError, match=says) if says else nullcontext():
        made._fit(types.StructType().add(column, kind))
    assert said == [f"ALTER TABLE lake.db.t {each}" for each in altered]
