"""Levels over versions, and the messages of an incompatible schema."""

from __future__ import annotations

from tidelog.registry.compatibility import Candidate, check
from tidelog.registry.formats import Document

INT, LONG, TEXT = Document('"int"'), Document('"long"'), Document('"string"')


def test_messages_name_the_difference_the_version_its_text_and_the_level() -> None:
    found = check(Candidate("AVRO", INT), [Candidate("AVRO", LONG, 4)], "BACKWARD")
    assert found == [
        "{errorType:'TYPE_MISMATCH', description:'int cannot read long (at /)', "
        "additionalInfo:'reader type: INT not compatible with writer type: LONG'}",
        "{oldSchemaVersion: 4}",
        "{oldSchema: '\"long\"'}",
        "{compatibility: 'BACKWARD'}",
    ]


def test_the_newest_incompatible_version_is_named() -> None:
    earlier = [Candidate("AVRO", TEXT, 1), Candidate("AVRO", LONG, 2), Candidate("AVRO", INT, 3)]
    assert check(Candidate("AVRO", LONG), earlier, "BACKWARD") == []
    assert "{oldSchemaVersion: 1}" in check(Candidate("AVRO", LONG), earlier, "BACKWARD_TRANSITIVE")
    assert "{oldSchemaVersion: 3}" in check(Candidate("AVRO", LONG), earlier, "FORWARD_TRANSITIVE")
    assert check(Candidate("AVRO", LONG), earlier, "NONE") == []
    assert check(Candidate("AVRO", LONG), [], "FULL_TRANSITIVE") == []
