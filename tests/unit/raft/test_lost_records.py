import pytest

from tests.unit.raft.driver import disk, voters
from tidelog.raft.log_shape import LogEnd
from tidelog.raft.lost_records import LostRecords, witnesses
from tidelog.raft.voters import ReplicaKey, VoterSet

ME, SECOND, THIRD = (ReplicaKey(each, disk(each)) for each in (1, 2, 3))
LOST = LostRecords(LogEnd(5, 100), (SECOND, THIRD), damaged_in=5)


def test_less_is_demanded_once_all_others_have_asked_after_the_epoch_of_the_damage() -> None:
    one = LOST.asked_by(SECOND, 6, LogEnd(4, 96))
    assert (one.demand, one.needs_an_epoch) == (LogEnd(5, 100), False)
    both = one.asked_by(THIRD, 7, LogEnd(4, 95))
    assert both.demand == LogEnd(4, 96)
    assert both.asked_by(THIRD, 8, LogEnd(4, 97)).demand == LogEnd(4, 97)
    assert both.asked_by(THIRD, 8, LogEnd(7, 3)).demand == LogEnd(5, 100), "never more than was lost"


def test_what_is_asked_in_the_epoch_of_the_damage_shows_nothing_but_that_another_epoch_is_needed() -> None:
    one = LOST.asked_by(SECOND, 5, LogEnd(4, 96))
    both = one.asked_by(THIRD, 5, LogEnd(4, 95))
    assert (one.needs_an_epoch, both.needs_an_epoch) == (False, True)
    assert both.demand == both.asked_by(SECOND, 6, LogEnd(4, 96)).demand == LogEnd(5, 100)
    assert LOST.asked_by(SECOND, 4, LogEnd(3, 1)) == LOST


def test_only_a_voter_of_the_log_before_the_damage_shows_anything() -> None:
    stranger, emptied = ReplicaKey(4, disk(4)), ReplicaKey(3, disk(9))
    assert LOST.asked_by(stranger, 6, LogEnd(4, 1)) == LOST.asked_by(emptied, 6, LogEnd(4, 1)) == LOST
    unsure = LostRecords(LogEnd(5, 100), (), damaged_in=5)
    assert unsure.asked_by(SECOND, 6, LogEnd(4, 1)).demand == LogEnd(5, 100)
    assert not unsure.needs_an_epoch


@pytest.mark.parametrize(
    ("members", "others"),
    [
        (voters(1, 2, 3), (SECOND, THIRD)),
        (voters(1, 2), ()),
        (voters(2, 3, 4), ()),
        (voters(1), ()),
        (voters(1, 2, dynamic=False), (ReplicaKey(2),)),
        (voters(1, dynamic=False), ()),
    ],
    ids=["three", "two that may grow", "not a voter", "alone", "a fixed set of two", "fixed and alone"],
)
def test_the_others_are_asked_where_every_majority_has_one_of_them(members: VoterSet, others: tuple[ReplicaKey, ...]) -> None:
    assert witnesses(members, ME) == others
