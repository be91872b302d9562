"""From a frame to the bytes of its answer: header, version check, decoding, the handler, encoding.

Refusals are Kafka's: an API that is not served, a version of it that is not, and a body that cannot be read close the
connection; only ApiVersions is answered at an unknown version, with a version 0 body, because that is how a client finds
out. ``KafkaError`` is caught here and nowhere else.

A handler that returns a coroutine makes ``handle`` return one; whoever runs the connection drives it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Mapping
from types import CoroutineType
from typing import Any

from tidelog.broker.api import Api
from tidelog.broker.context import CLOSE_CONNECTION, NO_RESPONSE, Answer, Context, Encoded, Handler, Signal, Waiting
from tidelog.model.errors import KafkaError, ProtocolViolation
from tidelog.model.ports import FileSlice
from tidelog.protocol import registry
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.framing import (
    encode_response_message,
    read_request_header,
    response_header_is_flexible,
    response_prefix,
)

log = logging.getLogger(__name__)

Part = bytes | bytearray | memoryview | FileSlice
Outgoing = list[Part] | Signal | Waiting
"""A whole response frame in parts, length prefix included; or what to do instead of answering; or what to wait for."""


class _Route:
    """A row of the table with all that dispatching needs in attributes, made when the API is first asked for."""

    __slots__ = ("first", "handler", "key", "last", "on_error", "read", "requests")

    def __init__(self, api: Api) -> None:
        self.key = api.key
        self.first, self.last = api.versions
        self.handler: Handler = api.handler
        self.read: Callable[[memoryview, int, int], Any] = api.read or registry.request_class(api.key).read
        self.on_error = api.on_error
        self.requests = 0


class Dispatcher:
    """Finds the handler of a frame and turns its answer into a response frame."""

    __slots__ = ("_apis", "_routes")

    def __init__(self, apis: Mapping[int, Api]) -> None:
        self._apis = apis
        self._routes: dict[int, _Route] = {}

    def handle(self, ctx: Context, frame: memoryview) -> Outgoing | Coroutine[Any, Any, Outgoing]:
        """Answer the request in ``frame`` (without its length prefix); the view must stay valid until the answer is there.

        ProtocolViolation: it cannot be read, close the connection.
        """
        key, version, ctx.correlation_id, ctx.client_id, position = read_request_header(frame)
        route = self._routes.get(key) or self._route(key)
        ctx.api_key = key
        ctx.api_version = version
        if not route.first <= version <= route.last:
            return self._unsupported(ctx, route)
        request = route.read(frame, position, version)
        route.requests += 1
        try:
            answer = route.handler(ctx, request)
        except KafkaError as error:
            answer = _refused(ctx, route, request, error)
        if type(answer) is list:
            return answer
        if type(answer) is CoroutineType:
            return _later(ctx, route, request, answer)
        return _outgoing(ctx, route, answer)

    @property
    def requests(self) -> dict[ApiKey, int]:
        """How many requests of each API were read."""
        return {ApiKey(key): route.requests for key, route in self._routes.items()}

    def _route(self, key: int) -> _Route:
        api = self._apis.get(key)
        if api is None:
            raise ProtocolViolation(f"API key {key} is not served")
        route = self._routes[key] = _Route(api)
        return route

    def _unsupported(self, ctx: Context, route: _Route) -> Outgoing | Coroutine[Any, Any, Outgoing]:
        if route.key != ApiKey.API_VERSIONS:
            raise ProtocolViolation(
                f"{ApiKey(route.key).name} version {ctx.api_version} is not served; versions {route.first} to {route.last} are"
            )
        answer = route.handler(ctx, None)
        ctx.api_version = 0
        return _outgoing(ctx, route, answer)


async def _later(ctx: Context, route: _Route, request: Any, answer: Coroutine[Any, Any, Answer]) -> Outgoing:
    try:
        result = await answer
    except KafkaError as error:
        result = _refused(ctx, route, request, error)
    return _outgoing(ctx, route, result)


def _refused(ctx: Context, route: _Route, request: Any, error: KafkaError) -> Answer:
    if route.on_error is None:
        log.warning("%s of client %s failed, closing its connection: %s", ApiKey(route.key).name, ctx.client_id, error)
        return CLOSE_CONNECTION
    return route.on_error(request, error)


def _outgoing(ctx: Context, route: _Route, answer: Answer) -> Outgoing:
    if answer is NO_RESPONSE or answer is CLOSE_CONNECTION:
        assert isinstance(answer, Signal)
        return answer
    if type(answer) is list or isinstance(answer, Waiting):
        return answer
    version = ctx.api_version
    if isinstance(answer, Encoded):
        flexible = response_header_is_flexible(route.key, version)
        return [response_prefix(ctx.correlation_id, flexible, answer.size), *answer.parts]
    return [encode_response_message(ctx.correlation_id, route.key, version, answer)]
