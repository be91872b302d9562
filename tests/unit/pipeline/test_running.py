"""How the queries of a run begin: one after another, and again where Spark found its Python process too slow."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, ClassVar, cast

import pytest

pytest.importorskip("pyarrow", reason="the extra pipeline is not installed")

from tests.unit.pipeline.samples import model_of
from tidelog.model.ids import TopicPartition
from tidelog.pipeline import running
from tidelog.pipeline.progress import Counts
from tidelog.pipeline.queries import FlowQuery
from tidelog.pipeline.running import BEGIN_TRIALS, Run, begin
from tidelog.pipeline.sinks.base import OffsetRange
from tidelog.spark import limits

ONE = """\
pipeline: one
group: ""
kafka: {bootstrap.servers: "localhost:1"}
sources: {events: {topics: [t]}}
sinks: {lake: {type: delta, from: events, path: lake}}
"""
SLOW = "org.apache.spark.SparkException: Python worker failed to connect back."


class Started:
    """A query of Spark: ``messages`` are its states, one for each look; ``failure`` is what it has ended with by then."""

    def __init__(self, messages: list[str], failure: str = "") -> None:
        self._messages, self._failure = messages, failure

    @property
    def isActive(self) -> bool:
        return bool(self._messages) or not self._failure

    @property
    def status(self) -> dict[str, str]:
        return {"message": self._messages.pop(0) if self._messages else "Waiting for data to arrive"}

    def exception(self) -> Exception | None:
        return RuntimeError(self._failure) if self._failure and not self._messages else None


class Query:
    """A flow's query whose starts go as told."""

    def __init__(self, *starts: Started) -> None:
        self.flow = SimpleNamespace(name="events")
        self.looks, self.lines = 0, list[str]()
        self._starts = list(starts)
        self.starts = 0
        self.query: Any = None

    def start(self, *, once: bool) -> None:
        assert once
        self.query = self._starts[min(self.starts, len(self._starts) - 1)]
        self.starts += 1

    def look(self) -> None:
        self.looks += 1


def begun(*starts: Started) -> Query:
    query = Query(*starts)
    begin(cast(FlowQuery, query), once=True, look=query.look, say=query.lines.append)
    return query


def test_it_returns_when_the_source_answers() -> None:
    started = Started(["Initializing StreamExecution", "Initializing sources", "Getting offsets from tidelog"])
    assert begun(started).starts == 1
    assert started.status == {"message": "Waiting for data to arrive"}


def test_a_process_that_was_too_slow_begins_again_and_not_for_ever() -> None:
    query = begun(Started(["Initializing sources"], SLOW), Started([]))
    assert query.starts == 2
    assert query.lines == ["events: Spark's Python process did not start within 10 s: too little CPU (start 1 of 12)"]
    assert begun(Started([], SLOW)).starts == BEGIN_TRIALS


def test_what_began_before_is_looked_at_while_a_query_begins() -> None:
    assert begun(Started([*["Initializing sources"] * 5, "Getting offsets from tidelog"])).looks == 2


def test_any_other_failure_is_left_to_the_run() -> None:
    assert begun(Started([], "the table is gone")).starts == 1


class Ending:
    """A query of Spark that has ended; ``recent`` has no progress to show."""

    isActive, lastProgress = False, None
    status: ClassVar[dict[str, str]] = {"message": "Stopped"}

    def exception(self) -> None:
        return None


class Batches(Query):
    """A flow's query of which each start brings one of ``ends``, and none after those."""

    def __init__(self, *ends: int) -> None:
        super().__init__()
        self._ends = list(ends)
        self.done: tuple[OffsetRange, ...] = ()
        self.writer = SimpleNamespace(counts=Counts(records=50), sinks={"lake": None})

    def prepare(self, from_here: frozenset[str]) -> None:
        assert not from_here

    def ends(self) -> dict[TopicPartition, int]:
        """50 records are there at the start."""
        return {TopicPartition("t", 0): 50}

    def start(self, *, once: bool) -> None:
        assert once
        self.starts += 1
        self.query = Ending()
        if self._ends:
            self.done = (OffsetRange("t", "id", 0, 0, self._ends.pop(0)),)


def test_where_spark_ends_after_one_batch_a_run_of_what_is_there_goes_on_until_there_is_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for one_batch, starts in ((True, 2), (False, 1)):
        monkeypatch.setattr(limits, "ONE_BATCH_OF_AVAILABLE_NOW", one_batch)
        told: list[int] = []
        query = Batches(20, 50)
        monkeypatch.setattr(running, "query_of", lambda *_, found=query: found)
        run = Run(model_of(ONE), None, print, watch=lambda name, done, counts, told=told: told.append(done[0].end))
        assert run.run(once=True).records == 50
        assert query.starts == starts
        assert told == [20, 50][: 2 if one_batch else 1]


def test_a_run_of_what_is_there_ends_though_a_producer_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ONE_BATCH_OF_AVAILABLE_NOW", True)
    busy, idle = Batches(20, 60, 70, 80), Batches()  # the other one has read its topic in an earlier run
    queries = iter((busy, idle))
    monkeypatch.setattr(running, "query_of", lambda *_: next(queries))
    two = ONE.replace("[t]}}", "[t]}, more: {topics: [u]}}").replace(
        "sinks: {", "sinks: {more: {type: delta, from: more, path: more}, "
    )
    Run(model_of(two), None, print).run(once=True)
    assert (busy.starts, busy.done[0].end, idle.done) == (2, 60, ())


def test_a_run_of_what_is_there_ends_where_nothing_comes_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ONE_BATCH_OF_AVAILABLE_NOW", True)
    query = Batches(20)  # what is lacking was deleted meanwhile, say
    monkeypatch.setattr(running, "query_of", lambda *_: query)
    Run(model_of(ONE), None, print).run(once=True)
    assert query.starts == 2


def test_queries_that_did_not_begin_are_left_alone_when_the_run_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = Batches(50), Batches(50)
    queries = iter((first, second))
    monkeypatch.setattr(running, "query_of", lambda *_: next(queries))
    two = ONE.replace("[t]}}", "[t]}, more: {topics: [u]}}").replace(
        "sinks: {", "sinks: {more: {type: delta, from: more, path: more}, "
    )
    run = Run(model_of(two), None, print)
    run.stop()
    assert run.run(once=True).stopped
    assert (first.starts, second.starts) == (1, 0)
