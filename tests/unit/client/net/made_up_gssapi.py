"""A Kerberos library that is made up, because the real one is compiled with the system's. ``tests/kerberos`` has that one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any, TypeVar

import pytest

CLIENTS, NODES, SHARED = IMPORTERS = (
    "tidelog.client.net.kerberos",
    "tidelog.server.serving.kerberos",
    "tidelog.client.net.kerberos_library",
)
SEAL = b"sealed:"


class MadeUpError(Exception):
    """``minor``: what Kerberos says."""

    def __init__(self, minor: str, code: int = 7, major: str = "Unspecified.") -> None:
        super().__init__(minor)
        self.min_code, self.maj_code = code, 1
        self._texts = {False: minor, True: major}

    def get_all_statuses(self, code: int, is_major: bool) -> list[str]:
        assert code == (self.maj_code if is_major else self.min_code)
        return [self._texts[is_major]]


class Raw:
    """What all made-up libraries have of ``gssapi.raw``. A sealed message has a mark."""

    def wrap(self, context: Any, message: bytes, *, confidential: bool) -> Any:
        assert not confidential
        if context is None:
            raise MadeUpError("no context")
        return SimpleNamespace(message=SEAL + message)

    def unwrap(self, context: Any, message: bytes) -> Any:
        if not message.startswith(SEAL):
            raise MadeUpError("not sealed")
        return SimpleNamespace(message=message.removeprefix(SEAL))


AnyRaw = TypeVar("AnyRaw", bound=Raw)


@contextmanager
def installed(monkeypatch: pytest.MonkeyPatch, raw: AnyRaw) -> Iterator[AnyRaw]:
    """Meanwhile ``raw`` stands in for the library, and the modules that import it are loaded again."""
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
    for name in IMPORTERS:
        monkeypatch.delitem(sys.modules, name, raising=False)
    try:
        yield raw
    finally:
        for name in IMPORTERS:
            sys.modules.pop(name, None)
