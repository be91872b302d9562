"""Partitions that are being moved count as moved."""

from tidelog.console.moving.balance_plan import Held
from tidelog.console.moving.layout import Layout, Ongoing, Seen, drifted

AT = ("t", 0)


def test_what_is_under_way_counts_as_done() -> None:
    seen = (Seen(AT, 1, (1, 2, 3), (1, 2)), Seen(("t", 1), 2, (2,), (2,)))
    found = Layout("c", {}, {}, seen, {AT: 7}, {AT: Ongoing((1, 2, 3), (3,), (2,))})
    assert found.held() == [Held(AT, (1, 3), 7), Held(("t", 1), (2,), 0)]


def test_a_leader_drifts_only_while_the_preferred_one_is_in_sync() -> None:
    assert drifted(Seen(AT, 2, (1, 2), (1, 2)))
    assert not drifted(Seen(AT, 2, (1, 2), (2,)))
    assert not drifted(Seen(AT, 1, (1, 2), (1, 2)))
