"""Envelope: a request that a broker passes on to the active controller, with its client's name and address (KIP-590).

Apache Kafka's brokers pass all such requests on like that, brokers of ours what clients have quotas for.
Inside is a whole request with its header, and so is the answer. Only what brokers forward is taken, at the versions that this
controller serves directly. A controller that is not active says so outside, where the broker looks: it then asks another one, and
its client never hears of it. The principal inside is not looked at: nobody is refused anything before there are ACLs.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Coroutine, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from tidelog.broker.api import Api
from tidelog.broker.context import CLOSE_CONNECTION, Asker, Context
from tidelog.broker.dispatch import Dispatcher, Outgoing
from tidelog.model.errors import ErrorCode, KafkaError, ProtocolViolation
from tidelog.protocol import registry
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.framing import (
    RequestHeader,
    decode_response_header,
    encode_request,
    read_request_header,
    response_header_is_flexible,
)
from tidelog.protocol.messages.default_principal_data import DefaultPrincipalData
from tidelog.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from tidelog.protocol.structure import Message

FORWARDED = frozenset(
    {
        ApiKey.ADD_RAFT_VOTER,
        ApiKey.ALTER_CLIENT_QUOTAS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.CREATE_ACLS,
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_ACLS,
        ApiKey.DELETE_TOPICS,
        ApiKey.DESCRIBE_QUORUM,
        ApiKey.ELECT_LEADERS,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        ApiKey.REMOVE_RAFT_VOTER,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.UNREGISTER_BROKER,
        ApiKey.UPDATE_FEATURES,
    }
)
"""What a broker does not decide itself."""
_SIZE_BYTES = 4
_PRINCIPAL_VERSION = 0


class _NotActive(Exception):
    """Another controller is to be asked."""


def envelope(ctx: Context, request: EnvelopeRequest) -> EnvelopeResponse | Coroutine[Any, Any, EnvelopeResponse]:
    """Sent by brokers. Errors: INVALID_REQUEST for what cannot be read or is not forwarded, UNSUPPORTED_VERSION, NOT_CONTROLLER;
    all others are in the answer inside."""
    try:
        peer_host = str(ipaddress.ip_address(request.client_host_address))
        key, version, _, _, _ = read_request_header(request.request_data)
    except (ValueError, ProtocolViolation):
        return EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)
    served = forwarded_apis(ctx.broker.apis)
    if key not in served:
        return EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)
    if not served[key].versions[0] <= version <= served[key].versions[1]:
        return EnvelopeResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    inside = Context(ctx.broker, listener=ctx.listener, peer_host=peer_host)
    inside.client_software_name, inside.client_software_version = ctx.client_software_name, ctx.client_software_version
    try:
        outgoing = Dispatcher(served).handle(inside, memoryview(request.request_data))
    except ProtocolViolation:
        return EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)
    except _NotActive:
        return EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)
    return _later(outgoing) if isinstance(outgoing, Coroutine) else _sealed(outgoing)


async def _later(outgoing: Coroutine[Any, Any, Outgoing]) -> EnvelopeResponse:
    try:
        return _sealed(await outgoing)
    except _NotActive:
        return EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)


def _sealed(outgoing: Outgoing) -> EnvelopeResponse:
    """The answer without the size that precedes it on a connection of its own."""
    if not isinstance(outgoing, list):
        return EnvelopeResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
    parts = [part for part in outgoing if isinstance(part, bytes | bytearray | memoryview)]
    assert len(parts) == len(outgoing), "controllers send no files"
    return EnvelopeResponse(response_data=b"".join(parts)[_SIZE_BYTES:])


def sealed_request(asker: Asker, version: int | None, request: Message) -> EnvelopeRequest:
    """A client's request, as it is passed on to a controller that has to know whose it is."""
    api_key: int = request.API_KEY  # type: ignore[attr-defined]
    header = RequestHeader(api_key, request.MAX_VERSION if version is None else version, 0, asker.client_id)
    principal = bytearray(_PRINCIPAL_VERSION.to_bytes(2, "big"))
    DefaultPrincipalData(type="User", name=asker.user).encode_into(principal, _PRINCIPAL_VERSION)
    return EnvelopeRequest(
        request_data=encode_request(header, request)[_SIZE_BYTES:],
        request_principal=bytes(principal),
        client_host_address=ipaddress.ip_address(asker.host.partition("%")[0]).packed,
    )


def unsealed(response: EnvelopeResponse, version: int | None, request: Message) -> Any:
    """The answer inside. KafkaError: the envelope's own error; ProtocolViolation: it holds no answer."""
    if response.error_code != ErrorCode.NONE:
        raise KafkaError(ErrorCode(response.error_code), "The active controller did not take the request that was passed on.")
    api_key: int = request.API_KEY  # type: ignore[attr-defined]
    version = request.MAX_VERSION if version is None else version
    data = response.response_data or b""
    _, position = decode_response_header(data, response_header_is_flexible(api_key, version))
    return registry.response_class(api_key).decode(memoryview(data)[position:], version)


def forwarded_apis(apis: Mapping[int, Api]) -> dict[int, Api]:
    """The rows of a controller's table that brokers may ask for by an envelope; where another controller is to be asked, they
    raise."""
    return {
        key: replace(api, handler=partial(_ask, api), on_error=partial(_refuse, api))
        for key, api in apis.items()
        if key in FORWARDED
    }


def _ask(api: Api, ctx: Context, request: Any) -> Any:
    answer = api.handler(ctx, request)
    return _ask_later(answer) if isinstance(answer, Coroutine) else _decided(answer)


async def _ask_later(answer: Coroutine[Any, Any, Any]) -> Any:
    return _decided(await answer)


def _decided(answer: Any) -> Any:
    if getattr(answer, "error_code", ErrorCode.NONE) == ErrorCode.NOT_CONTROLLER:
        raise _NotActive
    return answer


def _refuse(api: Api, request: Any, error: KafkaError) -> Any:
    if error.code is ErrorCode.NOT_CONTROLLER:
        raise _NotActive
    return CLOSE_CONNECTION if api.on_error is None else api.on_error(request, error)
