from __future__ import annotations

from tests.unit.replication.world import topic_id
from tidelog.model.errors import ErrorCode
from tidelog.replication.fetch_partition import FetchPartition
from tidelog.replication.reads import PartitionRead


def wanted() -> FetchPartition:
    return FetchPartition("t", topic_id("t"), 3)


def test_what_is_asked_replaces_what_was_asked_before() -> None:
    partition = wanted()
    partition.ask((3, 5, 100, -1, 0, 1 << 20))
    partition.ask((3, 6, 200, 4, 10, 50))
    found = partition.current_leader_epoch, partition.fetch_offset, partition.last_fetched_epoch, partition.follower_start
    assert (*found, partition.max_bytes) == (6, 200, 4, 10, 50)


def test_what_the_client_knows_already_is_no_answer() -> None:
    partition = wanted()
    read = PartitionRead(ErrorCode.NONE, 7, 6, 1)
    assert partition.answer(read)
    assert not partition.answer(read)
    assert partition.answer(PartitionRead(ErrorCode.NONE, 8, 6, 1))


def test_records_and_errors_are_always_an_answer() -> None:
    partition = wanted()
    partition.answer(PartitionRead(ErrorCode.NONE, 7, 7, 0))
    assert partition.answer(PartitionRead(ErrorCode.NONE, 7, 7, 0, size=10))
    refused = PartitionRead(ErrorCode.OFFSET_OUT_OF_RANGE)
    assert partition.answer(refused)
    assert partition.answer(refused)
