"""Rot and torn tails: what a start keeps, what it cuts, and where the cut part is kept."""

import logging

import pytest

from sim.workload import DIRECTORY, append, batch, load, new_log, offsets, read_offsets
from tidelog.model.errors import ErrorCode
from tidelog.records.batch import iter_headers
from tidelog.storage import reading
from tidelog.storage.flush_job import FLUSH_FAILED
from tidelog.storage.log_config import LogConfig
from tidelog.storage.unified_log import UnifiedLog
from tidelog.testing.simulation.disk import SimDisk

SMALL = LogConfig(segment_bytes=1000, index_interval_bytes=200)
FIRST = f"{DIRECTORY}/00000000000000000000.log"
BATCHES = 8
END = BATCHES * 2


def written(config: LogConfig | None = None) -> SimDisk:
    """Eight synced batches of two records, by one producer."""
    disk = SimDisk()
    log = new_log(disk, config)
    for number in range(BATCHES):
        append(log, batch(2, value=bytes(150), producer=(7, 0, number * 2)), leader_epoch=number // 3)
    log.flush()
    return disk


def place(disk: SimDisk, path: str, number: int) -> tuple[int, int]:
    """(first byte, size) of a batch of the file."""
    file = disk.open(path, write=False)
    header = list(iter_headers(file.read(0, file.size())))[number]
    return header.position, header.size


def flip(disk: SimDisk, number: int, at: int, bit: int = 4, path: str = FIRST) -> None:
    disk.flip(path, place(disk, path, number)[0] + at, bit)


def all_reads(log: UnifiedLog) -> list[tuple[int, int] | ErrorCode]:
    """Batches of single reads from the log's start to its end, and errors, by which a reader goes on one offset later."""
    found: list[tuple[int, int] | ErrorCode] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        result = reading.read(log, offset, 1, upto=log.log_end_offset, min_one=True)
        if result.slice is None:
            assert result.error is ErrorCode.CORRUPT_MESSAGE
            found.append(result.error)
            offset += 1
            continue
        got = [(header.base_offset, header.last_offset) for header in iter_headers(result.slice.read())]
        found.extend(got)
        offset = got[-1][1] + 1
    return found


def expected(*rotten: int) -> list[tuple[int, int] | ErrorCode]:
    found: list[tuple[int, int] | ErrorCode] = []
    for number in range(BATCHES):
        bad = [ErrorCode.CORRUPT_MESSAGE, ErrorCode.CORRUPT_MESSAGE]
        found.extend(bad if number in rotten else [(number * 2, number * 2 + 1)])
    return found


WHERE = {
    "base offset, up": (7, 5),
    "base offset, far up": (3, 2),
    "length": (11, 1),
    "length, far up": (8, 6),
    "leader epoch": (13, 2),
    "magic": (16, 3),
    "checksum": (18, 0),
    "last offset delta": (24, 7),
    "timestamp": (40, 1),
    "sequence": (55, 2),
    "number of records": (58, 7),
    "records": (130, 6),
}


# Of the very last batch, nothing tells what its epoch was, and that its base offset rose only if it was flushed.
CASES = [
    (where, number, proof)
    for where in WHERE
    for number in (0, 1, 4, 7)
    for proof in ("flushed", "kernel")
    if number != 7 or (where != "leader epoch" and (proof == "flushed" or not where.startswith("base offset")))
]


@pytest.mark.parametrize(("where", "number", "proof"), CASES)
def test_a_flipped_bit_costs_one_batch_and_nothing_is_cut(where: str, number: int, proof: str) -> None:
    disk = written()
    before = disk.stat(FIRST).size
    flip(disk, number, *WHERE[where])
    log = load(disk, recovery_point=END) if proof == "flushed" else load(disk, survived=True)
    log.check()
    assert all_reads(log) == expected(number)
    assert (disk.stat(FIRST).size, log.log_end_offset) == (before, END)
    assert log.leader_epochs.latest == 2
    append(log, batch(1))
    assert read_offsets(log, END) == [(END, END)]


def test_a_base_offset_that_a_bit_lowered_is_the_one_that_is_wrong() -> None:
    disk = written()
    flip(disk, 5, 7, bit=1)
    assert all_reads(load(disk, recovery_point=END)) == expected(5)


def test_several_rotten_batches_beside_each_other_and_apart() -> None:
    disk = written()
    for at in [place(disk, FIRST, number)[0] for number in (1, 2, 6)]:
        disk.flip(FIRST, at + 11, 1)
    log = load(disk, recovery_point=END)
    assert all_reads(log) == expected(1, 2, 6)
    assert [(each.first_offset, each.next_offset) for each in log.active.rotten] == [(2, 6), (12, 14)]


def test_a_read_ends_before_what_is_rotten_and_may_begin_behind_it() -> None:
    disk = written()
    flip(disk, 3, 200)
    log = load(disk, recovery_point=END)
    assert read_offsets(log, 0) == [(0, 1), (2, 3), (4, 5)]
    assert read_offsets(log, 8) == [(8, 9), (10, 11), (12, 13), (14, 15)]
    assert reading.read(log, 7, 1 << 20, upto=END, min_one=True).error is ErrorCode.CORRUPT_MESSAGE
    assert reading.read(log, 6, 1 << 20, upto=6, min_one=True).error is ErrorCode.NONE


def test_rot_keeps_the_segments_behind_it() -> None:
    disk = written(SMALL)
    names = [name for name in disk.listdir(DIRECTORY) if name.endswith(".log")]
    flip(disk, 1, 11, bit=1)
    log = load(disk, SMALL, recovery_point=3)
    log.check()
    assert all_reads(log) == expected(1)
    assert [name for name in disk.listdir(DIRECTORY) if name.endswith(".log")] == names


def test_a_closed_segment_that_was_not_read_at_the_start_is_not_passed_over_where_it_breaks_off() -> None:
    disk = written(SMALL)
    flip(disk, 1, 11, bit=1)
    assert all_reads(load(disk, SMALL, recovery_point=END)) == expected(1)


def test_the_last_batch_of_a_closed_segment_is_not_taken_for_a_torn_tail_while_the_kernel_lives() -> None:
    disk = written(SMALL)
    flip(disk, 1, 120)
    assert all_reads(load(disk, SMALL, survived=True)) == expected(1)


@pytest.mark.parametrize("kept", [1, 16, 17, 60, 61, 200])
def test_the_beginning_of_a_killed_write_is_cut_though_the_kernel_lives(kept: int) -> None:
    disk = written()
    at, size = place(disk, FIRST, 7)
    disk.open(FIRST).truncate(at + min(kept, size - 1))
    log = load(disk, survived=True)
    assert (log.log_end_offset, log.active.rotten, disk.stat(FIRST).size) == (END - 2, (), at)


def test_zeros_behind_the_last_batch_are_space_that_was_reserved() -> None:
    disk = written()
    size = disk.stat(FIRST).size
    disk.open(FIRST).write(size, bytes(5000))
    log = load(disk, survived=True)
    assert (log.log_end_offset, log.active.rotten, disk.stat(FIRST).size) == (END, (), size)


def test_a_whole_last_batch_with_a_wrong_checksum_is_torn_after_a_power_loss() -> None:
    disk = written()
    flip(disk, 7, 200)
    assert load(disk, recovery_point=END - 2).log_end_offset == END - 2


def test_a_failed_sync_takes_back_that_the_kernel_held_everything() -> None:
    disk = written()
    disk.open(f"{DIRECTORY}/{FLUSH_FAILED}", create=True)
    flip(disk, 3, 200)
    assert load(disk, survived=True).log_end_offset == 6


def test_what_was_not_flushed_is_cut_after_a_power_loss_and_kept_aside(caplog: pytest.LogCaptureFixture) -> None:
    disk = written()
    flip(disk, 3, 200)
    file = disk.open(FIRST, write=False)
    at, _ = place(disk, FIRST, 3)
    tail = file.read(at, file.size() - at)
    with caplog.at_level(logging.WARNING):
        log = load(disk, recovery_point=6)
    assert offsets(log) == [(0, 1), (2, 3), (4, 5)]
    (kept,) = [name for name in disk.listdir(DIRECTORY) if name.endswith(".cut")]
    copy = disk.open(f"{DIRECTORY}/{kept}", write=False)
    assert copy.read(0, copy.size()) == tail
    assert kept in caplog.text
    assert "whole batches follow" in caplog.text
    assert load(disk).log_end_offset == 6


def test_segments_behind_a_torn_one_are_kept_aside_whole() -> None:
    disk = written(SMALL)
    bytes_before = sum(disk.stat(f"{DIRECTORY}/{name}").size for name in disk.listdir(DIRECTORY) if name.endswith(".log"))
    flip(disk, 0, 200)
    log = load(disk, SMALL)
    assert log.log_end_offset == 0
    kept = [name for name in disk.listdir(DIRECTORY) if name.endswith(".cut")]
    assert len(kept) == 4
    assert sum(disk.stat(f"{DIRECTORY}/{name}").size for name in kept) == bytes_before


def test_producer_state_is_that_of_the_batches_that_read() -> None:
    disk = written()
    flip(disk, 3, 11, bit=1)
    for name in disk.listdir(DIRECTORY):
        if name.endswith(".snapshot"):
            disk.remove(f"{DIRECTORY}/{name}")
    assert load(disk, recovery_point=END).producers.entries[7].last_sequence == END - 1


def test_a_batch_inside_of_a_value_is_not_taken_for_one_of_the_log() -> None:
    disk = SimDisk()
    log = new_log(disk)
    append(log, batch(1))
    append(log, batch(1, value=b"." * 70 + bytes(batch(1, base_offset=3)) + b"." * 70))
    append(log, batch(1))
    append(log, batch(1))
    log.flush()
    flip(disk, 1, 11, bit=1)
    again = load(disk, recovery_point=4)
    assert [(each.first_offset, each.next_offset) for each in again.active.rotten] == [(1, 2)]
    assert all_reads(again) == [(0, 0), ErrorCode.CORRUPT_MESSAGE, (2, 2), (3, 3)]


def test_truncation_takes_rotten_ranges_with_it() -> None:
    disk = written()
    flip(disk, 3, 11, bit=1)
    log = load(disk, recovery_point=END)
    log.truncate_to(7, 0)
    assert (log.log_end_offset, log.active.rotten) == (6, ())
    log.check()
