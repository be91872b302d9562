"""Markers of transactions in a partition: who may write one, and when it counts."""

import pytest

from tests.unit.replication.world import NOW_MS, World, batch, led_by_us
from tidelog.model.errors import ErrorCode
from tidelog.replication.marker_append import Marker, PendingMarker, write_marker
from tidelog.replication.partition import Partition
from tidelog.storage.append_rules import AppendResult
from tidelog.storage.log_config import LogConfig
from tidelog.storage.verification_guard import NOT_REQUIRED

COMMIT = Marker(7, 0, True, 3)
LATER_MS = NOW_MS + 30_000


def one_partition(config: LogConfig | None = None) -> tuple[World, Partition]:
    world = World()
    world.create("t", config=config)
    return world, world.partition("t")


def write(partition: Partition, epoch: int = 0, sequence: int = 0) -> None:
    records = batch(b"v", producer_id=7, producer_epoch=epoch, base_sequence=sequence, transactional=True)
    result = partition.append(records, NOW_MS, 1, proof=NOT_REQUIRED)
    assert isinstance(result, AppendResult) and result.error is ErrorCode.NONE


def test_a_marker_ends_the_transaction_and_moves_the_last_stable_offset() -> None:
    _, partition = one_partition()
    write(partition)
    assert partition.last_stable_offset == 0
    assert write_marker(partition, COMMIT, NOW_MS, LATER_MS) is ErrorCode.NONE
    assert partition.last_stable_offset == 2


def test_a_marker_is_written_where_the_producer_has_no_data() -> None:
    _, partition = one_partition()
    assert write_marker(partition, Marker(7, 4, False, 3), NOW_MS, LATER_MS) is ErrorCode.NONE
    assert partition.log is not None
    entry = partition.log.producers.entries[7]
    assert (partition.log.log_end_offset, entry.epoch, entry.coordinator_epoch) == (1, 4, 3)
    assert partition.log.active.transactions() == []


def test_the_last_stable_offset_holds_until_the_marker_is_safe() -> None:
    world, partition = one_partition(LogConfig(flush_messages=1))
    write(partition)
    pending = write_marker(partition, COMMIT, NOW_MS, LATER_MS)
    assert isinstance(pending, PendingMarker) and not pending.done
    assert pending.result() is ErrorCode.REQUEST_TIMED_OUT
    assert partition.last_stable_offset == 0
    world.run_jobs()
    assert pending.done and pending.result() is ErrorCode.NONE
    assert partition.last_stable_offset == 2


def test_a_marker_that_waits_is_told_when_the_partition_moves() -> None:
    _, partition = one_partition(LogConfig(flush_messages=1))
    pending = write_marker(partition, COMMIT, NOW_MS, LATER_MS)
    assert isinstance(pending, PendingMarker)
    partition.update_metadata(led_by_us(leader=2, leader_epoch=9))
    assert pending.done and pending.result() is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert write_marker(partition, COMMIT, NOW_MS, LATER_MS) is ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(
    ("marker", "expected"),
    [
        (Marker(7, 1, True, 3, transaction_version=1), ErrorCode.NONE),
        (Marker(7, 0, True, 3, transaction_version=1), ErrorCode.INVALID_PRODUCER_EPOCH),
        (Marker(7, 1, True, 3, transaction_version=2), ErrorCode.INVALID_PRODUCER_EPOCH),
        (Marker(7, 2, True, 3, transaction_version=2), ErrorCode.NONE),
    ],
    ids=["same epoch before version 2", "older epoch", "same epoch from version 2 on is late", "bumped epoch"],
)
def test_which_epoch_a_marker_must_have_depends_on_the_transaction_version(marker: Marker, expected: ErrorCode) -> None:
    """Since version 2 an equal epoch is the former transaction's, and must not end this one (KIP-890, KIP-1228)."""
    _, partition = one_partition()
    write(partition, epoch=1)
    assert write_marker(partition, marker, NOW_MS, LATER_MS) is expected


def test_a_marker_that_comes_again_after_the_transaction_ended_is_welcome() -> None:
    _, partition = one_partition()
    write(partition, epoch=1)
    again = Marker(7, 2, True, 3, transaction_version=2)
    assert write_marker(partition, again, NOW_MS, LATER_MS) is ErrorCode.NONE
    assert write_marker(partition, again, NOW_MS, LATER_MS) is ErrorCode.NONE
    write(partition, epoch=2)
    assert write_marker(partition, again, NOW_MS, LATER_MS) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_an_old_coordinator_is_fenced() -> None:
    _, partition = one_partition()
    assert write_marker(partition, COMMIT, NOW_MS, LATER_MS) is ErrorCode.NONE
    older = Marker(7, 0, True, 2)
    assert write_marker(partition, older, NOW_MS, LATER_MS) is ErrorCode.TRANSACTION_COORDINATOR_FENCED
