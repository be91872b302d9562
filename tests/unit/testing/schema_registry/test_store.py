"""Subjects, versions and ids, as Confluent's registry counts them."""

from __future__ import annotations

import json

import pytest

from tidelog.testing.schema_registry.errors import RegistryError
from tidelog.testing.schema_registry.settings import GLOBAL
from tidelog.testing.schema_registry.store import Reference, Schema, Store


def avro(*names: str, references: tuple[Reference, ...] = ()) -> Schema:
    fields = [{"name": name, "type": "int", "default": 0} for name in names]
    return Schema("AVRO", json.dumps({"type": "record", "name": "R", "fields": fields}), references)


A, AB, ABC = avro("a"), avro("a", "b"), avro("a", "b", "c")


@pytest.fixture
def store() -> Store:
    return Store()


def refused(code: int) -> pytest.RaisesExc[RegistryError]:
    return pytest.RaisesExc(RegistryError, check=lambda error: error.code == code)


def numbers(store: Store, subject: str, *, deleted: bool = False) -> list[tuple[int, int]]:
    return [(version.number, version.id) for version in store.versions(subject, deleted=deleted)]


def test_one_schema_has_one_id_and_a_version_in_each_subject(store: Store) -> None:
    for subject, schema in (("s", A), ("s", AB), ("t", AB), ("s", A), ("t", ABC)):
        store.register(subject, schema)
    assert numbers(store, "s") == [(1, 1), (2, 2)]
    assert numbers(store, "t") == [(1, 2), (2, 3)]
    assert [each.subject for each in store.uses_of_id(2, ".")] == ["s", "t"]
    assert store.lookup("t", AB).number == 1
    assert store.by_guid(store.by_id(1).guid) == store.by_id(1)
    assert store.highest_id() == 3


def test_what_is_not_there_has_its_code(store: Store) -> None:
    store.register("s", A)
    for code, call in (
        (40401, lambda: store.versions("t")),
        (40401, lambda: store.lookup("t", A)),
        (40402, lambda: store.version("s", 2)),
        (40403, lambda: store.by_id(2)),
        (40403, lambda: store.by_guid("none")),
        (40403, lambda: store.lookup("s", AB)),
        (42201, lambda: store.register("s", Schema("AVRO", "{"))),
        (42201, lambda: store.register("s", Schema("THRIFT", "{}"))),
        (409, lambda: store.register("s", Schema("AVRO", '"int"'))),
    ):
        with refused(code):
            call()


def test_a_version_goes_softly_then_for_good_and_its_number_never_comes_back(store: Store) -> None:
    for schema in (A, AB):
        store.register("s", schema)
    with refused(40407):
        store.delete_version("s", 1, permanent=True)
    assert store.delete_version("s", 2) == 2
    with refused(40406):
        store.delete_version("s", 2)
    assert numbers(store, "s") == [(1, 1)]
    assert numbers(store, "s", deleted=True) == [(1, 1), (2, 2)]
    assert store.by_id(2) == store.canonical(AB, False)
    assert store.delete_version("s", 2, permanent=True) == 2
    with refused(40402):
        store.delete_version("s", 2, permanent=True)
    version = store.register("s", AB)
    assert (version.number, version.id) == (3, 2)


def test_a_subject_goes_softly_then_for_good(store: Store) -> None:
    for schema in (A, AB):
        store.register("s", schema)
    store.settings.set_level("s", "NONE")
    with refused(40405):
        store.delete_subject("s", permanent=True)
    assert store.delete_subject("s") == [1, 2]
    assert (store.subjects(), store.subjects(deleted=True), store.settings.level("s")) == ([], ["s"], "BACKWARD")
    with refused(40404):
        store.delete_subject("s")
    with refused(40401):
        store.delete_subject("t")
    assert store.delete_subject("s", permanent=True) == [1, 2]
    assert store.subjects(deleted=True) == []
    assert store.register("s", A).number == 1


def test_a_deleted_version_can_be_registered_again_under_a_new_number(store: Store) -> None:
    store.register("s", A)
    store.delete_subject("s")
    again = store.register("s", A)
    assert (again.number, again.id) == (2, 1)


def test_who_is_referred_to_stays(store: Store) -> None:
    store.register("inner", A)
    text = json.dumps({"type": "record", "name": "O", "fields": [{"name": "r", "type": "R"}]})
    outer = store.register("outer", Schema("AVRO", text, (Reference("R", "inner", 1),)))
    assert store.referenced_by(store.version("inner", 1)) == [outer.id]
    for call in (lambda: store.delete_version("inner", 1), lambda: store.delete_subject("inner")):
        with refused(42206):
            call()
    with refused(42201):
        store.register("outer", Schema("AVRO", text, (Reference("R", "inner", 2),)))
    store.delete_subject("outer")
    assert store.delete_subject("inner") == [1]


def test_levels_hold_for_the_subject_its_context_or_all(store: Store) -> None:
    store.settings.set_level(GLOBAL, "FULL")
    store.settings.set_level(":.c:", "none")
    store.settings.set_level("s", "FORWARD")
    assert [store.settings.level(each) for each in ("s", "t", ":.c:s")] == ["FORWARD", "FULL", "NONE"]
    store.register(":.c:s", Schema("AVRO", '"int"'))
    assert store.register(":.c:s", Schema("AVRO", '"string"')).number == 2


def test_contexts_count_their_ids_for_themselves(store: Store) -> None:
    store.register("s", A)
    assert store.register(":.c:s", AB).id == 1
    assert store.by_id(1) != store.by_id(1, ".c")
    assert store.contexts() == [".", ".c"]


def test_read_only_subjects_take_nothing_and_lose_nothing(store: Store) -> None:
    store.register("s", A)
    store.settings.set_mode("s", "READONLY", may_import=False)
    for call in (lambda: store.register("s", AB), lambda: store.delete_version("s", 1), lambda: store.delete_subject("s")):
        with refused(42205):
            call()
    store.register("t", A)


def test_ids_are_given_from_outside_only_in_mode_import(store: Store) -> None:
    with refused(42205):
        store.register("s", A, schema_id=7)
    store.register("t", A)
    assert [store.holds(each) for each in (GLOBAL, "t", "s")] == [True, True, False]
    store.settings.set_mode("s", "IMPORT", may_import=True)
    version = store.register("s", AB, schema_id=70, number=5)
    assert (version.id, version.number) == (70, 5)
    with refused(42205):
        store.register("s", ABC, schema_id=70)
    store.settings.set_mode(GLOBAL, "IMPORT", may_import=True)
    store.settings.modes.clear()
    assert store.register("u", ABC).id == 71


def test_normalizing_by_request_or_by_setting(store: Store) -> None:
    one, other = Schema("JSON", '{"type":"string","title":"t"}'), Schema("JSON", '{"title":"t","type":"string"}')
    store.register("s", one)
    assert store.register("s", other).number == 2
    store.register("t", one, normalize=True)
    assert store.register("t", other, normalize=True).number == 1
    store.settings.normalizing[GLOBAL] = True
    store.register("u", one)
    assert store.register("u", other).number == 1
