from __future__ import annotations

from typing import Any

import pytest

from tests.unit.replication.followed import follow, led, produce
from tests.unit.replication.world import NOW_MS, Pending, World, batch, led_by_us
from tidelog.broker.apis.records.offsets import delete_records, list_offsets, offset_for_leader_epoch
from tidelog.metadata.image import PartitionImage
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from tidelog.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from tidelog.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tidelog.storage.verification_guard import NOT_REQUIRED

FOLLOWED = PartitionImage((1, 2), (1, 2), 1, directories=(b"A" * 16, b"C" * 16))


def asked(*timestamps: int, replica_id: int = -1, isolation_level: int = 0) -> ListOffsetsRequest:
    """Partition n of topic t, by its n-th timestamp."""
    partitions = [ListOffsetsPartition(partition_index=n, timestamp=timestamp) for n, timestamp in enumerate(timestamps)]
    return ListOffsetsRequest(replica_id=replica_id, isolation_level=isolation_level, topics=[ListOffsetsTopic("t", partitions)])


def send(world: World, request: ListOffsetsRequest, version: int = 11) -> list[ListOffsetsPartitionResponse]:
    ctx = world.context(version)
    answer: Any = list_offsets(ctx, request)
    if not isinstance(answer, ListOffsetsResponse):
        pending = Pending(ctx, answer)
        while not pending.done:
            pending.go_on()
        answer = pending.answer
    again = ListOffsetsResponse.decode(answer.encode(version), version)
    return again.topics[0].partitions


def world_with_records() -> World:
    world = World()
    world.create("t", led_by_us(leader_epoch=2), led_by_us(leader_epoch=2))
    world.partition("t", 0).append(batch(b"a", b"b", timestamp=1000), NOW_MS, 1)
    world.partition("t", 1).append(batch(b"c", timestamp=5000), NOW_MS, 1)
    return world


def test_special_timestamps_and_times_are_answered_in_one_request() -> None:
    found = [(p.error_code, p.offset, p.timestamp, p.leader_epoch) for p in send(world_with_records(), asked(-1, 4000))]
    assert found == [(0, 2, -1, 2), (0, 0, 5000, 2)]


@pytest.mark.parametrize(("timestamp", "since"), [(-1, 1), (-2, 1), (-3, 7), (-4, 8), (-5, 9), (-6, 11)])
def test_a_special_timestamp_is_known_from_its_version_on(timestamp: int, since: int) -> None:
    for version in range(1, 12):
        (answer,) = send(world_with_records(), asked(timestamp), version)
        assert answer.error_code == (ErrorCode.NONE if version >= since else ErrorCode.UNSUPPORTED_VERSION), version


def test_an_unknown_special_timestamp_is_an_unsupported_version() -> None:
    assert send(world_with_records(), asked(-7))[0].error_code == ErrorCode.UNSUPPORTED_VERSION


def test_old_versions_have_no_leader_epoch_to_fill() -> None:
    assert send(world_with_records(), asked(-1), 3)[0].leader_epoch == -1
    assert send(world_with_records(), asked(-1), 4)[0].leader_epoch == 2


def test_a_partition_named_twice_is_an_error_of_both() -> None:
    request = asked(-1, -1)
    request.topics[0].partitions[1].partition_index = 0
    assert [p.error_code for p in send(world_with_records(), request)] == [ErrorCode.INVALID_REQUEST] * 2


def test_unknown_partitions_fail_alone() -> None:
    errors = [p.error_code for p in send(world_with_records(), asked(-1, -1, -1))]
    assert errors == [0, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_a_leader_that_has_not_caught_up_asks_for_patience_in_the_words_of_the_version() -> None:
    world = World()
    world.create("t", FOLLOWED)
    world.partition("t").append(batch(), NOW_MS, 1)
    world.partition("t").update_metadata(PartitionImage((1, 2), (1, 2), 1, leader_epoch=1))
    assert send(world, asked(-1), 5)[0].error_code == ErrorCode.OFFSET_NOT_AVAILABLE
    assert send(world, asked(-1), 4)[0].error_code == ErrorCode.LEADER_NOT_AVAILABLE


def test_a_disk_that_fails_during_a_search_is_a_storage_error_of_that_partition() -> None:
    world = World(dirs=2)
    world.create("t", led_by_us(), led_by_us(directories=(b"B" * 16,)))
    for index in (0, 1):
        world.partition("t", index).append(batch(timestamp=1000), NOW_MS, 1)
    world.disk.broken.append(("/data0", "read"))
    assert [p.error_code for p in send(world, asked(1000, 1000))] == [ErrorCode.KAFKA_STORAGE_ERROR, 0]
    assert world.partition("t", 0).log is None


def test_replicas_see_the_log_end_and_readers_of_committed_records_the_last_stable_offset() -> None:
    world = World()
    world.create("t")
    world.partition("t").append(batch(), NOW_MS, 1)
    open_transaction = batch(producer_id=9, producer_epoch=0, base_sequence=0, transactional=True)
    world.partition("t").append(open_transaction, NOW_MS, 1, proof=NOT_REQUIRED)
    assert send(world, asked(-1))[0].offset == 2
    assert send(world, asked(-1, isolation_level=1))[0].offset == 1
    assert send(world, asked(-1, isolation_level=1, replica_id=2))[0].offset == 2


def test_the_end_of_an_epoch_is_answered_partition_by_partition() -> None:
    world = world_with_records()
    partitions = [OffsetForLeaderPartition(0, 2, 2), OffsetForLeaderPartition(1, 1, 2), OffsetForLeaderPartition(9, -1, 2)]
    request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic("t", partitions)])
    answer = offset_for_leader_epoch(world.context(4), request).topics[0].partitions
    assert [(p.partition, p.error_code, p.leader_epoch, p.end_offset) for p in answer] == [
        (0, 0, 2, 2),
        (1, ErrorCode.FENCED_LEADER_EPOCH, -1, -1),
        (9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1),
    ]


def test_records_are_deleted_partition_by_partition() -> None:
    world = world_with_records()
    world.create("__consumer_offsets")

    def delete(topic: str, *offsets: int) -> list[tuple[int, int]]:
        partitions = [DeleteRecordsPartition(n, offset) for n, offset in enumerate(offsets)]
        request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(topic, partitions)])
        return [(p.error_code, p.low_watermark) for p in delete_records(world.context(2), request).topics[0].partitions]

    assert delete("t", -1, 9, 0) == [(0, 2), (ErrorCode.OFFSET_OUT_OF_RANGE, -1), (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)]
    assert delete("__consumer_offsets", -1) == [(ErrorCode.INVALID_TOPIC_EXCEPTION, -1)]
    assert send(world, asked(-2))[0].offset == 2


def deleting(world: World, offset: int) -> Pending:
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name="t", partitions=[DeleteRecordsPartition(partition_index=0, offset=offset)])],
        timeout_ms=1000,
    )
    ctx = world.context(2)
    answer: Any = delete_records(ctx, request)
    return Pending(ctx, answer)


def test_a_deletion_waits_for_the_followers_that_live() -> None:
    world = World()
    world.create("t", led())
    partition = world.partition("t")
    produce(partition, 4)
    follow(partition, 4)
    pending = deleting(world, 3)
    follow(partition, 4, log_start=2)
    assert not pending.done and pending.parked is not None and not pending.parked.done
    follow(partition, 4, log_start=3)
    pending.go_on()
    (result,) = pending.answer.topics[0].partitions
    assert (result.error_code, result.low_watermark) == (ErrorCode.NONE, 3)


def test_a_deletion_that_a_follower_does_not_follow_times_out_and_one_of_a_former_leader_is_told() -> None:
    world = World()
    world.create("t", led())
    partition = world.partition("t")
    produce(partition, 4)
    follow(partition, 4)
    pending = deleting(world, 2)
    pending.expire()
    assert pending.answer.topics[0].partitions[0].error_code == ErrorCode.REQUEST_TIMED_OUT
    pending = deleting(world, 3)
    partition.update_metadata(led_by_us(leader=2, leader_epoch=3, partition_epoch=3))
    pending.go_on()
    assert pending.answer.topics[0].partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
