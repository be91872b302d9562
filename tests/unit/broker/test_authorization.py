from __future__ import annotations

import pytest

from tests.unit.broker.allowing import Allowing
from tests.unit.broker.node_world import NodeWorld
from tidelog.broker.authorization import (
    DENIED,
    allowed,
    allows,
    allows_on_any,
    allows_on_cluster,
    authorized_operations,
    require,
    require_on_cluster,
)
from tidelog.broker.node import BrokerContext
from tidelog.broker.operations import TOPIC_OPERATIONS
from tidelog.model.acl import CLUSTER_NAME, ResourceType
from tidelog.model.acl import AclOperation as Op
from tidelog.model.errors import ErrorCode, KafkaError

TOPIC = ResourceType.TOPIC


def context(access: Allowing | None) -> BrokerContext:
    world = NodeWorld()
    world.broker.access = access
    return world.context()


def test_without_an_authorizer_everything_is_allowed() -> None:
    ctx = context(None)
    assert allows(ctx, Op.READ, TOPIC, "t")
    assert allows_on_cluster(ctx, Op.ALTER)
    assert allows_on_any(ctx, Op.WRITE, TOPIC)
    assert allowed(ctx, Op.READ, TOPIC, ["a", "b", "a"]) == {"a", "b"}
    assert authorized_operations(ctx, TOPIC, "t") == TOPIC_OPERATIONS
    require_on_cluster(ctx, Op.CLUSTER_ACTION)


def test_each_resource_is_asked_for_once() -> None:
    access = Allowing({(Op.READ, TOPIC, "a"), (Op.READ, TOPIC, "c")})
    ctx = context(access)
    assert allowed(ctx, Op.READ, TOPIC, ["a", "b", "a", "b"]) == {"a"}
    assert sorted(access.loud) == [(Op.READ, TOPIC, "a"), (Op.READ, TOPIC, "b")]
    assert allows_on_any(ctx, Op.READ, TOPIC)
    assert not allows_on_any(ctx, Op.WRITE, TOPIC)


@pytest.mark.parametrize("kind", DENIED)
def test_a_required_permission_that_is_missing_is_the_error_of_its_resource_type(kind: ResourceType) -> None:
    with pytest.raises(KafkaError) as refused:
        require(context(Allowing()), Op.DESCRIBE, kind, "x")
    assert refused.value.code is DENIED[kind]
    require(context(Allowing({(Op.DESCRIBE, kind, "x")})), Op.DESCRIBE, kind, "x")


def test_the_cluster_has_one_name() -> None:
    assert allows_on_cluster(context(Allowing({(Op.ALTER, ResourceType.CLUSTER, CLUSTER_NAME)})), Op.ALTER)
    with pytest.raises(KafkaError) as refused:
        require_on_cluster(context(Allowing()), Op.ALTER)
    assert refused.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_authorized_operations_are_asked_for_quietly() -> None:
    access = Allowing({(Op.READ, TOPIC, "t"), (Op.DESCRIBE, TOPIC, "t")})
    assert authorized_operations(context(access), TOPIC, "t") == 1 << Op.READ | 1 << Op.DESCRIBE
    assert not access.loud
