"""Envelope: a request that a broker forwards to the active controller, with its client's principal and address (KIP-590).

With an authorizer, brokers forward all such requests in envelopes (``broker.forwarding``); without one Apache Kafka's do, and
tidelog's only those that count against a client's quota. The content is a whole request with its header, and so is the answer.
Only forwardable APIs are accepted, at the versions that this controller serves directly. A controller that is not active reports
it in the envelope, where the broker looks; the broker then tries another controller, and its client does not notice.

The sender needs CLUSTER_ACTION on the cluster, because it may name any client. The client's principal and address count for
permissions and quotas.
"""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

from tidelog.broker.answer_types import Answer, Later, Outgoing
from tidelog.broker.api import Route
from tidelog.broker.dispatch import Dispatcher
from tidelog.broker.forwarded_principal import Forwarded, sealed_principal, unsealed_principal
from tidelog.broker.node import ControllerContext
from tidelog.broker.ports import Asker, NotServedByController
from tidelog.broker.refusals import first_error
from tidelog.broker.request import Context, Session
from tidelog.model.addresses import ip_address
from tidelog.model.errors import ErrorCode, KafkaError, ProtocolViolation
from tidelog.protocol import registry
from tidelog.protocol.framing import (
    RequestHeader,
    decode_response_header,
    encode_request,
    read_request_header,
    response_header_is_flexible,
)
from tidelog.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from tidelog.protocol.structure import Message

_SIZE_BYTES = 4


class _Opened:
    """The request inside an envelope, served as on its own connection. A NOT_CONTROLLER is recorded, because the forwarding
    broker then has to try another controller."""

    def __init__(self, inner: Route) -> None:
        self._inner = inner
        self.route = replace(inner, api=replace(inner.api, refuse=self._refuse), handler=self._ask)
        self.not_active = False

    def _ask(self, ctx: Context, request: Any) -> Answer | Later:
        answer = self._inner.handler(ctx, request)
        return self._later(answer) if isinstance(answer, Coroutine) else self._looked_at(answer)

    async def _later(self, later: Later) -> Answer:
        return self._looked_at(await later)

    def _looked_at(self, answer: Answer) -> Answer:
        if isinstance(answer, Message) and first_error(answer) is ErrorCode.NOT_CONTROLLER:
            self.not_active = True
        return answer

    def _refuse(self, ctx: Context, request: Any, error: KafkaError) -> Answer:
        self.not_active = error.code is ErrorCode.NOT_CONTROLLER
        return self._inner.api.refuse(ctx, request, error)


def envelope(ctx: ControllerContext, request: EnvelopeRequest) -> EnvelopeResponse | Coroutine[Any, Any, EnvelopeResponse]:
    """Sent by brokers. Errors: INVALID_REQUEST for a request that is not forwardable and an invalid address, UNSUPPORTED_VERSION
    for a request that cannot be read, NOT_CONTROLLER, PRINCIPAL_DESERIALIZATION_FAILURE; all others are in the answer inside."""
    try:
        client = unsealed_principal(request.request_principal)
    except ProtocolViolation:
        return EnvelopeResponse(error_code=ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE)
    try:
        peer_host = _host(request.client_host_address)
    except ValueError:
        return EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)
    try:
        key, version, _, _, _ = read_request_header(request.request_data)
    except ProtocolViolation:
        return EnvelopeResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    route = ctx.node.apis.get(key)
    if route is None or not route.api.forwarded:
        return EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)
    if not route.api.versions[0] <= version <= route.api.versions[1]:
        return EnvelopeResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    inside = Session(ctx.listener, peer_host, client.principal)
    inside.token_authenticated = client.token_authenticated
    inside.forwarded = True
    inside.client_software_name = ctx.session.client_software_name
    inside.client_software_version = ctx.session.client_software_version
    opened = _Opened(route)
    try:
        outgoing = Dispatcher(ctx.node, {key: opened.route}).handle(inside, memoryview(request.request_data))
    except ProtocolViolation:
        return EnvelopeResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    return _later(opened, outgoing) if isinstance(outgoing, Coroutine) else _sealed(opened, outgoing)


async def _later(opened: _Opened, outgoing: Coroutine[Any, Any, Outgoing]) -> EnvelopeResponse:
    return _sealed(opened, await outgoing)


def _sealed(opened: _Opened, outgoing: Outgoing) -> EnvelopeResponse:
    """The envelope with the answer, without the answer's length prefix."""
    if opened.not_active:
        return EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)
    if not isinstance(outgoing, list):
        return EnvelopeResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
    parts = [part for part in outgoing if isinstance(part, bytes | bytearray | memoryview)]
    assert len(parts) == len(outgoing), "controllers send no files"
    return EnvelopeResponse(response_data=b"".join(parts)[_SIZE_BYTES:])


def _host(address: bytes) -> str:
    """The text of an address of 4 or 16 bytes. ValueError for any other length."""
    read = ip_address(bytes(address))
    return str(getattr(read, "ipv4_mapped", None) or read)


def _packed(host: str) -> bytes:
    """The bytes of an address; an IPv4 address that is mapped into IPv6 has 4, because ACLs name it so."""
    return ip_address(_host(ip_address(host.partition("%")[0]).packed)).packed


def sealed_request(asker: Asker, version: int | None, request: Message) -> EnvelopeRequest:
    """The envelope of a client's request, for a controller that has to know the client."""
    api_key: int = request.API_KEY  # type: ignore[attr-defined]
    header = RequestHeader(api_key, request.MAX_VERSION if version is None else version, 0, asker.client_id)
    return EnvelopeRequest(
        request_data=encode_request(header, request)[_SIZE_BYTES:],
        request_principal=sealed_principal(Forwarded(asker.principal, asker.token_authenticated)),
        client_host_address=_packed(asker.host),
    )


def unsealed(response: EnvelopeResponse, version: int | None, request: Message) -> Any:
    """The answer inside. ProtocolViolation: the answer cannot be decoded.

    KafkaError: NOT_CONTROLLER, NotServedByController, and UNKNOWN_SERVER_ERROR for each other error of the envelope, because the
    client did not send it.
    """
    if response.error_code == ErrorCode.NOT_CONTROLLER:
        raise KafkaError(ErrorCode.NOT_CONTROLLER, "the controller that was asked is not active")
    if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
        raise NotServedByController(ErrorCode.UNSUPPORTED_VERSION, "The active controller does not serve this version.")
    if response.error_code != ErrorCode.NONE:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "The active controller did not take the request that was passed on.")
    api_key: int = request.API_KEY  # type: ignore[attr-defined]
    version = request.MAX_VERSION if version is None else version
    data = response.response_data or b""
    _, position = decode_response_header(data, response_header_is_flexible(api_key, version))
    return registry.response_class(api_key).decode(memoryview(data)[position:], version)
