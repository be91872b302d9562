"""One task against a real node: everything arrives once, whatever happens in between, and losses are reported."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="the extra spark is not installed")

from tidelog.client.settings import parse_settings
from tidelog.model.ids import TopicPartition
from tidelog.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tidelog.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from tidelog.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tidelog.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from tidelog.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tidelog.records.builder import RecordData, build_batch
from tidelog.spark import reader
from tidelog.spark.cluster import Cluster, ClusterUnavailable
from tidelog.spark.reader import DataLost, PartitionReader, ReadSettings, ReadTask
from tidelog.testing import Broker

AT = TopicPartition("t", 0)
VALUES = [f"value {i}" for i in range(300)]


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as found:
        found.create_topic("t", 1)
        for start in range(0, 300, 10):
            found.produce("t", *VALUES[start : start + 10])
        yield found


class Reads:
    """Reads ranges of the topic; each one with the topic's id of when this was made."""

    def __init__(self, broker: Broker, *, fail: bool = True, poll_timeout_ms: int = 20_000, **settings: str) -> None:
        told = {"bootstrap.servers": broker.bootstrap_servers, "retry.backoff.ms": "1", "fetch.max.wait.ms": "10"}
        client = parse_settings(told | {name.replace("_", "."): text for name, text in settings.items()})
        self.cluster = Cluster(client)
        self.topic_id = self.cluster.topics(("t",))["t"].topic_id
        self._settings = ReadSettings(client, ("offset", "value"), fail, poll_timeout_ms, 1 << 20)

    def reader(self, start: int = 0, end: int = 300) -> PartitionReader:
        task = ReadTask(AT, start, end, self.topic_id, self.cluster.hint(AT))
        return PartitionReader(self.cluster, self._settings, task)

    def rows(self, start: int = 0, end: int = 300) -> list[tuple[int, str]]:
        return [
            (row["offset"], row["value"].decode()) for batch in self.reader(start, end).batches() for row in batch.to_pylist()
        ]


def test_a_range_arrives_whole_in_one_fetch_and_in_many(broker: Broker) -> None:
    expected = list(enumerate(VALUES))
    assert Reads(broker).rows() == expected
    assert Reads(broker, max_partition_fetch_bytes="1024").rows(5, 297) == expected[5:297]


def test_batches_are_given_out_as_they_fill(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "ROWS_PER_BATCH", 25)
    found = Reads(broker, max_partition_fetch_bytes="1024")
    sizes = [batch.num_rows for batch in found.reader().batches()]
    assert len(sizes) > 3
    assert sum(sizes) == 300


def test_what_one_answer_holds_is_given_out_in_pieces(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "ROWS_PER_BATCH", 25)
    found = Reads(broker)
    batches = list(found.reader(5, 297).batches())
    assert [row["offset"] for batch in batches for row in batch.to_pylist()] == list(range(5, 297))
    assert all(batch.num_rows == 30 for batch in batches[1:-1])
    assert len(batches) == 10


def test_a_reader_that_is_left_does_not_spoil_the_connection(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "ROWS_PER_BATCH", 1)
    found = Reads(broker, max_partition_fetch_bytes="1024")
    batches = found.reader().batches()
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    assert len(found.rows()) == 300


@pytest.mark.parametrize("error", ["NOT_LEADER_OR_FOLLOWER", "UNKNOWN_TOPIC_ID", "OFFSET_NOT_AVAILABLE", "FENCED_LEADER_EPOCH"])
def test_what_passes_is_waited_out(broker: Broker, error: str) -> None:
    found = Reads(broker, max_partition_fetch_bytes="1024")
    broker.faults.refuse("FETCH", error, times=3)
    assert found.rows() == list(enumerate(VALUES))
    assert broker.faults.pending == 0


def test_a_connection_that_ends_is_made_again(broker: Broker) -> None:
    found = Reads(broker, max_partition_fetch_bytes="1024")
    broker.faults.drop("FETCH", times=3)
    assert found.rows() == list(enumerate(VALUES))


def test_a_broker_that_restarts_is_waited_for(broker: Broker) -> None:
    found = Reads(broker, max_partition_fetch_bytes="1024")
    batches = found.reader().batches()
    broker.restart()
    assert sum(batch.num_rows for batch in batches) == 300


def delete_records(found: Reads, before: int) -> None:
    connection, _ = found.cluster.leader_socket(AT)
    partition = DeleteRecordsPartition(partition_index=0, offset=before)
    connection.ask(DeleteRecordsRequest(topics=[DeleteRecordsTopic(name="t", partitions=[partition])], timeout_ms=1000))


def test_records_that_retention_took_end_the_read_with_their_offsets(broker: Broker) -> None:
    found = Reads(broker)
    delete_records(found, 100)
    with pytest.raises(DataLost, match=r"t-0: offsets 20 to 99 were deleted before they were read.*failOnDataLoss=false"):
        found.rows(20)


def test_records_that_retention_took_are_logged_when_they_may_be_lost(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    found = Reads(broker, fail=False)
    delete_records(found, 100)
    with caplog.at_level(logging.WARNING):
        assert found.rows(20) == list(enumerate(VALUES))[100:]
        assert found.rows(20, 60) == []
    assert "offsets 20 to 99 were deleted" in caplog.text
    assert "offsets 20 to 59 were deleted" in caplog.text


def test_an_end_that_the_log_does_not_have_is_told(broker: Broker) -> None:
    with pytest.raises(ClusterUnavailable, match=r"offsets 300 to 309 did not arrive within 50 ms .*the partition ends at 300"):
        Reads(broker, poll_timeout_ms=50).rows(0, 310)
    with pytest.raises(DataLost, match="t-0 ends at offset 300: the cluster lost offsets 305 to 309"):
        Reads(broker).rows(305, 310)


def recreate(found: Reads) -> None:
    connection, _ = found.cluster.leader_socket(AT)
    connection.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=1000))
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    connection.ask(CreateTopicsRequest(topics=[topic], timeout_ms=1000))


def test_a_topic_that_was_made_again_is_noticed(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    found = Reads(broker)
    recreate(found)
    broker.produce("t", *VALUES)
    with pytest.raises(DataLost, match="topic t was deleted and created again while it was read"):
        found.rows()
    lenient = Reads(broker, fail=False)
    lenient.topic_id = found.topic_id
    assert lenient.rows() == []
    assert "Offsets 0 to 299 of t-0 are gone" in caplog.text


class ScriptedSocket:
    """A broker whose answers to Fetch are written down; it keeps the requests, and the order of what was done."""

    def __init__(self, address: str, answers: list[FetchResponse], session_ends: bool = False) -> None:
        self.address = address
        self.answers = answers
        self.asked: list[FetchRequest] = []
        self.session_ends = session_ends
        self.done: list[str] = []

    def renew(self) -> None:
        self.done.append("renew")

    def send(self, request: FetchRequest) -> None:
        self.asked.append(request)
        self.done.append("send")

    def receive(self) -> FetchResponse:
        self.done.append("receive")
        return self.answers.pop(0)


class ScriptedCluster(Cluster):
    """A cluster of scripted brokers, by id; broker 0 leads the partition until the test changes that."""

    def __init__(self, brokers: dict[int, ScriptedSocket]) -> None:
        super().__init__(parse_settings({"bootstrap.servers": "nowhere:1", "retry.backoff.ms": "1"}))
        self.scripted = {broker: (f"host-{broker}", 9000 + broker) for broker in brokers}
        self._by_address = {self.scripted[broker]: found for broker, found in brokers.items()}
        partition = MetadataResponsePartition(partition_index=0, leader_id=0, leader_epoch=3)
        self.metadata.update(
            MetadataResponse(
                brokers=[MetadataResponseBroker(node_id=0, host="host-0", port=9000)],
                topics=[MetadataResponseTopic(name="t", topic_id=b"i" * 16, partitions=[partition])],
            )
        )

    def socket_at(self, address: tuple[str, int]) -> Any:
        return self._by_address[address]

    def _refresh(self, names: tuple[str, ...] | None) -> None:
        """No broker is asked."""


def scripted(brokers: dict[int, ScriptedSocket]) -> list[int]:
    cluster = ScriptedCluster(brokers)
    settings = ReadSettings(
        parse_settings({"bootstrap.servers": "nowhere:1", "client.rack": "here"}), ("offset",), True, 5000, 1 << 20
    )
    task = ReadTask(AT, 0, 4, b"i" * 16, cluster.hint(AT))
    batches = PartitionReader(cluster, settings, task).batches()
    return [row["offset"] for batch in batches for row in batch.to_pylist()]


def said(*, endpoints: tuple[NodeEndpoint, ...] = (), **fields: Any) -> FetchResponse:
    part = PartitionData(partition_index=0, **fields)
    topic = FetchableTopicResponse(topic_id=b"i" * 16, partitions=[part])
    return FetchResponse(responses=[topic], node_endpoints=list(endpoints))


def stored(base: int, count: int) -> bytes:
    return bytes(build_batch([RecordData(None, b"v", 1)] * count, base_offset=base))


def test_a_leader_that_moved_is_followed_to_where_the_old_one_says() -> None:
    old = ScriptedSocket(
        "old",
        [
            said(records=stored(0, 2)),
            said(error_code=6, current_leader=LeaderIdAndEpoch(7, 4), endpoints=(NodeEndpoint(7, "host-7", 9007),)),
        ],
    )
    new = ScriptedSocket("new", [said(records=stored(2, 2))])
    assert scripted({0: old, 7: new}) == [0, 1, 2, 3]
    part = new.asked[0].topics[0].partitions[0]
    assert (part.fetch_offset, part.current_leader_epoch) == (2, 4)


def test_a_replica_that_is_nearer_is_read_when_the_leader_names_it() -> None:
    leader = ScriptedSocket("leader", [said(preferred_read_replica=0, records=b""), said(records=stored(0, 4))])
    assert scripted({0: leader}) == [0, 1, 2, 3]
    assert leader.asked[0].rack_id == "here"


@pytest.mark.parametrize("session_ends", [False, True])
def test_nothing_is_asked_ahead_of_a_login(session_ends: bool) -> None:
    leader = ScriptedSocket("leader", [said(records=stored(0, 2)), said(records=stored(2, 2))], session_ends)
    assert scripted({0: leader}) == [0, 1, 2, 3]
    again = ["renew", "send", "receive"] if session_ends else ["send", "receive"]
    assert leader.done == ["renew", "send", "receive", *again]


def test_a_batch_that_is_cut_is_asked_for_with_more_room() -> None:
    whole = stored(0, 4)
    leader = ScriptedSocket("leader", [said(records=whole[:-1]), said(records=whole)])
    assert scripted({0: leader}) == [0, 1, 2, 3]
    first, second = (request.topics[0].partitions[0].partition_max_bytes for request in leader.asked)
    assert second > first
