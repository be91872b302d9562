"""LeaderEpochCache against the answers that followers and consumers need."""

import pytest

from tidelog.storage.leader_epochs import LeaderEpochCache


def cache() -> LeaderEpochCache:
    return LeaderEpochCache([(2, 10), (4, 20), (7, 35)])


@pytest.mark.parametrize(
    ("epoch", "expected"),
    [(7, (7, 50)), (4, (4, 35)), (3, (2, 20)), (5, (4, 35)), (2, (2, 20)), (1, (1, 10)), (8, (-1, -1)), (-1, (-1, -1))],
)
def test_an_epoch_ends_where_the_next_began(epoch: int, expected: tuple[int, int]) -> None:
    assert cache().end_offset_for(epoch, 50) == expected


def test_nothing_is_known_without_entries() -> None:
    assert LeaderEpochCache().end_offset_for(0, 50) == (-1, -1)
    assert LeaderEpochCache().latest == -1


def test_the_epoch_of_an_offset_is_the_last_that_began_before_it() -> None:
    assert [cache().epoch_for(offset) for offset in (9, 10, 19, 20, 34, 35, 99)] == [-1, 2, 2, 4, 4, 7, 7]


def test_an_epoch_without_records_is_replaced_by_the_next() -> None:
    epochs = cache()
    epochs.assign(8, 50)
    epochs.assign(9, 50)
    assert epochs.entries() == [(2, 10), (4, 20), (7, 35), (9, 50)]


def test_an_assignment_that_contradicts_later_entries_removes_them() -> None:
    epochs = cache()
    epochs.assign(5, 30)
    assert epochs.entries() == [(2, 10), (4, 20), (5, 30)]
    epochs.check()


def test_assigning_what_is_known_changes_nothing() -> None:
    epochs = cache()
    epochs.assign(7, 40)
    assert not epochs.dirty
    assert epochs.entries() == cache().entries()


def test_truncating_the_end_removes_epochs_that_began_at_or_after_it() -> None:
    epochs = cache()
    epochs.truncate_from_end(35)
    assert (epochs.entries(), epochs.latest, epochs.dirty) == ([(2, 10), (4, 20)], 4, True)


def test_truncating_the_start_moves_the_covering_epoch_to_it() -> None:
    epochs = cache()
    epochs.truncate_from_start(25)
    assert epochs.entries() == [(4, 25), (7, 35)]
    epochs.truncate_from_start(35)
    assert epochs.entries() == [(7, 35)]


def test_a_start_before_all_entries_changes_nothing() -> None:
    epochs = cache()
    epochs.truncate_from_start(5)
    assert (epochs.entries(), epochs.dirty) == (cache().entries(), False)


def test_a_negative_epoch_is_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        cache().assign(-1, 60)


def test_cleared_it_knows_nothing() -> None:
    epochs = cache()
    epochs.clear()
    assert (epochs.entries(), epochs.latest, epochs.dirty) == ([], -1, True)


@pytest.mark.parametrize(
    ("epoch", "first", "last", "admitted"),
    [
        (3, 15, 19, True),
        (3, 15, 20, False),
        (4, 15, 19, True),
        (2, 15, 19, True),
        (1, 15, 19, False),
        (5, 15, 19, False),
        (1, 5, 9, True),
        (2, 5, 9, True),
        (3, 5, 9, False),
        (8, 40, 49, True),
        (7, 40, 49, True),
        (6, 40, 49, False),
        (5, 34, 34, True),
    ],
)
def test_records_may_be_of_an_epoch_that_the_entries_around_them_allow(epoch: int, first: int, last: int, admitted: bool) -> None:
    assert cache().admits(epoch, first, last) is admitted


@pytest.mark.parametrize(
    ("epoch", "start", "entries"),
    [
        (3, 15, [(2, 10), (3, 15), (4, 20), (7, 35)]),
        (4, 15, [(2, 10), (4, 15), (7, 35)]),
        (2, 15, [(2, 10), (4, 20), (7, 35)]),
        (3, 10, [(3, 10), (4, 20), (7, 35)]),
        (1, 5, [(1, 5), (2, 10), (4, 20), (7, 35)]),
        (8, 40, [(2, 10), (4, 20), (7, 35), (8, 40)]),
    ],
)
def test_an_epoch_that_is_learned_late_leaves_those_behind_it(epoch: int, start: int, entries: list[tuple[int, int]]) -> None:
    epochs = cache()
    epochs.insert(epoch, start)
    epochs.check()
    assert epochs.entries() == entries
    assert epochs.dirty is (entries != cache().entries())


def test_the_first_epoch_of_an_empty_history_is_learned_late_too() -> None:
    epochs = LeaderEpochCache()
    assert epochs.admits(0, 0, 3)
    epochs.insert(0, 0)
    assert (epochs.entries(), epochs.latest) == ([(0, 0)], 0)
