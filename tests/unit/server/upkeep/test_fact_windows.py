"""Which time the numbers of a page cover, however often it is read."""

from __future__ import annotations

from tidelog.broker.usage import Client, Usage
from tidelog.server.upkeep.fact_windows import BusiestClients, Growth


def test_the_first_reader_sees_all_since_the_start_and_a_regular_one_the_last_seconds() -> None:
    growth: Growth[str] = Growth(100.0)
    assert growth.since(103.0, {"a": (5, 1)}) == (3.0, {"a": (5, 1)})
    assert growth.since(160.0, {"a": (7, 1)}) == (60.0, {"a": (7, 1)})
    assert growth.since(160.5, {"a": (8, 1)}) == (60.5, {"a": (8, 1)}), "half a second says nothing"
    assert growth.since(161.0, {"a": (8, 1)}) == (1.0, {"a": (1, 0)}), "the reader came back after a long silence"
    assert growth.since(166.0, {"a": (9, 2)}) == (6.0, {"a": (2, 1)})
    assert growth.since(167.0, {"a": (9, 4), "b": (1, 1)}) == (7.0, {"a": (2, 3), "b": (1, 1)})
    assert growth.since(171.5, {"a": (10, 4), "b": (1, 1)}) == (11.5, {"a": (3, 3), "b": (1, 1)})
    assert growth.since(172.5, {"a": (10, 4), "b": (1, 1)}) == (6.5, {"a": (1, 2), "b": (1, 1)})


def test_a_counter_that_fell_began_again() -> None:
    growth: Growth[str] = Growth(0.0)
    growth.since(10.0, {"a": (50,)})
    growth.since(20.0, {"a": (50,)})
    assert growth.since(21.0, {"a": (2,)}) == (11.0, {"a": (2,)})


def test_clients_of_several_listeners_are_added_up_and_forgotten_after_two_windows() -> None:
    clients, accounts = BusiestClients(0.0), [Usage(), Usage()]
    a, b = Client("a", "p", "h"), Client("b", "p", "h")
    accounts[0].now.add(a, 10, (1, 2, 3))
    accounts[1].now.add(a, 5, (1, 2, 3))
    accounts[1].now.add(b, 20, (1, 1, 1))
    seconds, entries = clients.since(6.0, accounts)
    assert (seconds, [(each.key, each.weight, each.amounts) for each in entries]) == (
        6.0,
        [(b, 20, [1, 1, 1]), (a, 15, [2, 4, 6])],
    )
    accounts[0].now.add(a, 100, (1, 0, 0))
    seconds, entries = clients.since(8.0, accounts)
    assert (seconds, [(each.key, each.weight) for each in entries]) == (8.0, [(a, 115), (b, 20)])
    clients.since(12.0, accounts)
    seconds, entries = clients.since(13.0, accounts)
    assert (seconds, [(each.key, each.weight) for each in entries]) == (7.0, [(a, 100)])


def test_after_a_long_silence_clients_are_those_since_the_first_reading() -> None:
    clients, account = BusiestClients(0.0), Usage()
    account.now.add(Client("past", "p", "h"), 1000, (1, 1, 1))
    assert clients.since(300.0, [account])[0] == 300.0
    account.now.add(Client("present", "p", "h"), 1, (1, 1, 1))
    seconds, entries = clients.since(302.0, [account])
    assert (seconds, [each.key.client_id for each in entries]) == (2.0, ["present"])
