from __future__ import annotations

from tests.unit.replication.world import NOW_MS, World
from tidelog.replication.replica_move import MoveState


def test_a_second_request_for_the_same_dir_changes_nothing_and_one_for_another_dir_ends_the_first() -> None:
    world = World(dirs=2)
    world.create("t")
    first, second = world.logs.dirs
    moves, partition = world.manager.moves, world.partition("t")
    move = moves.begin(partition, second, NOW_MS)
    assert move is not None and len(moves) == 1
    assert moves.begin(partition, second, NOW_MS) is None and move.state is MoveState.COPYING
    assert moves.begin(partition, first, NOW_MS) is None, "it is there already"
    assert (move.state, len(moves)) == (MoveState.ENDED, 0)


def test_a_move_that_was_replaced_does_not_end_its_successor() -> None:
    world = World(dirs=3)
    world.create("t")
    _, second, third = world.logs.dirs
    moves, partition = world.manager.moves, world.partition("t")
    old = moves.begin(partition, second, NOW_MS)
    new = moves.begin(partition, third, NOW_MS)
    assert old is not None and new is not None
    moves.end(old, NOW_MS)
    assert (len(moves), new.state) == (1, MoveState.COPYING)


def test_a_node_that_stops_ends_all_moves() -> None:
    world = World(dirs=2)
    world.create("t")
    move = world.manager.moves.begin(world.partition("t"), world.logs.dirs[1], NOW_MS)
    assert move is not None
    world.manager.moves.stop(NOW_MS)
    assert (len(world.manager.moves), move.state) == (0, MoveState.ENDED)
