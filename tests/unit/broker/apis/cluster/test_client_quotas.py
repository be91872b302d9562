from __future__ import annotations

import pytest

from tests.unit.broker.node_world import NodeWorld, refused, run
from tidelog.broker.apis.cluster.client_quotas import alter_client_quotas, describe_client_quotas
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    OpData,
    RequestEntityData,
    RequestEntryData,
)
from tidelog.protocol.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest

EXACT, DEFAULT, ANY = range(3)
Component = tuple[str, int, str | None]
QUOTAS: list[tuple[str | None, ...]] = [
    ("user", None), ("user", "alice"), ("user", "bob"), ("client-id", None), ("client-id", "c"), ("ip", None), ("ip", "10.1.2.3"),
    ("client-id", None, "user", "alice"), ("client-id", "c", "user", "alice"), ("client-id", "c", "user", None),
]  # fmt: skip
"""Types and names, one after another."""


def entity(*names: str | None) -> list[RequestEntityData]:
    pairs = zip(names[::2], names[1::2], strict=True)
    return [RequestEntityData(entity_type=kind or "", entity_name=name) for kind, name in pairs]


def altering(*entities: tuple[str | None, ...]) -> AlterClientQuotasRequest:
    entries = []
    for number, names in enumerate(entities, 1):
        key = "connection_creation_rate" if names[0] == "ip" else "request_percentage"
        entries.append(RequestEntryData(entity=entity(*names), ops=[OpData(key=key, value=float(number))]))
    return AlterClientQuotasRequest(entries=entries)


@pytest.fixture
def world() -> NodeWorld:
    world = NodeWorld()
    response = run(alter_client_quotas(world.context(1), altering(*QUOTAS)))
    assert {each.error_code for each in response.entries} == {0}
    return world


def described(world: NodeWorld, *components: Component, strict: bool = False) -> list[tuple[str | None, ...]]:
    parts = [ComponentData(entity_type=kind, match_type=how, match=name) for kind, how, name in components]
    response = describe_client_quotas(world.context(1), DescribeClientQuotasRequest(components=parts, strict=strict))
    for version in (0, 1):
        response.encode(version)
    assert response.entries is not None
    found: list[tuple[str | None, ...]] = [
        tuple(name for each in entry.entity for name in (each.entity_type, each.entity_name)) for entry in response.entries
    ]
    assert [entry.values[0].value for entry in response.entries] == [QUOTAS.index(names) + 1 for names in found]
    return found


@pytest.mark.parametrize(
    ("components", "loose", "strict"),
    [
        ([], set(QUOTAS), set()),
        ([("user", ANY, None)], {each for each in QUOTAS if "user" in each}, set(QUOTAS[:3])),
        ([("user", EXACT, "alice")], {each for each in QUOTAS if "alice" in each}, {("user", "alice")}),
        ([("user", DEFAULT, None)], {QUOTAS[0], QUOTAS[9]}, {QUOTAS[0]}),
        ([("user", EXACT, "nobody")], set(), set()),
        ([("client-id", EXACT, "c")], {QUOTAS[4], QUOTAS[8], QUOTAS[9]}, {QUOTAS[4]}),
        ([("client-id", EXACT, "c"), ("user", ANY, None)], {QUOTAS[8], QUOTAS[9]}, {QUOTAS[8], QUOTAS[9]}),
        ([("user", EXACT, "alice"), ("client-id", DEFAULT, None)], {QUOTAS[7]}, {QUOTAS[7]}),
        ([("ip", ANY, None)], {QUOTAS[5], QUOTAS[6]}, {QUOTAS[5], QUOTAS[6]}),
        ([("ip", DEFAULT, None)], {QUOTAS[5]}, {QUOTAS[5]}),
    ],
)
def test_a_filter_takes_what_has_all_its_types_and_a_strict_one_nothing_more(
    world: NodeWorld, components: list[Component], loose: set[object], strict: set[object]
) -> None:
    assert set(described(world, *components)) == loose
    assert set(described(world, *components, strict=True)) == strict


def test_answers_come_in_an_order_that_does_not_depend_on_when_quotas_were_set(world: NodeWorld) -> None:
    found = described(world)
    other = NodeWorld()
    run(alter_client_quotas(other.context(1), AlterClientQuotasRequest(entries=altering(*QUOTAS).entries[::-1])))
    assert described(other) == found


def test_the_wider_entity_comes_first_and_limits_in_apache_kafkas_order() -> None:
    world = NodeWorld()
    limits = [OpData(key=key, value=1.0) for key in ("producer_byte_rate", "consumer_byte_rate", "request_percentage")]
    entities = [entity("user", "alice", "client-id", "c"), entity("user", "alice")]
    request = AlterClientQuotasRequest(entries=[RequestEntryData(entity=each, ops=limits) for each in entities])
    run(alter_client_quotas(world.context(1), request))
    entries = describe_client_quotas(world.context(1), DescribeClientQuotasRequest(components=[])).entries
    assert entries is not None
    assert [[each.entity_type for each in entry.entity] for entry in entries] == [["user"], ["client-id", "user"]]
    for entry in entries:
        assert [each.key for each in entry.values] == ["consumer_byte_rate", "request_percentage", "producer_byte_rate"]


@pytest.mark.parametrize(
    ("components", "code", "says"),
    [
        ([("", ANY, None)], ErrorCode.INVALID_REQUEST, "names no entity type"),
        ([("user", ANY, None), ("user", EXACT, "a")], ErrorCode.INVALID_REQUEST, "user more than once"),
        ([("zone", 9, None)], ErrorCode.UNSUPPORTED_VERSION, "'zone'"),
        ([("user", 3, None)], ErrorCode.INVALID_REQUEST, "no match type 3"),
        ([("user", -1, None)], ErrorCode.INVALID_REQUEST, "no match type -1"),
        ([("user", EXACT, None)], ErrorCode.INVALID_REQUEST, "(EXACT) of the entity type user goes with a name"),
        ([("user", DEFAULT, "x")], ErrorCode.INVALID_REQUEST, "(DEFAULT) of the entity type user goes with no name"),
        ([("user", ANY, "x")], ErrorCode.INVALID_REQUEST, "(ANY) of the entity type user goes with no name"),
        ([("ip", ANY, None), ("user", ANY, None)], ErrorCode.INVALID_REQUEST, "Invalid entity filter component combination"),
        ([("client-id", ANY, None), ("ip", ANY, None)], ErrorCode.INVALID_REQUEST, "Invalid entity filter component combination"),
    ],
)
def test_a_filter_that_cannot_be_is_refused_with_no_list_at_all(
    world: NodeWorld, components: list[Component], code: ErrorCode, says: str
) -> None:
    with pytest.raises(KafkaError) as error:
        described(world, *components)
    for version in (0, 1):
        response = refused(world.context(version), ApiKey.DESCRIBE_CLIENT_QUOTAS, DescribeClientQuotasRequest(), error.value)
        response.encode(version)
        assert (response.error_code, response.entries) == (code, None)
        assert says in response.error_message


def test_a_request_that_fails_as_a_whole_says_so_for_every_entity() -> None:
    request = altering(("user", "alice"), ("client-id", None))
    error = KafkaError(ErrorCode.REQUEST_TIMED_OUT, "too slow")
    response = refused(NodeWorld().context(1), ApiKey.ALTER_CLIENT_QUOTAS, request, error)
    for version in (0, 1):
        response.encode(version)
    assert [(each.error_code, each.error_message) for each in response.entries] == [(7, "too slow")] * 2
    assert [(each.entity[0].entity_type, each.entity[0].entity_name) for each in response.entries] == [
        ("user", "alice"),
        ("client-id", None),
    ]
