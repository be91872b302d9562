"""Calls to the registry's API in memory, without HTTP."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tidelog.registry.errors import RegistryError
from tidelog.registry.registering import Rules
from tidelog.registry.rest.api import Api
from tidelog.registry.rest.requests import Request
from tidelog.registry.rest.schemas import About
from tidelog.registry.state import State

INT, STRING = {"schema": '"int"'}, {"schema": '"string"'}
Written = list[tuple[bytes, bytes | None]]


def record(*fields: dict[str, Any], name: str = "R") -> dict[str, str]:
    """A request to register a record."""
    return {"schema": json.dumps({"type": "record", "name": name, "fields": list(fields)})}


def field(name: str, kind: Any = "int", **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


class Caller:
    """``written`` are the records that a topic would hold."""

    def __init__(self, rules: Rules | None = None) -> None:
        self.state = State()
        self.api = Api(self.state, rules or Rules(), About("cluster", "1"))
        self.written: Written = []

    def __call__(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        values = {name: value if isinstance(value, list) else [str(value)] for name, value in query.items()}
        raw = b"" if body is None else json.dumps(body).encode()
        outcome = self.api.find(Request(method, path, values, raw)).answer()
        for key, value in outcome.records:
            assert self.state.replay(key, value) is None
            self.written.append((key, value))
        return outcome.value

    def refusal(self, *args: Any, **query: Any) -> RegistryError:
        """The refusal of a request that changes nothing."""
        before = len(self.written)
        with pytest.raises(RegistryError) as caught:
            self(*args, **query)
        assert len(self.written) == before
        return caught.value

    def code(self, *args: Any, **query: Any) -> int:
        """The error code of a refusal."""
        return self.refusal(*args, **query).code

    def register(self, subject: str, body: Any, **query: Any) -> Any:
        return self("POST", f"/subjects/{subject}/versions", body, **query)

    def compatible(self, subject: str, body: Any, version: str = "latest", **query: Any) -> Any:
        return self("POST", f"/compatibility/subjects/{subject}/versions/{version}", body, **query)["is_compatible"]

    def level(self, subject: str, level: str) -> None:
        self("PUT", f"/config/{subject}", {"compatibility": level})


def replayed(written: Written) -> State:
    """The state that a new registry has."""
    state = State()
    for key, value in written:
        state.replay(key, value)
    return state


def compacted(written: Written) -> Written:
    """What compaction leaves: the last record of each key, and none that deletes."""
    last = {key: index for index, (key, _) in enumerate(written)}
    return [(key, value) for index, (key, value) in enumerate(written) if last[key] == index and value is not None]
