"""LogSegment: index placement, rolling, finding and cutting."""

import pytest

from sim.workload import NOW_MS
from tidelog.storage.index import OFFSET_ENTRY_BYTES
from tidelog.storage.segment import INDEX_SUFFIX, LogSegment, RollLimits, file_stem
from tidelog.testing.simulation.disk import SimDisk

LIMITS = RollLimits(10_000, 60_000, 10 << 20)


def header(base_offset: int, size: int, count: int, max_timestamp: int) -> bytes:
    """Enough of a batch for a segment: it looks at lengths, offsets and the timestamp only."""
    raw = bytearray(size)
    raw[0:8] = base_offset.to_bytes(8, "big")
    raw[8:12] = (size - 12).to_bytes(4, "big")
    raw[23:27] = (count - 1).to_bytes(4, "big")
    raw[35:43] = max_timestamp.to_bytes(8, "big")
    return bytes(raw)


def filled(sizes: list[int], *, interval: int = 4096, count: int = 10, disk: SimDisk | None = None) -> LogSegment:
    disk = disk or SimDisk()
    disk.make_dirs("/d")
    segment = LogSegment.create(disk, "/d", 1000, NOW_MS)
    for number, size in enumerate(sizes):
        base = 1000 + number * count
        segment.append(header(base, size, count, NOW_MS + number), size, base, base + count - 1, NOW_MS + number, interval)
    return segment


def test_files_are_named_by_twenty_digits() -> None:
    assert file_stem(42) == "00000000000000000042"


def test_index_entries_have_the_last_offset_of_the_batch_at_their_position() -> None:
    segment = filled([3000, 3000, 3000, 3000])
    index = segment.offset_index()
    assert [(index.base_offset + r, p) for r, p in zip(index.relative_offsets, index.positions, strict=True)] == [(1029, 6000)]


def test_appending_writes_the_log_once_and_no_index() -> None:
    disk = SimDisk()
    seen: list[tuple[str, str]] = []
    disk.on_operation = lambda number, kind, path: seen.append((kind, path))
    filled([5000] * 5, disk=disk)
    assert seen[2:] == [("write", "/d/00000000000000001000.log")] * 5


def test_every_offset_is_found_in_its_batch_from_memory_and_from_the_file() -> None:
    segment = filled([500] * 40, interval=1000)
    for forget in (False, True):
        if forget:
            segment.forget_recent()
        for number in range(40):
            for offset in (1000 + number * 10, 1000 + number * 10 + 9):
                assert segment.position_of(offset) == number * 500
        assert segment.position_of(1400) == segment.size


@pytest.mark.parametrize("bit", range(8 * OFFSET_ENTRY_BYTES))
def test_every_offset_is_found_in_its_batch_whichever_bit_of_an_index_entry_has_turned(bit: int) -> None:
    disk = SimDisk()
    segment = filled([500] * 40, interval=1000, disk=disk)
    for file, position, data in segment.closing_index_writes():
        file.write(position, data)
    segment.sealed = True
    entries = len(segment.offset_index())
    assert entries > 4
    disk.flip(segment.path(INDEX_SUFFIX), 2 * OFFSET_ENTRY_BYTES + bit // 8, bit % 8)
    segment.drop_indexes()
    segment.forget_recent()
    for number in range(40):
        for offset in (1000 + number * 10, 1000 + number * 10 + 9):
            span = segment.find(offset)
            assert span is not None
            assert span.position == number * 500


def test_recent_batches_are_remembered_up_to_a_limit() -> None:
    segment = filled([61] * 3000, interval=1 << 30, count=1)
    assert segment.recent_position(1000) == -1
    assert segment.recent_position(3999) == 2999 * 61
    assert segment.position_of(1000) == 0


def test_a_boundary_is_whole_batches_within_the_limit_or_the_first_batch() -> None:
    segment = filled([500] * 40, interval=1000)
    for forget in (False, True):
        if forget:
            segment.forget_recent()
        end = segment.boundary_within(1000, 5200)
        assert end % 500 == 0
        assert 1000 < end <= 5200
        assert segment.boundary_within(1000, 1100) == 1500


def test_a_segment_rolls_by_size_age_offset_and_full_index() -> None:
    segment = filled([5000])
    assert not segment.must_roll(5000, 1019, NOW_MS, NOW_MS, LIMITS)
    assert segment.must_roll(5001, 1019, NOW_MS, NOW_MS, LIMITS)
    assert segment.must_roll(10, 1019, NOW_MS + 60_001, NOW_MS, LIMITS)
    assert not segment.must_roll(10, 1019, NOW_MS + 60_000, NOW_MS + 99_000, LIMITS)
    assert segment.must_roll(10, 1000 + (1 << 31), NOW_MS, NOW_MS, LIMITS)
    small = RollLimits(1 << 30, 60_000, 24)
    assert small.index_entries == 1
    assert filled([500] * 10, interval=1000).must_roll(10, 1200, NOW_MS, NOW_MS, small)


def test_an_empty_segment_rolls_only_when_the_offset_does_not_fit() -> None:
    segment = filled([])
    assert not segment.must_roll(50_000, 1000, NOW_MS + 99_000, NOW_MS, LIMITS)
    assert segment.must_roll(10, 1000 + (1 << 31), NOW_MS, NOW_MS, LIMITS)


def test_without_timestamps_a_segment_ages_by_the_clock() -> None:
    disk = SimDisk()
    disk.make_dirs("/d")
    segment = LogSegment.create(disk, "/d", 0, NOW_MS)
    segment.append(header(0, 100, 1, (1 << 64) - 1), 100, 0, 0, -1, 4096)
    assert not segment.must_roll(10, 1, -1, NOW_MS + 60_000, LIMITS)
    assert segment.must_roll(10, 1, -1, NOW_MS + 60_001, LIMITS)


def test_closing_adds_the_greatest_timestamp_and_a_second_closing_owes_nothing() -> None:
    segment = filled([500] * 3)
    writes = segment.closing_index_writes()
    assert [data for _, _, data in writes] == [b"", (NOW_MS + 2).to_bytes(8, "big") + (29).to_bytes(4, "big")]
    assert segment.closing_index_writes() == []


def test_a_wrong_or_missing_index_is_made_anew_from_the_log() -> None:
    disk = SimDisk()
    segment = filled([3000] * 5, disk=disk)
    expected = list(segment.offset_index().positions)
    disk.open("/d/00000000000000001000.index", create=True).write(0, b"\xff" * 16)
    cold = LogSegment(disk, "/d", 1000, size=segment.size)
    cold.next_offset = segment.next_offset
    assert list(cold.offset_index().positions) == expected
    assert cold.largest_timestamp() == (NOW_MS + 4, 1049)


def test_the_greatest_timestamp_of_a_closed_segment_needs_no_index_in_memory() -> None:
    disk = SimDisk()
    segment = filled([3000] * 5, disk=disk)
    for file, position, data in segment.closing_index_writes():
        file.write(position, data)
    cold = LogSegment(disk, "/d", 1000, size=segment.size)
    cold.next_offset = segment.next_offset
    assert cold.largest_timestamp() == (NOW_MS + 4, 1049)
    assert not cold.indexes_loaded()


def test_a_sealed_segment_gives_its_indexes_back_and_loads_them_again() -> None:
    disk = SimDisk()
    segment = filled([3000] * 5, disk=disk)
    for file, position, data in segment.closing_index_writes():
        file.write(position, data)
    segment.drop_indexes()
    assert segment.indexes_loaded()
    segment.sealed = True
    segment.drop_indexes()
    assert not segment.indexes_loaded()
    assert segment.position_of(1045) == 12_000


def test_all_files_of_a_segment_are_renamed_and_removed_together() -> None:
    disk = SimDisk()
    segment = filled([3000] * 5, disk=disk)
    for file, position, data in segment.closing_index_writes():
        file.write(position, data)
    segment.rename_files(".deleted")
    stem = "00000000000000001000"
    assert disk.listdir("/d") == [f"{stem}.index.deleted", f"{stem}.log.deleted", f"{stem}.timeindex.deleted"]
    segment.remove_files()
    assert disk.listdir("/d") == []


@pytest.mark.parametrize("bit", range(8 * OFFSET_ENTRY_BYTES))
def test_a_first_batch_is_read_whole_whichever_bit_of_an_index_entry_has_flipped(bit: int) -> None:
    disk = SimDisk()
    segment = filled([500] * 40, interval=1000, disk=disk)
    for file, position, data in segment.closing_index_writes():
        file.write(position, data)
    segment.sealed = True
    disk.flip(segment.path(INDEX_SUFFIX), 2 * OFFSET_ENTRY_BYTES + bit // 8, bit % 8)
    segment.drop_indexes()
    segment.forget_recent()
    for start in range(0, segment.size, 500):
        assert segment.boundary_within(start, start + 1) == start + 500
