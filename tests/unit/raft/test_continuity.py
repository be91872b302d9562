"""What a checksum cannot show: offsets, epochs, and a log that is shorter than it was."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from tests.unit.raft.written import CHANGE, NO_OP, SEGMENT, append, flip_in_batch, flush, headers
from tidelog.model.ports import FileSystem
from tidelog.raft import quorum_state
from tidelog.raft.continuity import ContinuityCheck, Known
from tidelog.raft.log_opening import open_log
from tidelog.raft.log_shape import LogEnd
from tidelog.raft.mark_files import FLUSHED
from tidelog.raft.metadata_log import MetadataLog, MetadataLogConfig
from tidelog.raft.quorum_state import QuorumState
from tidelog.records.batch import iter_headers
from tidelog.server.disk import DiskFileSystem
from tidelog.testing.simulation.disk import SimDisk

FS = DiskFileSystem()
BEGIN = LogEnd(0, 0)
UNKNOWN = LogEnd(-1, 0)
EPOCH, BASE_OFFSET = 15, 7
"""The last byte of each, from the beginning of a batch."""


def opened(path: Path | str, fs: FileSystem = FS) -> MetadataLog:
    return open_log(fs, str(path), MetadataLogConfig(), 1000)


def written(path: Path | str, *epochs: int, voted: int = 7, clean: bool = True, fs: FileSystem = FS) -> str:
    """A flushed log with two records per epoch given; its file."""
    log = opened(path, fs)
    log.note_opened()
    quorum_state.store(fs, log.dir, QuorumState(-1, voted, version=1))
    for epoch in epochs:
        append(log, epoch)
        flush(log)
    if clean:
        log.close()
    return f"{log.dir}/{SEGMENT}"


def check(log: MetadataLog, flushed: LogEnd = UNKNOWN, epoch: int | None = 7) -> ContinuityCheck:
    return ContinuityCheck(log.log, Known(BEGIN, flushed, epoch))


def test_a_log_as_it_was_written_has_no_damage(tmp_path: Path) -> None:
    written(tmp_path, 1, 1, 3, 3)
    found = check(opened(tmp_path), LogEnd(3, 8))
    assert (found.damages, found.epochs, found.end) == ([], [(1, 0), (3, 4)], LogEnd(3, 8))


@pytest.mark.parametrize("clean", [True, False], ids=["clean", "killed"])
def test_no_flipped_bit_before_the_checksum_of_the_last_batch_is_believed(clean: bool) -> None:
    disk = SimDisk()
    disk.make_dirs("/data")
    file = written("/data", 1, 1, 2, 2, clean=clean, fs=disk)
    begins = list(iter_headers(disk.open(file).read(0, disk.stat(file).size)))[3].position
    for at, bit in product(range(16), range(8)):
        damaged = disk.kill()
        damaged.flip(file, begins + at, bit)
        log = opened("/data", fs=damaged)
        assert log.damaged is not None, (at, bit)
        assert log.damaged.rotten.first_offset == 6
        # Above what was noted as flushed, the epoch of a damaged batch is known only to be at most that of quorum-state.
        assert LogEnd(2, 8) <= log.end_before_damage <= (LogEnd(2, 8) if clean else LogEnd(8, 0)), (at, bit)


@pytest.mark.parametrize("clean", [True, False], ids=["clean", "killed"])
@pytest.mark.parametrize("bit", range(8))
def test_the_epoch_of_a_leaders_first_records_is_noted_when_they_are_flushed(tmp_path: Path, bit: int, clean: bool) -> None:
    file = Path(written(tmp_path, 1, 3, clean=clean, voted=1000))
    flip_in_batch(file, 1, EPOCH, bit)
    log = opened(tmp_path)
    assert log.damaged is not None
    assert (log.damaged.rotten.first_offset, log.end_before_damage) == (2, LogEnd(3, 4))


def test_an_epoch_above_that_of_quorum_state_is_damage(tmp_path: Path) -> None:
    file = Path(written(tmp_path, 1, 1, voted=1, clean=False))
    flip_in_batch(file, 1, EPOCH, 2)
    log = opened(tmp_path)
    assert log.damaged is not None
    assert "epoch 5, and this voter knows none above 1" in log.damaged.why
    assert log.end_before_damage == LogEnd(1, 4)


def test_a_new_epoch_begins_with_a_leader_change_and_nothing_else_does(tmp_path: Path) -> None:
    log = opened(tmp_path)
    append(log, 1)
    log.append_values([NO_OP], 2, 1)
    assert [each.rotten.first_offset for each in check(log).damages] == [2]
    other = opened(tmp_path / "other")
    append(other, 1)
    other.append_control([CHANGE], 1, 1)
    assert [each.rotten.first_offset for each in check(other).damages] == [2]


def test_records_that_are_missing_between_two_segments_are_damage(tmp_path: Path) -> None:
    log = opened(tmp_path)
    for epoch in (1, 1, 1):
        append(log, epoch)
    log.log.roll(1000)
    append(log, 1)
    flush(log)
    log.close()
    file = Path(log.dir, SEGMENT)
    last = headers(file)[-1]
    file.write_bytes(file.read_bytes()[: last.position])
    again = opened(tmp_path)
    assert again.damaged is not None
    assert again.damaged.rotten[2:] == (4, 6)
    assert again.end_before_damage == LogEnd(1, 8)
    assert [header.base_offset for header, _ in again.batches_from(0)] == [0, 2]


def test_a_file_that_was_cut_between_two_batches_is_damage_up_to_the_noted_end(tmp_path: Path) -> None:
    file = Path(written(tmp_path, 1, 1, 2, 2))
    file.write_bytes(file.read_bytes()[: headers(file)[2].position])
    log = opened(tmp_path)
    assert log.damaged is not None
    assert (log.damaged.rotten[2:], log.end_before_damage) == ((4, 8), LogEnd(2, 8))


@pytest.mark.parametrize("how", ["removed", "emptied"])
def test_a_missing_file_is_damage_up_to_the_noted_end(tmp_path: Path, how: str) -> None:
    file = Path(written(tmp_path, 1, 1, 2, 2))
    file.unlink()
    if how == "emptied":
        file.touch()
    log = opened(tmp_path)
    assert log.damaged is not None
    assert (log.damaged.rotten[2:], log.end_before_damage, log.end_offset) == ((0, 8), LogEnd(2, 8), 0)


def test_two_batches_that_agree_show_that_those_before_them_are_missing(tmp_path: Path) -> None:
    file = Path(written(tmp_path, 1, 1, 1, 1, 1))
    data, found = file.read_bytes(), headers(file)
    file.write_bytes(data[: found[1].position] + data[found[3].position :])
    (file.parent / FLUSHED).unlink()
    log = opened(tmp_path)
    assert log.damaged is not None
    assert (log.damaged.rotten.first_offset, log.end_before_damage) == (2, LogEnd(7, 10))


def test_a_lowered_epoch_of_the_last_batch_does_not_lower_the_end(tmp_path: Path) -> None:
    file = Path(written(tmp_path, 1, 1))
    flip_in_batch(file, 1, 15, 0)
    log = opened(tmp_path)
    assert log.damaged is not None and log.end_before_damage >= LogEnd(1, 4)


def test_an_end_that_is_not_known_is_put_into_a_later_epoch(tmp_path: Path) -> None:
    file = Path(written(tmp_path, 1, 1, clean=False, voted=4))
    data = file.read_bytes()
    last = headers(file)[-1]
    file.write_bytes(data[: last.position] + b"\x01" * last.size)
    log = opened(tmp_path)
    assert log.damaged is not None
    assert (log.damaged.rotten.first_offset, log.end_before_damage) == (2, LogEnd(5, 0))
