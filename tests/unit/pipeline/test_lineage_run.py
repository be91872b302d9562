"""The events of one run: what a query tells from its start to its end, and with which numbers."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from tests.unit.pipeline.samples import RIDES, model_of
from tidelog.pipeline import lineage_run
from tidelog.pipeline.lineage_run import RunLineage, run_id
from tidelog.pipeline.progress import Counts
from tidelog.pipeline.sinks.base import OffsetRange

BATCH = (OffsetRange("rides", "id", 0, 0, 10),)
TWO = RIDES.replace("transforms:", "  other:\n    topics: [other]\ntransforms:").replace(
    "sinks:", "sinks:\n  plain: {type: delta, from: other, path: lake/other}"
)


def told(text: str = RIDES, **more: str) -> tuple[RunLineage, list[dict[str, Any]]]:
    events: list[dict[str, Any]] = []
    return RunLineage(model_of(text), events.append, **more), events


def test_a_run_tells_its_start_its_batches_and_its_end_under_one_id() -> None:
    run, events = told(engine_version="4.2.0")
    run.started()
    run.knows("rides", {"rides": {"id": "string", "fare": "double"}})
    run.wrote("rides", BATCH, Counts(10, 2))
    run.wrote("rides", BATCH, Counts(20, 2))  # not again so soon
    run.completed()
    assert [event["eventType"] for event in events] == ["START", "RUNNING", "COMPLETE"]
    assert len({event["run"]["runId"] for event in events}) == 1
    assert events[0]["run"]["facets"]["processing_engine"]["version"] == "4.2.0"
    assert "inputFacets" not in events[0]["inputs"][0]
    (read,) = events[2]["inputs"]
    assert read["inputFacets"]["inputStatistics"]["rowCount"] == 20
    assert [field["name"] for field in read["facets"]["schema"]["fields"]] == ["id", "fare"]
    bronze, silver, dead, quarantine = events[2]["outputs"]
    assert bronze["outputFacets"]["outputStatistics"]["rowCount"] == 18
    assert dead["outputFacets"]["outputStatistics"]["rowCount"] == 2
    assert "outputFacets" not in silver and "outputFacets" not in quarantine
    (origin,) = bronze["facets"]["columnLineage"]["fields"]["fare"]["inputFields"]
    assert (origin["namespace"], origin["name"], origin["field"]) == ("kafka://localhost:9092", "rides", "fare")
    assert "facets" not in silver  # what SQL makes of columns only Spark knows
    assert all(event["schemaURL"].endswith("#/$defs/RunEvent") and event["producer"] for event in events)


def test_a_query_tells_again_when_time_has_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lineage_run, "EVERY_S", 0.0)
    run, events = told()
    run.wrote("rides", BATCH, Counts(10))
    run.wrote("rides", BATCH, Counts(20))
    assert [event["inputs"][0]["inputFacets"]["inputStatistics"]["rowCount"] for event in events] == [10, 20]


def test_what_failed_says_why_and_the_others_were_ended_for_it() -> None:
    run, events = told(TWO)
    run.failed(frozenset({"other"}), "the disk is full")
    run.completed()  # nothing more comes after the end
    found = {event["job"]["name"]: event for event in events}
    assert {name: event["eventType"] for name, event in found.items()} == {"rides": "ABORT", "other": "FAIL"}
    assert found["other"]["run"]["facets"]["errorMessage"]["message"] == "the disk is full"
    assert "errorMessage" not in found["rides"]["run"]["facets"]


def test_before_a_query_has_begun_a_failure_is_that_of_all() -> None:
    run, events = told(TWO)
    run.failed(frozenset(), "no such topic")
    assert [event["eventType"] for event in events] == ["FAIL", "FAIL"]


def test_topics_of_a_pattern_are_those_that_a_batch_had() -> None:
    run, events = told(RIDES.replace("topics: [rides]", 'pattern: "ri.*"'))
    run.started()
    run.wrote("rides", BATCH, Counts(10))
    assert [event["inputs"][0]["name"] for event in events] == ["ri.*", "rides"]


def test_a_namespace_of_others_has_the_pipelines_name_in_its_jobs() -> None:
    run, events = told(namespace="lake")
    run.started()
    assert (events[0]["job"]["namespace"], events[0]["job"]["name"]) == ("lake", "rides.rides")


def test_run_ids_are_uuids_that_begin_with_the_time() -> None:
    first, second = uuid.UUID(run_id(1000)), uuid.UUID(run_id(2000))
    assert first.version == second.version == 7 and first.variant == uuid.RFC_4122
    assert first.int >> 80 == 1000 and first < second
