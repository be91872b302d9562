"""Filters of DescribeAcls and DeleteAcls, and the ACLs that CreateAcls refuses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tidelog.model.acl import AccessControlEntry, PatternType, PermissionType, ResourceType
from tidelog.model.acl_filter import AclFilter, check_creation
from tidelog.model.errors import ErrorCode, KafkaError

LITERAL = AccessControlEntry(2, "orders", 3, "User:alice", "*", 3, 3)
PREFIXED = replace(LITERAL, resource_name="ord", pattern_type=4)
WILDCARD = replace(LITERAL, resource_name="*")


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        (PatternType.LITERAL, [LITERAL]),
        (PatternType.PREFIXED, []),
        (PatternType.ANY, [LITERAL]),
        (PatternType.MATCH, [LITERAL, PREFIXED, WILDCARD]),
    ],
)
def test_a_name_by_pattern_type(pattern: PatternType, found: list[AccessControlEntry]) -> None:
    wanted = AclFilter(ResourceType.TOPIC, "orders", pattern)
    assert [each for each in (LITERAL, PREFIXED, WILDCARD) if wanted.matches(each)] == found


def test_every_other_field_is_exact_or_open() -> None:
    assert AclFilter().matches(LITERAL)
    assert AclFilter(principal="User:alice", host="*", operation=3, permission_type=3).matches(LITERAL)
    assert not AclFilter(principal="User:*").matches(LITERAL)
    assert not AclFilter(host="10.0.0.1").matches(LITERAL)
    assert not AclFilter(operation=4).matches(LITERAL)
    assert not AclFilter(permission_type=PermissionType.DENY).matches(LITERAL)
    assert not AclFilter(resource_type=3).matches(LITERAL)


@pytest.mark.parametrize("field", ["resource_type", "pattern_type", "operation", "permission_type"])
@pytest.mark.parametrize("number", [0, 99, -1])
def test_unknown_numbers_are_refused(field: str, number: int) -> None:
    for check in (AclFilter(**{field: number}).check, lambda: check_creation(replace(LITERAL, **{field: number}))):  # type: ignore[arg-type]
        with pytest.raises(KafkaError, match="is not the number of") as refused:
            check()
        assert refused.value.code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"resource_type": 1}, "ANY is for filters"),
        ({"operation": 1}, "ANY is for filters"),
        ({"permission_type": 1}, "ANY is for filters"),
        ({"pattern_type": 1}, "ANY is for filters"),
        ({"pattern_type": 2}, "MATCH is for filters"),
        ({"resource_name": ""}, "names a resource"),
        ({"resource_type": 4}, "kafka-cluster"),
        ({"principal": "alice"}, "write User:alice"),
    ],
)
def test_what_must_not_be_stored(change: dict[str, object], text: str) -> None:
    with pytest.raises(KafkaError, match=text):
        check_creation(replace(LITERAL, **change))  # type: ignore[arg-type]


def test_what_may_be_stored() -> None:
    for entry in (LITERAL, PREFIXED, WILDCARD, AccessControlEntry(4, "kafka-cluster", 3, "User:*", "*", 2, 2)):
        check_creation(entry)
