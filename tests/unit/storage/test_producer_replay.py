"""From which state and from where batches are gone through again."""

import pytest

from sim.workload import DIRECTORY, append, batch, load, new_log
from tidelog.storage.log_config import LogConfig
from tidelog.storage.producer_replay import iter_batches, snapshot_offsets
from tidelog.testing.simulation.disk import SimDisk

SMALL = LogConfig(segment_bytes=1000, index_interval_bytes=200)


def written(disk: SimDisk) -> None:
    log = new_log(disk, SMALL)
    for number in range(8):
        append(log, batch(2, value=bytes(150), producer=(7 + number % 2, 0, number // 2 * 2)))
    log.close()


def test_one_snapshot_per_segment_and_one_at_the_end_are_kept() -> None:
    disk = SimDisk()
    written(disk)
    log = load(disk, SMALL, clean=True)
    bases = [segment.base_offset for segment in log.segments if segment.base_offset]
    assert snapshot_offsets(disk.listdir(DIRECTORY)) == [*bases, 16]
    append(log, batch())
    log.close()
    load(disk, SMALL, clean=True)
    assert snapshot_offsets(disk.listdir(DIRECTORY)) == [*bases, 17]


@pytest.mark.parametrize("lost", [0, 1, 2, 9])
def test_an_older_snapshot_and_more_of_the_log_give_the_same_state(lost: int) -> None:
    disk = SimDisk()
    written(disk)
    for offset in snapshot_offsets(disk.listdir(DIRECTORY))[::-1][:lost]:
        disk.open(f"{DIRECTORY}/{offset:020d}.snapshot").write(12, b"\x55")
    state = load(disk, SMALL, clean=True).producers
    assert {producer: entry.last_sequence for producer, entry in state.entries.items()} == {7: 7, 8: 7}
    assert state.end_offset == 16


def test_a_snapshot_above_the_end_of_the_log_goes() -> None:
    disk = SimDisk()
    written(disk)
    disk.open(f"{DIRECTORY}/00000000000000000099.snapshot", create=True).write(0, b"anything")
    load(disk, SMALL)
    assert 99 not in snapshot_offsets(disk.listdir(DIRECTORY))


def test_state_at_the_end_needs_no_reading_of_batches_after_a_clean_stop() -> None:
    disk = SimDisk()
    written(disk)
    first = f"{DIRECTORY}/00000000000000000000.log"
    disk.fail("read", 1, 5, path_part=first, times=1000)
    assert len(load(disk, SMALL, clean=True).producers.entries) == 2


def test_batches_larger_than_a_chunk_are_read_whole() -> None:
    disk = SimDisk()
    disk.make_dirs("/d")
    file = disk.open("/d/x", create=True)
    parts = [batch(2, value=b"a" * size, base_offset=n * 2) for n, size in enumerate([10, 900_000, 10, 2_000_000, 300])]
    file.write(0, b"".join(parts))
    found = [(header.base_offset, bytes(data)) for header, data in iter_batches(file, 0, file.size())]
    assert found == [(n * 2, bytes(part)) for n, part in enumerate(parts)]


@pytest.mark.parametrize("tail", [b"", b"\0" * 10, b"\0" * 61, b"\0" * 500, b"\xff" * 100])
def test_iteration_ends_where_no_whole_batch_begins(tail: bytes) -> None:
    disk = SimDisk()
    disk.make_dirs("/d")
    file = disk.open("/d/x", create=True)
    file.write(0, bytes(batch(3)) + tail)
    assert [header.records_count for header, _ in iter_batches(file, 0, file.size())] == [3]
