"""What a read gives: whole batches, from the right one on, never past the bound."""

import errno
import random

import pytest

from sim.workload import NOW_MS, append, batch, end_transaction, load, new_log, offsets, read_offsets
from tidelog.model.errors import ErrorCode, StorageFailure
from tidelog.storage import reading
from tidelog.storage.log_config import LogConfig
from tidelog.storage.segment import LogSegment
from tidelog.storage.unified_log import UnifiedLog
from tidelog.testing.simulation.disk import SimDisk

CONFIG = LogConfig(segment_bytes=20_000, index_interval_bytes=1000)


def filled(disk: SimDisk | None = None, *, count: int = 400) -> UnifiedLog:
    rng = random.Random(5)
    log = new_log(disk, CONFIG)
    for number in range(count):
        append(log, batch(rng.randint(1, 4), value=bytes(rng.randint(0, 300)), timestamp_ms=NOW_MS + number * 10))
    return log


@pytest.mark.parametrize("reopened", [False, True], ids=["from memory", "from the files"])
def test_every_read_is_whole_batches_that_begin_with_the_offset_and_stay_below_the_bound(reopened: bool) -> None:
    disk = SimDisk()
    log = filled(disk)
    if reopened:
        log.close()
        log = load(disk, CONFIG, clean=True)
    everything = offsets(log)
    bounds = [base for base, _ in everything] + [log.log_end_offset]
    rng = random.Random(6)
    for _ in range(2000):
        offset, upto, max_bytes = (
            rng.randrange(log.log_end_offset),
            rng.choice(bounds),
            rng.choice([0, 1, 100, 500, 3000, 1 << 20]),
        )
        result = reading.read(log, offset, max_bytes, upto=upto, min_one=True)
        if offset >= upto:
            assert result.slice is None
            continue
        found = read_offsets(log, offset, max_bytes, upto=upto)
        start = next(n for n, (_, last) in enumerate(everything) if last >= offset)
        assert found == everything[start : start + len(found)]
        assert found
        assert found[-1][1] < upto
        assert result.slice is not None
        assert result.slice.length <= max_bytes or len(found) == 1


def test_reading_on_from_each_read_gives_every_batch_once() -> None:
    log = filled()
    found: list[tuple[int, int]] = []
    while not found or found[-1][1] + 1 < log.log_end_offset:
        found += read_offsets(log, found[-1][1] + 1 if found else 0, 2500)
    assert found == offsets(log)


def test_a_batch_that_does_not_fit_is_given_only_to_who_insists() -> None:
    log = new_log()
    append(log, batch(value=bytes(5000)))
    assert read_offsets(log, 0, 100, min_one=True) == [(0, 0)]
    assert read_offsets(log, 0, 100, min_one=False) == []


def test_nothing_is_read_at_the_end_and_beyond_is_out_of_range() -> None:
    log = filled()
    at_end = reading.read(log, log.log_end_offset, 100, upto=log.log_end_offset, min_one=True)
    assert (at_end.error, at_end.slice) == (ErrorCode.NONE, None)
    for offset in (-1, log.log_end_offset + 1):
        assert reading.read(log, offset, 100, upto=log.log_end_offset, min_one=True).error is ErrorCode.OFFSET_OUT_OF_RANGE


def test_offsets_below_the_log_start_are_out_of_range() -> None:
    log = filled()
    log.delete_records_before(50)
    assert reading.read(log, 49, 100, upto=log.log_end_offset, min_one=True).error is ErrorCode.OFFSET_OUT_OF_RANGE
    assert read_offsets(log, 50, 1)[0][0] <= 50


def test_a_read_in_a_gap_goes_on_in_the_next_segment() -> None:
    log = new_log()
    append(log, batch(3))
    log.roll(NOW_MS, at_least=10)
    append(log, batch(2))
    assert read_offsets(log, 5) == [(10, 11)]


def test_reading_at_the_tail_touches_no_file() -> None:
    disk = SimDisk()
    log = filled(disk, count=50)
    disk.fail("read", 1, 5, times=1000)
    disk.fail("open", 1, 5, times=1000)
    result = reading.read(log, log.log_end_offset - 1, 1 << 20, upto=log.high_watermark, min_one=True)
    assert result.slice is not None
    assert result.slice.position + result.slice.length == log.active.size


def test_cold_segments_say_that_reading_them_may_block() -> None:
    disk = SimDisk()
    log = filled(disk)
    log.flush()
    log.files.drop_cold_indexes()
    assert reading.may_block(log, 0)
    assert not reading.may_block(log, log.log_end_offset - 1)
    read_offsets(log, 0)
    assert not reading.may_block(log, 0)


def test_a_timestamp_finds_the_first_record_that_is_as_late() -> None:
    log = filled()
    for number in (0, 7, 200, 399):
        found = reading.offset_for_timestamp(log, NOW_MS + number * 10)
        assert found is not None
        assert (found.timestamp, found.offset) == (NOW_MS + number * 10, offsets(log)[number][0])
    between = reading.offset_for_timestamp(log, NOW_MS + 71)
    assert between is not None
    assert between.timestamp == NOW_MS + 80
    assert reading.offset_for_timestamp(log, NOW_MS + 399 * 10 + 1) is None


def test_a_timestamp_finds_nothing_below_the_log_start() -> None:
    log = filled()
    log.delete_records_before(offsets(log)[100][0])
    found = reading.offset_for_timestamp(log, NOW_MS)
    assert found is not None
    assert found.offset == log.log_start_offset


def test_the_record_with_the_greatest_timestamp_is_the_first_of_those() -> None:
    log = new_log()
    for timestamp in (NOW_MS, NOW_MS + 500, NOW_MS + 500, NOW_MS + 3):
        append(log, batch(2, timestamp_ms=timestamp), leader_epoch=4)
    found = reading.max_timestamp_offset(log)
    assert found == (NOW_MS + 500, 2, 4)
    assert reading.max_timestamp_offset(new_log()) is None


def test_aborted_transactions_are_told_by_overlap() -> None:
    log = new_log()
    append(log, batch(2, producer=(7, 0, 0), transactional=True))
    append(log, batch(2, producer=(8, 0, 0), transactional=True))
    end_transaction(log, 7, commit=False)
    log.roll(NOW_MS)
    append(log, batch(3))
    end_transaction(log, 8, commit=False)
    assert [(e.producer_id, e.first_offset) for e in reading.aborted_transactions(log, 0, log.log_end_offset)] == [(7, 0), (8, 2)]
    assert [e.producer_id for e in reading.aborted_transactions(log, 5, log.log_end_offset)] == [8]
    assert [e.producer_id for e in reading.aborted_transactions(log, 0, 2)] == [7]


def test_only_segments_with_an_abort_are_asked_for_aborted_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    log = new_log()
    for number in range(20):
        append(log, batch(2))
        if number == 9:
            append(log, batch(2, producer=(7, 0, 0), transactional=True))
            end_transaction(log, 7, commit=False)
        log.roll(NOW_MS)
    asked: list[int] = []
    real = LogSegment.transactions

    def count(segment: LogSegment) -> object:
        asked.append(segment.base_offset)
        return real(segment)

    monkeypatch.setattr(LogSegment, "transactions", count)
    assert [e.producer_id for e in reading.aborted_transactions(log, 0, log.log_end_offset)] == [7]
    assert reading.aborted_transactions(log, log.segments[10].base_offset, log.log_end_offset) == []
    assert asked == [log.segments[9].base_offset]


def test_a_read_of_committed_records_may_block_where_aborts_are_not_in_memory() -> None:
    log = new_log()
    append(log, batch(2, producer=(7, 0, 0), transactional=True))
    end_transaction(log, 7, commit=False)
    log.roll(NOW_MS)
    log.flush()
    append(log, batch(2))
    assert not reading.may_block(log, 0, committed=True)
    log.segments[0].aborted.forget()
    assert reading.may_block(log, 0, committed=True) and not reading.may_block(log, 0)
    assert not reading.may_block(log, 3, committed=True)
    reading.warm_up(log, 0, committed=True)
    assert not reading.may_block(log, 0, committed=True)


def test_the_end_of_a_read_is_close_behind_it() -> None:
    log = new_log(config=LogConfig(index_interval_bytes=1))
    for _ in range(10):
        append(log, batch(3))
    size = log.active.size // 10
    read = reading.read(log, 0, 2 * size, upto=30, min_one=True).slice
    assert read is not None and reading.end_of_read(log, 0, read, 30) == 6
    everything = reading.read(log, 0, 1 << 20, upto=30, min_one=True).slice
    assert everything is not None and reading.end_of_read(log, 0, everything, 30) == 30
    log.roll(NOW_MS)
    append(log, batch(3))
    assert reading.end_of_read(log, 0, read, 33) == 6
    log.segments[0].forget_recent()
    assert 6 <= reading.end_of_read(log, 0, read, 33) <= 9


def test_a_search_by_time_that_loses_a_segment_goes_on_with_those_that_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    log = filled()
    first, second = log.segments[:2]
    real = LogSegment.find

    def lose(segment: LogSegment, offset: int, start: int | None = None) -> object:
        if segment is first and first in log.segments:
            log.files.replace([first], [])
            log.log_start_offset = second.base_offset
            first.remove_files()
        return real(segment, offset, start)

    monkeypatch.setattr(LogSegment, "find", lose)
    found = reading.offset_for_timestamp(log, NOW_MS)
    assert found is not None and found.offset == second.base_offset
    assert log.failure is None


def test_a_log_whose_files_are_gone_is_no_endless_search() -> None:
    log = filled()
    for segment in log.segments:
        segment.remove_files()
    for search in (lambda: reading.offset_for_timestamp(log, NOW_MS), lambda: reading.max_timestamp_offset(log)):
        with pytest.raises(StorageFailure):
            search()


def test_a_disk_that_fails_under_the_greatest_timestamp_takes_the_log_out_of_service() -> None:
    disk = SimDisk()
    log = filled(disk)
    log.close()
    log = load(disk, CONFIG, clean=True)
    real = disk.exists

    def broken(path: str) -> bool:
        if path.endswith(".timeindex"):
            raise OSError(errno.EIO, "Input/output error")
        return real(path)

    disk.exists = broken  # type: ignore[method-assign]
    with pytest.raises(StorageFailure):
        reading.max_timestamp_offset(log)


def test_warming_up_never_fails_a_log() -> None:
    disk = SimDisk()
    log = filled(disk)
    log.close()
    log = load(disk, CONFIG, clean=True)
    assert reading.may_block(log, 0)
    reading.warm_up(log, 0, committed=True)
    assert not reading.may_block(log, 0)
    for segment in log.segments[:2]:
        segment.drop_indexes()
        segment.remove_files()
    reading.warm_up(log, 0, committed=True)
    assert log.failure is None
