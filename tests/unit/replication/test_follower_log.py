from __future__ import annotations

import pytest

from tests.unit.replication.followed import follow, followed, produce
from tests.unit.replication.world import DIRECTORY_IDS, NOW_MS, World, batch
from tidelog.metadata.image import PartitionImage
from tidelog.model.errors import KafkaError
from tidelog.records.batch import assign_offsets, read_header
from tidelog.replication import follower_log
from tidelog.replication.follower_log import Position, position, truncation_offset
from tidelog.replication.partition import Partition
from tidelog.storage.truncation import Deferred
from tidelog.storage.unified_log import UnifiedLog


def follower() -> tuple[World, Partition, UnifiedLog]:
    world = World(broker_id=2)
    world.create("t", PartitionImage((1, 2), (1, 2), 1, leader_epoch=4, directories=(DIRECTORY_IDS[0], DIRECTORY_IDS[0])))
    partition = world.partition("t")
    assert partition.log is not None
    return world, partition, partition.log


def sent(base_offset: int, epoch: int, count: int = 1) -> memoryview:
    """A batch as a leader has it."""
    records = batch(*[b"v"] * count)
    assign_offsets(records, read_header(records), base_offset, epoch)
    return records


def test_an_empty_log_has_no_epoch_to_compare() -> None:
    _, _, log = follower()
    assert position(log) == Position(0, -1, 0)


def test_a_leaders_batches_keep_their_offsets_and_epochs_but_those_of_a_later_epoch_than_was_asked_in_do_not_come_in() -> None:
    world, partition, log = follower()
    both = memoryview(bytes(sent(0, 3, 2)) + bytes(sent(2, 5)))
    follower_log.append(partition, world.logs, both, leader_epoch=4, now_ms=NOW_MS)
    assert position(log) == Position(2, 3, 0)


def test_watermarks_are_taken_over_as_far_as_the_log_goes_and_never_back() -> None:
    world, partition, log = follower()
    follower_log.append(partition, world.logs, sent(0, 3, 5), 4, NOW_MS)
    partition.take_watermarks(9, 2)
    assert (log.high_watermark, log.log_start_offset) == (5, 2)
    partition.take_watermarks(3, 1)
    assert (log.high_watermark, log.log_start_offset) == (5, 2)
    partition.take_watermarks(5, 7)
    assert log.log_start_offset == 5


@pytest.mark.parametrize(
    ("leader_epoch", "leader_end", "cut"),
    [
        (4, 9, 9),
        (4, 12, 10),
        (3, 7, 6),
        (3, 5, 5),
        (2, 8, 3),
        (0, 8, 0),
        (-1, 8, 8),
        (4, -1, 2),
    ],
    ids=[
        "in our last epoch the leader ended earlier",
        "in our last epoch the leader ended later",
        "our epoch ended earlier than the leader's",
        "the leader's ended earlier than ours",
        "an epoch that we skipped: where the one before it ended here",
        "older than all of ours",
        "no epochs at the leader",
        "the leader knows nothing: our high watermark",
    ],
)
def test_where_a_log_is_cut(leader_epoch: int, leader_end: int, cut: int) -> None:
    world, partition, log = follower()
    for base, epoch, count in ((0, 1, 3), (3, 3, 3), (6, 4, 4)):
        follower_log.append(partition, world.logs, sent(base, epoch, count), 4, NOW_MS)
    log.update_high_watermark(2)
    assert truncation_offset(log, leader_epoch, leader_end) == cut


def test_truncating_the_last_segment_defers_its_sync_and_ends_the_waits_of_readers() -> None:
    world, partition, log = follower()
    follower_log.append(partition, world.logs, sent(0, 3), 4, NOW_MS)
    follower_log.append(partition, world.logs, sent(1, 3), 4, NOW_MS)
    deferred: Deferred = []
    follower_log.truncate(partition, world.logs, 1, NOW_MS, deferred)
    assert log.log_end_offset == 1 and len(deferred) == 1
    follower_log.truncate(partition, world.logs, 5, NOW_MS, deferred)
    assert log.log_end_offset == 1 and len(deferred) == 1
    log.check()


def test_truncating_into_an_earlier_segment_leaves_nothing_to_defer() -> None:
    world, partition, log = follower()
    follower_log.append(partition, world.logs, sent(0, 3, 3), 4, NOW_MS)
    log.roll(NOW_MS)
    follower_log.append(partition, world.logs, sent(3, 3), 4, NOW_MS)
    world.run_jobs()
    deferred: Deferred = []
    follower_log.truncate(partition, world.logs, 1, NOW_MS, deferred)
    assert (log.log_end_offset, len(log.segments), deferred) == (0, 1, [])


def test_starting_over_forgets_everything_below() -> None:
    world, partition, log = follower()
    follower_log.append(partition, world.logs, sent(0, 3, 3), 4, NOW_MS)
    follower_log.start_over(partition, world.logs, 40, NOW_MS)
    assert position(log) == Position(40, -1, 40)
    follower_log.append(partition, world.logs, sent(40, 4), 4, NOW_MS)
    assert log.log_end_offset == 41


def test_a_leaders_read_and_a_followers_append_give_the_same_log() -> None:
    _, leader = followed()
    world, partition, log = follower()
    produce(leader, 3)
    read = follow(leader, 0)
    assert read.records is not None
    follower_log.append(partition, world.logs, memoryview(read.records.read()), 0, NOW_MS)
    assert log.log_end_offset == 3 and log.leader_epochs.entries() == [(0, 0)]


def test_an_empty_log_that_starts_within_a_leaders_batch_begins_with_the_whole_of_it_and_nothing_deleted_comes_back() -> None:
    world, partition, log = follower()
    follower_log.start_over(partition, world.logs, 4, NOW_MS)
    follower_log.append(partition, world.logs, memoryview(bytes(sent(2, 3, 5)) + bytes(sent(7, 3))), 4, NOW_MS)
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (4, 8, 4)
    assert log.active.base_offset == 2
    with pytest.raises(KafkaError, match="follows offset 7"):
        follower_log.append(partition, world.logs, sent(6, 3, 5), 4, NOW_MS)
    log.check()


@pytest.mark.parametrize("spoiled", [17, 16, 60], ids=["checksum", "magic", "count"])
def test_a_batch_around_the_start_that_is_none_moves_nothing(spoiled: int) -> None:
    world, partition, log = follower()
    follower_log.start_over(partition, world.logs, 4, NOW_MS)
    records = bytearray(sent(2, 3, 5))
    records[spoiled] ^= 0xFF
    with pytest.raises(KafkaError):
        follower_log.append(partition, world.logs, memoryview(records), 4, NOW_MS)
    assert (log.log_start_offset, log.log_end_offset) == (4, 4)


def test_the_very_last_offset_is_given_to_no_record() -> None:
    world, partition, log = follower()
    with pytest.raises(KafkaError, match="INVALID_RECORD"):
        follower_log.append(partition, world.logs, sent(2**63 - 1, 3), 4, NOW_MS)
    assert log.log_end_offset == 0
