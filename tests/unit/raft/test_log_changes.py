from pathlib import Path

from tests.unit.raft.driver import voters
from tests.unit.raft.test_follower_fetch import batch
from tests.unit.raft.written import CHANGE
from tidelog.model.errors import ErrorCode
from tidelog.model.machine import Token
from tidelog.protocol.messages.fetch_snapshot import (
    FetchSnapshotResponse,
    LeaderIdAndEpoch,
    ResponsePartitionSnapshot,
    ResponseTopicSnapshot,
)
from tidelog.raft.effects import AppendControl, AppendFetched, ReplySnapshotPart, Truncate
from tidelog.raft.log_changes import (
    IncomingSnapshot,
    append_control,
    append_fetched,
    log_shape,
    snapshot_part,
    start_at_snapshot,
    truncate,
    voter_sets,
)
from tidelog.raft.log_opening import open_log
from tidelog.raft.log_shape import LogEnd
from tidelog.raft.metadata_log import MetadataLog, MetadataLogConfig
from tidelog.raft.snapshots import SnapshotId, encode_snapshot
from tidelog.raft.voters import VoterSet
from tidelog.records.control import ControlType, voters_value
from tidelog.server.disk import DiskFileSystem

NOW = 1_800_000_000_000


def opened(directory: Path) -> MetadataLog:
    return open_log(DiskFileSystem(), str(directory), MetadataLogConfig(), NOW)


def said(offset: int, members: VoterSet) -> AppendControl:
    return AppendControl(
        offset,
        1,
        (
            CHANGE,
            (ControlType.KRAFT_VOTERS, voters_value(members.voters)),
        ),
        0,
    )


def test_the_log_does_what_the_machine_has_decided_and_tells_the_next_one(tmp_path: Path) -> None:
    log = opened(tmp_path)
    append_control(log, said(0, voters(1, 2)), NOW)
    append_fetched(log, AppendFetched(2, batch(2, 1, 2) + batch(4, 4), 0), NOW)
    assert log_shape(log).end == LogEnd(4, 5)
    truncate(log, Truncate(4, 1), NOW)
    assert log_shape(log).end == LogEnd(1, 4)
    log.close()
    again = opened(tmp_path)
    assert log_shape(again).end == LogEnd(1, 4)
    sets = voter_sets(again, None, voters(9))
    assert (sets.voters.ids, sets.offset) == ((1, 2), 1)


def test_a_snapshot_that_came_in_pieces_takes_the_logs_place(tmp_path: Path) -> None:
    log = opened(tmp_path)
    append_control(log, said(0, voters(1, 2)), NOW)
    content = b"".join(encode_snapshot((), metadata_version=30, epoch=3, now_ms=NOW, last_timestamp_ms=NOW, voters=voters(3)))
    incoming = IncomingSnapshot(log, SnapshotId(40, 3))
    incoming.write(0, content[:50])
    incoming.write(50, content[50:])
    snapshot = incoming.finish()
    assert snapshot is not None and snapshot.voters == voters(3)
    start_at_snapshot(log, SnapshotId(40, 3), NOW)
    shape = log_shape(log)
    assert (shape.start_offset, shape.end, list(shape.snapshots.values())) == (40, LogEnd(3, 40), [len(content)])
    assert voter_sets(log, (SnapshotId(40, 3), snapshot), voters(9)).voters.ids == (3,)


def test_a_damaged_snapshot_is_thrown_away(tmp_path: Path) -> None:
    log = opened(tmp_path)
    incoming = IncomingSnapshot(log, SnapshotId(40, 3))
    incoming.write(0, b"\0" * 100)
    assert incoming.finish() is None
    assert not [name for name in log.fs.listdir(log.dir) if "checkpoint" in name and "40" in name]


def test_a_snapshot_that_went_since_it_was_asked_for_is_answered_as_not_found(tmp_path: Path) -> None:
    log = opened(tmp_path)
    incoming = IncomingSnapshot(log, SnapshotId(40, 3))
    incoming.write(0, b"".join(encode_snapshot((), metadata_version=30, epoch=3, now_ms=NOW, last_timestamp_ms=NOW)))
    incoming.finish()

    def asked() -> ResponsePartitionSnapshot:
        partition = ResponsePartitionSnapshot(position=10, size=100, current_leader=LeaderIdAndEpoch(1, 3))
        answer = FetchSnapshotResponse(topics=[ResponseTopicSnapshot(name="__cluster_metadata", partitions=[partition])])
        return snapshot_part(log, ReplySnapshotPart(Token(1), answer, SnapshotId(40, 3), 10, 20)).topics[0].partitions[0]

    found = asked()
    assert (found.error_code, len(found.unaligned_records)) == (ErrorCode.NONE, 20)
    log.fs.remove(f"{log.dir}/{SnapshotId(40, 3).file_name}")
    gone = asked()
    assert (gone.error_code, gone.unaligned_records, gone.size) == (ErrorCode.SNAPSHOT_NOT_FOUND, b"", 0)
    assert gone.current_leader.leader_epoch == 3
