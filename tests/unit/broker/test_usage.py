"""What connections did, by client and by API."""

from __future__ import annotations

from tidelog.broker.request import Session
from tidelog.broker.usage import ENTRIES, LONGEST_NAME, NO_API, Usage
from tidelog.protocol.api_keys import ApiKey
from tidelog.security.principal import KafkaPrincipal


def ask(usage: Usage, session: Session, key: int, client_id: str | None, loop_ns: int) -> None:
    """As a dispatcher and a connection do."""
    if key != session.api_key or client_id != session.client_id:
        usage.switch(session, key, client_id)
    session.requests += 1
    session.bytes_in += 10
    session.bytes_out += 3
    session.loop_ns += loop_ns


def test_time_is_charged_to_the_api_of_the_last_request() -> None:
    usage, session = Usage(), Session("L", "h")
    session.loop_ns += 7  # a login
    ask(usage, session, ApiKey.PRODUCE, "a", 100)
    ask(usage, session, ApiKey.PRODUCE, "a", 20)
    ask(usage, session, ApiKey.METADATA, "a", 5)
    usage.add(session)
    assert usage.loop_ns() == {NO_API: 7, ApiKey.PRODUCE: 120, ApiKey.METADATA: 5}
    usage.add(session)
    assert usage.loop_ns()[ApiKey.METADATA] == 5, "what was added does not count twice"


def test_clients_are_told_apart_by_id_principal_and_host() -> None:
    usage = Usage()
    alice, bob = KafkaPrincipal("User", "alice"), KafkaPrincipal("User", "bob")
    sessions = [Session("L", "h", alice), Session("L", "h", alice), Session("L", "h", bob), Session("L", "i", bob)]
    for session in sessions:
        ask(usage, session, ApiKey.FETCH, "reader", 10)
    ask(usage, sessions[0], ApiKey.FETCH, None, 1)
    for session in sessions:
        usage.add(session)
    assert {tuple(entry.key): (entry.weight, entry.amounts) for entry in usage.now.entries()} == {
        ("reader", "User:alice", "h"): (20, [2, 20, 6]),
        ("reader", "User:bob", "h"): (10, [1, 10, 3]),
        ("reader", "User:bob", "i"): (10, [1, 10, 3]),
        ("", "User:alice", "h"): (1, [1, 10, 3]),
    }


def test_a_client_that_makes_up_ids_fills_neither_memory_nor_the_place_of_a_busy_one() -> None:
    usage, busy, liar = Usage(), Session("L", "h"), Session("L", "i")
    for number in range(4 * ENTRIES):
        ask(usage, busy, ApiKey.PRODUCE, "busy", 1000)
        usage.add(busy)
        ask(usage, liar, ApiKey.PRODUCE, f"{number} {'x' * 10_000}", 1)
    usage.add(liar)
    entries = usage.now.entries()
    assert len(entries) == ENTRIES
    assert (entries[0].key.client_id, entries[0].weight, entries[0].error) == ("busy", 4000 * ENTRIES, 0)
    assert max(len(entry.key.client_id) for entry in entries) == LONGEST_NAME


def test_a_turn_keeps_the_window_before() -> None:
    usage, session = Usage(), Session("L", "h")
    ask(usage, session, ApiKey.FETCH, "a", 1)
    usage.add(session)
    usage.turn()
    assert ([len(usage.before), len(usage.now)]) == [1, 0]
    usage.turn()
    assert ([len(usage.before), len(usage.now)]) == [0, 0]
