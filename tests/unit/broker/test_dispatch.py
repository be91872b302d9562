from __future__ import annotations

import contextlib
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.broker.allowing import Allowing
from tests.unit.broker.node_world import NodeWorld, run, served
from tidelog.broker.answer_types import CLOSE_CONNECTION, NO_RESPONSE, Encoded, Outgoing
from tidelog.broker.api import on_cluster
from tidelog.broker.dispatch import Dispatcher
from tidelog.broker.request import Context
from tidelog.broker.table import BROKER_APIS
from tidelog.model.acl import CLUSTER_NAME, AclOperation, ResourceType
from tidelog.model.errors import ErrorCode, KafkaError, ProtocolViolation
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.framing import RequestHeader, decode_response_header, encode_request
from tidelog.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tidelog.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from tidelog.protocol.messages.fetch import FetchRequest, FetchResponse


def frame(request: Any, version: int, correlation_id: int = 5, key: int | None = None) -> memoryview:
    header = RequestHeader(request.API_KEY, version, correlation_id, "me")
    data = bytearray(encode_request(header, request)[4:])
    if key is not None:
        data[:2] = key.to_bytes(2, "big", signed=True)
    return memoryview(data)


def joined(outgoing: Outgoing | Coroutine[Any, Any, Outgoing]) -> bytes:
    assert isinstance(outgoing, list)
    data = b"".join(bytes(part) for part in outgoing)  # type: ignore[arg-type]
    assert int.from_bytes(data[:4], "big") == len(data) - 4
    return data[4:]


def dispatch(handler: Any, version: int = 1, **options: Any) -> Outgoing | Coroutine[Any, Any, Outgoing]:
    route = served(ApiKey.DESCRIBE_CLUSTER, (0, 1), handler, **options)
    world = NodeWorld(apis={route.api.key: route})
    return Dispatcher(world.broker, world.broker.apis).handle(world.session(), frame(DescribeClusterRequest(), version))


def test_a_response_is_framed_with_its_correlation_id_and_flexible_header() -> None:
    data = joined(dispatch(lambda ctx, request: DescribeClusterResponse(cluster_id="c")))
    correlation_id, position = decode_response_header(data, flexible_header=True)
    assert (correlation_id, position) == (5, 5)
    assert DescribeClusterResponse.decode(data[position:], 1).cluster_id == "c"


def test_the_handler_learns_who_asks() -> None:
    seen: list[Any] = []

    def handler(ctx: Context, request: DescribeClusterRequest) -> DescribeClusterResponse:
        seen.append((ctx.api_key, ctx.api_version, ctx.correlation_id, ctx.client_id, request))
        return DescribeClusterResponse()

    dispatch(handler, version=0)
    assert seen == [(60, 0, 5, "me", DescribeClusterRequest())]


def test_a_handler_that_waits_gives_a_coroutine_of_the_same_frame() -> None:
    async def waiting(ctx: Context, request: DescribeClusterRequest) -> DescribeClusterResponse:
        return DescribeClusterResponse(cluster_id="c")

    outgoing = dispatch(waiting)
    assert isinstance(outgoing, Coroutine)
    assert joined(run(outgoing)) == joined(dispatch(lambda ctx, request: DescribeClusterResponse(cluster_id="c")))


def test_an_encoded_body_gets_the_same_header() -> None:
    body = DescribeClusterResponse(cluster_id="c").encode(1)
    encoded = dispatch(lambda ctx, request: Encoded((body[:3], body[3:]), len(body)))
    assert joined(encoded) == joined(dispatch(lambda ctx, request: DescribeClusterResponse(cluster_id="c")))


@pytest.mark.parametrize("signal", [NO_RESPONSE, CLOSE_CONNECTION])
def test_signals_pass_through(signal: object) -> None:
    assert dispatch(lambda ctx, request: signal) is signal


def refuse(ctx: Context, request: object) -> None:
    raise KafkaError(ErrorCode.INVALID_REQUEST, "no")


async def refuse_later(ctx: Context, request: object) -> None:
    raise KafkaError(ErrorCode.INVALID_REQUEST, "no")


def stumble(ctx: Context, request: object) -> None:
    raise ZeroDivisionError


def misread(ctx: Context, request: object) -> None:
    raise ProtocolViolation("no such body")


@pytest.mark.parametrize(
    ("handler", "code", "says"),
    [
        (refuse, ErrorCode.INVALID_REQUEST, "no"),
        (refuse_later, ErrorCode.INVALID_REQUEST, "no"),
        (stumble, ErrorCode.UNKNOWN_SERVER_ERROR, None),
    ],
)
def test_an_error_that_a_handler_raises_is_its_apis_answer(handler: Any, code: ErrorCode, says: str | None) -> None:
    outgoing = dispatch(handler)
    answered = joined(run(outgoing) if isinstance(outgoing, Coroutine) else outgoing)
    response = DescribeClusterResponse.decode(answered[5:], 1)
    assert (response.error_code, response.error_message) == (code, says)


def test_a_row_may_have_a_refusal_of_its_own() -> None:
    def told(ctx: Context, request: DescribeClusterRequest, error: KafkaError) -> DescribeClusterResponse:
        return DescribeClusterResponse(cluster_id=error.detail)

    answered = joined(dispatch(refuse, refuse=told))
    assert DescribeClusterResponse.decode(answered[5:], 1).cluster_id == "no"


def test_a_body_that_only_the_handler_finds_broken_is_a_violation() -> None:
    with pytest.raises(ProtocolViolation):
        dispatch(misread)


def test_an_api_that_is_not_served_is_a_violation() -> None:
    world = NodeWorld()
    for key in (ApiKey.VOTE, 4, 999, -1):
        with pytest.raises(ProtocolViolation):
            Dispatcher(world.broker, world.broker.apis).handle(world.session(), frame(ApiVersionsRequest(), 0, key=key))


def test_a_version_that_is_not_served_is_a_violation_that_names_the_range() -> None:
    world = NodeWorld()
    request = frame(DescribeClusterRequest(), 0)
    request[2:4] = (9).to_bytes(2, "big")
    with pytest.raises(ProtocolViolation, match="versions 0 to 2"):
        Dispatcher(world.broker, world.broker.apis).handle(world.session(), request)


@pytest.mark.parametrize("version", [6, 99, 32767])
def test_only_api_versions_is_answered_at_an_unknown_version_with_a_body_of_version_zero(version: int) -> None:
    world = NodeWorld()
    request = frame(ApiVersionsRequest(), 4)
    request[2:4] = version.to_bytes(2, "big")
    data = joined(Dispatcher(world.broker, world.broker.apis).handle(world.session(), request))
    response = ApiVersionsResponse.decode(data[4:], 0)
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert (18, 0, 5) in [(api.api_key, api.min_version, api.max_version) for api in response.api_keys]


@pytest.mark.parametrize("version", range(6))
def test_api_versions_is_answered_with_a_plain_header_at_every_version(version: int) -> None:
    world = NodeWorld()
    request = frame(ApiVersionsRequest(client_software_name="x", client_software_version="1"), version)
    data = joined(Dispatcher(world.broker, world.broker.apis).handle(world.session(), request))
    assert ApiVersionsResponse.decode(data[4:], version).error_code == 0


@given(st.binary(max_size=64))
def test_garbage_is_a_violation_or_an_answer_and_nothing_else(data: bytes) -> None:
    route = served(ApiKey.DESCRIBE_CLUSTER, (0, 2), lambda ctx, request: DescribeClusterResponse())
    world = NodeWorld(apis={route.api.key: route})
    dispatcher = Dispatcher(world.broker, world.broker.apis)
    for prefix in (b"", b"\0\x3c\0\1\0\0\0\1"):
        with contextlib.suppress(ProtocolViolation):
            joined(dispatcher.handle(world.session(), memoryview(bytearray(prefix + data))))


def test_a_row_that_needs_a_permission_on_the_cluster_is_refused_before_its_handler_runs() -> None:
    ran: list[Any] = []

    def handler(ctx: Context, request: DescribeClusterRequest) -> DescribeClusterResponse:
        ran.append(request)
        return DescribeClusterResponse(cluster_id="c")

    needs = on_cluster(AclOperation.ALTER)
    route = replace(served(ApiKey.DESCRIBE_CLUSTER, (0, 1), handler), needs=needs)
    world = NodeWorld(apis={route.api.key: route})
    dispatcher = Dispatcher(world.broker, world.broker.apis)

    def asked() -> DescribeClusterResponse:
        data = joined(dispatcher.handle(world.session(), frame(DescribeClusterRequest(), 1)))
        return DescribeClusterResponse.decode(data[decode_response_header(data, flexible_header=True)[1] :], 1)

    world.broker.access = Allowing()
    assert asked().error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert not ran
    world.broker.access = Allowing({(AclOperation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME)})
    assert asked().error_code == 0
    world.broker.access = None
    assert asked().error_code == 0
    assert len(ran) == 2


def test_a_request_that_fails_in_a_lane_is_refused_as_its_handler_refuses() -> None:
    world = NodeWorld()
    session = world.session()

    def make(node: object, served: Any, dispatcher: Dispatcher) -> Any:
        return lambda session, frame, begun: dispatcher.failed(session, served, frame, KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))

    dispatcher = Dispatcher(world.broker, BROKER_APIS, fetches=make)
    fetch = memoryview(encode_request(RequestHeader(ApiKey.FETCH, 12, 5, "reader"), FetchRequest())[4:])
    data = joined(dispatcher.handle(session, fetch))
    answer = FetchResponse.decode(data[decode_response_header(data, flexible_header=True)[1] :], 12)
    assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
