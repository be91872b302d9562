"""What was flushed, and what was lost: small files with a checksum."""

import binascii

import pytest

from tidelog.metadata.records import MetadataLogError
from tidelog.model.ids import Uuid
from tidelog.raft.log_shape import NOTHING_LOST, LogEnd
from tidelog.raft.mark_files import (
    FLUSHED,
    LOST_END,
    LOST_VOTERS,
    read_flushed,
    read_lost_end,
    read_lost_voters,
    remove_lost_end,
    write_flushed,
    write_lost_end,
    write_lost_voters,
)
from tidelog.raft.voters import ReplicaKey
from tidelog.storage.checkpoints import replace_file
from tidelog.testing.simulation.disk import SimDisk

DIR = "/data"


def disk() -> SimDisk:
    made = SimDisk()
    made.make_dirs(DIR)
    made.sync_dir("/")
    return made


def test_what_is_written_is_read_also_after_a_power_loss() -> None:
    made = disk()
    assert (read_flushed(made, DIR), read_lost_end(made, DIR)) == (LogEnd(-1, 0), NOTHING_LOST)
    write_flushed(made, DIR, LogEnd(6, 123))
    write_lost_end(made, DIR, LogEnd(7, 4500))
    after = made.crash(5)
    assert (read_flushed(after, DIR), read_lost_end(after, DIR)) == (LogEnd(6, 123), LogEnd(7, 4500))
    remove_lost_end(after, DIR)
    assert read_lost_end(after.crash(5), DIR) == NOTHING_LOST
    remove_lost_end(after, DIR)


def test_the_voters_before_a_loss_belong_to_one_loss_and_go_with_it() -> None:
    made, lost = disk(), LogEnd(7, 4500)
    others = (ReplicaKey(2, Uuid(bytes(range(16)))), ReplicaKey(3, Uuid(b"\xff" * 16)))
    assert read_lost_voters(made, DIR, lost) == ()
    write_lost_end(made, DIR, lost)
    write_lost_voters(made, DIR, lost, others)
    after = made.crash(5)
    assert read_lost_voters(after, DIR, lost) == others
    assert read_lost_voters(after, DIR, LogEnd(7, 4501)) == ()
    remove_lost_end(after, DIR)
    assert read_lost_voters(after.crash(6), DIR, lost) == ()
    write_lost_voters(after, DIR, lost, ())
    assert read_lost_voters(after, DIR, lost) == ()


def test_no_flipped_bit_is_believed() -> None:
    made = disk()
    write_flushed(made, DIR, LogEnd(6, 123))
    write_lost_end(made, DIR, LogEnd(7, 4500))
    for position in range(made.stat(f"{DIR}/{FLUSHED}").size):
        for bit in range(8):
            made.flip(f"{DIR}/{FLUSHED}", position, bit)
            assert read_flushed(made, DIR) == LogEnd(-1, 0)
            made.flip(f"{DIR}/{FLUSHED}", position, bit)
    write_lost_voters(made, DIR, LogEnd(7, 4500), (ReplicaKey(2, Uuid(bytes(range(16)))),))
    for position in range(made.stat(f"{DIR}/{LOST_VOTERS}").size):
        made.flip(f"{DIR}/{LOST_VOTERS}", position, 1)
        assert read_lost_voters(made, DIR, LogEnd(7, 4500)) == ()
        made.flip(f"{DIR}/{LOST_VOTERS}", position, 1)
    for position in range(made.stat(f"{DIR}/{LOST_END}").size):
        made.flip(f"{DIR}/{LOST_END}", position, 3)
        with pytest.raises(MetadataLogError, match=LOST_END):
            read_lost_end(made, DIR)
        made.flip(f"{DIR}/{LOST_END}", position, 3)


def test_a_note_without_an_epoch_is_read() -> None:
    made = disk()
    replace_file(made, f"{DIR}/{FLUSHED}", b"123 %08x\n" % binascii.crc32(b"123"))
    assert read_flushed(made, DIR) == LogEnd(-1, 123)
