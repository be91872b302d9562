"""Every bit of the small files beside a metadata log, as the scrub of a running replica looks at them."""

from __future__ import annotations

from tidelog.metadata.records import MetadataLogError
from tidelog.raft import quorum_state
from tidelog.raft.log_shape import NOTHING_LOST, LogEnd
from tidelog.raft.mark_files import FLUSHED, LOST_END, read_lost_end, write_flushed, write_lost_end
from tidelog.raft.mark_scrub import check_marks
from tidelog.raft.quorum_state import QuorumState
from tidelog.storage.checkpoints import read_file
from tidelog.testing.simulation.disk import SimDisk

DIR = "/data"
STATE = QuorumState(2, 17, version=1)
LOST = LogEnd(7, 4500)


def replica() -> SimDisk:
    disk = SimDisk()
    disk.make_dirs(DIR)
    disk.sync_dir("/")
    quorum_state.store(disk, DIR, STATE)
    write_flushed(disk, DIR, LogEnd(6, 123))
    write_lost_end(disk, DIR, LOST)
    return disk


def believed(disk: SimDisk) -> QuorumState | None:
    try:
        return quorum_state.load(disk, DIR)
    except MetadataLogError:
        return None


def test_whole_files_and_missing_ones_are_sound() -> None:
    assert check_marks(replica(), DIR, LOST) == []
    disk = SimDisk()
    disk.make_dirs(DIR)
    assert check_marks(disk, DIR, NOTHING_LOST) == []


def test_every_bit_of_the_vote_and_of_the_note_of_what_is_flushed_is_found_or_changes_nothing() -> None:
    disk = replica()
    for name in (quorum_state.FILE_NAME, FLUSHED):
        path = f"{DIR}/{name}"
        right = read_file(disk, path)
        assert right is not None
        for position in range(len(right)):
            for bit in range(8):
                disk.flip(path, position, bit)
                found = check_marks(disk, DIR, LOST)
                assert found == [name] or (name, believed(disk)) == (quorum_state.FILE_NAME, STATE), (name, position, bit)
                disk.flip(path, position, bit)


def test_every_bit_of_the_note_of_lost_records_is_found_and_it_is_written_again() -> None:
    disk = replica()
    path = f"{DIR}/{LOST_END}"
    right = read_file(disk, path)
    assert right is not None
    for position in range(len(right)):
        for bit in range(8):
            disk.flip(path, position, bit)
            assert check_marks(disk, DIR, LOST) == [LOST_END], (position, bit)
            assert read_file(disk, path) == right
    assert read_lost_end(disk.crash(1), DIR) == LOST
