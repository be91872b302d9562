"""Batches to their leaders: in order, acknowledged, told when not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest

from tidelog.client.failures import NotAuthenticated
from tidelog.client.net.blocking import BrokerSocket
from tidelog.client.settings import parse_settings
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicPartition
from tidelog.records.builder import RecordData, build_batch
from tidelog.spark.appending import WINDOW_BYTES, Appender, Batch, Fenced, WriteFailed, refused, rounds
from tidelog.spark.cluster import Cluster
from tidelog.testing import Broker

P = [TopicPartition("t", i) for i in range(3)]


def sized(*sizes: tuple[int, int]) -> list[Batch]:
    return [(P[index], bytearray([number]) + bytearray(size - 1)) for number, (index, size) in enumerate(sizes)]


def test_a_round_has_one_batch_a_partition_and_partitions_keep_their_order() -> None:
    found = list(rounds(sized((0, 10), (0, 10), (1, 10), (0, 10), (1, 10)), 100))
    assert [{at.partition: batch[0] for at, batch in group.items()} for group in found] == [{0: 0, 1: 2}, {0: 1, 1: 4}, {0: 3}]


def test_a_round_is_no_larger_than_a_request_but_has_a_batch() -> None:
    found = list(rounds(sized((0, 90), (1, 90), (2, 5), (0, 200)), 100))
    assert [sorted(at.partition for at in group) for group in found] == [[0, 2], [0], [1]]


def test_no_more_is_held_than_the_window() -> None:
    drawn = 0

    def stream() -> Iterator[Batch]:
        nonlocal drawn
        for _ in range(40):
            drawn += 1
            yield P[0], bytearray(1 << 20)

    groups = rounds(stream(), 1 << 20)
    next(groups)
    assert drawn * (1 << 20) == WINDOW_BYTES
    assert sum(1 for _ in groups) == 39


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as found:
        found.create_topic("t", 3)
        yield found


def appender(broker: Broker, timeout_ms: int = 20_000) -> Appender:
    told = {"bootstrap.servers": broker.bootstrap_servers, "retry.backoff.ms": "1"}
    return Appender(Cluster(parse_settings(told)), timeout_ms, 5000)


def some(partitions: list[TopicPartition]) -> dict[TopicPartition, bytearray]:
    return {at: build_batch([RecordData(None, str(at).encode(), 1)]) for at in partitions}


@pytest.mark.parametrize("fault", ["drop", "NOT_LEADER_OR_FOLLOWER", "REQUEST_TIMED_OUT", "KAFKA_STORAGE_ERROR", None])
def test_each_is_appended_and_its_offset_told_whatever_passes(broker: Broker, fault: str | None) -> None:
    writer = appender(broker)
    assert writer.append(some(P)) == dict.fromkeys(P, 0)
    if fault == "drop":
        broker.faults.drop("PRODUCE")
    elif fault is not None:
        broker.faults.refuse("PRODUCE", fault)
    assert writer.append(some(P[:2])) == dict.fromkeys(P[:2], 1)
    assert [m.value for m in broker.messages("t", 1)] == [b"t-1", b"t-1"]


def test_what_does_not_pass_in_time_is_told_with_the_last_problem(broker: Broker) -> None:
    broker.faults.refuse("PRODUCE", "NOT_ENOUGH_REPLICAS", times=1000)
    with pytest.raises(
        WriteFailed, match=r"2 batches, the first for t-0.*30 ms \(kafka.delivery.timeout.ms\).*NOT_ENOUGH_REPLICAS"
    ):
        appender(broker, 30).append(some(P[:2]))


def test_what_never_passes_is_told_at_once(broker: Broker) -> None:
    broker.faults.refuse("PRODUCE", "INVALID_RECORD")
    with pytest.raises(WriteFailed, match="A compacted topic takes only rows that have a key"):
        appender(broker).append(some(P))


def test_a_partition_that_is_not_there_is_told(broker: Broker) -> None:
    with pytest.raises(Exception, match="has 3 partitions, and 9 is not among them"):
        appender(broker).append(some([TopicPartition("t", 9)]))


def test_who_is_fenced_is_told_that_nothing_is_lost() -> None:
    error = refused("a batch", ErrorCode.PRODUCER_FENCED)
    assert isinstance(error, Fenced)
    assert "another run of this query has taken over" in str(error)
    assert str(refused("the question", ErrorCode.GROUP_AUTHORIZATION_FAILED)).startswith("The question was refused: GROUP_AUTH")


def test_a_session_that_ends_is_renewed_before_a_batch_is_sent(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    send = BrokerSocket.send

    def recorded(self: BrokerSocket, *args: Any) -> None:
        done.append("send")
        send(self, *args)

    monkeypatch.setattr(BrokerSocket, "renew", lambda self: done.append("renew"))
    monkeypatch.setattr(BrokerSocket, "send", recorded)
    appender(broker).append(some(P))
    assert done == ["renew", "send"] * (len(done) // 2) and done


def test_a_refused_session_leaves_no_connection_with_an_answer_that_nothing_reads() -> None:
    class Connection:
        def __init__(self, address: str) -> None:
            self.address, self.features, self.unread = address, {}, 0

        def renew(self) -> None:
            if self.address == "b":
                raise NotAuthenticated("the password has changed")

        def send(self, *_: Any) -> None:
            self.unread += 1

    found, forgotten = [Connection("a"), Connection("b")], []

    class Leaders:
        def hint(self, at: TopicPartition) -> None:
            return None

        def leader_socket(self, at: TopicPartition, hint: None) -> tuple[Connection, int]:
            return found[at.partition], 0

        def forget(self, connection: Connection) -> None:
            forgotten.append(connection.address)

        def pauses(self, timeout_ms: int) -> Iterator[str]:
            yield ""

    with pytest.raises(NotAuthenticated):
        Appender(cast(Cluster, Leaders()), 1000, 1000).append(some(P[:2]))
    assert ([each.unread for each in found], forgotten) == ([0, 0], ["b"])


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Write on the topic, Read and Write on the staging topic"),
        (ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "Write on the transactional ids with the prefix tidelog-sink-"),
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, "Read on the groups with the prefix tidelog-sink-"),
    ],
)
def test_a_missing_right_is_told(error: ErrorCode, says: str) -> None:
    assert f"{error.name}" in str(refused("the request", error))
    assert says in str(refused("the request", error))
