"""What a restart remembers of damage."""

import errno

import pytest

from sim.workload import DIRECTORY, append, batch, load, new_log
from tidelog.model.errors import ErrorCode
from tidelog.storage import reading
from tidelog.storage.known_damage import DAMAGED, read_damaged
from tidelog.storage.log_config import LogConfig
from tidelog.storage.rotten_range import RottenRange
from tidelog.storage.scrub import SegmentCheck, segments_of
from tidelog.storage.unified_log import UnifiedLog
from tidelog.testing.simulation.disk import SimDisk

SMALL = LogConfig(segment_bytes=1000, index_interval_bytes=200)
END = 16


def damaged_and_scrubbed(at: int = 7, bit: int = 6) -> tuple[SimDisk, UnifiedLog]:
    """Two batches a segment, by one producer; a bit of the second batch of the first segment is flipped."""
    disk = SimDisk()
    log = new_log(disk, SMALL)
    for number in range(8):
        append(log, batch(2, value=bytes(150), producer=(7, 0, number * 2)))
    log.flush()
    disk.flip(log.segments[0].path(".log"), log.segments[0].size // 2 + at, bit)
    scrub(log)
    return disk, log


def scrub(log: UnifiedLog) -> None:
    for segment in segments_of(log):
        first = SegmentCheck(log, segment, segment.file)
        first.advance(1 << 20)
        if (second := first.again(segment.file)) is not None:
            second.advance(1 << 20)
            second.take()
    note(log)


def note(log: UnifiedLog) -> None:
    if (job := log.files.damage_job()) is not None:
        log.files.damage.written(job.run())


def rotten(log: UnifiedLog) -> list[RottenRange]:
    return [each for segment in log.segments for each in segment.rotten]


@pytest.mark.parametrize("clean", [True, False])
def test_damage_that_the_scrub_found_is_known_after_a_restart(clean: bool) -> None:
    disk, log = damaged_and_scrubbed()
    known = rotten(log)
    assert len(known) == 1
    if clean:
        log.close()
    again = load(disk, SMALL, clean=clean, recovery_point=END if clean else END - 1)
    assert rotten(again) == known
    assert reading.read(again, 2, 1, upto=END, min_one=True).error is ErrorCode.CORRUPT_MESSAGE
    assert again.producers.entries[7].last_sequence == END - 1
    append(again, batch(2, value=bytes(150), producer=(7, 0, END)))
    again.check()


def test_damage_that_a_recovery_found_is_known_after_the_clean_stop_that_follows() -> None:
    disk = SimDisk()
    log = new_log(disk, SMALL)
    for _ in range(8):
        append(log, batch(2, value=bytes(150)))
    log.flush()
    disk.flip(log.segments[0].path(".log"), 130, 2)
    first = load(disk, SMALL, survived=True)
    assert len(rotten(first)) == 1
    first.close()
    assert rotten(load(disk, SMALL, clean=True, recovery_point=END)) == rotten(first)


def test_the_list_goes_with_the_damage() -> None:
    disk, log = damaged_and_scrubbed()
    assert read_damaged(disk, DIRECTORY) == {0}
    disk.flip(log.segments[0].path(".log"), log.segments[0].size // 2 + 7, 6)
    log.close()
    again = load(disk, SMALL, clean=True, recovery_point=END)
    assert (rotten(again), disk.exists(f"{DIRECTORY}/{DAMAGED}")) == ([], False)


def test_a_cut_below_the_damage_takes_the_entry_away() -> None:
    disk, log = damaged_and_scrubbed()
    log.truncate_to(2, 0)
    note(log)
    assert (rotten(log), disk.exists(f"{DIRECTORY}/{DAMAGED}")) == ([], False)


def test_a_segment_that_retention_deleted_is_not_looked_for() -> None:
    disk, log = damaged_and_scrubbed()
    log.delete_records_before(6)
    assert len(log.retention_step(0).segments) == 1
    log.close()
    load(disk, SMALL, clean=True, recovery_point=END, log_start_offset=6)
    assert not disk.exists(f"{DIRECTORY}/{DAMAGED}")


def test_a_list_that_is_damaged_itself_stands_for_all_segments() -> None:
    disk, log = damaged_and_scrubbed()
    log.close()
    disk.flip(f"{DIRECTORY}/{DAMAGED}", 9, 0)
    assert read_damaged(disk, DIRECTORY) is None
    again = load(disk, SMALL, clean=True, recovery_point=END)
    assert rotten(again) == rotten(log)
    assert read_damaged(disk, DIRECTORY) == {0}


def test_a_list_that_cannot_be_written_is_tried_again_and_fails_nothing() -> None:
    disk, log = damaged_and_scrubbed()
    log.truncate_to(2, 0)
    disk.fail("remove", 1, errno.ENOSPC, path_part=DAMAGED)
    note(log)
    assert read_damaged(disk, DIRECTORY) == {0}
    note(log)
    assert (read_damaged(disk, DIRECTORY), log.failure) == (frozenset(), None)


def test_nothing_is_written_for_a_sound_log() -> None:
    disk = SimDisk()
    log = new_log(disk, SMALL)
    append(log, batch(2))
    assert log.files.damage_job() is None
    log.close()
    load(disk, SMALL, clean=True, recovery_point=2)
    assert not disk.exists(f"{DIRECTORY}/{DAMAGED}")
