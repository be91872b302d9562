from __future__ import annotations

import shlex
from typing import Any

import pytest

from tests.unit.client.scripted import answered
from tests.unit.security.acl_entries import acl, member
from tidelog.cli.refusal import CommandFailed
from tidelog.cli.tools.acl_explanation import Knowledge, explained, knowledge, question_of
from tidelog.client.connection import UnsupportedByBroker
from tidelog.model.acl import AccessControlEntry, PatternType, PermissionType
from tidelog.model.acl import AclOperation as Op
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.describe_acls import DescribeAclsResponse
from tidelog.protocol.messages.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from tidelog.protocol.messages.metadata import MetadataResponse, MetadataResponseBroker


def told(
    *entries: AccessControlEntry, hidden: tuple[str, ...] = (), host: str | None = None, operation: str = "Read"
) -> list[str]:
    question = question_of("User:alice", operation, "topic:orders", host)
    return list(explained(Knowledge(entries, frozenset(hidden)), question, ["--bootstrap-server", "h:9092"]))


def test_an_allowed_operation_names_its_acl() -> None:
    first, second = told(acl("or", Op.ALL, pattern=PatternType.PREFIXED))
    assert first == "User:alice may Read topic orders. This ACL decides:"
    assert second.strip() == (
        "(principal=User:alice, host=*, operation=ALL, permissionType=ALLOW) on "
        "ResourcePattern(resourceType=TOPIC, name=or, patternType=PREFIXED)"
    )


def test_an_implied_operation_is_allowed_by_the_acl_that_implies_it() -> None:
    assert "operation=READ" in told(acl(), operation="Describe")[1]


def test_the_principal_by_which_an_acl_counts_is_named() -> None:
    def said(*entries: AccessControlEntry, groups: tuple[str, ...] = (), who: str = "User:alice") -> list[str]:
        question = question_of(who, "Read", "topic:orders", None, groups)
        return list(explained(Knowledge(entries, frozenset()), question, ["--bootstrap-server", "h:9092"]))

    by_role = said(acl(principal="Role:readers"), member("User:alice"))
    assert by_role[0] == "User:alice may Read topic orders. This ACL decides:"
    assert by_role[1].strip().startswith("(principal=Role:readers,")
    assert by_role[2] == "It counts because User:alice has that role, by this ACL:"
    assert by_role[3].strip() == (
        "(principal=User:alice, host=*, operation=ALL, permissionType=ALLOW) on "
        "ResourcePattern(resourceType=USER, name=Role:readers, patternType=LITERAL)"
    )
    by_group = said(acl(principal="Group:on call"), groups=("on call",))
    assert by_group[1].strip().startswith("(principal=Group:on call,")
    assert said(acl(principal="Group:on call"))[0].startswith("User:alice may not")
    through = said(acl(principal="Role:readers"), member("Group:staff"), groups=("Group:staff",))
    assert "(principal=Group:staff," in through[3]
    assert "may Read" in said(acl(principal="Role:readers"), who="Role:readers")[0]
    denied = said(acl(principal="Group:staff", permission=PermissionType.DENY), acl(), groups=("staff",))
    assert "--deny-principal Group:staff" in denied[-1]
    hosts = said(acl(principal="Role:readers"), member("User:alice", host="10.0.0.1"))
    assert "Other ACLs hold for some addresses (10.0.0.1)" in hosts[-1]
    with pytest.raises(CommandFailed, match="not the name of a group"):
        said(groups=("",))


def test_a_deny_is_named_with_the_command_that_removes_it() -> None:
    lines = told(acl(), acl("or", Op.ALL, "User:*", PermissionType.DENY, PatternType.PREFIXED, "10.0.0.1"), host="10.0.0.1")
    assert lines[0] == "User:alice may not Read topic orders from 10.0.0.1. This ACL decides:"
    assert lines[3].split() == shlex.split(
        "tidelog acls --bootstrap-server h:9092 --remove --deny-principal \"'User:*'\" --deny-host 10.0.0.1 --operation All "
        "--topic or --resource-pattern-type prefixed"
    )


def test_the_missing_acl_is_a_command_that_allows_what_was_asked() -> None:
    lines = told(acl(operation=Op.WRITE))
    assert "none of them allows this" in lines[0]
    words = shlex.split(lines[1])
    assert words[:2] == ["tidelog", "acls"]
    assert words[2:] == [
        "--bootstrap-server", "h:9092", "--add", "--allow-principal", "User:alice", "--operation", "Read", "--topic", "orders",
    ]  # fmt: skip


def test_a_resource_without_acls_may_be_open_by_a_setting_that_is_not_shown() -> None:
    assert "No ACL is on the resource. To allow it:" in told()[0]
    lines = told(hidden=("allow.everyone.if.no.acl.found", "super.users"))
    assert "unless allow.everyone.if.no.acl.found is true" in lines[0]
    assert any("closes it to all principals" in line for line in lines)
    assert lines[-1].startswith("If User:alice is in super.users")


def test_acls_for_some_addresses_are_pointed_out() -> None:
    lines = told(acl(host="10.0.0.7"))
    assert lines[0].startswith("User:alice may not")
    assert lines[-1] == "Other ACLs hold for some addresses (10.0.0.7): ask for one of them with --host."
    assert told(acl(host="10.0.0.7"), host="::ffff:10.0.0.7")[0].startswith("User:alice may Read")


def test_a_cluster_without_an_authorizer_allows_everything() -> None:
    known = answered(knowledge(), lambda step: DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED))
    (line,) = explained(known, question_of("User:alice", "Alter", "cluster", None), [])
    assert line == "User:alice may Alter cluster kafka-cluster: the cluster has no authorizer, so every client may do everything."


def test_what_is_set_and_hidden_is_looked_up_on_every_broker() -> None:
    config = DescribeConfigsResourceResult(name="super.users", value=None, is_sensitive=True)
    answers = {
        "DescribeAclsRequest": DescribeAclsResponse(),
        "MetadataRequest": MetadataResponse(brokers=[MetadataResponseBroker(1), MetadataResponseBroker(2)]),
        "DescribeConfigsRequest": DescribeConfigsResponse(results=[DescribeConfigsResult(configs=[config])]),
    }
    asked: list[Any] = []

    def answer(step: Any) -> Any:
        asked.append(step.to)
        return answers[type(step.request).__name__]

    assert answered(knowledge(), answer) == Knowledge([], frozenset({"super.users"}))
    assert len(asked) == 4


def test_what_controllers_do_not_describe_may_be_set() -> None:
    def answer(step: Any) -> Any:
        described = type(step.request).__name__ == "DescribeAclsRequest"
        return DescribeAclsResponse() if described else UnsupportedByBroker("Metadata is not served")

    assert answered(knowledge(), answer).hidden == {"super.users", "allow.everyone.if.no.acl.found"}


@pytest.mark.parametrize(
    ("principal", "operation", "resource", "named"),
    [
        ("alice", "Read", "topic:t", "User:alice"),
        ("User:a", "Reed", "topic:t", "Reed is not an operation"),
        ("User:a", "Alter", "group:g", "group has these operations"),
        ("User:a", "Read", "orders", "topic:NAME"),
        ("User:a", "Read", "topic:", "topic:NAME"),
    ],
)
def test_what_cannot_be_read_is_refused(principal: str, operation: str, resource: str, named: str) -> None:
    with pytest.raises(CommandFailed, match=named):
        question_of(principal, operation, resource, None)


def test_the_name_of_a_user_as_resource_may_hold_a_colon() -> None:
    assert question_of("User:a", "CreateTokens", "user-principal:User:b", None).name == "User:b"
