"""Offsets within transactions: they are invisible before the marker, and they count in the place they have in the log."""

from tidelog.coordinator.group.offsets.pending_offsets import PendingOffsets
from tidelog.coordinator.group.records import CommittedOffset, OffsetKey

KEY = OffsetKey("g", "t", 0)
OTHER = OffsetKey("g", "t", 1)


def at(offset: int) -> CommittedOffset:
    return CommittedOffset(offset, -1, "", 0)


def test_a_commit_counts_when_its_marker_comes_and_not_before() -> None:
    pending = PendingOffsets()
    pending.replay(7, KEY, at(5))
    pending.replay(7, KEY, at(6))
    assert pending.holds(KEY) and not pending.holds(OTHER) and pending.is_open("g") and len(pending) == 1
    assert pending.end(7, committed=True) == [(KEY, at(6))]
    assert not pending.holds(KEY) and not pending.is_open("g") and pending.end(7, committed=True) == []


def test_an_aborted_commit_leaves_nothing() -> None:
    pending = PendingOffsets()
    pending.replay(7, KEY, at(5))
    assert pending.end(7, committed=False) == []
    assert not pending.holds(KEY) and pending.group_ids() == []


def test_a_commit_that_was_written_later_and_counts_already_is_not_undone() -> None:
    pending = PendingOffsets()
    pending.replay(7, KEY, at(5))
    pending.overtake(KEY)
    assert pending.holds(KEY), "it may still not be read as stable"
    assert pending.end(7, committed=True) == []
    pending.overtake(KEY)
    pending.replay(7, KEY, at(9))
    assert pending.end(7, committed=True) == [(KEY, at(9))]


def test_of_two_transactions_the_later_commit_wins_whichever_ends_first() -> None:
    for first, counting in ((7, [[(KEY, at(5))], [(KEY, at(8))]]), (8, [[(KEY, at(8))], []])):
        pending = PendingOffsets()
        pending.replay(7, KEY, at(5))
        pending.replay(8, KEY, at(8))
        assert [pending.end(producer, committed=True) for producer in (first, 15 - first)] == counting


def test_a_tombstone_takes_away_what_waits_and_the_transaction_stays_open() -> None:
    pending = PendingOffsets()
    pending.replay(7, KEY, at(5))
    pending.replay(7, OTHER, at(6))
    pending.drop(KEY)
    assert not pending.holds(KEY) and pending.keys("g") == [OTHER]
    pending.drop(OTHER)
    assert pending.is_open("g") and pending.keys("g") == []
    assert pending.end(7, committed=True) == [] and not pending.is_open("g")


def test_one_transaction_may_commit_for_several_groups() -> None:
    pending = PendingOffsets()
    elsewhere = OffsetKey("h", "t", 0)
    pending.replay(7, KEY, at(5))
    pending.replay(7, elsewhere, at(6))
    pending.replay(8, KEY, at(7))
    assert pending.group_ids() == ["g", "h"] and pending.keys("h") == [elsewhere]
    pending.end(7, committed=False)
    assert pending.group_ids() == ["g"] and pending.holds(KEY)
