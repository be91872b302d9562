"""Which replicas move: balance, drain, another replication factor."""

from collections.abc import Mapping

import pytest

from tidelog.console.moving.balance_plan import CannotPlan
from tidelog.console.moving.layout import Layout, Ongoing, Seen
from tidelog.console.moving.planning import balanced, drained, with_factor

RACKS = {1: "a", 2: "a", 3: "b", 4: "b"}
SPREAD = {("t", 0): (1, 2), ("t", 1): (2, 1)}


def layout(
    replicas: Mapping[tuple[str, int], tuple[int, ...]],
    racks: Mapping[int, str | None] = RACKS,
    down: Mapping[int, str | None] | None = None,
    cordoned: tuple[int, ...] = (),
) -> Layout:
    seen = tuple(Seen(at, None if set(held) <= set(down or {}) else held[0], held, held) for at, held in replicas.items())
    return Layout("c", racks, down or {}, seen, dict.fromkeys(replicas, 10), {}, cordoned)


def after(moves: list) -> dict:
    return {move.partition: move.after for move in moves}


def test_balance_goes_to_brokers_that_live_and_are_not_cordoned() -> None:
    moves = balanced(layout(SPREAD, cordoned=(4,)))
    assert moves
    assert {broker for move in moves for broker in move.coming} == {3}
    assert {broker for move in balanced(layout(SPREAD), [3, 4]) for broker in move.after} == {3, 4}


@pytest.mark.parametrize(
    ("brokers", "down", "says"),
    [
        (None, {5: "b"}, "Broker 5 is registered, and down"),
        ([1, 9], {}, "no broker 9; it has 1, 2, 3, 4"),
        ([1, 5], {5: "b"}, "Broker 5 is down"),
    ],
)
def test_a_balance_over_brokers_that_are_not_there_is_refused(brokers: list[int] | None, down: dict, says: str) -> None:
    with pytest.raises(CannotPlan, match=says):
        balanced(layout(SPREAD, down=down), brokers)


def test_a_drain_takes_everything_and_nothing_else() -> None:
    moves = drained(layout(SPREAD, cordoned=(4,)), 1)
    assert after(moves) == {("t", 0): (3, 2), ("t", 1): (2, 3)}


def test_a_drain_without_a_leader_to_copy_from_is_refused() -> None:
    with pytest.raises(CannotPlan, match=r"no leader to copy from: t-0\. Start"):
        drained(layout({("t", 0): (5,)}, down={5: "a"}), 5)


def test_more_replicas_go_to_other_racks_first() -> None:
    moves = with_factor(layout(SPREAD), "t", 3)
    assert after(moves) == {("t", 0): (1, 2, 3), ("t", 1): (2, 1, 4)}
    assert all(move.bytes_moved == 10 for move in moves)


def test_fewer_replicas_keep_the_leader_and_the_racks() -> None:
    assert after(with_factor(layout({("t", 0): (1, 2, 3)}), "t", 2)) == {("t", 0): (1, 3)}
    assert after(with_factor(layout({("t", 0): (1, 5, 3)}, down={5: "c"}), "t", 2)) == {("t", 0): (1, 3)}
    assert after(with_factor(layout({("t", 0): (3, 1, 2)}), "t", 1)) == {("t", 0): (3,)}
    assert with_factor(layout(SPREAD), "t", 2) == []


def test_partitions_that_move_now_count_as_moved() -> None:
    moving = {("t", 0): Ongoing((1, 2, 3), (3,), (2,))}
    found = layout({("t", 0): (1, 2, 3)})
    assert after(with_factor(Layout("c", RACKS, {}, found.seen, {}, moving), "t", 3))[("t", 0)][:2] == (1, 3)


@pytest.mark.parametrize(
    ("topic", "factor", "says"), [("t", 5, "5 replicas need 5 brokers; 4"), ("u", 2, "no topic u"), ("t", 4, "No broker is left")]
)
def test_a_factor_that_cannot_be_is_refused(topic: str, factor: int, says: str) -> None:
    with pytest.raises(CannotPlan, match=says):
        with_factor(layout(SPREAD, cordoned=(4,) if factor == 4 else ()), topic, factor)
