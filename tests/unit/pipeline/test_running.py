"""How the queries of a run begin: one after another, and again where Spark found its Python process too slow."""

from __future__ import annotations

from typing import Any, cast

import pytest

pytest.importorskip("pyarrow", reason="the extra pipeline is not installed")

from tidelog.pipeline.queries import FlowQuery
from tidelog.pipeline.running import BEGIN_TRIALS, begin

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
        self._starts = list(starts)
        self.starts = 0
        self.query: Any = None

    def start(self, *, once: bool) -> None:
        assert once
        self.query = self._starts[min(self.starts, len(self._starts) - 1)]
        self.starts += 1


def begun(*starts: Started) -> Query:
    query = Query(*starts)
    begin(cast(FlowQuery, query), once=True)
    return query


def test_it_returns_when_the_source_answers() -> None:
    started = Started(["Initializing StreamExecution", "Initializing sources", "Getting offsets from tidelog"])
    assert begun(started).starts == 1
    assert started.status == {"message": "Waiting for data to arrive"}


def test_a_process_that_was_too_slow_begins_again_and_not_for_ever() -> None:
    assert begun(Started(["Initializing sources"], SLOW), Started([])).starts == 2
    assert begun(Started([], SLOW)).starts == BEGIN_TRIALS


def test_any_other_failure_is_left_to_the_run() -> None:
    assert begun(Started([], "the table is gone")).starts == 1
