import pytest

from tidelog.raft.log_shape import Fit, LogEnd, LogShape
from tidelog.raft.snapshots import SnapshotId


def shape() -> LogShape:
    return LogShape(end_offset=30, epochs=[(1, 0), (3, 10), (4, 20)])


def test_logs_are_compared_by_the_last_epoch_and_then_by_length() -> None:
    assert LogEnd(2, 5) > LogEnd(1, 100)
    assert LogEnd(2, 6) > LogEnd(2, 5)


@pytest.mark.parametrize(
    ("offset", "epoch", "fit", "at"),
    [
        (0, 0, Fit.VALID, (0, 0)),
        (5, 1, Fit.VALID, (1, 5)),
        (10, 1, Fit.VALID, (1, 10)),
        (11, 1, Fit.DIVERGING, (1, 10)),
        (12, 2, Fit.DIVERGING, (1, 10)),
        (30, 4, Fit.VALID, (4, 30)),
        (31, 4, Fit.DIVERGING, (4, 30)),
        (30, 9, Fit.DIVERGING, (4, 30)),
    ],
)
def test_where_two_logs_part_is_told_by_epoch_and_offset(offset: int, epoch: int, fit: Fit, at: tuple[int, int]) -> None:
    found = shape().fitness(offset, epoch)
    assert (found.fit, (found.at.epoch, found.at.offset)) == (fit, at)


def test_a_follower_cuts_where_the_leaders_epoch_ends_or_its_own_does() -> None:
    log = shape()
    assert log.truncation_for(LogEnd(3, 15)) == 15
    assert log.truncation_for(LogEnd(3, 25)) == 20
    assert log.truncation_for(LogEnd(2, 18)) == 10


def test_what_was_synced_before_a_cut_says_nothing_about_what_came_after() -> None:
    log = shape()
    before = log.generation
    log.truncate(15)
    assert (log.end_offset, log.last_epoch, log.synced) == (15, 3, 15)
    log.append(5, 15, 40)
    assert not log.was_synced(30, before)
    assert log.synced == 15
    assert log.was_synced(40, log.generation)
    assert log.synced == 40
    log.check()


def test_whoever_is_new_or_behind_the_logs_begin_gets_the_newest_snapshot_and_never_the_bootstrap_one() -> None:
    log = LogShape(end_offset=30, epochs=[(1, 0)], snapshots=[(SnapshotId(0, 0), 5), (SnapshotId(20, 1), 9)])
    assert log.fitness(0, 0).at == LogEnd(1, 20)
    assert log.fitness(5, 1).fit is Fit.VALID
    log.cleaned(20, [SnapshotId(20, 1)])
    assert log.fitness(5, 1).fit is Fit.SNAPSHOT
    assert log.fitness(20, 1).fit is Fit.VALID
    assert log.fitness(20, 0).fit is Fit.SNAPSHOT
    log.check()


def test_a_snapshot_takes_the_logs_place_and_the_next_epoch_goes_on_behind_it() -> None:
    log = shape()
    log.start_at(SnapshotId(50, 6), 100)
    assert (log.start_offset, log.end, log.synced) == (50, LogEnd(6, 50), 50)
    log.append(7, 50, 52)
    assert log.end == LogEnd(7, 52)
    assert log.end_of(6) == LogEnd(6, 50)
    log.check()
