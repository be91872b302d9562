"""Moves that are carried out a few at a time."""

from tidelog.console.moving.balance_plan import Move
from tidelog.console.moving.moving import Moving

A, B, C = ("t", 0), ("t", 1), ("t", 2)
LARGE = Move(A, (1,), (2,), 300)
MIDDLE = Move(B, (1,), (3,), 200)
SMALL = Move(C, (1,), (2,), 100)
ALL = (1, 2, 3)


def test_the_largest_begin_first_and_no_more_than_allowed() -> None:
    moving = Moving([SMALL, LARGE, MIDDLE], 2)
    assert moving.begin([], ALL) == {A: (2,), B: (3,)}
    assert moving.begin([A, B], ALL) == {}
    assert (moving.pending, list(moving.flying), moving.done) == (1, [A, B], 0)


def test_moves_of_others_count() -> None:
    assert Moving([LARGE, SMALL], 2).begin([("other", 0)], ALL) == {A: (2,)}


def test_a_move_is_done_when_its_replicas_are_where_they_should_be() -> None:
    moving = Moving([LARGE, MIDDLE, SMALL], 3)
    moving.begin([], ALL)
    assert moving.landed([C]) == [A, B]
    moving.settle({A: (2,), B: (1,)})
    assert (moving.done, dict(moving.failed)) == (1, {B: "another tool has moved it elsewhere, or cancelled it"})
    moving.settle({C: ()})
    assert (moving.done, moving.ended) == (2, True)


def test_a_broker_that_is_down_holds_up_only_what_goes_there() -> None:
    moving = Moving([LARGE, MIDDLE, SMALL], 1)
    assert moving.begin([], (1, 3)) == {B: (3,)}
    moving.settle({B: (3,)})
    assert moving.begin([], (1, 3)) == {}
    assert not moving.ended
    assert moving.begin([], ALL) == {A: (2,)}


def test_refused_moves_do_not_stop_the_others() -> None:
    moving = Moving([LARGE, SMALL], 1)
    moving.begin([], ALL)
    moving.refused({A: "no"})
    assert moving.begin([], ALL) == {C: (2,)}
    assert dict(moving.failed) == {A: "no"}


def test_moves_that_may_have_begun_are_asked_for_again() -> None:
    moving = Moving([LARGE, MIDDLE, SMALL], 2)
    begun = moving.begin([], ALL)
    moving.unsure(begun)
    assert (moving.pending, dict(moving.flying)) == (3, {})
    assert moving.begin([], ALL) == begun


def test_a_stop_gives_up_what_has_not_begun() -> None:
    moving = Moving([LARGE, MIDDLE, SMALL], 1)
    moving.begin([], ALL)
    assert moving.stop() == 2
    assert (moving.stopping, moving.ended) == (True, False)
    moving.settle({A: (2,)})
    assert moving.ended
