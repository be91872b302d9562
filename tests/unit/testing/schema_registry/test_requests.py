"""What a request says, and the JSON of schemas and versions."""

from __future__ import annotations

from typing import Any

import pytest

from tidelog.testing.schema_registry.errors import RegistryError
from tidelog.testing.schema_registry.requests import Request, content, described, version_number
from tidelog.testing.schema_registry.store import Reference, Schema, Version


def request(path: str = "/", body: Any = None, **query: str) -> Request:
    return Request("GET", path, query, body)


def refused(code: int) -> pytest.RaisesExc[RegistryError]:
    return pytest.RaisesExc(RegistryError, check=lambda error: error.code == code)


def test_parameters_are_flags_numbers_and_pages() -> None:
    asked = request(deleted="TRUE", offset="1", limit="2")
    assert (asked.flag("deleted"), asked.flag("permanent")) == (True, False)
    assert (asked.number("limit", -1), asked.number("other", 7)) == (2, 7)
    assert asked.page([1, 2, 3, 4]) == [2, 3]
    assert request(offset="-3").page([1, 2]) == [1, 2]
    with refused(400):
        request(limit="many").page([])


def test_a_path_may_begin_with_a_context() -> None:
    assert request("/subjects/").split_context() == (".", "/subjects")
    assert request("/contexts/:.c:/subjects").split_context() == (".c", "/subjects")
    assert request("/contexts/%3A.c%3A/").split_context() == (".c", "/")
    assert request("/contexts").split_context() == (".", "/contexts")


def test_a_schema_comes_back_as_it_was_sent() -> None:
    body = {
        "schema": "{}",
        "schemaType": "JSON",
        "references": [{"name": "R", "subject": "s", "version": 1}],
        "metadata": {"properties": {"owner": "us"}},
        "ruleSet": {"domainRules": []},
    }
    schema = request(body=body).schema()
    assert (schema.kind, schema.references) == ("JSON", (Reference("R", "s", 1),))
    assert content(schema) == body
    assert content(request(body={"schema": '"int"'}).schema()) == {"schema": '"int"'}


def test_a_body_that_is_no_schema_is_refused() -> None:
    for code, body in (
        (400, None),
        (400, []),
        (42201, {}),
        (42201, {"schema": " "}),
        (42201, {"schema": 1}),
        (400, {"schema": "{}", "references": [{"name": "R"}]}),
    ):
        with refused(code):
            request(body=body).schema()


def test_a_version_is_a_number_or_the_latest() -> None:
    assert [version_number(each) for each in ("latest", "-1", "7")] == [-1, -1, 7]
    for text in ("0", "-2", "x", "\u0663", str(1 << 31)):
        with refused(42202):
            version_number(text)


def test_only_a_deleted_version_says_so() -> None:
    schema = Schema("AVRO", '"int"')
    plain = {"subject": "s", "version": 2, "id": 3, "guid": schema.guid, "schema": '"int"'}
    assert described(Version("s", 2, 3, schema)) == plain
    assert described(Version("s", 2, 3, schema, deleted=True)) == plain | {"deleted": True}
