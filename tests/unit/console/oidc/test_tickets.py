from __future__ import annotations

import base64
import hashlib

import pytest

from tidelog.console.oidc import tickets
from tidelog.console.oidc.tickets import LONGEST_MS, Tickets, safe_place

KEY, TOKEN = bytes(32), "t" * 32


def test_a_ticket_is_opened_with_all_that_was_derived_from_it_until_it_is_used() -> None:
    found = Tickets(KEY)
    ticket = found.begin(TOKEN, "main/topics?x=ä", 1000)
    assert found.open(ticket.sealed, 1000 + LONGEST_MS) == ticket
    found.use(ticket)
    assert found.open(ticket.sealed, 1000) is None


def test_state_nonce_and_verifier_differ_and_are_not_in_what_the_browser_keeps() -> None:
    ticket = Tickets(KEY).begin(TOKEN, "", 0)
    secrets = {ticket.state, ticket.nonce, ticket.verifier, ticket.sealed.rpartition(".")[2]}
    assert len(secrets) == 4
    assert not [each for each in (ticket.state, ticket.nonce, ticket.verifier) if each in ticket.sealed or each in repr(ticket)]
    digest = hashlib.sha256(ticket.verifier.encode()).digest()
    assert ticket.challenge == base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    assert 43 <= len(ticket.verifier) <= 128
    assert Tickets(KEY).begin("u" * 32, "", 0).state != ticket.state


@pytest.mark.parametrize("sealed", [None, "", "a.b.c.d", "\udcff", "x" * 100_000])
def test_what_is_no_ticket_is_not_opened(sealed: str | None) -> None:
    assert Tickets(KEY).open(sealed, 0) is None


def test_a_changed_old_or_foreign_ticket_is_not_opened() -> None:
    found = Tickets(KEY)
    sealed = found.begin(TOKEN, "a", 1000).sealed
    for changed in (sealed.replace("1000", "2000"), sealed[:-1] + "-", "u" + sealed[1:], sealed.replace(".YQ.", ".Yg.")):
        assert changed != sealed
        assert found.open(changed, 1000) is None
    assert found.open(sealed, 1001 + LONGEST_MS) is None
    assert found.open(sealed, 999) is None
    assert Tickets(b"\1" * 32).open(sealed, 1000) is None


def test_used_tickets_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tickets, "MAX_USED", 3)
    found = Tickets(KEY)
    for number in range(10):
        found.use(found.begin(f"{number:0>20}", "", 0))
    assert len(found._used) == 3


@pytest.mark.parametrize(
    "place", ["main", "main/topics/a%2Fb", "c/main/topics?filter=value%20%3E%3D%201", "main/", "search?q=a//b"]
)
def test_pages_of_the_console_are_kept(place: str) -> None:
    assert safe_place(place) == place


@pytest.mark.parametrize(
    "place",
    ["", "/", "//evil.example", "/main", "https://evil.example", "https:evil.example", "javascript:alert(1)", "\\\\evil", "a\\b",
     "a/%5cb", "..", "a/../b", "a/%2E%2e/b", ".", "a//b", "%2f%2fevil", "%09//evil", "a b", "a\nb", "a\x7f", "ä", "api/v1/x",
     "?x=1", "#x", "a" * 1001],
)  # fmt: skip
def test_what_could_lead_elsewhere_is_the_first_page(place: str) -> None:
    assert safe_place(place) == ""
