"""Lineage as events."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.unit.pipeline.samples import model_of
from tidelog.pipeline.lineage import dataset, events
from tidelog.pipeline.model import SinkSpec


def test_a_query_is_an_event_with_what_it_reads_and_writes() -> None:
    (event,) = events(model_of(), datetime(2026, 1, 31, tzinfo=UTC))
    assert event["eventTime"] == "2026-01-31T00:00:00+00:00"
    assert event["job"]["namespace"] == "tidelog:rides" and event["job"]["name"] == "rides"
    assert event["job"]["facets"]["sql"]["query"] == "SELECT id, fare FROM rides"
    assert event["inputs"] == [{"namespace": "kafka://localhost:9092", "name": "rides"}]
    assert [out["name"] for out in event["outputs"]] == ["lake/bronze", "lake/silver", "lake/dead", "lake/quarantine"]


@pytest.mark.parametrize(
    ("options", "namespace", "name"),
    [
        ((("path", "s3a://bucket/lake/x"),), "s3a://bucket", "lake/x"),
        ((("path", "file:///lake/x"),), "file", "/lake/x"),
        ((("topic", "out"),), "kafka://c:1", "out"),
        ((), "console", "s"),
    ],
)
def test_datasets_have_the_names_of_their_stores(options: tuple[tuple[str, str], ...], namespace: str, name: str) -> None:
    assert dataset(SinkSpec("s", "console", options=options), "kafka://c:1") == {"namespace": namespace, "name": name}


@pytest.mark.parametrize(
    ("kind", "url", "namespace", "name"),
    [
        ("jdbc", "jdbc:postgresql://db:5432/rides?ssl=true", "postgresql://db:5432", "rides.fares"),
        ("hbase", "http://gw:8080,http://gw2:8080", "hbase://gw:8080", "fares"),
        ("jdbc", "jdbc:h2:/lake/db", "jdbc", "fares"),
        ("jdbc", "jdbc:postgresql://one:5432,two:5432/rides", "postgresql://one:5432", "rides.fares"),
        ("jdbc", "jdbc:postgresql://me:secret@[::1]:5432/rides", "postgresql://[::1]:5432", "rides.fares"),
        ("jdbc", "jdbc:postgresql://[::1/rides", "jdbc", "fares"),
        ("jdbc", "jdbc:sqlserver://db:1433;databaseName=rides;user=me;password=secret", "sqlserver://db:1433", "rides.fares"),
        ("jdbc", "jdbc:sqlserver://db;user=me;password=secret", "sqlserver://db", "fares"),
        ("jdbc", "jdbc:mysql://address=(host=db)(port=1)(user=me)(password=secret)/rides", "jdbc", "fares"),
    ],
)
def test_tables_of_databases_are_named_by_where_they_are(kind: str, url: str, namespace: str, name: str) -> None:
    spec = SinkSpec("s", kind, options=(("url", url), ("table", "fares")))
    assert dataset(spec, "kafka://c:1") == {"namespace": namespace, "name": name}
