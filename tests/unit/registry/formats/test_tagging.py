"""Which entities of a schema have a wanted tag, and how much of them an answer holds."""

from __future__ import annotations

import pytest

from tidelog.registry.errors import InvalidSchema
from tidelog.registry.formats import tagging
from tidelog.registry.formats.tagging import Tagged, check_path, described, tags_in

FOUND = [Tagged("R", False, ("PII",)), Tagged("R.a", True, ("PII", "GDPR"))]


def test_entities_with_one_of_the_wanted_tags_keep_all_of_theirs() -> None:
    record = {"schemaEntity": {"entityPath": "R", "entityType": "sr_record"}, "tags": ["PII"]}
    field = {"schemaEntity": {"entityPath": "R.a", "entityType": "sr_field"}, "tags": ["PII", "GDPR"]}
    assert described(FOUND, {"GDPR", "other"}) == [field]
    assert described(FOUND, {"*"}) == [record, field]
    assert described(FOUND, {"other"}) == []


def test_tags_are_a_list_of_texts() -> None:
    assert tags_in(["a", "b", "a", 1]) == ("a", "b")
    assert tags_in("a") == tags_in({"a": 1}) == tags_in(None) == ()


def test_paths_are_bounded_each_and_together(monkeypatch: pytest.MonkeyPatch) -> None:
    check_path("x" * tagging.MAX_PATH)
    with pytest.raises(InvalidSchema):
        check_path("x" * (tagging.MAX_PATH + 1))
    monkeypatch.setattr(tagging, "MAX_PATHS", 3)
    with pytest.raises(InvalidSchema):
        described(FOUND, {"*"})
    assert len(described(FOUND, {"GDPR"})) == 1
