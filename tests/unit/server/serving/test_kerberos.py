"""A node's side of the Kerberos library, on one that is made up."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.client.net.made_up_gssapi import NODES, SEAL, MadeUpError, Raw, installed
from tidelog.config.listener_gssapi import GssapiSettings
from tidelog.model.errors import ConfigError
from tidelog.security.gssapi import OFFER, ContextRefused
from tidelog.security.sasl import AuthenticationFailed


class Library(Raw):
    """Tickets are ``ticket:NAME``."""

    def __init__(self) -> None:
        self.realm: str | None = "REALM"
        self.acquired: list[tuple[Any, ...]] = []
        self.steps: list[tuple[Any, Any]] = []

    def import_name(self, name: bytes, kind: Any) -> bytes:
        return name

    def canonicalize_name(self, name: bytes, mech: Any) -> bytes:
        if self.realm is None:
            raise MadeUpError("no default realm")
        return name + b"@" + self.realm.encode()

    def display_name(self, name: bytes, name_type: bool) -> Any:
        return SimpleNamespace(name=name)

    def acquire_cred_from(self, store: Any, name: bytes, *, mechs: Any, usage: str) -> Any:
        self.acquired.append((store, name, mechs, usage))
        if not Path(store[b"keytab"].decode().removeprefix("FILE:")).exists():
            raise MadeUpError("no\n  such   keytab")
        return SimpleNamespace(creds="credentials")

    def accept_sec_context(self, token: bytes, acceptor_creds: Any, context: Any) -> Any:
        self.steps.append((acceptor_creds, context))
        if not token.startswith(b"ticket:"):
            raise MadeUpError("a token " * 100)
        return SimpleNamespace(context="context", initiator_name=token[7:], lifetime=60, more_steps=False, token=None)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    with installed(monkeypatch, Library()) as made_up:
        yield made_up


def kerberos(library: Library) -> Any:
    return importlib.import_module(NODES)


def settings(keytab: Path, *rules: str) -> GssapiSettings:
    return GssapiSettings("kafka/node@REALM", str(keytab), rules or ("DEFAULT",))


def test_a_ticket_opens_with_the_key_of_the_principal(library: Library, tmp_path: Path) -> None:
    keytab = tmp_path / "keytab"
    keytab.touch(0o600)
    begin = kerberos(library).gssapi_server(settings(keytab), lambda: 5000)
    assert library.acquired == [({b"keytab": b"FILE:" + str(keytab).encode()}, b"kafka/node@REALM", ["krb5"], "accept")]
    for _ in range(2):
        exchange = begin()
        assert exchange.answer(b"ticket:ann@REALM") == SEAL + OFFER
        assert exchange.answer(b"sealed:\x01\0\0\0") is None
        assert str(exchange.outcome.principal) == "User:ann"
        assert exchange.outcome.expires_ms == 65_000
    assert library.steps == [("credentials", None)] * 2


@pytest.mark.parametrize("tokens", [[b"nonsense"], [b"ticket:ann@REALM", b"open"], [b"ticket:\xff@REALM", b"sealed:\x01\0\0\0"]])
def test_errors_of_the_library_end_the_exchange_in_one_short_line(library: Library, tmp_path: Path, tokens: list[bytes]) -> None:
    keytab = tmp_path / "keytab"
    keytab.touch(0o600)
    exchange = kerberos(library).gssapi_server(settings(keytab), lambda: 5000)()
    with pytest.raises(AuthenticationFailed) as failed:
        for token in tokens:
            exchange.answer(token)
    assert failed.value.reason.startswith("GSSAPI: ")
    assert len(failed.value.reason) < 350
    assert exchange.outcome is None


def test_an_offer_that_cannot_be_sealed(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    context = kerberos(library).KeytabContext("credentials")
    context.accept(b"ticket:ann@REALM")

    def broken(*_: Any, **__: Any) -> None:
        raise MadeUpError("expired")

    monkeypatch.setattr(library, "wrap", broken)
    with pytest.raises(ContextRefused, match="expired"):
        context.wrap(OFFER)


def test_a_keytab_without_the_principal_stops_the_start(library: Library, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot be used for kafka/node@REALM: no such keytab\. `klist -k"):
        kerberos(library).gssapi_server(settings(tmp_path / "none"), lambda: 0)


def test_a_rule_that_cannot_be_read_stops_the_start(library: Library, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="a rule is DEFAULT"):
        kerberos(library).gssapi_server(settings(tmp_path / "none", "nonsense"), lambda: 0)


def test_a_keytab_that_every_user_can_read_is_named(library: Library, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    keytab = tmp_path / "keytab"
    keytab.touch()
    keytab.chmod(0o644)
    kerberos(library).gssapi_server(settings(keytab), lambda: 0)
    assert f"chmod o-r {keytab}" in caplog.text


def test_a_machine_without_a_realm(library: Library) -> None:
    assert kerberos(library).own_realm() == "REALM"
    library.realm = None
    assert kerberos(library).own_realm() is None
