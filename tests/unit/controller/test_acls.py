from __future__ import annotations

from typing import Any

import pytest

from tidelog.controller import acls as module
from tidelog.controller.quorum_controller import QuorumController
from tidelog.metadata.delta import ClusterDelta
from tidelog.metadata.image import ClusterImage
from tidelog.metadata.snapshot import snapshot_records
from tidelog.model.acl import AclOperation as Op
from tidelog.model.acl import PatternType, PermissionType, ResourceType
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from tidelog.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest, DeleteAclsResponse

BAD = ErrorCode.INVALID_REQUEST


def acl(name: str = "t", **other: Any) -> AclCreation:
    fields = {
        "resource_type": ResourceType.TOPIC,
        "resource_name": name,
        "resource_pattern_type": PatternType.LITERAL,
        "principal": "User:alice",
        "host": "*",
        "operation": Op.READ,
        "permission_type": PermissionType.ALLOW,
    }
    return AclCreation(**(fields | other))


def wanted(name: str | None = None, **other: Any) -> DeleteAclsFilter:
    fields = {
        "resource_type_filter": ResourceType.ANY,
        "resource_name_filter": name,
        "pattern_type_filter": PatternType.ANY,
        "principal_filter": None,
        "host_filter": None,
        "operation": Op.ANY,
        "permission_type": PermissionType.ANY,
    }
    return DeleteAclsFilter(**(fields | other))


def create(cluster: Any, *creations: AclCreation) -> list[int]:
    response: CreateAclsResponse = cluster.ask(QuorumController.create_acls, CreateAclsRequest(creations=list(creations)))
    response.encode(3)
    return [each.error_code for each in response.results]


def delete(cluster: Any, *filters: DeleteAclsFilter) -> list[tuple[int, list[str]]]:
    response: DeleteAclsResponse = cluster.ask(QuorumController.delete_acls, DeleteAclsRequest(filters=list(filters)))
    response.encode(3)
    return [(each.error_code, sorted(found.resource_name for found in each.matching_acls)) for each in response.filter_results]


def names(cluster: Any) -> list[str]:
    return sorted(each.resource_name for each in cluster.image.acls.values())


def test_an_acl_is_stored_as_it_was_sent(cluster: Any) -> None:
    host = "0:0:0:0:0:0:0:1"
    assert create(cluster, acl("or", resource_pattern_type=PatternType.PREFIXED, host=host, operation=Op.CLUSTER_ACTION)) == [0]
    (entry,) = cluster.image.acls.values()
    assert (entry.resource_type, entry.resource_name, entry.pattern_type) == (ResourceType.TOPIC, "or", PatternType.PREFIXED)
    assert (entry.principal, entry.host, entry.operation) == ("User:alice", host, Op.CLUSTER_ACTION)
    assert entry.permission_type == PermissionType.ALLOW


def test_an_acl_that_exists_is_a_success_without_a_record(cluster: Any) -> None:
    assert create(cluster, acl(), acl(), acl("u")) == [0, 0, 0]
    assert len(cluster.records) == 2
    assert create(cluster, acl(), acl("v")) == [0, 0]
    assert [record.resource_name for record in cluster.records] == ["v"]
    assert len({record.id for record in cluster.records} | set(cluster.image.acls)) == 3


@pytest.mark.parametrize(
    "wrong",
    [
        {"resource_type": ResourceType.CLUSTER},
        {"resource_name": ""},
        {"resource_type": 0},
        {"resource_type": ResourceType.ANY},
        {"resource_type": 99},
        {"resource_pattern_type": 0},
        {"resource_pattern_type": PatternType.ANY},
        {"resource_pattern_type": PatternType.MATCH},
        {"operation": 0},
        {"operation": Op.ANY},
        {"permission_type": 0},
        {"permission_type": PermissionType.ANY},
        {"principal": "alice"},
    ],
)
def test_a_creation_that_is_refused_does_not_stop_the_others(cluster: Any, wrong: dict[str, Any]) -> None:
    assert create(cluster, acl("a"), acl(**wrong), acl("b")) == [0, BAD, 0]
    assert names(cluster) == ["a", "b"]


def test_the_cluster_has_its_name(cluster: Any) -> None:
    assert create(cluster, acl("kafka-cluster", resource_type=ResourceType.CLUSTER)) == [0]


def test_too_many_new_acls_are_refused_as_a_whole(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_RECORDS_PER_REQUEST", 3)
    assert create(cluster, acl("a"), acl("b"), acl("a"), acl("")) == [0, 0, 0, BAD]
    with pytest.raises(KafkaError) as refused:
        create(cluster, *(acl(str(number)) for number in range(4)))
    assert refused.value.code is ErrorCode.POLICY_VIOLATION
    assert names(cluster) == ["a", "b"]


def test_each_filter_has_its_matches_and_an_acl_that_two_find_is_in_both(cluster: Any) -> None:
    create(cluster, acl("a"), acl("b"), acl("c", principal="User:bob"), acl("kafka-cluster", resource_type=ResourceType.CLUSTER))
    found = delete(cluster, wanted("a"), wanted(principal_filter="User:alice", resource_type_filter=ResourceType.TOPIC))
    assert found == [(0, ["a"]), (0, ["a", "b"])]
    assert len(cluster.records) == 2
    assert names(cluster) == ["c", "kafka-cluster"]
    assert delete(cluster, wanted("a")) == [(0, [])]
    assert cluster.records == []


def test_an_exact_filter_finds_its_pattern_only_and_match_finds_what_applies_to_the_name(cluster: Any) -> None:
    prefixed = {"resource_pattern_type": PatternType.PREFIXED}
    create(cluster, acl("orders"), acl("or", **prefixed), acl("*"), acl("other"))
    topic = {"resource_type_filter": ResourceType.TOPIC}
    assert delete(cluster, wanted("orders", pattern_type_filter=PatternType.PREFIXED, **topic)) == [(0, [])]
    assert delete(cluster, wanted("or", pattern_type_filter=PatternType.PREFIXED, **topic)) == [(0, ["or"])]
    create(cluster, acl("or", **prefixed))
    assert delete(cluster, wanted("orders", pattern_type_filter=PatternType.MATCH, **topic)) == [(0, ["*", "or", "orders"])]
    assert names(cluster) == ["other"]


@pytest.mark.parametrize(
    "wrong", [{"resource_type_filter": 0}, {"pattern_type_filter": 0}, {"operation": 99}, {"permission_type": 0}]
)
def test_a_filter_with_an_unknown_number_is_refused_for_itself(cluster: Any, wrong: dict[str, Any]) -> None:
    create(cluster, acl("a"), acl("b"))
    assert delete(cluster, wanted(**wrong), wanted("a")) == [(BAD, []), (0, ["a"])]
    assert names(cluster) == ["b"]


def test_filters_that_find_too_much_delete_nothing(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    create(cluster, *(acl(str(number)) for number in range(4)))
    monkeypatch.setattr(module, "MAX_CHANGES", 3)
    with pytest.raises(KafkaError) as refused:
        delete(cluster, wanted("0"), wanted())
    assert refused.value.code is BAD
    assert len(cluster.image.acls) == 4
    monkeypatch.setattr(module, "MAX_CHANGES", 4)
    delete(cluster, wanted())
    assert cluster.image.acls == {}


def test_what_is_written_can_be_replayed_by_a_node_that_takes_nothing_twice(cluster: Any) -> None:
    """Apache Kafka's nodes stop at a known id, at equal content under a new id, and at the removal of an unknown id."""
    known: dict[bytes, Any] = {}
    for step in range(30):
        if step % 3:
            create(cluster, acl(str(step % 7)), acl(str(step % 5)), acl(str(step % 5)))
        else:
            delete(cluster, wanted(str(step % 7)), wanted(str(step % 7)))
        for record in cluster.records:
            if record.NAME == "AccessControlEntryRecord":
                content = (record.resource_name, record.principal, record.operation)
                assert record.id not in known and content not in known.values()
                known[record.id] = content
            else:
                del known[record.id]
    delta = ClusterDelta(ClusterImage(cluster_id=cluster.image.cluster_id))
    for record in snapshot_records(cluster.image):
        delta.replay(record)
    assert delta.security.acls.now == cluster.image.acls
