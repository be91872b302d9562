from __future__ import annotations

import pytest

from tidelog.http import guesses
from tidelog.http.guesses import (
    ADDRESS_BURST,
    ADDRESS_REFILL_MS,
    FORGOTTEN_MS,
    FREE_FAILURES,
    LONGEST_WAIT_MS,
    NAME_BURST,
    NAME_REFILL_MS,
    Guesses,
    network_of,
)

HERE, THERE = "192.0.2.1", "192.0.2.2"
NOW = 1_000_000_000


def test_guessing_gets_slower_and_a_success_forgives() -> None:
    found = Guesses()
    for _ in range(FREE_FAILURES):
        assert found.attempt("ann", HERE, NOW) == 0
    assert found.attempt("ann", HERE, NOW) == 1000
    assert found.attempt("ann", HERE, NOW + 1000) == 0
    assert found.attempt("ann", HERE, NOW + 1000) == 2000
    now = NOW + 1000
    while (wait := found.attempt("ann", HERE, now)) < LONGEST_WAIT_MS:
        now += wait
    assert wait == LONGEST_WAIT_MS
    assert found.attempt("ann", HERE, now + LONGEST_WAIT_MS) == 0
    found.succeeded("ann", HERE)
    assert found.attempt("ann", HERE, now + LONGEST_WAIT_MS) == 0


def test_one_address_locks_a_name_out_for_itself_only_however_long_it_goes_on() -> None:
    found = Guesses()
    now = NOW
    for _ in range(10 * NAME_BURST):
        wait_ms = found.attempt("ann", HERE, now)
        now += wait_ms
        assert found.attempt("ann", THERE, now) == 0
        found.succeeded("ann", THERE)
    assert found.attempt("ann", HERE, now) + found.attempt("ann", HERE, now) == LONGEST_WAIT_MS


def test_one_address_is_slowed_over_many_names() -> None:
    found = Guesses()
    for number in range(ADDRESS_BURST):
        assert found.attempt(f"n{number}", HERE, NOW) == 0
    assert found.attempt("another", HERE, NOW) == ADDRESS_REFILL_MS
    assert found.attempt("another", THERE, NOW) == 0
    assert found.attempt("another", HERE, NOW + ADDRESS_REFILL_MS) == 0
    assert found.attempt("one more", HERE, NOW + ADDRESS_REFILL_MS) == ADDRESS_REFILL_MS
    tried = sum(found.attempt(f"m{ms}", HERE, NOW + ADDRESS_REFILL_MS + ms) == 0 for ms in range(0, 60_001, 500))
    assert tried == 60_000 // ADDRESS_REFILL_MS


def test_an_own_password_buys_no_further_guesses() -> None:
    found = Guesses()
    for number in range(ADDRESS_BURST - 1):
        assert found.attempt(f"n{number}", HERE, NOW) == 0
        assert found.attempt("eve", HERE, NOW) == 0
        found.succeeded("eve", HERE)
    assert found.attempt("last", HERE, NOW) == 0
    assert found.attempt("eve", HERE, NOW) > 0


def test_many_addresses_together_are_slowed_on_one_name() -> None:
    found = Guesses()
    for number in range(NAME_BURST):
        assert found.attempt("ann", f"198.51.100.{number}", NOW) == 0
    assert found.attempt("ann", THERE, NOW) == NAME_REFILL_MS
    assert found.attempt("bob", THERE, NOW) == 0


def test_what_was_long_ago_is_forgotten_and_a_clock_that_is_set_back_locks_no_one_out() -> None:
    found = Guesses()
    for number in range(100):
        found.attempt("ann", HERE, NOW)
        found.attempt("ann", f"198.51.100.{number}", NOW)
    assert found.attempt("ann", HERE, NOW - 100 * FORGOTTEN_MS) <= LONGEST_WAIT_MS
    assert found.attempt("ann", THERE, NOW - 100 * FORGOTTEN_MS) <= NAME_REFILL_MS
    assert found.attempt("ann", HERE, NOW + FORGOTTEN_MS + 1) == 0


def test_the_tables_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guesses, "MAX_ENTRIES", 10)
    found = Guesses()
    for number in range(100):
        assert found.attempt(f"n{number}", f"198.51.100.{number}", NOW) == 0
    assert [len(each) for each in (found._pairs, found._addresses._full_ms, found._names._full_ms)] == [10, 10, 10]


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", network_of("2001:db8:1:2::1")),
        ("fe80::1%eth0", network_of("fe80::2")),
        ("", ""),
        ("x" * 100, "x" * 64),
    ],
)
def test_hosts_of_one_network_are_one_address(address: str, network: str) -> None:
    assert network_of(address) == network
    assert network_of("2001:db8:1:3::1") != network_of("2001:db8:1:2::1")
