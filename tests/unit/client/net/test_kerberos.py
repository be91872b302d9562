"""The client's side of the Kerberos library, on one that is made up."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.client.net.made_up_gssapi import CLIENTS, MadeUpError, Raw, installed
from tidelog.client.kerberos import Kerberos, NoTicket
from tidelog.model.errors import ProtocolViolation

KEYTAB = Kerberos("kafka", "ann@REALM", "/keytab")
OF_KEYTAB = {b"client_keytab": b"FILE:/keytab", b"ccache": b"MEMORY:m"}


class Library(Raw):
    """A cache that is not in ``lives`` has no ticket."""

    def __init__(self) -> None:
        self.lives: dict[bytes | None, int | None] = {None: 60, b"MEMORY:m": 60}
        self.acquired: list[tuple[Any, ...]] = []
        self.steps: list[tuple[Any, ...]] = []
        self.refused: MadeUpError | None = None

    def import_name(self, name: bytes, kind: Any) -> tuple[str, bytes]:
        return kind, name

    def acquire_cred_from(self, store: Any, name: Any, *, mechs: Any, usage: str) -> Any:
        assert mechs == ["krb5"]
        self.acquired.append((store, name, usage))
        cache = None if store is None else store.get(b"ccache")
        if cache not in self.lives or (store is not None and store.get(b"keytab") == b"FILE:/none"):
            raise MadeUpError("no\n  such   file.")
        return SimpleNamespace(creds=cache, lifetime=self.lives[cache])

    def init_sec_context(self, name: Any, credentials: Any, *, context: Any, mech: Any, flags: Any, input_token: Any) -> Any:
        self.steps.append((name, credentials, context, mech, tuple(flags), input_token))
        if self.refused is not None:
            raise self.refused
        if input_token is None:
            return SimpleNamespace(context="context", token=b"ticket", more_steps=True)
        if input_token != b"proof":
            raise MadeUpError("wrong proof")
        return SimpleNamespace(context="context", token=None, more_steps=False)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    with installed(monkeypatch, Library()) as made_up:
        yield made_up


def kerberos(library: Library) -> Any:
    return importlib.import_module(CLIENTS)


def test_a_ticket_by_the_keytab_asks_the_broker_for_a_proof(library: Library) -> None:
    ticket = kerberos(library).ticket_context(KEYTAB, "b-1", "m")
    assert library.acquired == [(OF_KEYTAB, ("principal", b"ann@REALM"), "initiate")]
    assert (ticket.first, ticket.complete) == (b"ticket", False)
    assert ticket.step(b"proof") == b""
    assert ticket.complete
    who = (("service", b"kafka@b-1"), b"MEMORY:m")
    assert library.steps == [
        (*who, None, "krb5", ("mutual", "integrity"), None),
        (*who, "context", "krb5", ("mutual", "integrity"), b"proof"),
    ]
    assert ticket.unwrap(b"sealed:offer") == b"offer"
    assert ticket.wrap(b"choice") == b"sealed:choice"


def test_a_ticket_of_the_cache(library: Library) -> None:
    kerberos(library).ticket_context(Kerberos("kafka", use_cache=True), "b-1", "m")
    library.lives[b"/c"] = None
    kerberos(library).ticket_context(Kerberos("kafka", "ann@R", None, True, "/c"), "b-1", "m")
    assert library.acquired == [(None, None, "initiate"), ({b"ccache": b"/c"}, ("principal", b"ann@R"), "initiate")]


def test_a_keytab_counts_where_the_cache_has_no_ticket_any_more(library: Library) -> None:
    both = Kerberos("kafka", "ann@REALM", "/keytab", True, "/c")
    for life, expected in ((60, 1), (0, 2), (None, 1)):
        library.lives[b"/c"] = life
        library.acquired.clear()
        kerberos(library).ticket_context(both, "b-1", "m")
        assert len(library.acquired) == expected
    del library.lives[b"/c"]
    kerberos(library).ticket_context(both, "b-1", "m")
    assert library.acquired[-1][0] == OF_KEYTAB
    with pytest.raises(NoTicket, match="no Kerberos ticket for kafka@b-1: no such file"):
        kerberos(library).ticket_context(Kerberos("kafka", use_cache=True, cache="/c"), "b-1", "m")


@pytest.mark.parametrize(
    ("code", "unreachable", "said"),
    [
        (-1765328228, True, r"kafka@b-1: gone$"),
        (2529639068, True, r"kafka@b-1: gone$"),
        (-1765328377, False, r"kafka@b-1: gone\. A broker's principal holds the host name that clients connect to$"),
        (-1765328353, False, r"kafka@b-1: gone\. The key in the keytab is not the one that the KDC has$"),
        (-1765328378, False, r"kafka@b-1: gone$"),
    ],
)
def test_no_ticket_says_why(library: Library, code: int, unreachable: bool, said: str) -> None:
    library.refused = MadeUpError("gone", code)
    with pytest.raises(NoTicket, match=said) as raised:
        kerberos(library).ticket_context(KEYTAB, "b-1", "m")
    assert raised.value.unreachable == unreachable


def test_no_ticket_for_want_of_a_key_names_the_keytab(library: Library) -> None:
    del library.lives[b"MEMORY:m"]
    with pytest.raises(NoTicket, match=r"kafka@b-1: the keytab /none cannot be used for ann@R: no such file\. `klist -k /none`"):
        kerberos(library).ticket_context(Kerberos("kafka", "ann@R", "/none"), "b-1", "m")


def test_a_broker_without_a_proof_and_messages_without_a_seal(library: Library) -> None:
    ticket = kerberos(library).ticket_context(KEYTAB, "b-1", "m")
    with pytest.raises(ProtocolViolation, match="does not prove who it is: wrong proof"):
        ticket.step(b"something")
    with pytest.raises(ProtocolViolation, match="not sealed"):
        ticket.unwrap(b"offer")
    ticket._context = None
    with pytest.raises(ProtocolViolation, match="no context"):
        ticket.wrap(b"choice")
