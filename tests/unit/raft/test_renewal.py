"""Damaged snapshots: left out at a start, not served, and replaced."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.raft.driver import voters
from tests.unit.raft.test_continuity import opened
from tests.unit.raft.test_log_opening import snapshot
from tests.unit.raft.test_mending import repair
from tests.unit.raft.written import SEGMENT, append, flip, flip_in_batch, flush
from tidelog.metadata.records import MetadataLogError
from tidelog.model.errors import ErrorCode
from tidelog.model.machine import Token
from tidelog.protocol.messages.fetch_snapshot import FetchSnapshotResponse, ResponsePartitionSnapshot, ResponseTopicSnapshot
from tidelog.raft import renewal
from tidelog.raft.effects import ReplySnapshotPart
from tidelog.raft.log_changes import log_shape, snapshot_part
from tidelog.raft.log_shape import LogEnd
from tidelog.raft.metadata_log import MetadataLog
from tidelog.raft.snapshots import SnapshotId

OLD, NEW = SnapshotId(2, 1), SnapshotId(6, 1)


def with_snapshots(path: Path, *ids: SnapshotId, cleaned: bool = False) -> MetadataLog:
    """A closed log of eight records; ``cleaned``: it begins at the first snapshot."""
    log = opened(path)
    for _ in range(4):
        append(log, 1)
        log.log.roll(1000)
    flush(log)
    for each in ids:
        snapshot(log.dir, each.offset, each.epoch)
    if cleaned:
        for segment in log.log.segments:
            if segment.next_offset <= ids[0].offset:
                Path(segment.path(".log")).unlink()
    log.close()
    return log


def damage(log: MetadataLog, snapshot_id: SnapshotId) -> Path:
    path = Path(log.dir, snapshot_id.file_name)
    path.chmod(0o644)
    flip(path, 70)
    return path


def test_an_older_snapshot_or_the_log_takes_the_place_of_a_damaged_one(tmp_path: Path) -> None:
    log = with_snapshots(tmp_path, OLD, NEW)
    damage(log, NEW)
    again = opened(tmp_path)
    assert (again.snapshots, list(again.unreadable), again.damaged) == ([OLD], [NEW], None)
    damage(log, OLD)
    again = opened(tmp_path)
    assert (again.snapshots, set(again.unreadable), again.damaged, again.log.log_start_offset) == ([], {OLD, NEW}, None, 0)


def test_without_either_the_only_voter_refuses_and_names_the_snapshot(tmp_path: Path) -> None:
    log = with_snapshots(tmp_path, NEW, cleaned=True)
    path = damage(log, NEW)
    before = path.read_bytes()
    with pytest.raises(
        MetadataLogError, match=rf"records 0 to 5 of 8.*{NEW.file_name} is damaged, the batch at byte 0.*only voter"
    ):
        repair(opened(tmp_path), voters(1))
    assert path.read_bytes() == before


def test_one_of_three_gets_all_from_the_others(tmp_path: Path) -> None:
    log = with_snapshots(tmp_path, NEW, cleaned=True)
    damage(log, NEW)
    again = opened(tmp_path)
    assert repair(again, voters(1, 2, 3)) == LogEnd(1, 8)
    assert log_shape(again).end == LogEnd(0, 0)


def test_a_damaged_snapshot_is_not_served(tmp_path: Path) -> None:
    log = opened(tmp_path)
    snapshot(log.dir, 6, 1)
    log.snapshots = [NEW]
    damage(log, NEW)
    answer = FetchSnapshotResponse(topics=[ResponseTopicSnapshot(partitions=[ResponsePartitionSnapshot(size=100)])])
    found = snapshot_part(log, ReplySnapshotPart(Token(1), answer, NEW, 0, 20)).topics[0].partitions[0]
    assert (found.error_code, found.unaligned_records) == (ErrorCode.SNAPSHOT_NOT_FOUND, b"")


def test_a_new_snapshot_is_needed_for_damage_that_it_covers(tmp_path: Path) -> None:
    log = with_snapshots(tmp_path, NEW)
    assert not renewal.needs_snapshot(opened(tmp_path), 8)
    flip_in_batch(Path(log.dir, SEGMENT), 0, 30)
    again = opened(tmp_path)
    assert not renewal.needs_snapshot(again, 8), "what is below the newest snapshot went at the start"
    damage(log, NEW)
    renewal.look_at(again, NEW)
    assert not renewal.needs_snapshot(again, 8), "it was found to be whole by this process, which the scrub corrects"
    renewal.note_damage(again, NEW, "a wrong checksum")
    assert (renewal.needs_snapshot(again, 5), renewal.needs_snapshot(again, 6)) == (False, True)


def test_all_that_the_new_snapshot_replaces_goes(tmp_path: Path) -> None:
    log = with_snapshots(tmp_path, OLD, NEW)
    damage(log, NEW)
    again = opened(tmp_path)
    flush(again)
    newest = SnapshotId(8, 1)
    snapshot(again.dir, 8, 1)
    again.snapshot_written(newest)
    again.committed(8)
    assert len(renewal.keep_only(again, newest, 1000)) == 1
    assert (again.snapshots, again.unreadable, again.log.log_start_offset) == ([newest], {}, 8)
    assert [each.name for each in Path(again.dir).glob("*.checkpoint")] == [newest.file_name]
    again.close()
    assert (opened(tmp_path).damaged, log_shape(opened(tmp_path)).end) == (None, LogEnd(1, 8))
