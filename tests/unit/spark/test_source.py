"""What Spark asks of the source, asked here without Spark's JVM: offsets, tasks, limits, and tasks read."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import BinaryType, LongType, StringType, StructType

from tidelog.model.errors import ConfigError
from tidelog.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from tidelog.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tidelog.spark.cluster import TopicMissing
from tidelog.spark.reader import DataLost, cluster_of
from tidelog.spark.source import TidelogDataSource, TidelogStreamReader
from tidelog.testing import Broker

SCHEMA = StructType().add("topic", StringType()).add("offset", LongType()).add("value", BinaryType())


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as found:
        found.create_topic("t", 2)
        found.produce("t", *"abcdefgh", partition=0)
        found.produce("t", *"xyz", partition=1)
        yield found


def source(broker: Broker, **options: str) -> TidelogDataSource:
    told = {"kafka.bootstrap.servers": broker.bootstrap_servers, "kafka.retry.backoff.ms": "1"}
    if not {"assign", "subscribePattern"} & options.keys():
        told["subscribe"] = "t"
    return TidelogDataSource(told | options)


def stream(broker: Broker, **options: str) -> TidelogStreamReader:
    return source(broker, startingOffsets="earliest", **options).streamReader(SCHEMA)


def rows(reader: Any, tasks: Any) -> list[tuple[str, int, str]]:
    found = []
    for task in tasks:
        # As it travels to an executor.
        there, part = pickle.loads(pickle.dumps((reader, task)))
        found += [(r["topic"], r["offset"], r["value"].decode()) for batch in there.read(part) for r in batch.to_pylist()]
    return sorted(found)


def values(found: list[tuple[str, int, str]]) -> str:
    return "".join(value for _, _, value in found)


def positions(offset: dict[str, Any]) -> dict[str, int]:
    return dict(offset["t"])


def test_the_schema_is_the_connectors(broker: Broker) -> None:
    plain = "`key` binary, `value` binary, `topic` string, `partition` int, `offset` bigint, `timestamp` timestamp, "
    plain += "`timestampType` int"
    assert source(broker).schema() == plain
    assert source(broker, includeHeaders="true").schema() == plain + ", `headers` array<struct<key:string,value:binary>>"
    assert TidelogDataSource.name() == "tidelog"


def test_a_wrong_option_is_told_before_anything_runs(broker: Broker) -> None:
    with pytest.raises(ConfigError, match="Did you mean maxOffsetsPerTrigger"):
        source(broker, maxOffsetPerTrigger="5").schema()


def test_a_schema_of_other_types_is_refused(broker: Broker) -> None:
    with pytest.raises(ConfigError, match="has value as string; it is binary"):
        source(broker).reader(StructType().add("value", StringType()))


def test_a_batch_reads_what_is_there(broker: Broker) -> None:
    reader = source(broker).reader(SCHEMA)
    assert values(rows(reader, reader.partitions())) == "axbyczdefgh"


def test_a_batch_reads_between_bounds(broker: Broker) -> None:
    reader = source(broker, startingOffsets='{"t":{"0":2,"1":-1}}', endingOffsets='{"t":{"0":4,"1":-1}}').reader(SCHEMA)
    assert rows(reader, reader.partitions()) == [("t", 2, "c"), ("t", 3, "d")]
    backwards = source(broker, startingOffsets='{"t":{"0":4,"1":0}}', endingOffsets='{"t":{"0":2,"1":0}}').reader(SCHEMA)
    with pytest.raises(ConfigError, match="endingOffsets says 2 for t-0, and reading starts at 4"):
        backwards.partitions()


def test_a_batch_of_nothing_has_one_task_of_nothing(broker: Broker) -> None:
    from pyspark.sql.datasource import InputPartition

    reader = source(broker, startingOffsets='{"t":{"0":-1,"1":-1}}').reader(SCHEMA)
    assert reader.partitions() == []
    assert rows(reader, [InputPartition(None)]) == []


def test_partitions_may_be_assigned_and_must_exist(broker: Broker) -> None:
    reader = source(broker, assign='{"t":[1]}').reader(SCHEMA)
    assert values(rows(reader, reader.partitions())) == "xyz"
    with pytest.raises(TopicMissing, match="has 2 partitions; assign names t-5"):
        source(broker, assign='{"t":[5]}').reader(SCHEMA).partitions()


def test_tasks_are_as_many_as_asked_for(broker: Broker) -> None:
    reader = source(broker, minPartitions="5").reader(SCHEMA)
    tasks = reader.partitions()
    assert len(tasks) == 6  # eight offsets and three in pieces of two: at least five, and of one size
    assert values(rows(reader, tasks)) == "axbyczdefgh"
    assert len(source(broker, maxRecordsPerPartition="2").reader(SCHEMA).partitions()) == 6


def test_a_stream_goes_from_offset_to_offset(broker: Broker) -> None:
    reader = stream(broker)
    start = reader.initialOffset()
    assert positions(start) == {"0": 0, "1": 0}
    end = reader.latestOffset(start, ReadAllAvailable())
    assert positions(end) == {"0": 8, "1": 3}
    assert reader.reportLatestOffset() == end
    assert values(rows(reader, reader.partitions(start, end))) == "axbyczdefgh"
    assert reader.partitions(end, end) == []
    broker.produce("t", "new")
    again = reader.latestOffset(end, ReadAllAvailable())
    assert rows(reader, reader.partitions(end, again)) == [("t", 8, "new")]
    reader.stop()


def test_a_batch_that_is_run_again_by_a_new_process_has_the_same_rows(broker: Broker) -> None:
    reader = stream(broker)
    start = reader.initialOffset()
    end = json.loads(json.dumps(reader.latestOffset(start, ReadMaxRows(5))))
    first = rows(reader, reader.partitions(start, end))
    other = stream(broker)
    assert rows(other, other.partitions(start, end)) == first
    assert len(first) == 5


def test_a_limit_is_kept_until_all_is_read(broker: Broker) -> None:
    reader = stream(broker, maxOffsetsPerTrigger="4")
    assert reader.getDefaultReadLimit() == ReadMaxRows(4)
    offset, sizes = reader.initialOffset(), []
    while True:
        end = reader.latestOffset(offset, ReadMaxRows(4))
        if end == offset:
            break
        sizes.append(len(rows(reader, reader.partitions(offset, end))))
        offset = end
    assert sizes == [4, 4, 3]
    assert stream(broker).getDefaultReadLimit() == ReadAllAvailable()


def test_available_now_ends_where_the_topic_ended_when_it_began(broker: Broker) -> None:
    reader = stream(broker)
    start = reader.initialOffset()
    reader.prepareForTriggerAvailableNow()
    broker.produce("t", "later")
    end = reader.latestOffset(start, ReadAllAvailable())
    assert positions(end) == {"0": 8, "1": 3}
    assert reader.latestOffset(end, ReadAllAvailable()) == end


def test_too_little_waits_for_more(broker: Broker) -> None:
    reader = stream(broker, minOffsetsPerTrigger="5", maxTriggerDelay="1h")
    end = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    assert positions(end) == {"0": 8, "1": 3}
    broker.produce("t", *"1234")
    assert reader.latestOffset(end, ReadAllAvailable()) == end
    broker.produce("t", "5")
    assert positions(reader.latestOffset(end, ReadAllAvailable())) == {"0": 13, "1": 3}


def test_new_partitions_and_new_topics_are_read_from_their_beginning(broker: Broker) -> None:
    reader = stream(broker, subscribePattern="t.*")
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadAllAvailable())
    connection, _ = cluster_of(reader._options.client).leader_socket(reader.partitions(start, end)[0].value.at)
    connection.ask(CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="t", count=3, assignments=None)], timeout_ms=1000))
    broker.produce("t", "in a new partition", partition=2)
    broker.produce("tt", "in a new topic")
    later = reader.latestOffset(end, ReadAllAvailable())
    assert rows(reader, reader.partitions(end, later)) == [("t", 0, "in a new partition"), ("tt", 0, "in a new topic")]


def test_a_topic_that_was_made_again_ends_the_query_or_is_read_from_its_beginning(broker: Broker) -> None:
    reader = stream(broker)
    end = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    connection, _ = cluster_of(reader._options.client).leader_socket(reader.partitions(reader.initialOffset(), end)[0].value.at)
    connection.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=1000))
    broker.create_topic("t", 2)
    broker.produce("t", "fresh")
    later = reader.latestOffset(end, ReadAllAvailable())
    with pytest.raises(DataLost, match="topic t was deleted and created again"):
        reader.partitions(end, later)
    lenient = stream(broker, failOnDataLoss="false")
    assert rows(lenient, lenient.partitions(end, later)) == [("t", 0, "fresh")]


def test_where_spark_knows_no_limits_the_reader_keeps_to_its_own(broker: Broker) -> None:
    """PySpark 4.1 asks for the latest offset and says nothing of where the batch begins."""
    reader = stream(broker, maxOffsetsPerTrigger="5")
    end = reader.latestOffset()
    first = reader.initialOffset()
    assert sum(positions(end).values()) == 5
    assert reader.latestOffset() == end
    assert len(rows(reader, reader.partitions(first, end))) == 5
    following = reader.latestOffset()
    assert sum(positions(following).values()) == 10
    # After a restart it plans an empty batch where it stands.
    restarted = stream(broker, maxOffsetsPerTrigger="5")
    assert restarted.partitions(end, end) == []
    assert restarted.latestOffset() == following


@pytest.mark.parametrize("module", ["tidelog.spark.source", "tidelog.pipeline.plain_tasks"])
def test_workers_that_only_read_import_neither_the_sink_nor_the_pipeline(module: str) -> None:
    script = f"import sys, pyspark.sql.datasource, pyarrow, {module}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    found = set(done.stdout.split())
    assert module in found
    costly = {"tidelog.spark.topic_sink", "tidelog.client.producing", "tidelog.pipeline.decoding", "pyarrow.compute"}
    costly |= {"tidelog.client.net.tls", "tidelog.client.net.kerberos", "ssl"}
    assert not found & costly
