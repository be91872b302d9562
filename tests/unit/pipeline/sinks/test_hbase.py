"""Options of a sink into HBase; what it does is in tests/pipeline/test_hbase.py, with an HBase."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.pipeline.samples import RIDES, model_of
from tidelog.model.errors import ConfigError
from tidelog.pipeline.sinks.hbase import HBaseSink, Putting, placed_columns
from tidelog.pipeline.sinks.hbase_cells import Cells
from tidelog.pipeline.sinks.hbase_gateway import Address, Gateway
from tidelog.pipeline.sinks.kinds import make_sink

HBASE = '  silver: {type: hbase, from: silver, mode: upsert, keys: [id], url: "http://gw:8080", table: silver'
WITH = RIDES.replace("  silver: {type: delta, from: silver, path: lake/silver, mode: upsert, keys: [id], order_by: fare", HBASE)


def test_a_sink_of_a_pipeline_is_one_of_hbase() -> None:
    model = model_of(WITH.replace("table: silver", 'table: silver, columns: "place:zone, time:at"'))
    sink = make_sink(model.sinks[1], model)
    assert isinstance(sink, HBaseSink) and sink.remembers and sink.last_committed() is None
    assert placed_columns(model.sinks[1]) == {"zone": b"place:zone", "at": b"time:at"}


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("encoding: java", "must be text or binary"),
        ('columns: "zone"', "say family:column"),
        ('user: etl, path: "x"', "a sink of type hbase has no such option"),
    ],
)
def test_what_it_cannot_be_told_is_told(option: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        model = model_of(WITH.replace("table: silver", f"table: silver, {option}"))
        make_sink(model.sinks[1], model)


def test_a_task_says_how_many_rows_it_put(monkeypatch: pytest.MonkeyPatch) -> None:
    pa: Any = pytest.importorskip("pyarrow", reason="the extra spark is not installed")
    found: list[bytes] = []
    monkeypatch.setattr(Gateway, "put", lambda self, table, body: found.append(body))
    task = Putting(Address(("http://gw:8080",)), "t", Cells({"zone": b"d:zone"}, ("id",), "at"))
    batch = pa.RecordBatch.from_pylist([{"id": "a", "zone": "n", "at": 1}, {"id": "b", "zone": "s", "at": 2}])
    assert [each.to_pydict() for each in task(iter([batch, batch]))] == [{"written": [4]}]
    assert len(found) == 2
