"""The right bytes of a damaged range put back into a closed segment."""

from __future__ import annotations

import errno
from collections import deque

import pytest

from sim.workload import DIRECTORY, append, batch, load, new_log, read_offsets
from tidelog.model.errors import ErrorCode
from tidelog.records.batch import iter_headers
from tidelog.storage import reading
from tidelog.storage.log_config import LogConfig
from tidelog.storage.rotten_range import RottenRange
from tidelog.storage.splice import COPY_SUFFIX, SpliceFailed, SpliceJob
from tidelog.storage.unified_log import UnifiedLog
from tidelog.testing.simulation.disk import SimDisk

SMALL = LogConfig(segment_bytes=1000, index_interval_bytes=200)
END = 16


def damaged() -> tuple[SimDisk, UnifiedLog, RottenRange, bytes, bytes]:
    """A log whose second segment has one damaged batch; the range, the right bytes of it, and those of all files."""
    disk = SimDisk()
    log = new_log(disk, SMALL)
    for number in range(8):
        append(log, batch(2, value=bytes(150), timestamp_ms=1000 + number))
    log.flush()
    for directory in ("/data", "/"):
        disk.sync_dir(directory)
    everything = content(log)
    segment = log.segments[1]
    header = next(iter_headers(segment.file.read(0, segment.size)))
    right = segment.file.read(header.position, header.size)
    disk.flip(segment.path(".log"), header.size - 1, 3)
    rotten = RottenRange(0, header.size, header.base_offset, header.last_offset + 1)
    segment.rotten = (rotten,)
    return disk, log, rotten, right, everything


def content(log: UnifiedLog) -> bytes:
    return b"".join(segment.file.read(0, segment.size) for segment in log.segments)


def spliced(log: UnifiedLog, rotten: RottenRange, data: bytes) -> SpliceJob:
    job = SpliceJob(log, log.segments[1], rotten, data)
    deque(job.steps(), maxlen=0)
    return job


def test_the_segment_has_its_bytes_again_and_the_damaged_ones_are_kept() -> None:
    disk, log, rotten, right, everything = damaged()
    wrong = log.segments[1].file.read(rotten.position, rotten.end)
    slices = reading.read(log, rotten.next_offset, 1, upto=END, min_one=True).slice
    before = log.log_end_offset, log.high_watermark, log.recovery_point
    job = spliced(log, rotten, right)
    assert job.stands
    job.put_in_place()
    job.finish()
    assert content(log) == everything and log.segments[1] is job.mended and not job.mended.rotten
    assert (log.log_end_offset, log.high_watermark, log.recovery_point) == before
    assert slices is not None and slices.read(), "a read that began before the change ends"
    assert all(reading.read(log, offset, 1, upto=END, min_one=True).error is ErrorCode.NONE for offset in range(END))
    assert job.kept is not None
    kept = disk.open(job.kept, write=False)
    assert kept.read(0, kept.size()) == wrong
    log.check()
    found = reading.offset_for_timestamp(log, 1000 + rotten.first_offset // 2)
    assert found is not None and found.offset == rotten.first_offset


@pytest.mark.parametrize("moment", ["copied", "put in place", "finished"])
@pytest.mark.parametrize("seed", range(5))
def test_a_power_loss_leaves_the_damaged_segment_or_the_mended_one(moment: str, seed: int) -> None:
    disk, log, rotten, right, everything = damaged()
    wrong = content(log)
    job = spliced(log, rotten, right)
    if moment != "copied":
        job.put_in_place()
    if moment == "finished":
        job.finish()
    after = load(disk.crash(seed), SMALL, recovery_point=END)
    found = content(after)
    assert found == everything if moment == "finished" else found in (wrong, everything)
    assert after.log_end_offset == END and not [name for name in after.fs.listdir(DIRECTORY) if name.endswith(COPY_SUFFIX)]


def test_bytes_that_do_not_fit_change_nothing() -> None:
    _, log, rotten, right, _ = damaged()
    before = content(log)
    with pytest.raises(SpliceFailed, match="do not fit"):
        SpliceJob(log, log.segments[1], rotten, right + b"\0")
    job = SpliceJob(log, log.segments[1], rotten, right[:-1] + bytes([right[-1] ^ 1]))
    with pytest.raises(SpliceFailed, match="would not read at position 0"):
        deque(job.steps(), maxlen=0)
    job.drop()
    assert content(log) == before and log.segments[1].rotten == (rotten,)
    assert not [name for name in log.fs.listdir(DIRECTORY) if name.endswith((COPY_SUFFIX, ".cut"))]


def test_a_copy_leaves_room_for_appends() -> None:
    disk, log, rotten, right, _ = damaged()
    used = disk.capacity - disk.usage(DIRECTORY)[1]
    disk.capacity = used + 2 * log.segments[1].size - 1
    with pytest.raises(SpliceFailed, match="bytes free"):
        spliced(log, rotten, right)
    assert not [name for name in log.fs.listdir(DIRECTORY) if name.endswith(COPY_SUFFIX)]
    disk.capacity += 1
    assert spliced(log, rotten, right).stands


def test_a_full_disk_changes_nothing() -> None:
    disk, log, rotten, right, _ = damaged()
    before = content(log)
    disk.fail("write", 1, errno.ENOSPC, path_part=COPY_SUFFIX)
    job = SpliceJob(log, log.segments[1], rotten, right)
    with pytest.raises(OSError):
        deque(job.steps(), maxlen=0)
    job.drop()
    assert content(log) == before and log.failure is None


@pytest.mark.parametrize("what", ["cut below", "cut and written again", "other damage", "active", "not flushed"])
def test_a_segment_that_changed_is_not_replaced(what: str) -> None:
    _, log, rotten, right, _ = damaged()
    job = spliced(log, rotten, right)
    segment = job.segment
    if what == "cut below":
        log.truncate_to(segment.base_offset + 2, 0)
    elif what == "cut and written again":
        size, end = segment.size, segment.next_offset
        log.truncate_to(end - 2, 0)
        append(log, batch(2, value=bytes(150), timestamp_ms=1000))
        log.roll(0)
        log.flush()
        assert segment in log.segments and (segment.size, segment.next_offset, segment.sealed) == (size, end, True)
        segment.rotten = (rotten,)
    elif what == "other damage":
        segment.rotten = (
            *segment.rotten,
            RottenRange(segment.size - 10, segment.size, segment.next_offset - 1, segment.next_offset),
        )
    elif what == "active":
        log.files.segments.active = segment
    else:
        segment.sealed = False
    assert not job.stands


def test_other_damage_of_the_segment_stays_marked() -> None:
    disk, log, rotten, right, _ = damaged()
    segment = log.segments[1]
    second = list(iter_headers(segment.file.read(0, segment.size)))[1]
    disk.flip(segment.path(".log"), second.end_position - 1, 0)
    other = RottenRange(second.position, second.end_position, second.base_offset, second.last_offset + 1)
    segment.rotten = (rotten, other)
    job = spliced(log, rotten, right)
    job.put_in_place()
    job.finish()
    assert log.segments[1].rotten == (other,)
    assert read_offsets(log, rotten.first_offset)[0] == (rotten.first_offset, rotten.next_offset - 1)
