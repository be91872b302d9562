import pytest

from tests.unit.raft.driver import voters
from tidelog.raft.effects import AppendControl, AppendFetched, Effects, HighWatermarkMoved, InstallSnapshot, Truncate
from tidelog.raft.log_shape import LogShape
from tidelog.raft.raft_log import FetchedBatch, QuorumFault, RaftLog
from tidelog.raft.snapshots import SnapshotId
from tidelog.raft.voter_history import VoterSets
from tidelog.records.control import ControlType, voters_value


def log(end: int = 0) -> tuple[RaftLog, Effects]:
    effects = Effects()
    epochs = [(1, 0)] if end else []
    return RaftLog(LogShape(end_offset=end, epochs=epochs), VoterSets(voters(1, 2, 3), 1), effects), effects


def test_voters_count_from_their_append_on_and_a_truncation_takes_them_back() -> None:
    replica, effects = log(5)
    record = (ControlType.KRAFT_VOTERS, voters_value(voters(1, 2).voters))
    assert replica.append_control(1, [record]) == 5
    assert replica.voters.ids == (1, 2) and not replica.is_synced
    replica.truncate(5, 2, 2)
    assert replica.voters.ids == (1, 2, 3) and replica.is_synced
    assert effects.take() == [AppendControl(5, 1, (record,), 0), Truncate(5, 1)]


def test_fetched_batches_are_one_append_whatever_their_number() -> None:
    replica, effects = log()
    value = voters_value(voters(1).voters)
    replica.append_fetched((FetchedBatch(0, 3, 1), FetchedBatch(3, 4, 2, ((ControlType.KRAFT_VOTERS, value),))), b"both")
    assert (replica.shape.end_offset, replica.shape.last_epoch, replica.voters.ids) == (4, 2, (1,))
    assert effects.take() == [AppendFetched(0, b"both", 0)]


def test_what_is_committed_is_never_cut_and_never_taken_back() -> None:
    replica, effects = log(5)
    replica.raise_high_watermark(4)
    replica.raise_high_watermark(3)
    assert (replica.high_watermark, effects.take()) == (4, [HighWatermarkMoved(4)])
    with pytest.raises(QuorumFault, match="the leader 2 of epoch 7 asks to cut the metadata log at 3"):
        replica.truncate(3, 2, 7)
    assert replica.shape.end_offset == 5


def test_a_fetched_snapshot_takes_the_logs_place_when_the_disk_has_it() -> None:
    replica, effects = log(5)
    replica.install(SnapshotId(20, 3), 100)
    assert replica.installing and replica.shape.end_offset == 5
    replica.installed(SnapshotId(20, 3), 100, 1, voters(2, 3))
    assert not replica.installing and replica.is_synced
    assert (replica.shape.start_offset, replica.high_watermark, replica.voters.ids) == (20, 20, (2, 3))
    assert effects.take() == [InstallSnapshot(SnapshotId(20, 3), 100), HighWatermarkMoved(20)]
