"""The sink without a JVM: tasks make batches, the driver commits those that their messages name."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

import pyarrow as pa
from pyspark.sql import types

from tidelog.model.errors import ConfigError
from tidelog.spark.appending import WriteFailed
from tidelog.spark.sink_options import SinkOptions, parse_sink_options
from tidelog.spark.topic_sink import TaskBatches, TaskWriter, TidelogStreamWriter, TidelogWriter, commit
from tidelog.testing import Broker

VALUES = types.StructType([types.StructField("value", types.StringType())])


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as found:
        found.create_topic("t", 3)
        yield found


def options(broker: Broker, *, streaming: bool = True, **more: str) -> SinkOptions:
    return parse_sink_options({"kafka.bootstrap.servers": broker.bootstrap_servers, "topic": "t", **more}, streaming=streaming)


def task(chosen: SinkOptions, name: str, index: int = 0, rows: int = 100) -> TaskBatches:
    batch = pa.RecordBatch.from_arrays([pa.array([f"{name} {index} {i}" for i in range(rows)])], names=["value"])
    message = TaskWriter(chosen, "query", index).write([batch.slice(0, rows // 2), batch.slice(rows // 2)])
    found: TaskBatches = pickle.loads(pickle.dumps(message))
    assert found.rows == rows
    return found


def landed(broker: Broker) -> list[str]:
    return sorted(message.value.decode() for message in broker.messages("t") if message.value is not None)


def values(name: str, tasks: int = 2, rows: int = 100) -> list[str]:
    return sorted(f"{name} {index} {i}" for index in range(tasks) for i in range(rows))


@pytest.mark.parametrize("inline", ["1000000", "0", "1000"])
def test_all_rows_of_the_named_tasks_land_once_wherever_they_waited(broker: Broker, inline: str) -> None:
    chosen = options(broker, inlineBytes=inline, **{"kafka.batch.size": "600"})
    task(chosen, "a dead attempt")
    messages = [task(chosen, "a", index) for index in range(2)]
    assert all(bool(message.staged) is (inline != "1000000") for message in messages)
    assert commit(chosen, "query", 0, messages)
    assert not commit(chosen, "query", 0, [task(chosen, "again")])
    assert landed(broker) == values("a")


def test_a_task_that_ended_without_a_message_stops_the_commit(broker: Broker) -> None:
    chosen = options(broker)
    with pytest.raises(WriteFailed, match="1 of 2 tasks ended without a report"):
        commit(chosen, "query", 0, [task(chosen, "a"), None])
    assert landed(broker) == []


def test_a_stream_is_numbered_by_its_query_or_by_the_name_it_was_given(broker: Broker) -> None:
    chosen = options(broker)
    writer = TidelogStreamWriter(chosen, VALUES, False)
    writer.commit([task(chosen, "a", 0), task(chosen, "a", 1)], 0)
    writer.commit([task(chosen, "b", 0)], 0)
    writer.abort([None], 1)
    named = TidelogStreamWriter(options(broker, txnAppId="mine"), VALUES, False)
    named.commit([task(chosen, "c", 0), task(chosen, "c", 1)], 0)
    assert landed(broker) == sorted(values("a") + values("c"))
    with pytest.raises(WriteFailed, match="do not agree on the query"):
        writer.commit([], 1)


def test_a_batch_is_written_each_time_unless_it_has_a_name_and_a_number(broker: Broker) -> None:
    chosen = options(broker, streaming=False)
    writer: Any = TidelogWriter(chosen, VALUES, False)
    for _ in range(2):
        writer.commit([task(chosen, "a")])
    writer.commit([task(chosen, "none", rows=0)])
    numbered = TidelogWriter(options(broker, streaming=False, txnAppId="me", txnVersion="0"), VALUES, False)
    for _ in range(2):
        numbered.commit([task(chosen, "b")])
    assert landed(broker) == sorted(values("a", 1) * 2 + values("b", 1))


def test_what_cannot_be_is_told_before_anything_runs(broker: Broker) -> None:
    for kind in (TidelogWriter, TidelogStreamWriter):
        with pytest.raises(ConfigError, match="Topics are appended to"):
            kind(options(broker), VALUES, True)
        with pytest.raises(ConfigError, match="There is no column value"):
            kind(options(broker), types.StructType([types.StructField("key", types.StringType())]), False)
