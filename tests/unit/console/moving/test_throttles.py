"""Throttles of moves: which replicas send and receive."""

from tidelog.console.moving.layout import Ongoing
from tidelog.console.moving.throttles import brokers_of, topic_lists, transfers


def test_replicas_that_are_there_give_and_new_ones_take():
    """As Apache Kafka's tool set them when a throttle was changed in the middle of a move (``--additional``)."""
    current = {("bar", 0): (2,), ("foo", 0): (2, 1, 0), ("foo", 1): (1, 0, 2)}
    proposed = {("bar", 0): (2,), ("foo", 0): (2, 1), ("foo", 1): (1, 0)}
    under_way = {("foo", 0): Ongoing((2, 1, 0), (2,), (0,)), ("foo", 1): Ongoing((1, 0, 2), (0,), (2,))}
    moves = transfers(current, proposed, under_way)
    assert topic_lists(moves) == {"bar": ("0:2", ""), "foo": ("0:0,0:1,1:1,1:2", "0:2,1:0")}
    assert brokers_of(moves) == [0, 1, 2]
