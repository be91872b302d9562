from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

import pytest

from tests.unit.broker.allowing import Allowing
from tests.unit.broker.node_world import NodeWorld, run, served
from tidelog.broker.answer_types import CLOSE_CONNECTION
from tidelog.broker.apis.cluster import versions
from tidelog.broker.apis.topics import topics
from tidelog.broker.dispatch import Dispatcher
from tidelog.broker.envelope import envelope, sealed_request, unsealed
from tidelog.broker.ports import Asker, NotServedByController
from tidelog.broker.request import Context
from tidelog.broker.table import CONTROLLER_APIS
from tidelog.model.acl import CLUSTER_NAME, AclOperation, ResourceType
from tidelog.model.errors import ErrorCode as E
from tidelog.model.errors import KafkaError, ProtocolViolation
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.framing import RequestHeader, decode_response_header, encode_request, encode_request_header
from tidelog.protocol.messages.api_versions import ApiVersionsRequest
from tidelog.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from tidelog.protocol.messages.delete_topics import DeleteTopicsRequest
from tidelog.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from tidelog.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from tidelog.protocol.messages.update_features import UpdateFeaturesRequest
from tidelog.security.principal import KafkaPrincipal, with_groups

CREATE = CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=1, replication_factor=1)])


def not_here(ctx: Context, request: ListPartitionReassignmentsRequest) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse(error_code=E.NOT_CONTROLLER)


TABLE = {
    ApiKey.CREATE_TOPICS: served(ApiKey.CREATE_TOPICS, (2, 7), topics.create_topics, forwarded=True),
    ApiKey.API_VERSIONS: served(ApiKey.API_VERSIONS, (0, 4), versions.api_versions),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: served(ApiKey.LIST_PARTITION_REASSIGNMENTS, (0, 0), not_here, forwarded=True),
    ApiKey.UPDATE_FEATURES: served(ApiKey.UPDATE_FEATURES, (0, 2), lambda ctx, request: CLOSE_CONNECTION, forwarded=True),
}


def letter(request: Any, version: int = 7, **changes: Any) -> EnvelopeRequest:
    header = encode_request_header(RequestHeader(request.API_KEY, version, 99, "inner"))
    fields = {
        "request_data": header + request.encode(version),
        "request_principal": b"\0\0\x05User\x05anna\0\0",
        "client_host_address": bytes((10, 1, 2, 3)),
    }
    return EnvelopeRequest(**(fields | changes))  # type: ignore[arg-type]


def sent(world: NodeWorld, request: EnvelopeRequest) -> EnvelopeResponse:
    answer = envelope(world.context(), request)
    return run(answer) if isinstance(answer, Coroutine) else answer


def opened(response: EnvelopeResponse, version: int = 7) -> CreateTopicsResponse:
    assert response.error_code == 0 and response.response_data is not None
    correlation_id, position = decode_response_header(response.response_data, flexible_flag(version))
    assert correlation_id == 99
    return CreateTopicsResponse.decode(response.response_data[position:], version)


def flexible_flag(version: int) -> bool:
    return version >= CreateTopicsResponse.FLEXIBLE_FROM


@pytest.mark.parametrize("version", [4, 7])
def test_a_forwarded_request_is_answered_in_its_own_version_with_its_own_header(version: int) -> None:
    world = NodeWorld(apis=TABLE)
    response = opened(sent(world, letter(CREATE, version)), version)
    assert (response.topics[0].name, response.topics[0].error_code) == ("t", 0)
    assert "t" in world.broker.image.topics.by_name


def test_a_request_that_is_refused_is_refused_inside() -> None:
    world = NodeWorld(apis=TABLE)
    world.create("t")
    assert opened(sent(world, letter(CREATE))).topics[0].error_code == E.TOPIC_ALREADY_EXISTS
    world.controller.refuses = KafkaError(E.REQUEST_TIMED_OUT, "too slow")
    assert opened(sent(world, letter(CREATE))).topics[0].error_code == E.REQUEST_TIMED_OUT


def test_a_controller_that_is_not_active_says_so_where_the_broker_looks() -> None:
    world = NodeWorld(apis=TABLE)
    world.controller.refuses = KafkaError(E.NOT_CONTROLLER)
    for request, version in ((CREATE, 7), (ListPartitionReassignmentsRequest(), 0)):
        response = sent(world, letter(request, version))
        assert (response.error_code, response.response_data) == (E.NOT_CONTROLLER, None)


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (letter(ApiVersionsRequest(), 3), E.INVALID_REQUEST),
        (letter(DeleteTopicsRequest(), 6), E.INVALID_REQUEST),
        (letter(CREATE, request_data=b"\0\x13"), E.UNSUPPORTED_VERSION),
        (letter(CREATE, request_data=letter(CREATE).request_data[:-3]), E.UNSUPPORTED_VERSION),
        (letter(CREATE, request_data=b"\x7f\0" + bytes(20)), E.UNSUPPORTED_VERSION),
        (letter(CREATE, client_host_address=b"12345"), E.INVALID_REQUEST),
        (letter(CREATE, request_principal=b"\0\0\x05User"), E.PRINCIPAL_DESERIALIZATION_FAILURE),
        (letter(CREATE, request_principal=b"\0\1\x05User\x05anna\0\0"), E.PRINCIPAL_DESERIALIZATION_FAILURE),
        (letter(CREATE, request_principal=None), E.PRINCIPAL_DESERIALIZATION_FAILURE),
        (letter(CREATE, request_data=b"\0\x13\0\x63" + letter(CREATE).request_data[4:]), E.UNSUPPORTED_VERSION),
        (letter(UpdateFeaturesRequest(), 2), E.UNKNOWN_SERVER_ERROR),
    ],
)
def test_what_is_not_forwarded_or_cannot_be_read_is_refused_outside(request_: EnvelopeRequest, error: E) -> None:
    response = sent(NodeWorld(apis=TABLE), request_)
    assert (response.error_code, response.response_data) == (error, None)


def test_the_handler_sees_the_client_and_not_the_broker() -> None:
    seen: list[tuple[str, str, str | None]] = []

    def look(ctx: Context, request: CreateTopicsRequest) -> CreateTopicsResponse:
        seen.append((str(ctx.principal), ctx.peer_host, ctx.client_id))
        return CreateTopicsResponse()

    world = NodeWorld(apis={ApiKey.CREATE_TOPICS: served(ApiKey.CREATE_TOPICS, (2, 7), look, forwarded=True)})
    sent(world, letter(CREATE))
    sent(world, letter(CREATE, client_host_address=bytes(15) + b"\1"))
    assert seen == [("User:anna", "10.1.2.3", "inner"), ("User:anna", "::1", "inner")]


ANNA = KafkaPrincipal("User", "anna")


def test_what_a_broker_seals_the_controller_opens() -> None:
    seen: list[tuple[str, str, str | None, bool]] = []

    def look(ctx: Context, request: CreateTopicsRequest) -> CreateTopicsResponse:
        seen.append((str(ctx.principal), ctx.peer_host, ctx.client_id, ctx.session.token_authenticated))
        return CreateTopicsResponse(throttle_time_ms=7)

    world = NodeWorld(apis={ApiKey.CREATE_TOPICS: served(ApiKey.CREATE_TOPICS, (2, 7), look, forwarded=True)})
    for host in ("10.1.2.3", "::ffff:10.1.2.3", "fe80::1%eth0"):
        for by_token in (False, True):
            asker = Asker(ANNA, "console", host, by_token)
            sealed = sealed_request(asker, 6, CREATE)
            response = sent(world, EnvelopeRequest.decode(sealed.encode(0), 0))
            assert unsealed(response, 6, CREATE).throttle_time_ms == 7
    hosts = ["10.1.2.3", "10.1.2.3", "fe80::1"]
    assert seen == [("User:anna", host, "console", by_token) for host in hosts for by_token in (False, True)]


def test_the_groups_of_a_client_arrive_with_it() -> None:
    seen: list[frozenset[str]] = []

    def look(ctx: Context, request: CreateTopicsRequest) -> CreateTopicsResponse:
        seen.append(ctx.principal.groups)
        return CreateTopicsResponse()

    world = NodeWorld(apis={ApiKey.CREATE_TOPICS: served(ApiKey.CREATE_TOPICS, (2, 7), look, forwarded=True)})
    for groups in (frozenset({"Group:staff", "Group:on call"}), frozenset[str]()):
        sent(world, sealed_request(Asker(with_groups(ANNA, groups), None, "10.1.2.3"), 7, CREATE))
        assert seen.pop() == groups


@pytest.mark.parametrize(
    ("code", "raised"),
    [
        (E.NOT_CONTROLLER, E.NOT_CONTROLLER),
        (E.UNSUPPORTED_VERSION, E.UNSUPPORTED_VERSION),
        (E.CLUSTER_AUTHORIZATION_FAILED, E.UNKNOWN_SERVER_ERROR),
        (E.PRINCIPAL_DESERIALIZATION_FAILURE, E.UNKNOWN_SERVER_ERROR),
        (E.INVALID_REQUEST, E.UNKNOWN_SERVER_ERROR),
    ],
)
def test_an_error_of_the_envelope_is_never_given_to_the_client_as_its_own(code: E, raised: E) -> None:
    with pytest.raises(KafkaError) as refused:
        unsealed(EnvelopeResponse(error_code=code), 7, CREATE)
    assert refused.value.code is raised
    assert isinstance(refused.value, NotServedByController) is (code is E.UNSUPPORTED_VERSION)
    with pytest.raises(ProtocolViolation):
        unsealed(EnvelopeResponse(response_data=b"\0"), 7, CREATE)


def enveloped(world: NodeWorld, name: str) -> EnvelopeResponse:
    """The answer of a controller with its own table to an envelope with a CreateTopics of anna, from a broker."""
    sealed = sealed_request(Asker(ANNA, "console", "10.1.2.3"), 7, CreateTopicsRequest(topics=[CreatableTopic(name, 1, 1)]))
    frame = encode_request(RequestHeader(ApiKey.ENVELOPE, 0, 1, "broker"), sealed)[4:]
    answer = Dispatcher(world.broker, CONTROLLER_APIS).handle(world.session(), memoryview(frame))
    parts: Any = run(answer) if isinstance(answer, Coroutine) else answer
    body = b"".join(parts)[4:]
    return EnvelopeResponse.decode(body[decode_response_header(body, flexible_header=True)[1] :], 0)


def test_the_sender_of_an_envelope_needs_cluster_action_and_its_client_the_rest() -> None:
    world = NodeWorld(apis=CONTROLLER_APIS)
    acts = (AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME)
    creates = (AclOperation.CREATE, ResourceType.TOPIC, "t")

    class ByPrincipal(Allowing):
        """The sender, ANONYMOUS, has CLUSTER_ACTION if allowed; anna may create t from her address."""

        def allows(self, client: Any, operation: int, resource_type: int, name: str, quiet: bool, request: object = None) -> bool:
            asked = (AclOperation(operation), ResourceType(resource_type), name)
            if asked == creates:
                return bool((client.principal, client.peer_host) == (ANNA, "10.1.2.3"))
            return client.principal != ANNA and asked in self.permissions

    world.broker.access = ByPrincipal()
    refused = enveloped(world, "t")
    assert (refused.error_code, refused.response_data) == (E.CLUSTER_AUTHORIZATION_FAILED, None)
    assert not world.broker.image.topics.by_name
    world.broker.access = ByPrincipal({acts})
    for name, code in (("other", E.TOPIC_AUTHORIZATION_FAILED), ("t", E.NONE)):
        answer = unsealed(enveloped(world, name), 7, CreateTopicsRequest())
        assert [(each.name, each.error_code) for each in answer.topics] == [(name, code)]
    assert set(world.broker.image.topics.by_name) == {"t"}
