from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.broker.allowing import Allowing
from tests.unit.broker.node_world import NodeWorld, run
from tidelog.broker.dispatch import Dispatcher
from tidelog.broker.ports import Asker, ControllerIsHere, NotServedByController
from tidelog.broker.request import Session
from tidelog.broker.table import BROKER_APIS
from tidelog.model.acl import CLUSTER_NAME, AccessControlEntry, AclOperation, PatternType, PermissionType, ResourceType
from tidelog.model.errors import ErrorCode, KafkaError, ProtocolViolation
from tidelog.model.ids import Uuid
from tidelog.protocol import registry
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.framing import RequestHeader, decode_response_header, encode_request, response_header_is_flexible
from tidelog.protocol.messages import alter_configs as legacy
from tidelog.protocol.messages import incremental_alter_configs as incremental
from tidelog.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    OpData,
    RequestEntityData,
    RequestEntryData,
)
from tidelog.protocol.messages.create_acls import AclCreation, AclCreationResult, CreateAclsRequest, CreateAclsResponse
from tidelog.protocol.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from tidelog.security.principal import KafkaPrincipal

ALICE = KafkaPrincipal("User", "alice")
FORWARDED = [key for key, route in BROKER_APIS.items() if route.api.forwarded]
LIMIT = AlterClientQuotasRequest(
    entries=[RequestEntryData([RequestEntityData("user", "bob")], [OpData("producer_byte_rate", 5.0)])]
)
LOGIN = {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,EXTERNAL:SASL_PLAINTEXT"}
TOKENS = (ApiKey.CREATE_DELEGATION_TOKEN, ApiKey.RENEW_DELEGATION_TOKEN, ApiKey.EXPIRE_DELEGATION_TOKEN)
REQUESTS = {
    ApiKey.ALTER_CONFIGS: legacy.AlterConfigsRequest(resources=[legacy.AlterConfigsResource(2, "t")]),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: incremental.IncrementalAlterConfigsRequest(
        resources=[incremental.AlterConfigsResource(2, "t")]
    ),
}
ENTRIES: dict[ApiKey, Any] = {
    ApiKey.ALTER_CONFIGS: legacy.AlterConfigsResourceResponse,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: incremental.AlterConfigsResourceResponse,
}


class Elsewhere:
    """The active controller is in another process; it gives this answer, or raises it."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[tuple[int, Any, Asker]] = []

    def __call__(self, version: int, request: Any, asker: Asker) -> Any:
        self.asked.append((version, request, asker))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def request_of(key: ApiKey) -> Any:
    return REQUESTS.get(key) or registry.request_class(key)()


def sent(world: NodeWorld, request: Any, version: int, *, by_token: bool = False) -> Any:
    """The answer of the broker's dispatcher to alice."""
    session = Session("EXTERNAL", "10.0.0.7", ALICE)
    session.token_authenticated = by_token
    data = encode_request(RequestHeader(request.API_KEY, version, 5, "console"), request)[4:]
    outgoing: Any = Dispatcher(world.broker, world.broker.apis).handle(session, memoryview(data))
    parts = run(outgoing) if isinstance(outgoing, Coroutine) else outgoing
    body = b"".join(parts)[4:]
    _, position = decode_response_header(body, response_header_is_flexible(request.API_KEY, version))
    return registry.response_class(request.API_KEY).decode(body[position:], version)


def altering(operation: AclOperation = AclOperation.ALTER_CONFIGS) -> Allowing:
    return Allowing({(operation, ResourceType.CLUSTER, CLUSTER_NAME)})


@pytest.mark.parametrize("key", FORWARDED, ids=lambda key: ApiKey(key).name)
def test_with_an_authorizer_another_process_decides_for_the_client_and_the_broker_asks_nothing(key: ApiKey) -> None:
    answer = registry.response_class(key)()
    if key in REQUESTS:
        answer.responses = [ENTRIES[key](resource_type=2, resource_name="t")]
    for version in range(BROKER_APIS[key].api.versions[0], BROKER_APIS[key].api.versions[1] + 1):
        world = NodeWorld(LOGIN)
        access = world.broker.access = Allowing()
        elsewhere = world.controller.elsewhere = Elsewhere(answer)
        request = request_of(key)
        assert sent(world, request, version) == type(answer).decode(answer.encode(version), version)
        ((asked_version, asked, asker),) = elsewhere.asked
        assert (asked_version, asked.encode(version)) == (version, request.encode(version))
        assert asker == Asker(ALICE, "console", "10.0.0.7", False)
        assert not access.loud


def test_who_changes_acls_through_a_broker_reads_them_there() -> None:
    """KafkaAdminClient may ask the same broker for the ACLs as soon as it has the answer."""
    entry = AccessControlEntry(
        ResourceType.TOPIC, "t", PatternType.LITERAL, "User:bob", "*", AclOperation.READ, PermissionType.ALLOW
    )
    refused = AclCreation(ResourceType.TOPIC, "u", PatternType.LITERAL, "nonsense", "*", AclOperation.READ, PermissionType.ALLOW)
    acl = (ResourceType.TOPIC, "t", PatternType.LITERAL, "User:bob", "*", AclOperation.READ, PermissionType.ALLOW)
    world = NodeWorld(LOGIN)
    world.broker.access = Allowing()
    without = world.broker.image
    has_it = replace(without, acls={Uuid(b"a" * 16): entry})
    created = CreateAclsResponse(results=[AclCreationResult(), AclCreationResult(error_code=ErrorCode.INVALID_REQUEST)])
    world.controller.elsewhere = Elsewhere(created)
    sent(world, CreateAclsRequest(creations=[AclCreation(*acl), refused]), 3)
    (awaited,) = world.controller.awaited
    assert (awaited(without), awaited(has_it)) == (False, True)

    found = DeleteAclsMatchingAcl(0, None, *acl)
    world.controller.elsewhere = Elsewhere(DeleteAclsResponse(filter_results=[DeleteAclsFilterResult(matching_acls=[found])]))
    any_acl = DeleteAclsFilter(ResourceType.TOPIC, "t", PatternType.ANY, None, None, AclOperation.ANY, PermissionType.ANY)
    sent(world, DeleteAclsRequest(filters=[any_acl]), 3)
    awaited = world.controller.awaited[-1]
    assert (awaited(without), awaited(has_it)) == (True, False)


def test_that_the_client_came_with_a_token_travels() -> None:
    world = NodeWorld()
    world.broker.access = Allowing()
    elsewhere = world.controller.elsewhere = Elsewhere(registry.response_class(ApiKey.ALTER_CLIENT_QUOTAS)())
    sent(world, LIMIT, 1, by_token=True)
    assert elsewhere.asked[0][2].token_authenticated


def test_without_an_authorizer_nothing_is_passed_on() -> None:
    world = NodeWorld()
    world.controller.elsewhere = Elsewhere(AssertionError("it decides here, and only the change goes to the controller"))
    assert [each.error_code for each in sent(world, LIMIT, 1).entries] == [0]
    assert world.broker.image.quotas


@pytest.mark.parametrize("key", TOKENS, ids=lambda key: key.name)
def test_requests_about_tokens_are_passed_on_with_their_client_even_without_an_authorizer(key: ApiKey) -> None:
    world = NodeWorld(LOGIN)
    elsewhere = world.controller.elsewhere = Elsewhere(registry.response_class(key)())
    assert sent(world, request_of(key), 2).error_code == 0
    assert [asker.principal for _, _, asker in elsewhere.asked] == [ALICE]
    assert sent(world, request_of(key), 2, by_token=True).error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert len(elsewhere.asked) == 1


def test_where_the_controller_is_here_the_broker_decides_itself() -> None:
    world = NodeWorld()
    access = world.broker.access = Allowing()
    assert [each.error_code for each in sent(world, LIMIT, 1).entries] == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED]
    assert access.loud == [(AclOperation.ALTER_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME)]
    assert not world.broker.image.quotas
    world.broker.access = altering()
    assert [each.error_code for each in sent(world, LIMIT, 1).entries] == [0]
    assert world.broker.image.quotas


@pytest.mark.parametrize(("access", "code"), [(Allowing(), ErrorCode.CLUSTER_AUTHORIZATION_FAILED), (altering(), 0)])
def test_a_controller_that_comes_here_meanwhile_does_not_let_a_request_pass_unchecked(access: Allowing, code: int) -> None:
    world = NodeWorld()
    world.broker.access = access
    world.controller.elsewhere = Elsewhere(ControllerIsHere())
    assert [each.error_code for each in sent(world, LIMIT, 1).entries] == [code]
    assert bool(world.broker.image.quotas) is (code == 0)


def test_a_version_that_the_controller_does_not_serve_closes_the_clients_connection() -> None:
    world = NodeWorld()
    world.broker.access = Allowing()
    world.controller.elsewhere = Elsewhere(NotServedByController(ErrorCode.UNSUPPORTED_VERSION))
    with pytest.raises(ProtocolViolation, match="ALTER_CLIENT_QUOTAS version 1") as closed:
        sent(world, LIMIT, 1)
    assert closed.value.client_id == "console"


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.REQUEST_TIMED_OUT])
def test_what_went_wrong_on_the_way_is_the_error_of_each_entry(code: ErrorCode) -> None:
    world = NodeWorld()
    world.broker.access = Allowing()
    world.controller.elsewhere = Elsewhere(KafkaError(code))
    assert [each.error_code for each in sent(world, LIMIT, 1).entries] == [code]


def test_only_what_the_active_controller_decides_is_passed_on() -> None:
    whole = {key for key, route in BROKER_APIS.items() if route.forwards}
    parts = {key for key, route in BROKER_APIS.items() if route.api.forwards_itself}
    assert parts == {ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS, *TOKENS}
    assert whole | parts == set(FORWARDED)
    assert not whole & parts
