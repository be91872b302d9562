from types import SimpleNamespace

import pytest

from tests.unit.broker.allowing import Allowing
from tests.unit.broker.node_world import NodeWorld
from tidelog.broker.api import Route
from tidelog.broker.controller_apis import describe_controllers
from tidelog.broker.request import RequestContext, Session
from tidelog.broker.table import BROKER_APIS, CONTROLLER_APIS
from tidelog.model.acl import CLUSTER_NAME, AclOperation, ResourceType
from tidelog.model.errors import ErrorCode
from tidelog.protocol import registry
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.messages.describe_cluster import DescribeClusterRequest
from tidelog.raft.machine import HANDLERS


def test_the_quorums_own_requests_are_served_in_all_their_versions() -> None:
    for key in HANDLERS:
        request = registry.request_class(key)
        assert CONTROLLER_APIS[key].api.versions == (request.MIN_VERSION, request.MAX_VERSION), key


def test_a_broker_serves_none_of_them_but_fetch_and_passes_on_what_administrators_ask() -> None:
    assert {key for key in HANDLERS if key in BROKER_APIS} == {ApiKey.FETCH, ApiKey.ADD_RAFT_VOTER, ApiKey.REMOVE_RAFT_VOTER}


@pytest.mark.parametrize(
    ("version", "endpoint_type", "code"),
    [
        (0, 1, ErrorCode.INVALID_REQUEST),
        (1, 1, ErrorCode.MISMATCHED_ENDPOINT_TYPE),
        (2, 1, ErrorCode.MISMATCHED_ENDPOINT_TYPE),
        (2, 9, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
    ],
)
def test_a_controller_describes_no_brokers(version: int, endpoint_type: int, code: ErrorCode) -> None:
    context = NodeWorld().context()
    context.api_version = version
    answer = describe_controllers(context, DescribeClusterRequest(endpoint_type=endpoint_type))
    assert answer.error_code == code
    assert answer.encode(version)


def test_a_controller_reports_the_operations_of_its_client() -> None:
    quorum = SimpleNamespace(voters=SimpleNamespace(voters=[]), leader_id=1)
    create, describe = ((each, ResourceType.CLUSTER, CLUSTER_NAME) for each in (AclOperation.CREATE, AclOperation.DESCRIBE))
    asked = DescribeClusterRequest(endpoint_type=2, include_cluster_authorized_operations=True)
    for permissions, bits in (({create}, 0), ({create, describe}, 1 << AclOperation.CREATE | 1 << AclOperation.DESCRIBE)):
        node = SimpleNamespace(access=Allowing(permissions), quorum=quorum, cluster_id="c")
        context = RequestContext(node, Session("CONTROLLER", "10.0.0.1"), ApiKey.DESCRIBE_CLUSTER, 2)
        assert describe_controllers(context, asked).cluster_authorized_operations == bits


@pytest.mark.parametrize("table", [BROKER_APIS, CONTROLLER_APIS], ids=["broker", "controller"])
def test_only_requests_that_need_no_permission_are_open_to_every_client(table: dict[int, Route]) -> None:
    free = {key for key, route in table.items() if not route.needs.permissions}
    logins = {ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE}
    # Whose owner or renewer the client is, with the token's secret.
    tokens = {ApiKey.RENEW_DELEGATION_TOKEN, ApiKey.EXPIRE_DELEGATION_TOKEN}
    assert free == (logins | tokens) & set(table)
