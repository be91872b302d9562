"""The walk over a damaged segment: what it believes, and what it does not."""

import random

import pytest

from sim.workload import batch
from tidelog.storage.rotten_range import RottenRange
from tidelog.storage.segment_scan import SegmentScan, Trust
from tidelog.testing.simulation.disk import SimDisk

PATH = "/data/segment"


def file_of(*batches: bytes) -> SimDisk:
    disk = SimDisk()
    disk.make_dirs("/data")
    disk.open(PATH, create=True).write(0, b"".join(batches))
    return disk


def scan(disk: SimDisk, base_offset: int, trust: Trust) -> tuple[list[int], SegmentScan]:
    file = disk.open(PATH)
    walk = SegmentScan(file, base_offset, file.size(), trust)
    return [header.base_offset for _, header in walk.batches()], walk


def run(count: int, first: int = 0, epoch: int = 3, value: bytes = b"value") -> list[bytes]:
    return [bytes(batch(2, base_offset=first + 2 * n, leader_epoch=epoch, value=value)) for n in range(count)]


def test_gaps_of_compaction_are_no_rot() -> None:
    disk = file_of(*run(2), *run(2, first=100))
    assert scan(disk, 0, Trust(flushed=104, following=110))[1].rotten == []


@pytest.mark.parametrize(("end", "base"), [(96, 112), (96, 97), (6, 7), (4, 6)])
def test_a_single_record_behind_a_gap_is_no_rot_though_one_bit_makes_the_difference(end: int, base: int) -> None:
    """The recovery point that is written down is the last offset, which is this record's."""
    disk = file_of(*run(end // 2), bytes(batch(1, base_offset=base, leader_epoch=3)))
    for survived in (False, True):
        found, walk = scan(disk, 0, Trust(flushed=base, kernel_survived=survived))
        assert (found[-1], walk.next_offset, walk.rotten) == (base, base + 1, [])


def test_a_flushed_batch_whose_offset_rose_by_one_bit_is_rot() -> None:
    disk = file_of(*run(2), *run(1, first=4 + 64))
    found, walk = scan(disk, 0, Trust(flushed=5))
    assert (found, [each.first_offset for each in walk.rotten]) == ([0, 2], [4])


def test_nothing_known_means_a_torn_tail_at_the_first_bad_batch() -> None:
    batches = run(4)
    disk = file_of(*batches)
    disk.flip(PATH, len(batches[0]) + 30, 2)
    found, walk = scan(disk, 0, Trust())
    assert (found, walk.end, walk.next_offset, walk.valid_behind, walk.rotten) == ([0], len(batches[0]), 2, True, [])


def test_garbage_below_the_flushed_offset_stays_up_to_the_next_segment() -> None:
    batches = run(3)
    disk = file_of(batches[0], random.Random(1).randbytes(500))
    found, walk = scan(disk, 0, Trust(flushed=3, following=6))
    size = len(batches[0]) + 500
    assert (found, walk.end, walk.next_offset) == ([0], size, 6)
    assert walk.rotten == [RottenRange(len(batches[0]), size, 2, 6)]


def test_a_tail_above_the_flushed_offset_is_torn_whatever_is_flushed_below() -> None:
    batches = run(3)
    disk = file_of(batches[0], batches[1], batches[2][:-5])
    found, walk = scan(disk, 0, Trust(flushed=4, kernel_survived=True))
    assert (found, walk.end, walk.rotten) == ([0, 2], len(batches[0]) + len(batches[1]), [])


def test_the_next_batch_is_found_far_behind_and_across_pieces_that_are_read_at_once() -> None:
    batches = run(2)
    hole = bytes(1 << 20)
    disk = file_of(batches[0], hole, bytes(batch(2, base_offset=2, leader_epoch=3, value=b"x")), *run(1, first=8))
    found, walk = scan(disk, 0, Trust(flushed=10))
    assert (found, walk.next_offset) == ([0, 8], 10)
    assert walk.rotten[0].position == len(batches[0])


def test_a_bad_batch_takes_at_least_one_offset() -> None:
    batches = run(3)
    disk = file_of(batches[0], batches[1][:30], batches[2])
    found, walk = scan(disk, 0, Trust(flushed=6))
    assert (found, [(each.first_offset, each.next_offset) for each in walk.rotten]) == ([0, 4], [(2, 4)])


def test_an_epoch_that_rose_for_one_batch_only_is_wrong_there() -> None:
    disk = file_of(*run(1, epoch=3), *run(1, first=2, epoch=1027), *run(1, first=4, epoch=3))
    found, walk = scan(disk, 0, Trust(flushed=6))
    assert (found, [each.first_offset for each in walk.rotten]) == ([0, 4], [2])


def test_a_batch_that_reaches_into_the_next_segment_is_wrong() -> None:
    disk = file_of(*run(2), *run(1, first=4 + 64))
    found, walk = scan(disk, 0, Trust(flushed=6, following=6))
    assert (found, walk.next_offset, [each.first_offset for each in walk.rotten]) == ([0, 2], 6, [4])


@pytest.mark.parametrize("seed", range(40))
def test_one_flip_anywhere_costs_at_most_one_batch(seed: int) -> None:
    rng = random.Random(seed)
    batches = run(12, value=rng.randbytes(300))
    disk = file_of(*batches)
    disk.flip(PATH, rng.randrange(sum(map(len, batches))), rng.randrange(8))
    found, walk = scan(disk, 0, Trust(flushed=24, complete=True))
    assert len(found) >= 11, walk.rotten
    assert (walk.end, walk.next_offset) == (sum(map(len, batches)), 24)
