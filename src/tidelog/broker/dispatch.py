"""From a frame to the bytes of its answer: header, version check, decoding, the handler, encoding.

Refusals are Kafka's: an API that is not served, a version of it that is not, and a body that cannot be read close the
connection; only ApiVersions is answered at an unknown version, with a version 0 body, because that is how a client finds
out. ``KafkaError`` is caught here and nowhere else.

A handler that returns a coroutine makes ``handle`` return one; whoever runs the connection drives it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Mapping
from struct import Struct
from types import CoroutineType
from typing import Any

from tidelog.broker.api import Api
from tidelog.broker.context import CLOSE_CONNECTION, NO_RESPONSE, Answer, Context, Encoded, Handler, Signal
from tidelog.model.errors import KafkaError, ProtocolViolation
from tidelog.model.ports import FileSlice
from tidelog.protocol import registry
from tidelog.protocol.api_keys import ApiKey

log = logging.getLogger(__name__)

Part = bytes | bytearray | memoryview | FileSlice
Outgoing = list[Part] | Signal
"""A whole response frame in parts, length prefix included; or what to do instead of answering."""

_HEADER = Struct(">hhih")
_HEADER_SIZE = _HEADER.size
_FRAME_V0 = Struct(">ii")
_FRAME_V1 = Struct(">iib")


class _Route:
    """A row of the table with all that dispatching needs in attributes, made when the API is first asked for."""

    __slots__ = ("first", "flexible_from", "handler", "header_v1_from", "key", "last", "on_error", "read")

    def __init__(self, api: Api) -> None:
        request = registry.request_class(api.key)
        self.key = api.key
        self.first, self.last = api.versions
        self.flexible_from: int = request.FLEXIBLE_FROM
        # ApiVersions is answered with a version 0 header at any version: the client does not know yet what we speak.
        self.header_v1_from: int = request.FLEXIBLE_FROM if api.key != ApiKey.API_VERSIONS else 1 << 15
        self.handler: Handler = api.handler
        self.read: Callable[[memoryview, int], Any] = api.read or request.decode
        self.on_error = api.on_error


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
        if len(frame) < _HEADER_SIZE:
            raise ProtocolViolation(f"a request of {len(frame)} bytes has no room for its header")
        key, version, correlation_id, client_length = _HEADER.unpack_from(frame)
        route = self._routes.get(key) or self._route(key)
        position = _HEADER_SIZE
        if client_length >= 0:
            position += client_length
            if position > len(frame):
                raise ProtocolViolation(f"a client id of {client_length} bytes in a request of {len(frame)}")
            ctx.client_id = _client_id(frame, position - client_length, position)
        else:
            ctx.client_id = None
        ctx.api_key = key
        ctx.api_version = version
        ctx.correlation_id = correlation_id
        if not route.first <= version <= route.last:
            return self._unsupported(ctx, route)
        if version >= route.flexible_from:
            position = _skip_tags(frame, position)
        request = route.read(frame[position:], version)
        try:
            answer = route.handler(ctx, request)
        except KafkaError as error:
            answer = _refused(ctx, route, request, error)
        if type(answer) is CoroutineType:
            return _later(ctx, route, request, answer)
        return _outgoing(ctx, route, answer)

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
    if type(answer) is list:
        return answer
    version = ctx.api_version
    if isinstance(answer, Encoded):
        parts: list[Part] = [b"", *answer.parts]
        size = answer.size
    else:
        body = answer.encode(version)
        parts = [b"", body]
        size = len(body)
    if version >= route.header_v1_from:
        parts[0] = _FRAME_V1.pack(size + 5, ctx.correlation_id, 0)
    else:
        parts[0] = _FRAME_V0.pack(size + 4, ctx.correlation_id)
    return parts


def _client_id(frame: memoryview, start: int, end: int) -> str:
    try:
        return str(frame[start:end], "utf-8")
    except UnicodeDecodeError as error:
        raise ProtocolViolation("the client id is not UTF-8") from error


def _skip_tags(frame: memoryview, position: int) -> int:
    """The position behind the header's tag section. No tag is defined for request headers: they are all unknown to us."""
    if position < len(frame) and frame[position] == 0:
        return position + 1
    count, position = _varint(frame, position)
    for _ in range(count):
        _, position = _varint(frame, position)
        size, position = _varint(frame, position)
        position += size
    if position > len(frame):
        raise ProtocolViolation("a tagged field of the request header goes beyond the request")
    return position


def _varint(frame: memoryview, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 35, 7):
        if position >= len(frame):
            break
        byte = frame[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise ProtocolViolation("the request header ends inside a number")
