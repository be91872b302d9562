"""A query in real-time mode without Spark: what it counts, when it may be stopped, and what it refuses."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="the extra pipeline is not installed")

from tests.unit.pipeline.realtime.test_options import RELAY
from tests.unit.pipeline.samples import model_of
from tidelog.pipeline.failures import PipelineFailure
from tidelog.pipeline.flows import flows
from tidelog.pipeline.realtime.query import RealTimeQuery, ranges_of
from tidelog.pipeline.sinks.base import OffsetRange


def progress(batch: int, rows: int, end: int) -> Any:
    sources = [{"startOffset": {"one": {"0": 0}}, "endOffset": {"one": {"0": end}}}]
    return SimpleNamespace(batchId=batch, json=json.dumps({"batchId": batch, "numInputRows": rows, "sources": sources}))


class Started:
    """A query of Spark that has told this much."""

    def __init__(self, *told: Any) -> None:
        self.recentProgress = list(told)

    @property
    def lastProgress(self) -> Any:
        return self.recentProgress[-1] if self.recentProgress else None


def made(slots: int = 2) -> RealTimeQuery:
    model = model_of(RELAY)
    spark = SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=slots))
    return RealTimeQuery(model, flows(model)[0], spark)


def test_offsets_and_rows_are_those_of_noted_batches_each_counted_once() -> None:
    query = made()
    assert query.done == ()
    query.query = Started(progress(0, 3, 3))
    assert query.done == query.done == (OffsetRange("one", "", 0, 0, 3),)
    query.query.recentProgress.append(progress(1, 2, 5))
    assert query.done[0].end == 5 and query.writer.counts.records == 5


def test_it_may_be_stopped_after_the_next_note() -> None:
    query = made()
    query.query = Started(progress(0, 1, 1))
    assert query.done and not query.resting() and not query.resting()
    query.query.recentProgress.append(progress(1, 1, 2))
    assert query.resting()


def test_offsets_may_be_text_or_not_there() -> None:
    said = {"sources": [{"startOffset": None, "endOffset": '{"t": {"1": 7}}'}, {"endOffset": None}]}
    assert ranges_of(said) == (OffsetRange("t", "", 1, 7, 7),)


def test_what_real_time_mode_has_not_is_told() -> None:
    with pytest.raises(PipelineFailure, match="--once has no meaning in real-time mode"):
        made().start(once=True)
    with pytest.raises(PipelineFailure, match="the checkpoint alone says where a query continues"):
        made().prepare(frozenset({"out"}))


def test_rows_without_a_value_are_no_records() -> None:
    with pytest.raises(PipelineFailure, match=r"its rows have no column value: .*to_json"):
        made()._as_records(SimpleNamespace(columns=["fare"]))
