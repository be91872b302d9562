from __future__ import annotations

from typing import Any

import pytest

from tidelog.controller.quorum_controller import QuorumController
from tidelog.controller.result import MAX_RECORDS_PER_REQUEST
from tidelog.metadata.delta import ClusterDelta
from tidelog.metadata.image import EMPTY_IMAGE
from tidelog.metadata.snapshot import snapshot_records
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    OpData,
    RequestEntityData,
    RequestEntryData,
)

Parts = list[tuple[str, str | None]]
ALICE: Parts = [("user", "alice")]


def entry(parts: Parts, **limits: float | None) -> RequestEntryData:
    return RequestEntryData(
        entity=[RequestEntityData(entity_type=kind, entity_name=name) for kind, name in parts],
        ops=[OpData(key=key, value=limit or 0.0, remove=limit is None) for key, limit in limits.items()],
    )


def ask(cluster: Any, *entries: RequestEntryData, validate_only: bool = False) -> AlterClientQuotasResponse:
    request = AlterClientQuotasRequest(entries=list(entries), validate_only=validate_only)
    response: AlterClientQuotasResponse = cluster.ask(QuorumController.alter_client_quotas, request)
    for version in (0, 1):
        response.encode(version)
    assert [[(each.entity_type, each.entity_name) for each in answer.entity] for answer in response.entries] == [
        sorted(((each.entity_type, each.entity_name) for each in asked.entity), key=lambda pair: pair[0]) for asked in entries
    ]
    return response


def alter(cluster: Any, parts: Parts, **limits: float | None) -> tuple[int, str | None]:
    (answer,) = ask(cluster, entry(parts, **limits)).entries
    return answer.error_code, answer.error_message


def written(cluster: Any) -> list[tuple[Parts, str, float, bool]]:
    return [
        ([(each.entity_type, each.entity_name) for each in record.entity], record.key, record.value, record.remove)
        for record in cluster.records
    ]


def test_limits_are_set_changed_and_removed_and_the_others_stay(cluster: Any) -> None:
    assert alter(cluster, ALICE, producer_byte_rate=1000.0, request_percentage=12.5) == (0, None)
    assert written(cluster) == [(ALICE, "producer_byte_rate", 1000.0, False), (ALICE, "request_percentage", 12.5, False)]
    assert alter(cluster, ALICE, producer_byte_rate=None, request_percentage=20.0) == (0, None)
    assert written(cluster) == [(ALICE, "producer_byte_rate", 0.0, True), (ALICE, "request_percentage", 20.0, False)]
    assert cluster.image.quotas == {(("user", "alice"),): {"request_percentage": 20.0}}
    alter(cluster, ALICE, request_percentage=None)
    assert cluster.image.quotas == {}


def test_what_is_already_so_is_not_written(cluster: Any) -> None:
    alter(cluster, ALICE, producer_byte_rate=1000.0)
    for limits in ({"producer_byte_rate": 1000.0}, {"consumer_byte_rate": None}, {"no_such_key": None}, {}):
        assert alter(cluster, ALICE, **limits) == (0, None)
        assert written(cluster) == []


@pytest.mark.parametrize(
    ("parts", "limits"),
    [
        ([("user", None)], {"consumer_byte_rate": 5.0}),
        ([("client-id", "c")], {"controller_mutation_rate": 0.5}),
        ([("client-id", None)], {"producer_byte_rate": 5.0}),
        ([("client-id", "c"), ("user", "alice")], {"producer_byte_rate": 5.0}),
        ([("client-id", None), ("user", None)], {"request_percentage": 5.0}),
        ([("ip", "10.1.2.3")], {"connection_creation_rate": 5.0}),
        ([("ip", "2001:db8::1")], {"connection_creation_rate": 5.0}),
        ([("ip", None)], {"connection_creation_rate": 5.0}),
    ],
)
def test_each_kind_of_entity_has_quotas_of_its_own_that_a_snapshot_keeps(
    cluster: Any, parts: Parts, limits: dict[str, float]
) -> None:
    assert alter(cluster, parts, **limits) == (0, None)
    assert cluster.image.quotas == {tuple(parts): limits}
    again = ClusterDelta(EMPTY_IMAGE)
    for record in snapshot_records(cluster.image):
        again.replay(record)
    assert again.apply(0, 0, 0).quotas == cluster.image.quotas


def test_the_parts_of_an_entity_are_answered_in_one_order(cluster: Any) -> None:
    (answer,) = ask(cluster, entry([("user", None), ("client-id", None)], producer_byte_rate=5.0)).entries
    assert [each.entity_type for each in answer.entity] == ["client-id", "user"]


def test_user_and_client_id_are_one_entity_in_either_order(cluster: Any) -> None:
    alter(cluster, [("user", "alice"), ("client-id", "c")], producer_byte_rate=5.0)
    alter(cluster, [("client-id", "c"), ("user", "alice")], producer_byte_rate=5.0)
    assert written(cluster) == []


@pytest.mark.parametrize(
    ("parts", "limits", "says"),
    [
        ([], {"producer_byte_rate": 5.0}, "none is named"),
        ([("zone", "x")], {"producer_byte_rate": 5.0}, "the entity type 'zone'"),
        ([("user", "")], {"producer_byte_rate": 5.0}, "The entity type user has an empty name"),
        ([("user", "a"), ("user", "b")], {"producer_byte_rate": 5.0}, "The entity type user is named more than once"),
        ([("ip", "10.1.2.3"), ("user", "a")], {"connection_creation_rate": 5.0}, "Invalid quota entity combination"),
        ([("client-id", None), ("ip", None)], {"producer_byte_rate": 5.0}, "Invalid quota entity combination"),
        ([("ip", "not an ip")], {"connection_creation_rate": 5.0}, "'not an ip' is not a valid IP address"),
        ([("ip", "10.1.2.3")], {"producer_byte_rate": 5.0}, "which are connection_creation_rate"),
        (ALICE, {"connection_creation_rate": 5.0}, "The key connection_creation_rate is none of this entity's"),
        (ALICE, {"consumer_byte_rate": 7.0, "producer_byte_rate": 0.0}, "producer_byte_rate must be more than 0"),
        (ALICE, {"consumer_byte_rate": 7.0, "producer_byte_rate": 1.5}, "must be a whole number"),
    ],
)
def test_what_cannot_be_is_refused_as_a_whole_and_says_why(
    cluster: Any, parts: Parts, limits: dict[str, float], says: str
) -> None:
    code, message = alter(cluster, parts, **limits)
    assert code == ErrorCode.INVALID_REQUEST
    assert message is not None and says in message
    assert cluster.image.quotas == {}


def test_one_entity_is_refused_and_the_others_get_theirs(cluster: Any) -> None:
    answers = ask(
        cluster,
        entry(ALICE, producer_byte_rate=1.5),
        entry([("user", "bob")], producer_byte_rate=7.0),
        entry([("client-id", "c"), ("user", "carol")], request_percentage=7.0),
        entry([("user", "carol"), ("client-id", "c")], request_percentage=8.0),
    ).entries
    assert [each.error_code for each in answers] == [42, 0, 42, 42]
    assert "more than once" in (answers[2].error_message or "")
    assert cluster.image.quotas == {(("user", "bob"),): {"producer_byte_rate": 7.0}}


def test_a_key_that_is_named_twice_is_refused(cluster: Any) -> None:
    twice = entry(ALICE, producer_byte_rate=1.0)
    twice.ops.append(OpData(key="producer_byte_rate", remove=True))
    (answer,) = ask(cluster, twice).entries
    assert (answer.error_code, answer.error_message) == (42, "The key producer_byte_rate is named more than once.")
    assert cluster.image.quotas == {}


def test_a_dry_run_judges_and_writes_nothing(cluster: Any) -> None:
    good, bad = entry(ALICE, producer_byte_rate=5.0), entry([("user", "bob")], producer_byte_rate=-5.0)
    assert [each.error_code for each in ask(cluster, good, bad, validate_only=True).entries] == [0, 42]
    assert (cluster.records, cluster.image.quotas) == ([], {})


def test_no_request_writes_more_than_the_most_records(cluster: Any) -> None:
    many = [entry([("user", str(number))], producer_byte_rate=5.0) for number in range(MAX_RECORDS_PER_REQUEST + 1)]
    with pytest.raises(KafkaError) as refused:
        ask(cluster, *many)
    assert refused.value.code is ErrorCode.POLICY_VIOLATION
    ask(cluster, *many[1:])
    assert len(cluster.image.quotas) == MAX_RECORDS_PER_REQUEST
