import random

from tidelog.raft.in_flight_requests import LONGEST_BACKOFF_MS, Connections


def connections() -> Connections:
    return Connections(2000, 20, random.Random(1))


def test_a_node_is_asked_one_thing_at_a_time_until_that_takes_too_long() -> None:
    to = connections()
    assert to.ready(2, 0)
    first = to.sent(2, 0)
    assert not to.ready(2, 1999) and to.ready(2, 2000) and to.ready(3, 0)
    assert to.any_waiting(1999) and not to.any_waiting(2000)
    second = to.sent(2, 2000)
    assert to.answered(first) is None
    assert to.answered(second) == 2
    assert to.ready(2, 2000)


def test_who_fails_again_and_again_is_left_alone_longer_and_longer() -> None:
    to = connections()
    pauses = []
    for _ in range(8):
        to.failed(2, 0)
        pauses.append(to.ready_at(2))
    assert 10 <= pauses[0] <= 20
    assert pauses[-1] >= LONGEST_BACKOFF_MS // 2
    assert max(pauses) <= LONGEST_BACKOFF_MS
    assert to.answered(to.sent(2, 5000)) == 2
    to.failed(2, 0)
    assert to.ready_at(2) <= 20


def test_with_a_new_role_everybody_may_be_asked_at_once() -> None:
    to = connections()
    asked = to.sent(2, 0)
    to.failed(3, 0)
    to.reset()
    assert to.ready(2, 0) and to.ready(3, 0)
    assert to.answered(asked) is None
