"""What the scrub finds, believes and reports."""

import random

import pytest

from sim.workload import DIRECTORY, append, batch, new_log
from tidelog.model.errors import ErrorCode, StorageFailure
from tidelog.model.ids import TopicPartition
from tidelog.storage import reading
from tidelog.storage.log_config import LogConfig
from tidelog.storage.scrub import ScrubPass, SegmentCheck, damaged_snapshots, rest_after, segments_of
from tidelog.storage.unified_log import UnifiedLog
from tidelog.testing.simulation.disk import SimDisk

SMALL = LogConfig(segment_bytes=1000, index_interval_bytes=200)


def written() -> tuple[SimDisk, UnifiedLog]:
    disk = SimDisk()
    log = new_log(disk, SMALL)
    for number in range(8):
        append(log, batch(2, value=bytes(150), producer=(7, 0, number * 2)))
    log.flush()
    return disk, log


def looked_at(check: SegmentCheck) -> SegmentCheck:
    while not check.done:
        check.advance(100)
    return check


def scrub(log: UnifiedLog) -> int:
    """A whole pass over the log; places found."""
    found = 0
    for segment in segments_of(log):
        second = looked_at(SegmentCheck(log, segment, segment.file)).again(segment.file)
        found += looked_at(second).take() if second is not None else 0
    return found


def test_a_sound_log_has_nothing_to_find() -> None:
    _, log = written()
    assert scrub(log) == 0
    assert all(not segment.rotten for segment in log.segments)


@pytest.mark.parametrize("seed", range(60))
def test_every_flip_is_found_in_one_pass_and_readers_are_told(seed: int) -> None:
    disk, log = written()
    rng = random.Random(seed)
    segment = rng.choice(log.segments)
    disk.flip(segment.path(".log"), rng.randrange(segment.size), rng.randrange(8))
    expected = 0 if _only_in_the_epoch_of_the_last_batch(log) else 1
    assert scrub(log) == expected
    assert scrub(log) == 0, "it is reported once"
    errors = {reading.read(log, offset, 1, upto=16, min_one=True).error for offset in range(16)}
    assert (ErrorCode.CORRUPT_MESSAGE in errors) == bool(expected)


def test_one_pass_finds_each_bit_of_each_file_with_a_checksum() -> None:
    """But for the leader epoch of a batch, which no checksum covers: it has to contradict the batches beside it."""
    disk = SimDisk()
    log = new_log(disk, LogConfig(segment_bytes=250))
    for number in range(5):
        append(log, batch(2, value=bytes(8), producer=(7, 0, number * 2)), leader_epoch=3 + number // 3)
    log.flush()
    assert len(log.segments) == 3
    missed = set()
    for segment in log.segments:
        for position in range(segment.size):
            for bit in range(8):
                disk.flip(segment.path(".log"), position, bit)
                if scrub(log) != 1:
                    missed.add(position % (segment.size if segment is log.active else segment.size // 2))
                disk.flip(segment.path(".log"), position, bit)
                segment.rotten = ()
    assert missed == {12, 13, 14, 15}
    path = f"{DIRECTORY}/{log.segments[1].base_offset:020d}.snapshot"
    assert damaged_snapshots(log, log.segments) == []
    for position in range(disk.stat(path).size):
        for bit in range(8):
            disk.flip(path, position, bit)
            assert damaged_snapshots(log, log.segments) == [path]
            disk.flip(path, position, bit)


def _only_in_the_epoch_of_the_last_batch(log: UnifiedLog) -> bool:
    """The leader epoch has no checksum, and of the last batch no later one shows that it is wrong."""
    for segment in log.segments:
        data = segment.file.read(0, segment.size)
        half = len(data) // 2
        if int.from_bytes(data[half + 12 : half + 16], "big", signed=True) > 0:
            return True
    return False


def test_a_log_that_was_cut_under_the_first_look_is_not_damaged() -> None:
    _, log = written()
    segment = log.active
    check = SegmentCheck(log, segment, segment.file)
    log.truncate_to(13, 0)
    looked_at(check)
    assert check.found
    assert (check.stands, check.again(segment.file)) == (False, None)


def test_damage_that_is_replaced_under_the_second_look_is_not_reported() -> None:
    disk = SimDisk()
    log = new_log(disk)
    copies = [bytes(batch(1, base_offset=number, leader_epoch=0)) for number in range(20)]
    for each in copies:
        log.append_as_follower(memoryview(each), 0, 0)
    disk.flip(log.active.path(".log"), 5 * len(copies[0]) + 63, 2)
    second = looked_at(SegmentCheck(log, log.active, log.active.file)).again(log.active.file)
    assert second is not None
    looked_at(second)
    log.truncate_to(5, 0)
    for each in copies[5:]:
        log.append_as_follower(memoryview(each), 0, 0)
    assert (second.stands, second.take(), log.active.rotten) == (False, 0, ())


def test_what_the_second_look_does_not_see_was_never_there() -> None:
    disk, log = written()
    segment = log.segments[0]
    disk.flip(segment.path(".log"), 100, 2)
    second = looked_at(SegmentCheck(log, segment, segment.file)).again(segment.file)
    disk.flip(segment.path(".log"), 100, 2)
    assert second is not None
    assert (looked_at(second).take(), segment.rotten) == (0, ())


def test_a_segment_that_went_meanwhile_is_passed_over() -> None:
    disk, log = written()
    segment = log.segments[0]
    disk.flip(segment.path(".log"), 100, 2)
    second = looked_at(SegmentCheck(log, segment, segment.file)).again(segment.file)
    assert second is not None
    log.files.replace([segment], [])
    assert looked_at(second).take() == 0


def test_a_step_looks_at_about_as_much_as_it_may() -> None:
    _, log = written()
    check = SegmentCheck(log, log.segments[0], log.segments[0].file)
    check.advance(1)
    assert (check.work > 0, check.done) == (True, False)
    check.advance(1 << 20)
    assert (check.work, check.done) == (log.segments[0].size, True)


def test_a_step_over_a_long_damaged_stretch_is_bounded_too() -> None:
    disk = SimDisk()
    log = new_log(disk, LogConfig(max_message_bytes=16 << 20))
    append(log, batch(1))
    start = log.active.size
    append(log, batch(1, value=bytes(8 << 20)))
    append(log, batch(1))
    log.flush()
    disk.flip(log.active.path(".log"), start + 9, 5)  # the length: the next batch has to be searched for
    budget, steps = 256 * 1024, 0
    check = SegmentCheck(log, log.active, log.active.file)
    while not check.done:
        before = check.work
        check.advance(budget)
        assert check.work - before <= 2 * budget
        steps += 1
    assert steps > 30
    assert [(each.first_offset, each.next_offset) for each in check.found] == [(1, 2)]


def test_producer_snapshots_are_checked_too() -> None:
    disk, log = written()
    path = f"{DIRECTORY}/00000000000000000004.snapshot"
    assert damaged_snapshots(log, log.segments) == []
    disk.flip(path, 9, 1)
    assert damaged_snapshots(log, log.segments) == [path]


def test_a_log_out_of_service_is_not_read() -> None:
    _, log = written()
    log.files.fail_with(StorageFailure("/data", "gone"))
    assert segments_of(log) == []


def test_a_pass_goes_through_the_partitions_in_order() -> None:
    current = ScrubPass([TopicPartition("b", 0), TopicPartition("a", 1), TopicPartition("a", 0)])
    assert [str(current.next_partition()) for _ in range(4)] == ["a-0", "a-1", "b-0", "None"]


def test_the_rest_keeps_the_rate_and_leaves_most_of_a_core() -> None:
    assert rest_after(1000, 0.0, 10_000) == pytest.approx(0.1)
    assert rest_after(1000, 0.1, 10_000) == pytest.approx(0.9)
