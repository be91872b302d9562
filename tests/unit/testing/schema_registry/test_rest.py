"""Paths, in contexts or not, and what is not served."""

from __future__ import annotations

import pytest

from tests.unit.testing.schema_registry.caller import INT, STRING, Caller


@pytest.fixture
def call() -> Caller:
    return Caller()


def test_a_path_may_lie_in_a_context(call: Caller) -> None:
    call("POST", "/contexts/:.c:/subjects/s/versions", INT)
    call("POST", "/subjects/s/versions", STRING)
    assert call("GET", "/subjects/:.c:s/versions/1")["schema"] == '"int"'
    assert call("GET", "/contexts/.c/schemas/ids/1")["schema"] == '"int"'
    assert call("GET", "/schemas/ids/1", subject=":.c:s")["schema"] == '"int"'
    assert call("GET", "/schemas/ids/1")["schema"] == '"string"'
    assert call("GET", "/contexts") == [".", ".c"]


def test_names_of_subjects_may_hold_anything(call: Caller) -> None:
    call("POST", "/subjects/a%2Fb%20c/versions", INT)
    assert call("GET", "/subjects") == ["a/b c"]


def test_nonsense_is_refused(call: Caller) -> None:
    assert call.code("GET", "/nothing") == 404
    assert call.code("PATCH", "/subjects") == 405
    assert call.code("POST", "/subjects/s/versions") == 400
    assert call.code("POST", "/subjects/s/versions", {"schema": ""}) == 42201
    assert call.code("POST", "/subjects/s/versions", {"schema": '"int"', "id": "x"}) == 400
    assert call.code("POST", "/subjects/s/versions", {"schema": '"int"', "schemaType": "THRIFT"}) == 42201
    assert call.code("GET", "/subjects/s/versions/0") == 42202
