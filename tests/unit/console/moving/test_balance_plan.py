"""Plans by hand; random ones are in ``tests/property/test_balance_plans.py``."""

import pytest

from tidelog.console.moving.balance_plan import CannotPlan, Held, Load, Move, applied, drain, loads, plan

MB = 1 << 20


def spread(topic: str, count: int, brokers: list[int], factor: int = 1, size: int = 0) -> list[Held]:
    return [
        Held((topic, index), tuple(brokers[(index + place) % len(brokers)] for place in range(factor)), size)
        for index in range(count)
    ]


def test_a_new_broker_gets_its_share_and_nothing_moves_between_the_others():
    held = spread("a", 12, [1, 2, 3], 3, 100 * MB)
    moves = plan(held, {1: None, 2: None, 3: None, 4: None})
    assert {broker for move in moves for broker in move.coming} == {4}
    assert sum(move.bytes_moved for move in moves) == 9 * 100 * MB
    assert {load.replicas for load in loads(applied(held, moves), [1, 2, 3, 4]).values()} == {9}
    assert {load.leaders for load in loads(applied(held, moves), [1, 2, 3, 4]).values()} == {3}


def test_large_partitions_are_spread_by_their_bytes_too():
    held = [*spread("big", 4, [1], 1, 1000 * MB), *spread("small", 4, [2], 1, MB)]
    after = loads(applied(held, plan(held, {1: None, 2: None})), [1, 2])
    assert [load.size for load in after.values()] == [2002 * MB, 2002 * MB]


def test_a_new_broker_gets_some_of_each_topic():
    held = [*spread("a", 9, [1, 2, 3], 1, MB), *spread("b", 9, [1, 2, 3], 1, MB)]
    moves = plan(held, {1: None, 2: None, 3: None, 4: None})
    assert {move.partition[0] for move in moves if move.coming} == {"a", "b"}


def test_only_the_order_changes_where_leaders_are_heaped():
    held = [Held(("a", index), (1, 2, 3)) for index in range(6)]
    moves = plan(held, {1: None, 2: None, 3: None})
    assert all(not move.coming for move in moves)
    assert [load.leaders for load in loads(applied(held, moves), [1, 2, 3]).values()] == [2, 2, 2]


def test_leadership_passes_along_a_chain_of_brokers():
    held = [Held(("a", 0), (1, 2)), Held(("a", 1), (1, 2)), Held(("a", 2), (2, 3)), Held(("a", 3), (2, 3))]
    assert [load.leaders for load in loads(applied(held, plan(held, dict.fromkeys([1, 2, 3]))), [1, 2, 3]).values()] == [1, 2, 1]


def test_two_replicas_in_one_rack_are_parted():
    racks = {1: "x", 2: "x", 3: "y"}
    (move,) = plan([Held(("a", 0), (1, 2), 5)], racks)
    assert set(move.after) in ({1, 3}, {2, 3})


def test_racks_that_some_brokers_do_not_know_do_not_count():
    assert plan([Held(("a", 0), (1, 2))], {1: "x", 2: "x", 3: None}) == []


def test_a_drained_broker_is_replaced_where_it_stood():
    (move,) = drain([Held(("a", 0), (2, 1), 7), Held(("b", 0), (1,), 9)], dict.fromkeys([1, 2, 3]), [2])
    assert move == Move(("a", 0), (2, 1), (3, 1), 7)
    assert move.bytes_moved == 7


def test_a_broker_that_is_gone_is_left_too():
    (move,) = plan([Held(("a", 0), (9, 1))], {1: None, 2: None})
    assert set(move.after) == {1, 2}


def test_more_replicas_than_brokers_are_refused_by_name():
    with pytest.raises(CannotPlan, match=r"a-0 has 2 replicas, and only 1 brokers"):
        drain([Held(("a", 0), (1, 2))], {1: None, 2: None}, [1])


def test_nothing_held_is_nothing_to_do():
    assert plan([], {}) == []
    assert loads([], [1]) == {1: Load(0, 0, 0)}


def test_closed_brokers_keep_what_they_have_and_get_nothing():
    held = [Held(("a", 0), (1, 2)), Held(("a", 1), (1, 4))]
    racks = dict.fromkeys([1, 2, 3, 4])
    assert [move.after for move in drain(held, racks, [1], closed=[4])] == [(3, 2), (2, 4)]
    with pytest.raises(CannotPlan, match="no broker left that could take the one of broker 1"):
        drain([Held(("a", 0), (1, 2))], dict.fromkeys([1, 2, 3]), [1], closed=[3])
