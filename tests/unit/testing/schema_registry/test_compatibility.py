"""Levels: which earlier versions count, and in which direction."""

from __future__ import annotations

import json

import pytest

from tidelog.testing.schema_registry.compatibility import LEVELS, check
from tidelog.testing.schema_registry.formats import Document


def avro(*fields: tuple[str, bool]) -> Document:
    """Fields by name; those with True have a default."""
    made = [{"name": name, "type": "int"} | ({"default": 0} if default else {}) for name, default in fields]
    return Document(json.dumps({"type": "record", "name": "R", "fields": made}))


FIRST, SECOND = avro(("a", False)), avro(("a", False), ("b", True))
EARLIER = [(1, "AVRO", FIRST), (2, "AVRO", SECOND)]
DROPS_A = avro(("b", True))
"""Reads both, but the first cannot read it: it has no default for a."""
NEEDS_B = avro(("a", False), ("b", False))
"""Cannot read the first, which has no b."""
ADDS_C = avro(("a", False), ("b", True), ("c", True))


@pytest.mark.parametrize(
    ("new", "allowed"),
    [
        (ADDS_C, set(LEVELS)),
        (DROPS_A, {"NONE", "BACKWARD", "BACKWARD_TRANSITIVE"}),
        (NEEDS_B, {"NONE", "BACKWARD", "FORWARD", "FORWARD_TRANSITIVE", "FULL"}),
        (Document('"int"'), {"NONE"}),
    ],
)
def test_each_level_allows_what_it_should(new: Document, allowed: set[str]) -> None:
    assert {level for level in LEVELS if not check(("AVRO", new), EARLIER, level).reasons} == allowed


def test_reasons_name_the_version_and_the_direction() -> None:
    (reason,) = check(("AVRO", DROPS_A), EARLIER, "FORWARD").reasons
    assert reason.endswith("(its data cannot be read with version 2)")
    (reason,) = check(("AVRO", NEEDS_B), EARLIER, "BACKWARD_TRANSITIVE").reasons
    assert reason.endswith("(it cannot read data of version 1)")


def test_another_format_is_never_compatible_and_nothing_before_is_always() -> None:
    assert check(("JSON", Document("{}")), EARLIER, "FULL").reasons == ["version 2 is AVRO, this is JSON"]
    assert check(("AVRO", FIRST), [], "FULL_TRANSITIVE").reasons == []


def test_what_was_not_looked_at_is_said() -> None:
    found = check(("JSON", Document('{"not": {}}')), [(1, "JSON", Document("{}"))], "BACKWARD")
    assert found.unchecked == ["not checked: #/not (version 1)"]
