"""Blocks that a disk cannot read."""

import errno
import os

import pytest

from sim.workload import append, batch, new_log
from tidelog.model.errors import ErrorCode
from tidelog.storage import reading
from tidelog.storage.known_damage import KnownDamage
from tidelog.storage.scrub import SegmentCheck
from tidelog.storage.segment_recovery import mark_known
from tidelog.storage.unified_log import UnifiedLog
from tidelog.storage.unreadable_blocks import BLOCK_BYTES, FILL, MOST_BLOCKS, TolerantFile
from tidelog.testing.simulation.disk import SimFile


class Failing:
    """A file whose bytes in some ranges cannot be read."""

    def __init__(self, file: SimFile, *bad: tuple[int, int], code: int = errno.EIO) -> None:
        self._file = file
        self._bad = bad
        self._code = code

    def __getattr__(self, name: str) -> object:
        return getattr(self._file, name)

    def read(self, position: int, length: int) -> bytes:
        if any(position < end and start < position + length for start, end in self._bad):
            raise OSError(self._code, os.strerror(self._code))
        return self._file.read(position, length)


def written() -> UnifiedLog:
    log = new_log()
    for _ in range(20):
        append(log, batch(1, value=bytes(3000)))
    log.flush()
    return log


def failing(log: UnifiedLog, *bad: tuple[int, int], code: int = errno.EIO) -> Failing:
    file = log.active.file
    assert isinstance(file, SimFile)
    return Failing(file, *bad, code=code)


def test_only_the_block_that_fails_is_missing() -> None:
    log = written()
    file = TolerantFile(failing(log, (9000, 9001)))  # type: ignore[arg-type]
    data, whole = file.read(100, 20_000), log.active.file.read(100, 20_000)
    start = 2 * BLOCK_BYTES - 100
    assert data == whole[:start] + FILL * BLOCK_BYTES + whole[start + BLOCK_BYTES :]
    assert file.unreadable == [2 * BLOCK_BYTES]


def test_the_scrub_marks_what_cannot_be_read_and_goes_on() -> None:
    log = written()
    file = failing(log, (9000, 9001))
    first = SegmentCheck(log, log.active, file)  # type: ignore[arg-type]
    first.advance(1 << 20)
    second = first.again(file)  # type: ignore[arg-type]
    assert second is not None
    second.advance(1 << 20)
    assert second.take() == 1
    (rotten,) = log.active.rotten
    assert (rotten.first_offset, rotten.next_offset) == (2, 5)
    assert reading.read(log, 3, 1, upto=20, min_one=True).error is ErrorCode.CORRUPT_MESSAGE
    assert reading.read(log, 5, 1, upto=20, min_one=True).error is ErrorCode.NONE


def test_a_start_marks_it_again_and_does_not_fail() -> None:
    log = written()
    log.active._file = failing(log, (9000, 9001))  # type: ignore[assignment]
    mark_known(log.segments, {0})
    assert [(each.first_offset, each.next_offset) for each in log.active.rotten] == [(2, 5)]
    assert KnownDamage().job(log.fs, log.files, log.segments) is not None


def test_too_many_blocks_are_a_failed_disk() -> None:
    log = new_log()
    log.active.file.write(0, bytes((MOST_BLOCKS + 2) * BLOCK_BYTES))
    file = TolerantFile(failing(log, (0, 1 << 40)))  # type: ignore[arg-type]
    with pytest.raises(OSError, match="Input/output"):
        file.read(0, 1 << 30)
    assert len(file.unreadable) == MOST_BLOCKS


def test_other_errors_are_the_callers() -> None:
    file = TolerantFile(failing(written(), (0, 1), code=errno.ESTALE))  # type: ignore[arg-type]
    with pytest.raises(OSError, match="tale"):
        file.read(0, 10)


def test_a_view_changes_nothing() -> None:
    file = TolerantFile(written().active.file)
    assert (file.size() > 0, file.path.endswith(".log"), file.fileno()) == (True, True, -1)
    file.sync()
    file.close()
    for change in (lambda: file.write(0, b""), lambda: file.truncate(0)):
        with pytest.raises(AssertionError):
            change()
