"""A made-up API: one row and one handler, and everything else follows.

It borrows the wire format of ShareGroupDescribe, which is not served, and pretends that the controller decides it.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from tests.unit.broker.node_world import NodeWorld, run
from tidelog.broker.answer_types import Encoded
from tidelog.broker.api import Api, on_brokers, on_cluster, on_controllers
from tidelog.broker.apis.cluster.versions import api_versions
from tidelog.broker.dispatch import Dispatcher
from tidelog.broker.envelope import envelope, sealed_request, unsealed
from tidelog.broker.ports import Asker
from tidelog.broker.quotas.client_quotas import ClientQuotas
from tidelog.broker.quotas.limits import Kind
from tidelog.broker.quotas.metering import Metering
from tidelog.broker.request import Context
from tidelog.model.acl import AclOperation
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.framing import RequestHeader, encode_request
from tidelog.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tidelog.protocol.messages.share_group_describe import (
    DescribedGroup,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from tidelog.security.principal import KafkaPrincipal
from tools.generate_reference import api_rows

ANNA = KafkaPrincipal("User", "anna")
VERSION = 1


def made_up(ctx: Context, request: ShareGroupDescribeRequest) -> ShareGroupDescribeResponse:
    """Sent by this test.

    Errors: INVALID_REQUEST for a group whose name is empty.
    """
    if "" in request.group_ids:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "A group has no name.")
    groups = [DescribedGroup(group_id=each, group_state=ctx.principal.name) for each in request.group_ids]
    return ShareGroupDescribeResponse(throttle_time_ms=700, groups=groups)


ROW = Api(
    ApiKey.SHARE_GROUP_DESCRIBE,
    (1, 1),
    broker=made_up,
    controller=made_up,
    needs=on_cluster(AclOperation.ALTER),
    forwarded=True,
    quota=Kind.MUTATION,
)


def world() -> NodeWorld:
    return NodeWorld(apis=on_brokers([ROW]))


def frame(*groups: str) -> memoryview:
    request = ShareGroupDescribeRequest(group_ids=list(groups))
    return memoryview(bytearray(encode_request(RequestHeader(request.API_KEY, VERSION, 5, "c"), request)[4:]))


def decoded(outgoing: Any) -> ShareGroupDescribeResponse:
    (data,) = outgoing
    return ShareGroupDescribeResponse.decode(data[9:], VERSION)


def test_it_is_served_and_advertised() -> None:
    node = world().broker
    answer = decoded(Dispatcher(node, node.apis).handle(world().session(), frame("g")))
    assert [each.group_id for each in answer.groups] == ["g"]
    ctx = world().context(4)
    told = api_versions(ctx, ApiVersionsRequest(client_software_name="x", client_software_version="1"))
    assert isinstance(told, Encoded)
    (body,) = told.parts
    assert isinstance(body, bytes)
    assert [(each.api_key, each.min_version, each.max_version) for each in ApiVersionsResponse.decode(body, 4).api_keys] == [
        (77, 1, 1)
    ]


def test_its_error_is_said_of_each_group_that_was_named() -> None:
    node = world().broker
    answer = decoded(Dispatcher(node, node.apis).handle(world().session(), frame("g", "")))
    assert [(each.group_id, each.error_code, each.error_message) for each in answer.groups] == [
        ("g", ErrorCode.INVALID_REQUEST, "A group has no name."),
        ("", ErrorCode.INVALID_REQUEST, "A group has no name."),
    ]


def test_it_counts_against_its_quota() -> None:
    quotas = ClientQuotas()
    quotas.change({(("client-id", "c"),): {"controller_mutation_rate": 1.0}})
    muted: list[int] = []
    session = world().session()
    session.mute = muted.append
    node = world().broker
    answer = decoded(Metering(node, quotas, node.apis, lambda: 0, lambda: 0).handle(session, frame("g")))
    assert answer.throttle_time_ms == 700
    assert muted == [700]


def test_it_is_taken_in_an_envelope_in_the_name_of_its_client() -> None:
    there = NodeWorld(apis=on_controllers([ROW]))
    request = ShareGroupDescribeRequest(group_ids=["g"])
    letter = sealed_request(Asker(ANNA, "c", "10.1.2.3"), VERSION, request)
    response = envelope(there.context(), letter)  # type: ignore[arg-type]
    response = run(response) if isinstance(response, Coroutine) else response
    answer: ShareGroupDescribeResponse = unsealed(response, VERSION, request)
    assert [(each.group_id, each.group_state) for each in answer.groups] == [("g", "anna")]


def test_the_reference_page_says_what_the_row_says() -> None:
    (row,) = api_rows(on_brokers([ROW]))
    assert row == (
        "77", "ShareGroupDescribe", "1 to 1", "", "ALTER CLUSTER", "yes", "`controller_mutation_rate`", "Sent by this test."
    )  # fmt: skip
