"""What both sides of a login by ticket use: one reason for an error, one check of a keytab, one way to seal messages."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.client.net.made_up_gssapi import SEAL, SHARED, MadeUpError, Raw, installed
from tidelog.model.errors import ConfigError


class Library(Raw):
    """One that has no other file than ``/keytab``."""

    def __init__(self) -> None:
        self.acquired: list[tuple[Any, ...]] = []

    def import_name(self, name: bytes, kind: Any) -> tuple[str, bytes]:
        if not name:
            raise MadeUpError("no name")
        return kind, name

    def acquire_cred_from(self, store: Any, name: Any, *, mechs: Any, usage: str) -> Any:
        self.acquired.append((store, name, mechs, usage))
        if store[b"keytab"] != b"FILE:/keytab":
            raise MadeUpError("no\n  such   file.")
        return SimpleNamespace(creds="credentials")


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    with installed(monkeypatch, Library()) as made_up:
        yield made_up


def shared(library: Library) -> Any:
    return importlib.import_module(SHARED)


def test_a_keytab_is_tried_without_a_kdc(library: Library) -> None:
    assert shared(library).keytab_credentials("kafka/n@R", "/keytab") == "credentials"
    assert library.acquired == [({b"keytab": b"FILE:/keytab"}, ("principal", b"kafka/n@R"), ["krb5"], "accept")]


@pytest.mark.parametrize(("principal", "keytab", "reason"), [("kafka/n@R", "/none", "no such file"), ("", "/keytab", "no name")])
def test_a_keytab_without_the_principal_says_what_to_look_at(library: Library, principal: str, keytab: str, reason: str) -> None:
    said = f"the keytab {keytab} cannot be used for {principal}: {reason}. `klist -k {keytab}` shows what it holds."
    with pytest.raises(ConfigError) as raised:
        shared(library).keytab_credentials(principal, keytab)
    assert (str(raised.value), raised.value.problem) == (f"GSSAPI: {said}", said)  # type: ignore[attr-defined]


def test_messages_are_sealed_and_opened_or_raise_the_error_of_their_side(library: Library) -> None:
    module = shared(library)

    class Context(module.SealingContext):  # type: ignore[misc, name-defined]
        failure = KeyError

    context = Context()
    with pytest.raises(KeyError, match="no context"):
        context.wrap(b"offer")
    context._context = "context"
    assert context.wrap(b"offer") == SEAL + b"offer"
    assert context.unwrap(SEAL + b"offer") == b"offer"
    with pytest.raises(KeyError, match="not sealed"):
        context.unwrap(b"offer")


@pytest.mark.parametrize(
    ("minor", "major", "expected"),
    [
        ("Clock skew\ntoo great", "Unspecified", "Clock skew too great"),
        ("Request is a replay", "Unspecified. The minor code may tell more", "Request is a replay"),
        ("Success", "No  credentials.", "No credentials"),
        ("Unknown error", "Unspecified. The minor code may tell more", "Unspecified"),
        ("", "Success", "MadeUpError"),
        ("long " * 200, "Unspecified", ("long " * 60).strip()),
    ],
)
def test_the_reason_is_what_kerberos_says(library: Library, minor: str, major: str, expected: str) -> None:
    assert shared(library).reason_of(MadeUpError(minor, 7, major)).strip() == expected
    assert len(shared(library).reason_of(MadeUpError(minor, 7, major))) <= 300
