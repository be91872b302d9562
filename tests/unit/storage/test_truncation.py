"""A follower's log: batches kept as they are, and truncation that takes everything back with it."""

import errno

import pytest

from sim.workload import NOW_MS, append, batch, end_transaction, load, new_log, offsets, read_offsets
from tidelog.model.errors import ErrorCode, KafkaError, StorageFailure
from tidelog.records.batch import iter_headers
from tidelog.storage.log_config import LogConfig
from tidelog.storage.truncation import Deferred
from tidelog.testing.simulation.disk import SimDisk

SMALL = LogConfig(segment_bytes=1000, index_interval_bytes=200)


def fetched(*batches: bytearray) -> memoryview:
    return memoryview(b"".join(batches))


def test_a_leaders_batches_keep_their_offsets_and_epochs() -> None:
    log = new_log()
    data = fetched(batch(3, base_offset=0, leader_epoch=2), batch(2, base_offset=3, leader_epoch=4))
    assert log.append_as_follower(data, 4, NOW_MS) == 5
    assert log.leader_epochs.entries() == [(2, 0), (4, 3)]
    assert log.active.file.read(0, log.active.size) == bytes(data)


def test_a_run_of_batches_is_one_write_per_segment() -> None:
    disk = SimDisk()
    log = new_log(disk, SMALL)
    writes: list[str] = []
    disk.on_operation = lambda number, kind, path: writes.append(path[-12:]) if kind == "write" else None
    log.append_as_follower(fetched(*(batch(value=bytes(200), base_offset=n, leader_epoch=0) for n in range(6))), 0, NOW_MS)
    assert writes == ["00000000.log", "00000003.log"]
    assert offsets(log) == [(n, n) for n in range(6)]
    log.check()


def test_batches_of_a_newer_epoch_than_the_fetch_are_left_out() -> None:
    log = new_log()
    data = fetched(batch(base_offset=0, leader_epoch=2), batch(base_offset=1, leader_epoch=3))
    assert log.append_as_follower(data, 2, NOW_MS) == 1


def test_a_batch_cut_off_at_the_end_waits_for_the_next_fetch() -> None:
    log = new_log()
    data = fetched(batch(base_offset=0), batch(base_offset=1))
    assert log.append_as_follower(data[:-5], 0, NOW_MS) == 1


def test_a_leader_may_leave_gaps_but_not_go_back() -> None:
    log = new_log()
    assert log.append_as_follower(fetched(batch(base_offset=5)), 0, NOW_MS) == 6
    with pytest.raises(KafkaError) as refused:
        log.append_as_follower(fetched(batch(base_offset=5)), 0, NOW_MS)
    assert refused.value.code is ErrorCode.INVALID_RECORD


def test_a_damaged_batch_is_refused() -> None:
    data = batch(base_offset=0)
    data[-1] ^= 1
    with pytest.raises(KafkaError) as refused:
        new_log().append_as_follower(fetched(data), 0, NOW_MS)
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE


def test_a_follower_keeps_producer_state_without_objecting() -> None:
    log = new_log()
    log.append_as_follower(
        fetched(batch(2, base_offset=0, producer=(7, 0, 40)), batch(base_offset=2, producer=(7, 0, 99))), 0, NOW_MS
    )
    assert log.producers.entries[7].last_sequence == 99


@pytest.mark.parametrize("offset", range(13))
def test_truncation_at_any_offset_leaves_whole_batches_and_agreeing_state(offset: int) -> None:
    disk = SimDisk()
    log = new_log(disk, SMALL)
    for number in range(4):
        append(log, batch(3, value=bytes(120), producer=(7, 0, number * 3), timestamp_ms=NOW_MS + number), leader_epoch=number)
    log.flush()
    changed = log.truncate_to(offset, NOW_MS)
    kept = offset // 3
    assert changed == (offset < 12)
    assert offsets(log) == [(n * 3, n * 3 + 2) for n in range(kept)]
    assert log.log_end_offset == kept * 3
    assert [epoch for epoch, _ in log.leader_epochs.entries()] == list(range(kept))
    assert (7 in log.producers.entries) == (kept > 0)
    if kept:
        assert log.producers.entries[7].last_sequence == kept * 3 - 1
        assert log.active.largest_timestamp()[0] == NOW_MS + kept - 1 or log.active.size == 0
    assert log.recovery_point <= log.log_end_offset
    log.check()
    append(log, batch(1, timestamp_ms=NOW_MS + 100), leader_epoch=9)
    assert read_offsets(log, kept * 3) == [(kept * 3, kept * 3)]
    log.close()
    assert offsets(load(disk, SMALL, clean=True)) == offsets(log)


@pytest.mark.parametrize("deferring", [False, True])
def test_a_truncation_that_could_not_be_synced_leaves_no_records_in_the_cache_alone(deferring: bool) -> None:
    """What was not on the disk yet lies below the cut, too, and the kernel takes it for clean now."""
    disk = SimDisk(1)
    log = new_log(disk, LogConfig(segment_bytes=1 << 20))
    append(log, batch(2))
    log.flush()
    disk.sync_dir("/")
    for _ in range(3):
        append(log, batch(1))
    disk.fail("sync", 1, errno.EIO)
    deferred: Deferred | None = [] if deferring else None
    if deferred is None:
        with pytest.raises(StorageFailure):
            log.truncate_to(4, NOW_MS)
    else:
        log.truncate_to(4, NOW_MS, deferred)
        with pytest.raises(OSError, match="Input/output error"):
            deferred[0]()
    disk = disk.kill()
    log = load(disk, clean=False)
    assert log.log_end_offset == 4
    append(log, batch(1))
    log.roll(NOW_MS)
    log.flush()
    sizes = [segment.size for segment in log.segments]
    assert [segment.size for segment in load(disk.crash(1), clean=False).segments] == sizes


def test_truncation_opens_a_transaction_again_whose_marker_goes() -> None:
    log = new_log()
    append(log, batch(2, producer=(7, 0, 0), transactional=True))
    end_transaction(log, 7, commit=False)
    assert log.producers.first_undecided_offset() is None
    log.truncate_to(2, NOW_MS)
    assert log.producers.first_undecided_offset() == 0
    assert log.active.transactions() == []
    log.check()


def test_truncation_below_the_first_segment_empties_the_log() -> None:
    log = new_log(config=SMALL)
    for number in range(6):
        append(log, batch(value=bytes(300), timestamp_ms=NOW_MS + number))
    log.delete_records_before(4)
    log.flush()
    log.retention_step(NOW_MS)
    assert log.segments[0].base_offset > 1
    log.truncate_to(1, NOW_MS)
    assert (log.log_start_offset, log.log_end_offset, offsets(log)) == (1, 1, [])


def test_starting_anew_forgets_everything() -> None:
    disk = SimDisk()
    log = new_log(disk, SMALL)
    for number in range(6):
        append(log, batch(value=bytes(300), producer=(7, 0, number)))
    log.flush()
    log.truncate_fully_and_start_at(100, NOW_MS)
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark, log.recovery_point) == (100, 100, 100, 100)
    assert (log.producers.entries, log.leader_epochs.entries()) == ({}, [])
    assert [name for name in disk.listdir("/data/orders-0") if name.endswith((".log", ".snapshot"))] == [
        "00000000000000000100.log"
    ]
    log.check()


def test_truncation_finds_no_flush_under_way() -> None:
    log = new_log()
    append(log, batch(5))
    log.flush_job()
    with pytest.raises(AssertionError):
        log.truncate_to(1, NOW_MS)


def test_a_negative_offset_is_refused() -> None:
    with pytest.raises(KafkaError):
        new_log().truncate_to(-1, NOW_MS)


def test_the_missing_end_of_a_clean_log_is_no_hole_once_it_is_cut() -> None:
    disk = SimDisk()
    log = new_log(disk)
    for _ in range(10):
        append(log, batch(2))
    log.close()
    file = disk.open(f"{log.dir}/{0:020d}.log")
    file.truncate([header.position for header in iter_headers(file.read(0, file.size()))][8])
    log = load(disk, clean=True, recovery_point=20)
    assert [each.first_offset for each in log.active.rotten] == [16]
    log.truncate_to(16, NOW_MS)
    assert log.active.rotten == ()
    for base in (16, 18):
        log.append_as_follower(fetched(batch(2, base_offset=base, leader_epoch=0)), 0, NOW_MS)
    assert read_offsets(log, 16) == [(16, 17), (18, 19)]
