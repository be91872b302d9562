"""WriteTxnMarkers over the wire."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.broker.apis.live import Talk
from tests.unit.broker.apis.txn_talk import TransactionalTalk
from tidelog.model.errors import ErrorCode as E
from tidelog.model.ids import OFFSETS_TOPIC
from tidelog.protocol.messages.describe_producers import DescribeProducersRequest, ProducerState, TopicRequest
from tidelog.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tidelog.protocol.messages.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from tidelog.testing import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        running.create_topic("t", partitions=3)
        yield running


def mark(talk: Talk, *markers: WritableTxnMarker, version: int = 2) -> dict[tuple[int, str, int], int]:
    answer = talk.ask(WriteTxnMarkersRequest(markers=list(markers)), version)
    return {
        (result.producer_id, topic.name, partition.partition_index): partition.error_code
        for result in answer.markers
        for topic in result.topics
        for partition in topic.partitions
    }


def marker(
    producer_id: int, epoch: int, *partitions: int, topic: str = "t", coordinator: int = 0, **more: int
) -> WritableTxnMarker:
    topics = [WritableTxnMarkerTopic(name=topic, partition_indexes=list(partitions))]
    return WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=epoch,
        transaction_result=True,
        topics=topics,
        coordinator_epoch=coordinator,
        **more,
    )


def stable_offset(talk: Talk, partition: int) -> int:
    wanted = ListOffsetsTopic(name="t", partitions=[ListOffsetsPartition(partition_index=partition, timestamp=-1)])
    answer = talk.ask(ListOffsetsRequest(replica_id=-1, isolation_level=1, topics=[wanted]), 7)
    offset: int = answer.topics[0].partitions[0].offset
    return offset


def state(talk: Talk, partition: int, producer_id: int) -> ProducerState:
    request = DescribeProducersRequest(topics=[TopicRequest(name="t", partition_indexes=[partition])])
    producers: list[ProducerState] = talk.ask(request, 0).topics[0].partitions[0].active_producers
    (found,) = [each for each in producers if each.producer_id == producer_id]
    return found


@pytest.mark.parametrize("version", [1, 2])
def test_a_marker_ends_a_transaction_and_is_told_of_each_partition(talk: Talk, version: int) -> None:
    producer = TransactionalTalk(talk, f"told-{version}")
    producer.add("t", 0)
    before = stable_offset(talk, 0)
    assert producer.produce("t") == 0
    assert stable_offset(talk, 0) == before
    assert state(talk, 0, producer.producer_id).current_txn_start_offset == before
    answers = mark(talk, marker(producer.producer_id, producer.epoch, 0, 1, 9, coordinator=4), version=version)
    assert answers == {
        (producer.producer_id, "t", 0): 0,
        (producer.producer_id, "t", 1): 0,
        (producer.producer_id, "t", 9): E.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert stable_offset(talk, 0) == before + 2
    found = state(talk, 0, producer.producer_id)
    assert (found.current_txn_start_offset, found.coordinator_epoch, found.producer_epoch) == (-1, 4, producer.epoch)


def test_a_partition_without_the_producers_data_gets_the_marker(talk: Talk) -> None:
    before = stable_offset(talk, 2)
    assert mark(talk, marker(4711, 3, 2)) == {(4711, "t", 2): 0}
    assert stable_offset(talk, 2) == before + 1
    assert state(talk, 2, 4711).producer_epoch == 3


def test_late_markers_and_old_coordinators_are_fenced(talk: Talk) -> None:
    assert mark(talk, marker(5000, 3, 1, coordinator=7)) == {(5000, "t", 1): 0}
    assert mark(talk, marker(5000, 2, 1, coordinator=7)) == {(5000, "t", 1): E.INVALID_PRODUCER_EPOCH}
    assert mark(talk, marker(5000, 3, 1, coordinator=6)) == {(5000, "t", 1): E.TRANSACTION_COORDINATOR_FENCED}
    assert mark(talk, marker(5000, 3, 1, coordinator=7, transaction_version=2)) == {(5000, "t", 1): 0}, "a retry"


def test_markers_of_several_transactions_are_answered_together(talk: Talk) -> None:
    answers = mark(talk, marker(6000, 0, 0), marker(6001, 0, 1), marker(6000, 0, 0, topic="gone"))
    assert answers == {(6000, "t", 0): 0, (6001, "t", 1): 0, (6000, "gone", 0): E.UNKNOWN_TOPIC_OR_PARTITION}
    assert mark(talk) == {}


def test_markers_of_nobody_are_not_written(talk: Talk) -> None:
    before = stable_offset(talk, 2)
    assert mark(talk, marker(-1, 0, 2)) == {(-1, "t", 2): E.INVALID_REQUEST}
    assert mark(talk, marker(6100, -1, 2)) == {(6100, "t", 2): E.INVALID_REQUEST}
    assert stable_offset(talk, 2) == before


def test_the_last_of_two_markers_for_a_partition_is_the_one_that_is_told_of(talk: Talk) -> None:
    answers = mark(talk, marker(6200, 5, 2, 2), marker(6200, 4, 2))
    assert answers == {(6200, "t", 2): E.INVALID_PRODUCER_EPOCH}


def test_a_marker_for_groups_goes_through_their_coordinator(talk: Talk) -> None:
    assert mark(talk, marker(7000, 0, 0, topic=OFFSETS_TOPIC)) == {(7000, OFFSETS_TOPIC, 0): 0}
