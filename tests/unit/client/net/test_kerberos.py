"""The adapter on a library that is made up, because the real one is compiled with the system's. ``tests/kerberos`` has it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tidelog.client.kerberos import Kerberos, NoTicket
from tidelog.model.errors import ConfigError, ProtocolViolation

MODULE = "tidelog.client.net.kerberos"
KEYTAB = Kerberos("kafka", "ann@REALM", "/keytab")
OF_KEYTAB = {b"client_keytab": b"FILE:/keytab", b"ccache": b"MEMORY:m"}


class MadeUpError(Exception):
    """``minor``: what Kerberos says."""

    def __init__(self, minor: str, code: int = 7, major: str = "Unspecified.") -> None:
        super().__init__(minor)
        self.min_code, self.maj_code = code, 1
        self._texts = {False: minor, True: major}

    def get_all_statuses(self, code: int, is_major: bool) -> list[str]:
        assert code == (self.maj_code if is_major else self.min_code)
        return [self._texts[is_major]]


class Library:
    """What the adapter uses of ``gssapi.raw``. A cache that is not in ``lives`` has no ticket; a sealed message has a mark."""

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

    def wrap(self, context: Any, message: bytes, *, confidential: bool) -> Any:
        assert not confidential
        if context is None:
            raise MadeUpError("no context")
        return SimpleNamespace(message=b"sealed:" + message)

    def unwrap(self, context: Any, message: bytes) -> Any:
        if not message.startswith(b"sealed:"):
            raise MadeUpError("not sealed")
        return SimpleNamespace(message=message[7:])


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    made_up = Library()
    package, errors = ModuleType("gssapi"), ModuleType("gssapi.exceptions")
    package.__dict__.update(
        raw=made_up,
        MechType=SimpleNamespace(kerberos="krb5"),
        NameType=SimpleNamespace(kerberos_principal="principal", hostbased_service="service"),
        RequirementFlag=SimpleNamespace(mutual_authentication="mutual", integrity="integrity"),
    )
    errors.__dict__["GSSError"] = MadeUpError
    monkeypatch.setitem(sys.modules, "gssapi", package)
    monkeypatch.setitem(sys.modules, "gssapi.exceptions", errors)
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    yield made_up
    sys.modules.pop(MODULE, None)


def kerberos(library: Library) -> Any:
    return importlib.import_module(MODULE)


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


def test_a_keytab_is_tried_without_a_kdc(library: Library) -> None:
    kerberos(library).check_keytab("kafka/n@R", "/keytab")
    assert library.acquired == [({b"keytab": b"FILE:/keytab"}, ("principal", b"kafka/n@R"), "accept")]
    with pytest.raises(ConfigError, match=r"cannot be used for kafka/n@R: no such file\. `klist -k /none`"):
        kerberos(library).check_keytab("kafka/n@R", "/none")


@pytest.mark.parametrize(
    ("minor", "major", "expected"),
    [("Clock skew\ntoo great", "Unspecified", "Clock skew too great"), ("Success", "No  credentials.", "No credentials")],
)
def test_the_reason_is_what_kerberos_says(library: Library, minor: str, major: str, expected: str) -> None:
    assert kerberos(library).reason_of(MadeUpError(minor, 7, major)) == expected
    assert len(kerberos(library).reason_of(MadeUpError("long " * 200))) == 300
    assert kerberos(library).reason_of(MadeUpError("", 7, "Success")) == "MadeUpError"
