from __future__ import annotations

from tests.unit.replication.world import NOW_MS, World, batch, led_by_us
from tidelog.metadata.image import PartitionImage
from tidelog.model import ids
from tidelog.model.errors import ErrorCode
from tidelog.replication.offset_lookup import OffsetAnswer, TimestampLookup, list_offset, offset_for_leader_epoch
from tidelog.replication.partition import Partition


def append(partition: Partition, records: memoryview) -> None:
    partition.append(records, NOW_MS, 1)


def one_partition() -> tuple[World, Partition]:
    world = World()
    world.create("t")
    return world, world.partition("t")


def look_up(answer: OffsetAnswer | TimestampLookup) -> OffsetAnswer:
    return answer.finish(answer.run()) if isinstance(answer, TimestampLookup) else answer


def test_special_timestamps_have_the_offset_and_the_epoch_of_what_is_there() -> None:
    _, partition = one_partition()
    append(partition, batch(b"a", b"b", timestamp=NOW_MS - 100))
    partition.update_metadata(led_by_us(leader_epoch=7))
    append(partition, batch(b"c", timestamp=NOW_MS - 500))
    answers = {special: look_up(list_offset(partition, special, -1, committed=False)) for special in range(-6, 0)}
    none = OffsetAnswer(ErrorCode.NONE)
    assert answers == {
        ids.LATEST_TIMESTAMP: OffsetAnswer(ErrorCode.NONE, 3, 7),
        ids.EARLIEST_TIMESTAMP: OffsetAnswer(ErrorCode.NONE, 0, 0),
        ids.MAX_TIMESTAMP: OffsetAnswer(ErrorCode.NONE, 1, 0, NOW_MS - 99),
        ids.EARLIEST_LOCAL_TIMESTAMP: OffsetAnswer(ErrorCode.NONE, 0, 0),
        ids.LATEST_TIERED_TIMESTAMP: none,
        ids.EARLIEST_PENDING_UPLOAD_TIMESTAMP: none,
    }


def test_a_search_by_time_finds_the_first_record_at_or_after_it() -> None:
    _, partition = one_partition()
    append(partition, batch(b"a", b"b", timestamp=1000))
    append(partition, batch(b"c", timestamp=2000))
    found = {ts: look_up(list_offset(partition, ts, -1, committed=False)) for ts in (0, 1001, 1500, 2001)}
    assert found == {
        0: OffsetAnswer(ErrorCode.NONE, 0, 0, 1000),
        1001: OffsetAnswer(ErrorCode.NONE, 1, 0, 1001),
        1500: OffsetAnswer(ErrorCode.NONE, 2, 0, 2000),
        2001: OffsetAnswer(ErrorCode.NONE),
    }


def test_an_empty_log_has_offsets_but_no_epoch_of_records() -> None:
    _, partition = one_partition()
    assert look_up(list_offset(partition, -2, -1, committed=False)) == OffsetAnswer(ErrorCode.NONE, 0, -1)
    assert look_up(list_offset(partition, -1, -1, committed=False)) == OffsetAnswer(ErrorCode.NONE, 0, 0)
    assert look_up(list_offset(partition, -3, -1, committed=False)) == OffsetAnswer(ErrorCode.NONE)


def test_a_new_leader_that_has_not_caught_up_says_so_instead_of_naming_an_older_end() -> None:
    world = World()
    world.create("t", led_by_us())
    partition = world.partition("t")
    partition.update_metadata(PartitionImage((1, 2), (1, 2), 1, leader_epoch=1, directories=(b"A" * 16, b"C" * 16)))
    append(partition, batch(b"a"))
    partition.update_metadata(PartitionImage((1, 2), (1, 2), 1, leader_epoch=2, directories=(b"A" * 16, b"C" * 16)))
    assert look_up(list_offset(partition, -1, -1, committed=False)).error == ErrorCode.OFFSET_NOT_AVAILABLE
    assert look_up(list_offset(partition, NOW_MS + 5, -1, committed=False)).error == ErrorCode.OFFSET_NOT_AVAILABLE
    assert look_up(list_offset(partition, -1, -1, committed=False, follower=True)).offset == 1


def test_an_epoch_ends_where_the_next_one_begins_and_the_current_one_at_the_log_end() -> None:
    _, partition = one_partition()
    append(partition, batch(b"a", b"b"))
    partition.update_metadata(led_by_us(leader_epoch=3))
    append(partition, batch(b"c"))
    ends = {epoch: offset_for_leader_epoch(partition, epoch, -1) for epoch in (0, 2, 3, 4)}
    assert ends == {
        0: OffsetAnswer(ErrorCode.NONE, 2, 0),
        2: OffsetAnswer(ErrorCode.NONE, 2, 0),
        3: OffsetAnswer(ErrorCode.NONE, 3, 3),
        4: OffsetAnswer(ErrorCode.NONE, -1, -1),
    }


def test_an_epoch_without_records_truncates_nobody() -> None:
    """A consumer that learned epoch 5 from ListOffsets, before a record was written in it, keeps its position after a restart."""
    _, partition = one_partition()
    append(partition, batch(b"a", b"b"))
    partition.update_metadata(led_by_us(leader_epoch=5))
    partition.update_metadata(led_by_us(leader_epoch=9))
    assert offset_for_leader_epoch(partition, 5, -1) == OffsetAnswer(ErrorCode.NONE, 2, 0)
    assert offset_for_leader_epoch(partition, 9, 9) == OffsetAnswer(ErrorCode.NONE, 2, 9)
    assert offset_for_leader_epoch(partition, 9, 8).error == ErrorCode.FENCED_LEADER_EPOCH


def test_a_search_in_a_log_that_is_gone_says_nothing_of_the_disk() -> None:
    world, partition = one_partition()
    append(partition, batch(b"a", timestamp=1000))
    lookup = list_offset(partition, 500, -1, committed=False)
    assert isinstance(lookup, TimestampLookup) and not lookup.is_moot
    world.delete("t")
    assert lookup.is_moot
