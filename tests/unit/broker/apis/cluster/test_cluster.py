from __future__ import annotations

from dataclasses import replace

from tests.unit.broker.allowing import Allowing
from tests.unit.broker.node_world import NodeWorld
from tidelog.broker.apis.cluster.cluster import describe_cluster
from tidelog.broker.operations import CLUSTER_OPERATIONS, NOT_ASKED
from tidelog.model.acl import CLUSTER_NAME, AclOperation, ResourceType
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.describe_cluster import DescribeClusterRequest


def test_the_brokers_are_named_with_their_addresses_on_the_clients_listener() -> None:
    response = describe_cluster(NodeWorld().context(2, "INTERNAL"), DescribeClusterRequest())
    assert (response.cluster_id, response.controller_id, response.endpoint_type) == ("test-cluster", 1, 1)
    assert [(b.broker_id, b.host, b.port, b.rack, b.is_fenced) for b in response.brokers] == [(1, "in", 9093, "r1", False)]
    assert response.cluster_authorized_operations == NOT_ASKED


def test_fenced_brokers_are_named_to_who_asks_for_them() -> None:
    world = NodeWorld()
    world.change_broker(fenced=True)
    assert describe_cluster(world.context(2), DescribeClusterRequest()).brokers == []
    asked = describe_cluster(world.context(2), DescribeClusterRequest(include_fenced_brokers=True))
    assert [broker.is_fenced for broker in asked.brokers] == [True]


def test_the_controller_that_clients_are_told_of_is_a_broker_in_service() -> None:
    world = NodeWorld()
    image = world.broker.image
    other = image.brokers[1]._replace(id=2)
    world.broker.image = replace(image, brokers={1: image.brokers[1]._replace(fenced=True), 2: other})
    asked = DescribeClusterRequest(include_fenced_brokers=True)
    assert describe_cluster(world.context(2), asked).controller_id == 2
    world.broker.image = replace(image, brokers={})
    assert describe_cluster(world.context(2), asked).controller_id == -1


def test_controllers_are_not_described_on_a_brokers_listener() -> None:
    ctx = NodeWorld().context(2)
    assert describe_cluster(ctx, DescribeClusterRequest(endpoint_type=2)).error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE
    assert describe_cluster(ctx, DescribeClusterRequest(endpoint_type=3)).error_code == ErrorCode.UNSUPPORTED_ENDPOINT_TYPE


def test_operations_are_told_to_who_asks() -> None:
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)
    assert describe_cluster(NodeWorld().context(0), request).cluster_authorized_operations == CLUSTER_OPERATIONS


def test_operations_are_those_of_the_client_and_none_without_describe_on_the_cluster() -> None:
    world = NodeWorld()
    create, describe = ((each, ResourceType.CLUSTER, CLUSTER_NAME) for each in (AclOperation.CREATE, AclOperation.DESCRIBE))
    asked = DescribeClusterRequest(include_cluster_authorized_operations=True)
    for permissions, bits in (
        ({create}, 0),
        ({create, describe}, 1 << AclOperation.CREATE | 1 << AclOperation.DESCRIBE),
    ):
        world.broker.access = Allowing(permissions)
        answer = describe_cluster(world.context(2), asked)
        assert (answer.error_code, answer.cluster_authorized_operations) == (0, bits)
        assert [broker.broker_id for broker in answer.brokers] == [1]
    assert describe_cluster(world.context(2), DescribeClusterRequest()).cluster_authorized_operations == NOT_ASKED
