"""The records of ``_schemas``, byte for byte: compaction compares keys."""

from __future__ import annotations

import pytest

from tidelog.registry.model import GLOBAL, Reference, Schema, Version
from tidelog.registry.records import (
    ConfigEntry,
    ContextEntry,
    Entry,
    ModeEntry,
    NoopEntry,
    SchemaEntry,
    SubjectCleared,
    SubjectDeleted,
    Unreadable,
    read,
    write,
)

INT = Version("s", 1, 7, Schema("AVRO", '"int"'))
CASES: list[tuple[Entry, str, str | None]] = [
    (
        SchemaEntry(INT),
        '{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}',
        '{"subject":"s","version":1,"id":7,"schema":"\\"int\\"","deleted":false}',
    ),
    (
        SchemaEntry(
            Version(
                ":.c:s",
                2,
                8,
                Schema("JSON", "{}", (Reference("n", "t", 3),), '{"properties":{"a":"ä"}}', '{"enableAt":"ALL"}'),
                True,
            )
        ),
        '{"keytype":"SCHEMA","subject":":.c:s","version":2,"magic":1}',
        '{"subject":":.c:s","version":2,"id":8,"schemaType":"JSON","references":[{"name":"n","subject":"t","version":3}],'
        '"metadata":{"properties":{"a":"ä"}},"ruleSet":{"enableAt":"ALL"},"schema":"{}","deleted":true}',
    ),
    (SubjectDeleted("s", 2), '{"keytype":"DELETE_SUBJECT","subject":"s","magic":0}', '{"subject":"s","version":2}'),
    (SubjectCleared("s"), '{"keytype":"CLEAR_SUBJECT","subject":"s","magic":0}', '{"subject":"s"}'),
    (
        ConfigEntry("s", {"compatibilityLevel": "FULL"}),
        '{"keytype":"CONFIG","subject":"s","magic":0}',
        '{"subject":"s","compatibilityLevel":"FULL"}',
    ),
    (ConfigEntry(GLOBAL, {"compatibilityLevel": "NONE"}), '{"keytype":"CONFIG","magic":0}', '{"compatibilityLevel":"NONE"}'),
    (ConfigEntry("s", None), '{"keytype":"CONFIG","subject":"s","magic":0}', None),
    (ModeEntry("s", "IMPORT"), '{"keytype":"MODE","subject":"s","magic":0}', '{"subject":"s","mode":"IMPORT"}'),
    (ModeEntry(GLOBAL, None), '{"keytype":"MODE","magic":0}', None),
    (
        ContextEntry(".c"),
        '{"keytype":"CONTEXT","tenant":"default","context":".c","magic":0}',
        '{"tenant":"default","context":".c"}',
    ),
    (ContextEntry(".c", gone=True), '{"keytype":"CONTEXT","tenant":"default","context":".c","magic":0}', None),
    (NoopEntry(), '{"keytype":"NOOP","magic":0}', None),
]


@pytest.mark.parametrize(("entry", "key", "value"), CASES)
def test_an_entry_has_these_bytes_and_is_read_from_them(entry: Entry, key: str, value: str | None) -> None:
    made = write(entry)
    assert made == (key.encode(), None if value is None else value.encode())
    assert read(*made) == entry


def test_a_null_value_ends_a_version() -> None:
    key, value = write(SchemaEntry(INT, gone=True))
    assert (key, value) == (b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}', None)
    found = read(key, value)
    assert isinstance(found, SchemaEntry)
    assert found.gone
    assert (found.version.subject, found.version.number) == ("s", 1)


def test_the_order_of_properties_and_unknown_ones_do_not_matter_on_reading() -> None:
    key = b'{"magic":1,"version":1,"subject":"s","keytype":"SCHEMA"}'
    value = b'{"deleted":false,"schema":"\\"int\\"","id":7,"version":1,"subject":"s","md5":"eA==","later":{}}'
    assert read(key, value) == SchemaEntry(INT)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"{}"),
        (b"not json", None),
        (b'{"keytype":"OTHER","subject":"s"}', b"{}"),
        (b'{"keytype":"SCHEMA","subject":"s","version":1}', b'{"id":1}'),
        (b'{"keytype":"SCHEMA","subject":"s","version":1}', b"\xff"),
        (b'{"keytype":"SCHEMA","version":1}', b'{"id":1,"schema":"x"}'),
        (b'{"keytype":"MODE"}', b'{"mode":4}'),
        (b"[" * 100_000, None),
    ],
)
def test_what_cannot_be_read_says_why(key: bytes | None, value: bytes | None) -> None:
    found = read(key, value)
    assert isinstance(found, Unreadable)
    assert found.why
