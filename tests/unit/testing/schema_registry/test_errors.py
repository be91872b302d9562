"""Codes begin with the HTTP status, as Confluent's do, but for those that are statuses themselves."""

from __future__ import annotations

import inspect

from tidelog.testing.schema_registry import errors
from tidelog.testing.schema_registry.errors import RegistryError

ARGUMENTS = {"subject": "s", "version": 1, "what": 1, "why": "why", "reasons": ["r"], "level": 1, "levels": ("A",), "mode": 1,
             "modes": ("A",), "ids": [1]}  # fmt: skip


def test_codes_fit_their_status_and_are_each_used_once() -> None:
    codes = []
    for _, make in inspect.getmembers(errors, inspect.isfunction):
        found = make(*(ARGUMENTS[name] for name in inspect.signature(make).parameters))
        assert isinstance(found, RegistryError)
        assert str(found.code).startswith(str(found.status))
        assert found.message == str(found)
        codes.append(found.code)
    assert len(set(codes)) == len(codes)
    assert {*range(40401, 40410), 409, *range(42201, 42207)} <= set(codes)
