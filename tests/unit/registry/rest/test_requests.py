"""Bodies, versions and pages of requests."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.registry.caller import INT, Caller


def test_lists_have_pages() -> None:
    call = Caller()
    for name in "abcd":
        call.register(name, INT)
    assert call("GET", "/subjects", offset="1", limit="2") == ["b", "c"]
    assert call("GET", "/subjects", offset="3") == ["d"]
    assert call.code("GET", "/subjects", offset="x") == 404


@pytest.mark.parametrize("version", ["0", "-2", "x", "2147483648", "1.0", "99999999999999999999", "٣"])
def test_versions_that_are_none(version: str) -> None:
    call = Caller()
    call.register("s", INT)
    assert call.code("GET", f"/subjects/s/versions/{version}") == 42202


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (None, 400),
        ([], 400),
        ({"schema": 1}, 400),
        (INT | {"other": 1}, 422),
        (INT | {"schemaType": "XML"}, 42201),
        ({"schema": "{}"}, 42201),
        (INT | {"references": [{"name": "a"}]}, 400),
        (INT | {"references": "a"}, 400),
        (INT | {"id": "7"}, 400),
        (INT | {"id": 1 << 31}, 400),
        (INT | {"metadata": {"properties": {"a": 1}}}, 400),
        (INT | {"ruleSet": []}, 42210),
        (INT | {"version": 3}, 42202),
        (INT | {"schemaTagsToAdd": [{"tags": ["x"]}]}, 400),
        ({"schema": '"\\ud800"', "schemaType": "JSON"}, 42201),
    ],
)
def test_bodies_that_are_refused(body: Any, code: int) -> None:
    assert Caller().code("POST", "/subjects/s/versions", body) == code
