"""The share coordinator's requests, as another broker sends them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.unit.broker.apis.live import RETRY, Talk
from tidelog.model.errors import ErrorCode as E
from tidelog.model.ids import uuid_to_text
from tidelog.protocol.messages import delete_share_group_state as deleting
from tidelog.protocol.messages import initialize_share_group_state as initializing
from tidelog.protocol.messages import read_share_group_state as reading
from tidelog.protocol.messages import read_share_group_state_summary as summing
from tidelog.protocol.messages import write_share_group_state as writing
from tidelog.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tidelog.protocol.messages.find_coordinator import FindCoordinatorRequest
from tidelog.testing import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(config={"share.coordinator.state.topic.num.partitions": 3}) as running:
        yield running


@pytest.fixture
def talk(broker: Broker) -> Iterator[Talk]:
    talk = Talk(broker.port)
    yield talk
    talk.close()


@pytest.fixture(scope="module")
def topic_id(broker: Broker) -> bytes:
    talk = Talk(broker.port)
    created = talk.ask(CreateTopicsRequest(topics=[CreatableTopic("t", 2, 1)], timeout_ms=10_000), 7).topics[0]
    for partition in range(2):
        key = f"g:{uuid_to_text(created.topic_id)}:{partition}"
        deadline = time.monotonic() + 10
        while (found := talk.ask(FindCoordinatorRequest(key_type=2, coordinator_keys=[key]), 6).coordinators[0]).error_code:
            assert found.error_code in RETRY and time.monotonic() < deadline, found
            time.sleep(0.01)
        assert found.port == broker.port
    talk.close()
    return bytes(created.topic_id)


def one(response: Any) -> Any:
    (topic,) = response.results
    (partition,) = topic.partitions
    return partition


def initialize(talk: Talk, topic_id: bytes, partition: int, *, epoch: int = 1, start: int = -1) -> Any:
    data = initializing.PartitionData(partition, epoch, start)
    topics = [initializing.InitializeStateData(topic_id, [data])]
    return one(talk.ask(initializing.InitializeShareGroupStateRequest("g", topics), 0))


def write(talk: Talk, topic_id: bytes, partition: int, batch: writing.StateBatch, *, state: int = 1, leader: int = 0) -> Any:
    data = writing.PartitionData(partition, state, leader, 0, 5, [batch])
    return one(talk.ask(writing.WriteShareGroupStateRequest("g", [writing.WriteStateData(topic_id, [data])]), 1))


def read(talk: Talk, topic_id: bytes, partition: int, leader: int = 0) -> Any:
    topics = [reading.ReadStateData(topic_id, [reading.PartitionData(partition, leader)])]
    return one(talk.ask(reading.ReadShareGroupStateRequest("g", topics), 0))


def test_a_state_lives_from_its_initialization_to_its_end(talk: Talk, topic_id: bytes) -> None:
    assert read(talk, topic_id, 0).error_code == E.INVALID_REQUEST
    assert initialize(talk, topic_id, 0).error_code == 0
    assert write(talk, topic_id, 0, writing.StateBatch(0, 4, 2, 1)).error_code == 0
    found = read(talk, topic_id, 0)
    assert (found.error_code, found.state_epoch, found.start_offset) == (0, 1, 0)
    assert [(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count) for each in found.state_batches] == [
        (0, 4, 2, 1)
    ]
    topics = [summing.ReadStateSummaryData(topic_id, [summing.PartitionData(each, -1) for each in (0, 1)])]
    (answered,) = talk.ask(summing.ReadShareGroupStateSummaryRequest("g", topics), 1).results
    assert [(each.start_offset, each.delivery_complete_count) for each in answered.partitions] == [(0, 5), (-1, -1)]
    gone = [deleting.DeleteStateData(topic_id, [deleting.PartitionData(0)])]
    assert one(talk.ask(deleting.DeleteShareGroupStateRequest("g", gone), 0)).error_code == 0
    assert read(talk, topic_id, 0).error_code == E.INVALID_REQUEST


def test_leaders_that_were_replaced_are_fenced(talk: Talk, topic_id: bytes) -> None:
    initialize(talk, topic_id, 1, epoch=2)
    assert read(talk, topic_id, 1, leader=3).error_code == 0
    assert write(talk, topic_id, 1, writing.StateBatch(0, 4, 2, 1), state=2, leader=2).error_code == E.FENCED_LEADER_EPOCH
    assert write(talk, topic_id, 1, writing.StateBatch(0, 4, 2, 1), state=1, leader=3).error_code == E.FENCED_STATE_EPOCH


@pytest.mark.parametrize("batch", [(5, 4, 2, 1), (-1, 4, 2, 1), (0, 4, 1, 1), (0, 4, 9, 1), (0, 4, 2, -1)])
def test_a_batch_that_cannot_be_is_refused(talk: Talk, topic_id: bytes, batch: tuple[int, int, int, int]) -> None:
    initialize(talk, topic_id, 0)
    assert write(talk, topic_id, 0, writing.StateBatch(*batch)).error_code == E.INVALID_REQUEST
    assert read(talk, topic_id, 0).state_batches == []


def test_a_topic_that_does_not_exist_has_no_state(talk: Talk, topic_id: bytes) -> None:
    assert initialize(talk, topic_id, 2).error_code == E.UNKNOWN_TOPIC_OR_PARTITION
    assert initialize(talk, b"\1" * 16, 0).error_code in (E.UNKNOWN_TOPIC_OR_PARTITION, *RETRY)


@pytest.mark.parametrize("key", ["x", "g:x:0", ":AAAAAAAAAAAAAAAAAAAAAQ:0", "g:AAAAAAAAAAAAAAAAAAAAAQ:x"])
def test_what_is_no_share_partition_has_no_coordinator(talk: Talk, key: str) -> None:
    answer = talk.ask(FindCoordinatorRequest(key_type=2, coordinator_keys=[key]), 6).coordinators[0]
    assert answer.error_code == E.INVALID_REQUEST


def test_without_a_group_there_is_no_state(talk: Talk, topic_id: bytes) -> None:
    topics = [initializing.InitializeStateData(topic_id, [initializing.PartitionData(0, 1, 0)])]
    assert talk.ask(initializing.InitializeShareGroupStateRequest("", topics), 0).results == []
