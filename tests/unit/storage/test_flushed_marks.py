"""What a start believes of what was flushed."""

import pytest

from tidelog.model.ids import TopicPartition
from tidelog.storage.checkpoints import replace_file
from tidelog.storage.flushed_marks import (
    FLUSHED_CHECKPOINT,
    Believed,
    CutMark,
    FlushedMark,
    believed,
    encode_flushed,
    note_cut,
    read_cut,
    read_flushed_marks,
)
from tidelog.testing.simulation.disk import SimDisk

ID, OTHER = bytes(range(16)), bytes(range(100, 116))


class Log:
    dir = "/a/orders-0"


def test_the_flushed_end_counts_where_it_is_of_the_same_checkpoint() -> None:
    assert believed(57, 3, FlushedMark(ID, 57, 58), 4, None, ID) == Believed(57, 58, True, 3)


@pytest.mark.parametrize(("point", "flushed"), [(40, 40), (90, 58)])
def test_of_two_checkpoints_of_different_moments_the_lower_counts(point: int, flushed: int) -> None:
    assert believed(point, 3, FlushedMark(ID, 57, 58), 4, None, ID) == Believed(flushed, flushed, False, 3)


@pytest.mark.parametrize("topic_id", [OTHER, None])
def test_offsets_of_an_older_topic_of_that_name_are_not_believed(topic_id: bytes | None) -> None:
    assert believed(57, 9, FlushedMark(ID, 57, 58), 4, None, topic_id) == Believed(0, 0, False, 0)


def test_a_topic_id_with_a_flipped_bit_is_the_same_topic() -> None:
    damaged = bytes([ID[0] ^ 4, *ID[1:]])
    assert believed(57, 3, FlushedMark(ID, 57, 58), 4, None, damaged).flushed == 58


def test_without_a_mark_the_checkpoint_is_believed() -> None:
    assert believed(57, 3, None, 0, None, ID) == Believed(57, 57, False, 3)


@pytest.mark.parametrize(("number", "flushed", "start"), [(3, 58, 30), (4, 20, 10), (5, 20, 10)])
def test_a_cut_counts_until_a_later_checkpoint_is_written(number: int, flushed: int, start: int) -> None:
    found = believed(57, 30, FlushedMark(ID, 57, 58), 4, CutMark(number, 20, 10), ID)
    assert (found.flushed, found.log_start_offset, found.recovery_point) == (flushed, start, min(57, flushed))


def test_marks_are_read_as_written_and_not_once_a_bit_flips() -> None:
    disk = SimDisk()
    disk.make_dirs("/a")
    marks = {TopicPartition("orders", 0): FlushedMark(ID, 5, 6), TopicPartition("a.b", 12): FlushedMark(None, 0, 0)}
    assert read_flushed_marks(disk, "/a") == (0, {})
    content = encode_flushed(7, marks)
    replace_file(disk, f"/a/{FLUSHED_CHECKPOINT}", content)
    assert read_flushed_marks(disk, "/a") == (7, marks)
    for position in range(len(content)):
        for bit in (0, 3, 7):
            disk.flip(f"/a/{FLUSHED_CHECKPOINT}", position, bit)
            assert read_flushed_marks(disk, "/a") == (0, {})
            disk.flip(f"/a/{FLUSHED_CHECKPOINT}", position, bit)


def test_a_cut_is_read_as_written_and_not_once_a_bit_flips() -> None:
    disk = SimDisk()
    disk.make_dirs(Log.dir)
    assert read_cut(disk, Log.dir) is None
    note_cut(disk, Log(), CutMark(4, 20, 10))
    assert read_cut(disk, Log.dir) == CutMark(4, 20, 10)
    disk.flip(f"{Log.dir}/tidelog-cut", 10, 1)
    assert read_cut(disk, Log.dir) is None
