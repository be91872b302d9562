"""Replaying: ids, contexts, deletions, records of others, and the same state after a restart and after compaction."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.registry.caller import INT, STRING, Caller, compacted, replayed
from tidelog.registry.errors import RegistryError
from tidelog.registry.model import Schema, Version
from tidelog.registry.records import SchemaEntry, write
from tidelog.registry.state import State

A, B = Schema("AVRO", '"int"'), Schema("AVRO", '"string"')


def _put(state: State, subject: str, number: int, schema_id: int, schema: Schema) -> str | None:
    return state.replay(*write(SchemaEntry(Version(subject, number, schema_id, schema))))


def test_a_second_schema_for_an_id_is_skipped_and_counted() -> None:
    state = State()
    assert _put(state, "s", 1, 1, A) is None
    why = _put(state, "t", 1, 1, B)
    assert why is not None
    assert "id 1 of t" in why
    assert state.skipped == 1
    assert state.by_id(".", 1) == A
    assert state.version("t", 1) is None


def test_ids_belong_to_contexts() -> None:
    state = State()
    assert _put(state, "s", 1, 1, A) is None
    assert _put(state, ":.c:s", 1, 1, B) is None
    assert (state.by_id(".", 1), state.by_id(".c", 1)) == (A, B)
    assert state.contexts() == [".", ".c"]


def test_ids_go_on_from_the_highest_that_any_record_named() -> None:
    state = State()
    _put(state, "s", 1, 41, A)
    state.replay(*write(SchemaEntry(Version("s", 1, -1, A), gone=True)))
    assert state.highest_id(".") == 41
    assert state.by_id(".", 41) is None


def test_a_record_that_cannot_be_read_is_counted() -> None:
    state = State()
    assert state.replay(b"?", b"?") is not None
    assert state.skipped == 1


POISON = [
    b'{"id":1e999,"schema":"x"}',
    b'{"id":1180591620717411303424,"schema":"x"}',
    b'{"id":-7,"schema":"x"}',
    b'{"id":1,"schema":"\\ud800"}',
    b'{"id":1,"schema":"x","references":[{"name":"a","subject":"b","version":1099511627776}]}',
    b'{"id":1,"schema":"x","ruleSet":{"domainRules":[{"name":5,"tags":5}]}}',
    b'{"id":1,"schema":"x","ruleSet":{"domainRules":[{"name":"a","params":[1]}]}}',
    b'{"id":1,"schema":"x","ruleSet":{"enableAt":5}}',
]


@pytest.mark.parametrize("value", POISON)
def test_a_record_with_values_that_cannot_be_is_skipped(value: bytes) -> None:
    state = State()
    assert state.replay(b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}', value) is not None
    assert state.subjects() == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b'{"keytype":"SCHEMA","subject":"s","version":1e999}', b'{"id":1,"schema":"x"}'),
        (b'{"keytype":"DELETE_SUBJECT","subject":"s"}', b'{"version":1e999}'),
        (b'{"keytype":"CONFIG","subject":"s"}', b'{"compatibilityGroup":["x"]}'),
        (b'{"keytype":"CONFIG","subject":"s"}', b'{"defaultMetadata":{"tags":5}}'),
        (b'{"keytype":"CONFIG","subject":"s"}', b'{"overrideRuleSet":{"domainRules":[{"name":["x"]}]}}'),
        (b'{"keytype":"MODE","subject":"\\udfff"}', b'{"mode":"IMPORT"}'),
    ],
)
def test_a_key_with_values_that_cannot_be_is_skipped(key: bytes, value: bytes) -> None:
    assert State().replay(key, value) is not None


def test_a_schema_that_refers_twice_to_one_version_can_be_deleted() -> None:
    call = Caller()
    call.register("a", {"schemaType": "JSON", "schema": "{}"})
    twice = [{"name": name, "subject": "a", "version": 1} for name in ("x", "y")]
    call.register("b", {"schemaType": "JSON", "schema": "{}", "references": twice})
    assert call("GET", "/subjects/a/versions/1/referencedby") == [2]
    assert call("DELETE", "/subjects/b/versions/1") == 1
    assert call("DELETE", "/subjects/b/versions/1", permanent="true") == 1
    assert call("GET", "/subjects/a/versions/1/referencedby", deleted="true") == []


def test_keys_in_another_order_are_remembered_until_they_are_deleted() -> None:
    state = State()
    theirs = b'{"subject":"s","version":1,"magic":1,"keytype":"SCHEMA"}'
    _, value = write(SchemaEntry(Version("s", 1, 1, A)))
    state.replay(theirs, value)
    assert state.foreign_keys("s", 1) == [theirs]
    state.replay(theirs, None)
    assert state.foreign_keys("s", 1) == []


def test_a_deletion_for_good_also_ends_keys_of_other_registries() -> None:
    call = Caller()
    theirs = b'{"subject":"s","version":1,"magic":1,"keytype":"SCHEMA"}'
    written = [(theirs, write(SchemaEntry(Version("s", 1, 1, A)))[1])]
    call.state.replay(*written[0])
    call("DELETE", "/subjects/s")
    call("DELETE", "/subjects/s", permanent="true")
    assert (theirs, None) in call.written
    assert replayed(compacted(written + call.written)).subjects() == []


REQUESTS = st.lists(
    st.tuples(
        st.sampled_from(["register", "delete", "forever", "version", "config", "mode"]),
        st.sampled_from(["s", "t", ":.c:s"]),
        st.integers(0, 3),
    ),
    max_size=25,
)


def _do(call: Caller, what: str, subject: str, number: int) -> Any:
    schemas = [INT, STRING, {"schema": '"long"'}, {"schema": '{"type":"fixed","name":"F","size":2}'}]
    with contextlib.suppress(RegistryError):
        match what:
            case "register":
                return call.register(subject, schemas[number])
            case "delete":
                return call("DELETE", f"/subjects/{subject}")
            case "forever":
                return call("DELETE", f"/subjects/{subject}", permanent="true")
            case "version":
                return call("DELETE", f"/subjects/{subject}/versions/{number or 'latest'}")
            case "config":
                return call("PUT", f"/config/{subject}", {"compatibility": ["NONE", "FULL"][number % 2]})
            case "mode":
                return call("PUT", f"/mode/{subject}", {"mode": ["READWRITE", "READONLY"][number % 2]})
    return None


def _seen(state: State) -> Any:
    """All that clients can see, but for the next id, of which compaction may take the memory."""
    versions = [(each.subject, each.number, each.id, each.schema.text, each.deleted) for each in state.all_versions()]
    ids = sorted((context, number) for _, number, *_ in versions for context in state.contexts() if state.by_id(context, number))
    return json.dumps([versions, state.contexts(), dict(state.configs), dict(state.modes), ids], sort_keys=True)


@settings(max_examples=150, deadline=None)
@given(REQUESTS)
def test_replaying_gives_the_same_state_also_after_compaction(requests: list[tuple[str, str, int]]) -> None:
    call = Caller()
    for each in requests:
        _do(call, *each)
    assert _seen(replayed(call.written)) == _seen(call.state)
    assert _seen(replayed(compacted(call.written))) == _seen(call.state)
    again = replayed(call.written)
    assert [again.highest_id(context) for context in again.contexts()] == [
        call.state.highest_id(context) for context in call.state.contexts()
    ]
