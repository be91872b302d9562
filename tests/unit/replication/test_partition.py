from __future__ import annotations

from tests.unit.replication.world import NOW_MS, World, batch, led_by_us
from tidelog.metadata.image import PartitionImage
from tidelog.model.errors import ErrorCode
from tidelog.records.control import EndTxnMarker, end_txn_marker_batch
from tidelog.replication.acks_and_min_isr import acknowledge
from tidelog.replication.offset_lookup import OffsetAnswer, list_offset
from tidelog.replication.partition import Partition
from tidelog.replication.reads import read_partition
from tidelog.replication.replica import Caller
from tidelog.storage.append_rules import AppendResult
from tidelog.storage.log_config import LogConfig
from tidelog.storage.rotten_range import RottenRange
from tidelog.storage.validation import DeepValidation
from tidelog.storage.verification_guard import NOT_REQUIRED


def append(partition: Partition, records: memoryview, acks: int = 1) -> AppendResult:
    result = partition.append(records, NOW_MS, acks, proof=NOT_REQUIRED)
    assert isinstance(result, AppendResult)
    return result


def one_partition(config: LogConfig | None = None) -> tuple[World, Partition]:
    world = World()
    world.create("t", config=config)
    return world, world.partition("t")


def test_an_append_of_the_only_replica_is_visible_at_once() -> None:
    _, partition = one_partition()
    result = append(partition, batch(b"a", b"b"))
    assert (result.error, result.first_offset, result.last_offset) == (ErrorCode.NONE, 0, 1)
    assert partition.is_safe(1, -1) and partition.is_safe(1, 1)
    read = read_partition(partition, 0, 1 << 20, min_one=True)
    assert (read.error, read.high_watermark, read.last_stable_offset, read.log_start_offset) == (ErrorCode.NONE, 2, 2, 0)
    assert read.records is not None and read.size == read.records.length


def test_a_fetch_of_damaged_records_is_told_so_and_one_behind_them_is_served() -> None:
    _, partition = one_partition()
    sizes = [len(append_one(partition)) for _ in range(3)]
    assert partition.log is not None
    partition.log.active.rotten = (RottenRange(sizes[0], sizes[0] + sizes[1], 1, 2),)
    first, damaged, behind = (read_partition(partition, offset, 1 << 20, min_one=True) for offset in range(3))
    assert (first.error, first.size) == (ErrorCode.NONE, sizes[0])
    assert (damaged.error, damaged.records, damaged.high_watermark) == (ErrorCode.CORRUPT_MESSAGE, None, -1)
    assert (behind.error, behind.size) == (ErrorCode.NONE, sizes[2])


def append_one(partition: Partition) -> memoryview:
    data = batch(b"a")
    append(partition, data)
    return data


def test_a_follower_refuses_to_append_and_to_serve_reads() -> None:
    world = World()
    world.create("t", PartitionImage((1, 2), (1, 2), 2, leader_epoch=3, directories=(b"A" * 16, b"C" * 16)))
    partition = world.partition("t")
    assert append(partition, batch()).error == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert read_partition(partition, 0, 100, min_one=True).error == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partition.delete_records(-1) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)


def test_the_leader_epoch_of_a_request_fences_both_ways_before_leadership_is_looked_at() -> None:
    world = World()
    world.create("t", PartitionImage((1, 2), (1, 2), 2, leader_epoch=3, directories=(b"A" * 16, b"C" * 16)))
    partition = world.partition("t")
    assert partition.check_leader(2) == ErrorCode.FENCED_LEADER_EPOCH
    assert partition.check_leader(4) == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert partition.check_leader(3) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert read_partition(partition, 0, 100, min_one=True, leader_epoch=2).error == ErrorCode.FENCED_LEADER_EPOCH


def test_acks_all_needs_min_insync_replicas_and_acks_one_does_not() -> None:
    world = World()
    two = PartitionImage((1, 2), (1,), 1, directories=(b"A" * 16, b"C" * 16))
    world.create("t", two, config=LogConfig(min_insync_replicas=2))
    partition = world.partition("t")
    assert append(partition, batch(), acks=-1).error == ErrorCode.NOT_ENOUGH_REPLICAS
    assert append(partition, batch(), acks=1).error == ErrorCode.NONE


def test_min_insync_replicas_never_exceeds_the_number_of_replicas() -> None:
    _, partition = one_partition(LogConfig(min_insync_replicas=2))
    assert append(partition, batch(), acks=-1).error == ErrorCode.NONE


def test_with_another_replica_in_sync_the_high_watermark_waits_for_it() -> None:
    world = World()
    world.create("t", PartitionImage((1, 2), (1, 2), 1, directories=(b"A" * 16, b"C" * 16)))
    partition = world.partition("t")
    assert append(partition, batch(), acks=-1).error == ErrorCode.NONE
    assert not partition.is_safe(0, -1) and partition.is_safe(0, 1)
    assert read_partition(partition, 0, 100, min_one=True).size == 0
    assert read_partition(partition, 0, 100, min_one=True, caller=Caller(2, -1, NOW_MS)).size > 0
    alone = PartitionImage((1, 2), (1,), 1, partition_epoch=1, directories=(b"A" * 16, b"C" * 16))
    partition.update_metadata(alone, NOW_MS + 30_001)
    assert partition.is_safe(0, -1)


def test_a_parked_fetch_of_a_lost_session_does_not_take_back_what_the_follower_said_since() -> None:
    world = World()
    world.create("t", PartitionImage((1, 2), (1, 2), 1, directories=(b"A" * 16, b"C" * 16)))
    partition = world.partition("t")
    lost, new = Caller(2, -1, NOW_MS), Caller(2, -1, NOW_MS + 10)
    read_partition(partition, 0, 100, min_one=True, caller=lost)
    append(partition, batch())
    read_partition(partition, 1, 100, min_one=True, caller=new)
    assert partition.leadership is not None
    follower = partition.leadership.replicas[2]
    assert read_partition(partition, 0, 100, min_one=True, caller=lost).size > 0, "it may be read, for a socket that is gone"
    assert follower.log_end_offset == 1
    lost.last_fetch_ms = NOW_MS + 20
    read_partition(partition, 0, 100, min_one=True, caller=lost)
    assert follower.log_end_offset == 0, "a fetch that came later says where the follower is now"


def test_records_that_must_be_flushed_are_neither_visible_nor_acknowledged_before() -> None:
    world, partition = one_partition(LogConfig(flush_messages=1))
    append(partition, batch(b"a"))
    append(partition, batch(b"b"))
    assert acknowledge(partition, 0, 1) == ErrorCode.REQUEST_TIMED_OUT
    assert not partition.is_safe(0, -1)
    assert read_partition(partition, 0, 100, min_one=True).size == 0
    assert world.run_jobs() == 2, "the first flush began with one batch, the second takes what came meanwhile"
    assert acknowledge(partition, 1, 1) == ErrorCode.NONE == acknowledge(partition, 1, -1)
    assert read_partition(partition, 0, 1000, min_one=True).high_watermark == 2


def test_one_flush_serves_everybody_who_appended_before_it_began() -> None:
    world, partition = one_partition(LogConfig(flush_messages=1))
    append(partition, batch(b"a"))
    job, done = world.jobs.pop()
    for _ in range(5):
        append(partition, batch(b"b"))
    assert not world.jobs, "one flush of a log at a time"
    job()
    done(NOW_MS)
    assert partition.is_safe(0, 1) and not partition.is_safe(1, 1)
    assert world.run_jobs() == 1
    assert partition.is_safe(5, 1)


def test_between_two_demanded_flushes_nothing_waits() -> None:
    world, partition = one_partition(LogConfig(flush_messages=3))
    append(partition, batch(b"a"))
    append(partition, batch(b"b"))
    assert partition.is_safe(1, -1) and not world.jobs
    append(partition, batch(b"c"))
    assert partition.is_safe(1, -1) and not partition.is_safe(2, 1)
    world.run_jobs()
    assert partition.is_safe(2, 1) and partition.log is not None and partition.log.high_watermark == 3


def test_a_failed_flush_takes_the_log_dir_offline_and_acknowledges_nothing() -> None:
    world, partition = one_partition(LogConfig(flush_messages=1))
    append(partition, batch())
    world.disk.broken.append(("/data0", "sync"))
    world.run_jobs()
    assert partition.log is None
    assert acknowledge(partition, 0, 1) == ErrorCode.KAFKA_STORAGE_ERROR
    assert append(partition, batch()).error == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_failed_write_and_a_failed_lookup_are_storage_errors() -> None:
    world, partition = one_partition()
    append(partition, batch())
    world.disk.broken.append(("/data0", "write"))
    assert append(partition, batch()).error == ErrorCode.KAFKA_STORAGE_ERROR
    assert read_partition(partition, 0, 100, min_one=True).error == ErrorCode.KAFKA_STORAGE_ERROR
    assert list_offset(partition, -2, -1, committed=False) == OffsetAnswer(ErrorCode.KAFKA_STORAGE_ERROR)
    assert partition.delete_records(-1) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)


def test_a_duplicate_is_answered_with_the_original_offsets() -> None:
    _, partition = one_partition()
    append(partition, batch(b"x", producer_id=5, producer_epoch=0, base_sequence=0))
    append(partition, batch(b"y", producer_id=5, producer_epoch=0, base_sequence=1))
    again = append(partition, batch(b"x", producer_id=5, producer_epoch=0, base_sequence=0))
    assert again.duplicate and (again.error, again.first_offset) == (ErrorCode.NONE, 0)
    assert partition.stats.messages_in == 2


def test_a_large_batch_that_must_be_walked_comes_back_as_a_job() -> None:
    _, partition = one_partition(LogConfig(cleanup_policy=frozenset({"compact"})))
    assert append(partition, batch(b"small")).error == ErrorCode.NONE
    deep = partition.append(batch(*[b"v"] * 100), NOW_MS, 1)
    assert isinstance(deep, DeepValidation)
    result = partition.append_validated(deep.run(), NOW_MS, 1)
    assert (result.error, result.first_offset, result.last_offset) == (ErrorCode.NONE, 1, 100)


def test_a_batch_that_was_walked_while_the_leadership_moved_is_refused() -> None:
    world, partition = one_partition(LogConfig(cleanup_policy=frozenset({"compact"})))
    deep = partition.append(batch(*[b"v"] * 100), NOW_MS, 1)
    assert isinstance(deep, DeepValidation)
    partition.update_metadata(led_by_us(1, leader=2))
    assert partition.append_validated(deep.run(), NOW_MS, 1).error == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert world.partition("t").log is not None


def test_reads_beyond_the_ends_are_out_of_range_but_the_end_itself_is_empty() -> None:
    _, partition = one_partition()
    append(partition, batch(b"a", b"b", b"c"))
    partition.delete_records(2)
    assert read_partition(partition, 1, 100, min_one=True).error == ErrorCode.OFFSET_OUT_OF_RANGE
    assert read_partition(partition, 4, 100, min_one=True).error == ErrorCode.OFFSET_OUT_OF_RANGE
    end = read_partition(partition, 3, 100, min_one=True)
    assert (end.error, end.size, end.aborted, end.log_start_offset) == (ErrorCode.NONE, 0, None, 2)
    assert read_partition(partition, 3, 100, min_one=True, committed=True).aborted == ()


def test_a_follower_whose_log_diverges_is_told_where() -> None:
    _, partition = one_partition()
    append(partition, batch(b"a", b"b"))
    partition.update_metadata(led_by_us(leader_epoch=2))
    append(partition, batch(b"c"))
    assert read_partition(partition, 5, 100, min_one=True, last_fetched_epoch=0).diverging == (0, 2)
    assert read_partition(partition, 3, 100, min_one=True, last_fetched_epoch=1).diverging == (0, 2)
    assert read_partition(partition, 2, 100, min_one=True, last_fetched_epoch=0).diverging is None


def test_deleting_records_raises_the_log_start_and_nothing_else() -> None:
    _, partition = one_partition()
    append(partition, batch(b"a", b"b", b"c"))
    assert partition.delete_records(2) == (ErrorCode.NONE, 2)
    assert partition.delete_records(1) == (ErrorCode.NONE, 2)
    assert partition.delete_records(4) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert partition.delete_records(-2) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert partition.delete_records(-1) == (ErrorCode.NONE, 3)


def test_records_of_a_topic_that_is_only_compacted_cannot_be_deleted() -> None:
    _, compacted = one_partition(LogConfig(cleanup_policy=frozenset({"compact"})))
    assert compacted.delete_records(-1) == (ErrorCode.POLICY_VIOLATION, -1)
    _, both = one_partition(LogConfig(cleanup_policy=frozenset({"compact", "delete"})))
    assert both.delete_records(-1) == (ErrorCode.NONE, 0)


def test_what_a_coordinator_writes_may_be_what_clients_may_not() -> None:
    _, partition = one_partition()
    control = batch(b"v", producer_id=1, producer_epoch=0, transactional=True, control=True)
    assert append(partition, control).error == ErrorCode.INVALID_RECORD
    result = partition.append_own(batch(b"v", base_sequence=0), NOW_MS)
    assert result.error == ErrorCode.NONE and partition.is_safe(result.last_offset, -1)


def test_readers_of_committed_records_stop_at_an_open_transaction() -> None:
    _, partition = one_partition()
    append(partition, batch(b"before"))
    append(partition, batch(b"open", producer_id=9, producer_epoch=0, base_sequence=0, transactional=True))
    assert read_partition(partition, 0, 1 << 20, min_one=True).high_watermark == 2
    committed = read_partition(partition, 0, 1 << 20, min_one=True, committed=True)
    assert committed.last_stable_offset == 1
    assert committed.size < read_partition(partition, 0, 1 << 20, min_one=True).size
    assert read_partition(partition, 1, 1 << 20, min_one=True, committed=True).size == 0
    assert list_offset(partition, -1, -1, committed=True) == OffsetAnswer(ErrorCode.NONE, 1, 0)


def test_the_list_of_aborted_transactions_is_that_of_what_was_read() -> None:
    size = len(batch(b"v"))
    world, partition = one_partition(LogConfig(segment_bytes=3 * size))
    for producer in range(1, 6):
        records = batch(b"v", producer_id=producer, producer_epoch=0, base_sequence=0, transactional=True)
        append(partition, records)
        marker = end_txn_marker_batch(EndTxnMarker(False, 0), producer_id=producer, producer_epoch=0, timestamp_ms=NOW_MS)
        assert partition.append_own(memoryview(marker), NOW_MS).error == ErrorCode.NONE
    world.run_jobs()
    assert partition.log is not None and len(partition.log.segments) > 2
    read = read_partition(partition, 0, 1 << 20, min_one=True, committed=True)
    first_segment_ends = partition.log.segments[1].base_offset
    assert read.aborted and len(read.aborted) < 5
    assert all(first_offset < first_segment_ends for _, first_offset in read.aborted)
