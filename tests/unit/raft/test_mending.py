"""A damaged metadata log: mended by the other voters, or refused."""

from pathlib import Path

import pytest

from tests.unit.raft.driver import CLUSTER, at, disk, voters
from tests.unit.raft.written import SEGMENT, append, flip, flip_in_batch, flush, headers
from tidelog.metadata.records import MetadataLogError
from tidelog.raft.log_changes import voter_sets, voters_behind_damage
from tidelog.raft.log_opening import open_log
from tidelog.raft.log_shape import NOTHING_LOST, LogEnd
from tidelog.raft.mark_files import read_flushed, read_lost_end, read_lost_voters
from tidelog.raft.mending import forget_loss, mend
from tidelog.raft.metadata_log import MetadataLog, MetadataLogConfig
from tidelog.raft.raft_config import RaftConfig
from tidelog.raft.snapshots import SnapshotId, encode_snapshot, write_snapshot
from tidelog.raft.voter_history import VoterSets
from tidelog.raft.voters import ReplicaKey, VoterSet
from tidelog.records.control import ControlType, kraft_version_value, voters_value
from tidelog.server.disk import DiskFileSystem

FS = DiskFileSystem()


def opened(path: Path) -> MetadataLog:
    log = open_log(FS, str(path), MetadataLogConfig(), 1000)
    flush(log)
    return log


def damaged(path: Path) -> MetadataLog:
    """Four batches of two records, the second of which is damaged."""
    log = opened(path)
    append(log, 1, 1, 2, 2)
    flush(log)
    log.close()
    flip_in_batch(Path(log.dir, SEGMENT), 1, 30)
    return opened(path)


def repair(log: MetadataLog, members: VoterSet, *, can_vote: bool = True) -> LogEnd:
    config = RaftConfig(ReplicaKey(1, disk(1)), CLUSTER, (at(1),), can_vote=can_vote)
    return mend(log, config, VoterSets(members, 1, -1), 1000)


def asides(log: MetadataLog) -> list[Path]:
    return sorted(Path(log.dir).glob("*.cut"))


def test_the_only_voter_refuses_and_leaves_everything_as_it_is(tmp_path: Path) -> None:
    log = damaged(tmp_path)
    before = Path(log.dir, SEGMENT).read_bytes()
    with pytest.raises(
        MetadataLogError, match=rf"{SEGMENT}: \d+ bytes at position \d+ are damaged.* records 2 to 3 of 8.*operations"
    ):
        repair(log, voters(1))
    assert (Path(log.dir, SEGMENT).read_bytes(), asides(log)) == (before, [])
    with pytest.raises(MetadataLogError, match="only voter"):
        repair(opened(tmp_path), voters(1))


def test_one_of_three_keeps_what_it_cuts_and_knows_what_it_had(tmp_path: Path) -> None:
    log = damaged(tmp_path)
    file = Path(log.dir, SEGMENT)
    before, second = file.read_bytes(), headers(file)[1].position
    assert repair(log, voters(1, 2, 3)) == LogEnd(2, 8)
    assert (log.end_offset, log.last_epoch, log.damaged, read_flushed(FS, log.dir)) == (2, 1, None, LogEnd(1, 2))
    assert [each.read_bytes() for each in asides(log)] == [before[second:]]
    again = opened(tmp_path)
    assert (again.damaged, again.end_offset, repair(again, voters(1, 2, 3))) == (None, 2, LogEnd(2, 8))


def test_an_observer_is_mended_whoever_votes(tmp_path: Path) -> None:
    assert repair(damaged(tmp_path), voters(1), can_vote=False) == LogEnd(2, 8)


def test_a_log_that_has_caught_up_forgets_its_loss(tmp_path: Path) -> None:
    log = damaged(tmp_path)
    repair(log, voters(1, 2, 3))
    append(log, 3)
    log.close()
    again = opened(tmp_path)
    assert repair(again, voters(1, 2, 3)) == NOTHING_LOST
    assert read_lost_end(FS, again.dir) == NOTHING_LOST


def test_a_log_that_has_caught_up_with_a_leader_demands_nothing_at_the_next_start(tmp_path: Path) -> None:
    log = damaged(tmp_path)
    repair(log, voters(1, 2, 3))
    forget_loss(log)
    log.close()
    again = opened(tmp_path)
    assert (again.end_offset, repair(again, voters(1, 2, 3))) == (2, NOTHING_LOST)


def test_a_second_loss_does_not_lower_the_first(tmp_path: Path) -> None:
    log = damaged(tmp_path)
    repair(log, voters(1, 2, 3))
    append(log, 1)
    log.close()
    flip(Path(log.dir, SEGMENT), 30)
    again = opened(tmp_path)
    assert repair(again, voters(1, 2, 3)) == LogEnd(2, 8)
    assert again.end_offset == 0


def grown(path: Path, later: VoterSet, damaged_batch: int, at: int = 65) -> MetadataLog:
    """Three batches; the second has the voter set ``later``."""
    log = opened(path)
    append(log, 1)
    voters_record = (ControlType.KRAFT_VOTERS, voters_value(later.voters))
    log.append_control([(ControlType.KRAFT_VERSION, kraft_version_value(1)), voters_record], 1, 1)
    append(log, 1)
    log.append_control([voters_record], 1, 1)
    flush(log)
    log.close()
    flip_in_batch(Path(log.dir, SEGMENT), damaged_batch, at)
    return opened(path)


@pytest.mark.parametrize("damaged_batch", [0, 1])
@pytest.mark.parametrize(("before", "later"), [((1,), (1, 2, 3)), ((1, 2, 3), (1,))], ids=["grown", "shrunk"])
def test_a_log_that_disagrees_on_whether_others_vote_is_refused(
    tmp_path: Path, before: tuple[int, ...], later: tuple[int, ...], damaged_batch: int
) -> None:
    log = grown(tmp_path, voters(*later), damaged_batch)
    sets = voter_sets(log, None, voters(*before))
    data = Path(log.dir, SEGMENT).read_bytes()
    with pytest.raises(MetadataLogError, match=r"Before the damage the voters are 1.*in or behind it 1.*remove-controller"):
        repair(log, sets.voters)
    assert (Path(log.dir, SEGMENT).read_bytes(), asides(log)) == (data, [])


def test_a_log_that_agrees_on_the_voters_is_mended(tmp_path: Path) -> None:
    assert repair(grown(tmp_path, voters(1, 2), 0), voters(1, 2, 3)) == LogEnd(1, 7)


def of_two(path: Path, damaged_batch: int, at: int) -> MetadataLog:
    """Three batches; in the second, the voter 1 is left alone."""
    log = opened(path)
    append(log, 1, 1)
    log.append_control([(ControlType.KRAFT_VOTERS, voters_value(voters(1).voters))], 1, 1)
    flush(log)
    log.close()
    flip_in_batch(Path(log.dir, SEGMENT), damaged_batch, at)
    return opened(path)


@pytest.mark.parametrize("at", [61, 66, 70, 90], ids=["record", "key", "type", "voters"])
def test_one_of_two_refuses_where_the_damage_may_hide_that_it_was_left_alone(tmp_path: Path, at: int) -> None:
    log = of_two(tmp_path, 2, at)
    with pytest.raises(MetadataLogError, match=r"controller has the records is not certain.*remove-controller"):
        repair(log, voters(1, 2))
    assert asides(log) == []


def test_one_of_two_asks_the_other_for_what_is_certainly_no_voter_set(tmp_path: Path) -> None:
    log = opened(tmp_path)
    append(log, 1, 1)
    flush(log)
    log.close()
    flip_in_batch(Path(log.dir, SEGMENT), 1, headers(Path(log.dir, SEGMENT))[1].size - 2)
    assert repair(opened(tmp_path), voters(1, 2)) == LogEnd(1, 4)


@pytest.mark.parametrize("at", [7, 15], ids=["base offset", "epoch"])
def test_voters_are_read_up_to_a_damaged_batch_also_where_its_checksum_fits(tmp_path: Path, at: int) -> None:
    log = of_two(tmp_path, 1, at)
    assert log.damaged is not None and log.damaged.rotten.first_offset == 2
    assert [header.base_offset for header, _ in log.batches_from(0)] == [0]
    assert voter_sets(log, None, voters(1, 2, 3)).voters == voters(1, 2, 3)


def test_a_wrong_offset_in_the_last_batch_below_a_snapshot_leaves_no_gap(tmp_path: Path) -> None:
    log = opened(tmp_path)
    append(log, 1, 1, 1)
    flush(log)
    empty = encode_snapshot((), metadata_version=30, epoch=1, now_ms=1, last_timestamp_ms=1)
    write_snapshot(FS, log.dir, SnapshotId(6, 1), empty)
    log.close()
    flip_in_batch(Path(log.dir, SEGMENT), 2, 4)
    again = opened(tmp_path)
    repair(again, voters(1, 2, 3))
    assert (again.log.log_start_offset, again.end_offset) == (6, 6)
    assert list(again.batches_from(6)) == []


def test_voters_behind_damage_are_found_in_later_segments_and_behind_a_damaged_length(tmp_path: Path) -> None:
    log = grown(tmp_path, voters(1, 2, 3), 0, at=9)
    assert [each.ids for each in voters_behind_damage(log)] == [(1, 2, 3), (1, 2, 3)]
    assert voters_behind_damage(opened(tmp_path / "other")) == []


def others_after(log: MetadataLog, members: VoterSet) -> tuple[int, ...]:
    """The voters that can show what of the loss was never committed."""
    return tuple(key.id for key in read_lost_voters(FS, log.dir, repair(log, members)))


def test_the_other_voters_are_kept_with_the_loss(tmp_path: Path) -> None:
    assert others_after(damaged_data(tmp_path / "three"), voters(1, 2, 3)) == (2, 3)
    assert others_after(damaged_data(tmp_path / "two"), voters(1, 2)) == ()


def damaged_data(path: Path) -> MetadataLog:
    """A leader's first batch, and three with data, the second of which is damaged."""
    log = opened(path)
    append(log, 1, 1, 1, 1)
    flush(log)
    log.close()
    flip_in_batch(Path(log.dir, SEGMENT), 2, headers(Path(log.dir, SEGMENT))[2].size - 2)
    return opened(path)


def test_the_other_voters_are_those_behind_the_damage(tmp_path: Path) -> None:
    log = opened(tmp_path)
    append(log, 1, 1)
    log.append_control([(ControlType.KRAFT_VOTERS, voters_value(voters(1, 2, 3, 4).voters))], 1, 1)
    flush(log)
    log.close()
    flip_in_batch(Path(log.dir, SEGMENT), 1, headers(Path(log.dir, SEGMENT))[1].size - 2)
    assert others_after(opened(tmp_path), voters(1, 2, 3)) == (2, 3, 4)


@pytest.mark.parametrize(("batch", "at"), [(0, 70), (2, 9), (3, 9)], ids=["control batch", "length", "length of the last batch"])
def test_the_other_voters_are_not_certain_where_the_damage_may_hide_some(tmp_path: Path, batch: int, at: int) -> None:
    log = opened(tmp_path)
    append(log, 1, 1, 1, 1)
    flush(log)
    log.close()
    flip_in_batch(Path(log.dir, SEGMENT), batch, at)
    assert others_after(opened(tmp_path), voters(1, 2, 3)) == ()


def test_a_control_batch_whose_epoch_is_damaged_still_names_its_voters(tmp_path: Path) -> None:
    log = opened(tmp_path)
    append(log, 1, 1)
    log.append_control([(ControlType.KRAFT_VOTERS, voters_value(voters(1, 2, 3, 4).voters))], 1, 1)
    append(log, 1)
    flush(log)
    log.close()
    flip_in_batch(Path(log.dir, SEGMENT), 2, 15)
    assert others_after(opened(tmp_path), voters(1, 2, 3)) == (2, 3, 4)


def test_a_second_loss_with_other_voters_leaves_none_certain(tmp_path: Path) -> None:
    log = damaged_data(tmp_path)
    assert others_after(log, voters(1, 2, 3)) == (2, 3)
    append(log, 1)
    flush(log)
    log.close()
    flip_in_batch(Path(log.dir, SEGMENT), 1, headers(Path(log.dir, SEGMENT))[1].size - 2)
    again = opened(tmp_path)
    assert others_after(again, voters(1, 2, 3, 4)) == ()


@pytest.mark.parametrize("bit", range(8))
def test_voters_are_found_behind_a_batch_that_claims_another_length(tmp_path: Path, bit: int) -> None:
    log = opened(tmp_path)
    append(log, 1, 1, 1, 1)
    log.append_control([(ControlType.KRAFT_VOTERS, voters_value(voters(1).voters))], 1, 1)
    flush(log)
    log.close()
    flip_in_batch(Path(log.dir, SEGMENT), 1, 11, bit)
    again = opened(tmp_path)
    assert [each.ids for each in voters_behind_damage(again)] == [(1,)]
    with pytest.raises(MetadataLogError, match="in or behind it 1"):
        repair(again, voters(1, 2, 3))
