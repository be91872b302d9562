"""A Kerberos library that is made up, for nodes that log in to each other: the real one is compiled with the system's."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

ADAPTERS = ("tidelog.client.net.kerberos", "tidelog.server.serving.kerberos")


class MadeUpError(Exception):
    min_code = maj_code = 1

    def get_all_statuses(self, code: int, is_major: bool) -> list[str]:
        return [str(self)]


class Raw:
    """Both sides of it. A ticket is ``PRINCIPAL>SERVICE@HOST``, a proof and a sealed message have a mark."""

    def __init__(self) -> None:
        self.lifetime_s = 3600
        self.refuses: set[str] = set()
        """The services for which there are no tickets."""
        self.asked: list[str] = []

    def import_name(self, name: bytes, kind: Any) -> bytes:
        return name

    def canonicalize_name(self, name: bytes, mech: Any) -> bytes:
        return name + b"@REALM"

    def display_name(self, name: bytes, name_type: bool) -> Any:
        return SimpleNamespace(name=name)

    def acquire_cred_from(self, store: Any, name: bytes, *, mechs: Any, usage: str) -> Any:
        return SimpleNamespace(creds=name, lifetime=self.lifetime_s)

    def init_sec_context(self, name: bytes, credentials: bytes, *, context: Any, mech: Any, flags: Any, input_token: Any) -> Any:
        if input_token is not None:
            assert input_token == b"proof"
            return SimpleNamespace(context=context, token=None, more_steps=False)
        self.asked.append(name.decode())
        if name.decode() in self.refuses:
            raise MadeUpError("no such service")
        return SimpleNamespace(context="context", token=credentials + b">" + name, more_steps=True)

    def accept_sec_context(self, token: bytes, acceptor_creds: Any, context: Any) -> Any:
        principal, _, _ = token.partition(b">")
        return SimpleNamespace(context="c", initiator_name=principal, lifetime=self.lifetime_s, more_steps=False, token=b"proof")

    def wrap(self, context: Any, message: bytes, *, confidential: bool) -> Any:
        return SimpleNamespace(message=b"sealed:" + message)

    def unwrap(self, context: Any, message: bytes) -> Any:
        assert message.startswith(b"sealed:")
        return SimpleNamespace(message=message[7:])


@contextmanager
def made_up_kerberos(monkeypatch: pytest.MonkeyPatch) -> Iterator[Raw]:
    """In the place of the library meanwhile."""
    raw = Raw()
    package, errors = ModuleType("gssapi"), ModuleType("gssapi.exceptions")
    package.__dict__.update(
        raw=raw,
        MechType=SimpleNamespace(kerberos="krb5"),
        NameType=SimpleNamespace(kerberos_principal="principal", hostbased_service="service"),
        RequirementFlag=SimpleNamespace(mutual_authentication="mutual", integrity="integrity"),
    )
    errors.__dict__["GSSError"] = MadeUpError
    monkeypatch.setitem(sys.modules, "gssapi", package)
    monkeypatch.setitem(sys.modules, "gssapi.exceptions", errors)
    for name in ADAPTERS:
        monkeypatch.delitem(sys.modules, name, raising=False)
    try:
        yield raw
    finally:
        for name in ADAPTERS:
            sys.modules.pop(name, None)
