"""What executors return of a task: the plain records as rows, or the odd ones as they came, no more than asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyspark", reason="the extra pipeline is not installed")
pytest.importorskip("tidelog.spark._values", reason="not compiled here")

from tidelog.pipeline import plain_tasks  # noqa: E402
from tidelog.pipeline.plain_tasks import PlainTasks  # noqa: E402
from tidelog.spark.values import ValueField, ValueSchema  # noqa: E402

SCHEMA = ValueSchema(True, (ValueField("id", "long"),))
BATCHES = [[b'{"id": 1}', b"x", b'{"id": 2}'], [b'{"id": 3}'], [b"y", b"z"]]


class Settings:
    client = None
    names = ("offset", "key", "value")


class Reader:
    """Stands in for ``PartitionReader``."""

    def __init__(self, *_: Any) -> None: ...

    def batches(self) -> Iterator[Any]:
        for values in BATCHES:
            columns = [pa.array(range(len(values)), pa.int64()), pa.array([b"k"] * len(values)), pa.array(values, pa.binary())]
            yield pa.RecordBatch.from_arrays(columns, list(Settings.names))


def returned(monkeypatch: pytest.MonkeyPatch, *, plain: bool, most: int | None = None) -> list[Any]:
    monkeypatch.setattr(plain_tasks, "PartitionReader", Reader)
    monkeypatch.setattr(plain_tasks, "cluster_of", lambda client: None)
    settings, task = cast(Any, Settings()), cast(Any, None)
    read = PlainTasks(settings, (task,), SCHEMA, True, ("_offset",), plain, most)
    return [row for batch in read(iter([pa.RecordBatch.from_pydict({"id": [0]})])) for row in batch.to_pylist()]


def test_plain_records_are_rows_with_their_places(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [(1, "k", 0), (2, "k", 2), (3, "k", 0)]
    assert [tuple(row.values()) for row in returned(monkeypatch, plain=True)] == expected


def test_odd_records_come_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [row["value"] for row in returned(monkeypatch, plain=False)] == [b"x", b"y", b"z"]


def test_a_task_ends_after_more_odd_records_than_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [row["value"] for row in returned(monkeypatch, plain=False, most=0)] == [b"x"]
