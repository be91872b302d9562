"""ACLs for groups and roles, and nodes that do not count them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.controller.conftest import Cluster
from tests.unit.controller.test_acls import acl, create, delete, wanted
from tidelog.controller.quorum_controller import QuorumController
from tidelog.controller.result import ControllerSettings
from tidelog.metadata.supported_features import registered_ranges, supported_ranges
from tidelog.model.acl import AclOperation as Op
from tidelog.model.acl import PermissionType, ResourceType
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.broker_registration import Feature
from tidelog.protocol.messages.controller_registration import ControllerRegistrationRequest
from tidelog.protocol.messages.controller_registration import Feature as ControllerFeature
from tidelog.protocol.messages.create_acls import CreateAclsRequest

OURS = [Feature(name, low, high) for name, (low, high) in registered_ranges().items()]
APACHES = [Feature(name, low, high) for name, (low, high) in supported_ranges().items()]
NO = ErrorCode.UNSUPPORTED_VERSION
MEMBER = acl("Role:readers", resource_type=ResourceType.USER, operation=Op.ALL)
BEYOND = [
    acl(principal="Group:staff"),
    acl(principal="Group:staff", permission_type=PermissionType.DENY),
    acl(principal="Role:readers"),
    MEMBER,
]


@pytest.fixture
def ours() -> Cluster:
    cluster = Cluster(ControllerSettings())
    cluster.register(1, features=OURS)
    register_controller(cluster, 1, registered_ranges())
    return cluster


def register_controller(cluster: Cluster, node_id: int, ranges: dict[str, tuple[int, int]]) -> None:
    features = [ControllerFeature(name, low, high) for name, (low, high) in ranges.items()]
    request = ControllerRegistrationRequest(controller_id=node_id, incarnation_id=b"i" * 16, features=features)
    cluster.ask(QuorumController.register_standby, request)


def test_they_are_stored_where_all_nodes_count_them(ours: Cluster) -> None:
    assert create(ours, *BEYOND) == [0] * 4
    assert len(ours.image.acls) == 4


@pytest.mark.parametrize("kind", ["broker", "controller"])
def test_they_are_refused_beside_a_node_that_does_not_and_others_are_stored(ours: Cluster, kind: str) -> None:
    if kind == "broker":
        ours.register(2, features=APACHES)
    else:
        register_controller(ours, 2, supported_ranges())
    assert create(ours, *BEYOND, acl(principal="User:alice")) == [NO, NO, NO, NO, 0]
    answer: Any = ours.ask(QuorumController.create_acls, CreateAclsRequest(creations=[MEMBER]))
    assert f"{kind} 2" in answer.results[0].error_message
    assert [entry.principal for entry in ours.image.acls.values()] == ["User:alice"]


def test_they_are_refused_where_controllers_do_not_register(make_old: Callable[[int], Cluster]) -> None:
    assert create(make_old(14), *BEYOND) == [NO] * 4
    assert create(make_old(15), *BEYOND) == [0] * 4


@pytest.fixture
def make_old() -> Callable[[int], Cluster]:
    return lambda level: Cluster(ControllerSettings(), metadata_version=level)


def test_a_node_that_does_not_count_them_cannot_register_until_they_are_removed(ours: Cluster) -> None:
    assert create(ours, acl(principal="Group:staff", permission_type=PermissionType.DENY)) == [0]
    with pytest.raises(KafkaError, match="DENY for Group:staff on t") as refused:
        ours.register(2, features=APACHES)
    assert refused.value.code is NO
    with pytest.raises(KafkaError, match="which controller 2 does not count"):
        register_controller(ours, 2, supported_ranges())
    ours.register(3, features=OURS)
    assert [code for code, _ in delete(ours, wanted("t"))] == [0]
    ours.register(2, features=APACHES)
    register_controller(ours, 2, supported_ranges())


def test_ordinary_acls_keep_no_node_out(ours: Cluster) -> None:
    assert create(ours, acl(), acl("User:bob", resource_type=ResourceType.USER, operation=Op.ALL)) == [0, 0]
    ours.register(2, features=APACHES)


def test_a_role_is_made_no_member_of_a_role(ours: Cluster) -> None:
    nested = acl("Role:b", resource_type=ResourceType.USER, operation=Op.ALL, principal="Role:a")
    assert create(ours, nested) == [ErrorCode.INVALID_REQUEST]
