"""What a start takes for the log: epochs of the batches, and what a snapshot, a power loss or another voter accounts for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.raft.test_continuity import EPOCH, FS, opened, written
from tests.unit.raft.written import append, flip_in_batch, flush
from tidelog.metadata.records import MetadataLogError
from tidelog.raft.log_changes import log_shape
from tidelog.raft.log_shape import LogEnd
from tidelog.raft.snapshots import SnapshotId, encode_snapshot, write_snapshot

EPOCHS = "leader-epoch-checkpoint"


def test_the_epochs_are_those_of_the_batches(tmp_path: Path) -> None:
    file = Path(written(tmp_path, 1, 1, 2, 2))
    checkpoint = file.parent / EPOCHS
    assert checkpoint.read_text() == "0\n2\n1 0\n2 4\n"
    checkpoint.write_text("0\n2\n1 0\n6 4\n")
    shape = log_shape(opened(tmp_path))
    assert (shape.end, shape.end_of(1)) == (LogEnd(2, 8), LogEnd(1, 4))


def test_what_a_power_loss_may_have_left_above_the_noted_end_is_cut_and_kept(tmp_path: Path) -> None:
    file = Path(written(tmp_path, 1, 1, 1, clean=False))
    before = file.read_bytes()
    (file.parent / ".tidelog_boot").write_text("another boot")
    damaged = flip_in_batch(file, 2, EPOCH)
    log = opened(tmp_path)
    assert (log.damaged, log.end_offset) == (None, 4)
    kept = b"".join(each.read_bytes() for each in file.parent.glob("*.cut"))
    assert file.read_bytes() == before[: -len(kept)]
    assert damaged.endswith(kept)


def test_a_quorum_state_that_is_older_than_the_log_is_refused_by_name(tmp_path: Path) -> None:
    written(tmp_path, 1, 3, voted=2)
    with pytest.raises(MetadataLogError, match=r"quorum-state has epoch 2, but records of epoch 3 were flushed"):
        opened(tmp_path)


def snapshot(directory: str, offset: int, epoch: int) -> None:
    batches = encode_snapshot((), metadata_version=30, epoch=epoch, now_ms=1000, last_timestamp_ms=900)
    write_snapshot(FS, directory, SnapshotId(offset, epoch), batches)


def test_a_log_that_is_gone_is_damage_from_the_newest_snapshot_on(tmp_path: Path) -> None:
    file = Path(written(tmp_path, 1, 1, 2, 2))
    snapshot(str(file.parent), 6, 2)
    file.unlink()
    log = opened(tmp_path)
    assert log.damaged is not None
    assert (log.damaged.rotten[2:], log_shape(log).end, log.end_before_damage) == ((6, 8), LogEnd(2, 6), LogEnd(2, 8))
    snapshot(str(file.parent), 8, 2)
    assert opened(tmp_path).damaged is None


def test_a_first_segment_that_is_gone_is_damage_unless_a_snapshot_reaches_its_end(tmp_path: Path) -> None:
    log = opened(tmp_path)
    append(log, 1, 1, 1)
    log.log.roll(1000)
    append(log, 1)
    flush(log)
    log.close()
    Path(log.dir, "00000000000000000000.log").unlink()
    again = opened(tmp_path)
    assert again.damaged is not None
    assert (again.damaged.rotten[2:], again.end_before_damage) == ((0, 6), LogEnd(1, 8))
    again.cut_before(again.damaged, 1000)
    assert (again.end_offset, log_shape(again).end) == (0, LogEnd(0, 0))


def test_a_cut_below_the_newest_snapshot_continues_behind_it(tmp_path: Path) -> None:
    log = opened(tmp_path)
    append(log, 1, 1, 1)
    flush(log)
    snapshot(log.dir, 3, 1)
    log.close()
    flip_in_batch(Path(log.dir, "00000000000000000000.log"), 1, 70)
    again = opened(tmp_path)
    assert again.damaged is not None
    again.cut_before(again.damaged, 1000)
    assert log_shape(again).end == LogEnd(1, 3)
