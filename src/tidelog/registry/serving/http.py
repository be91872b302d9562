"""The API as an ASGI application: content types, bounded bodies, basic authentication, errors as JSON.

Routing is by the raw path (``rest.routing``), which frameworks decode; so there is none here.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, MutableMapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from tidelog.registry import errors
from tidelog.registry.errors import RegistryError
from tidelog.registry.model import compact
from tidelog.registry.outcome import Listed
from tidelog.registry.rest.api import Api
from tidelog.registry.rest.requests import Request
from tidelog.registry.serving.forwarding import Forwarding
from tidelog.registry.serving.leading import Leading
from tidelog.registry.serving.local import Local
from tidelog.registry.serving.logins import Logins
from tidelog.registry.serving.node import RegistryNode

log = logging.getLogger(__name__)
V1 = "application/vnd.schemaregistry.v1+json"
ANSWERS = (V1, "application/vnd.schemaregistry+json", "application/json")
BODIES = (*ANSWERS, "application/octet-stream")
BODY_S = 30.0
"""How long a client may take for a body."""
MAX_PARAMETERS = 100
PART_BYTES = 64 << 10
"""Of a long list: what is made of it before a client takes it."""

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Reply:
    """``body`` is empty with 204, and in parts for a long list."""

    status: int
    body: bytes | Iterator[bytes]
    content_type: str = V1
    headers: tuple[tuple[bytes, bytes], ...] = ()


class Application:
    """``logins`` None: everyone may do everything. ``max_body``: bytes. ``leading`` None: this registry is alone. ``local``: what
    guards a registry without login."""

    def __init__(
        self,
        api: Api,
        node: RegistryNode,
        logins: Logins | None,
        max_body: int,
        leading: Leading | None = None,
        forwarding: Forwarding | None = None,
        local: Local | None = None,
    ) -> None:
        self._api, self._node, self._logins, self._max_body = api, node, logins, max_body
        self._leading, self._forwarding, self._local = leading, forwarding, local

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI 3, HTTP only."""
        if scope["type"] != "http":
            return
        headers = _headers(scope["headers"])
        reply = await self._reply(scope, headers, receive)
        sent = [(b"content-type", reply.content_type.encode())]
        if isinstance(reply.body, bytes):
            sent.append((b"content-length", str(len(reply.body)).encode()))
        request_id = headers.get(b"x-request-id")
        if request_id is not None and len(request_id) <= 200:
            sent.append((b"x-request-id", request_id))
        status = {"type": "http.response.start", "status": reply.status, "headers": [*sent, *reply.headers]}
        await send(status)
        if isinstance(reply.body, bytes):
            await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else reply.body})
            return
        for part in reply.body if scope["method"] != "HEAD" else ():
            await send({"type": "http.response.body", "body": part, "more_body": True})
            await asyncio.sleep(0)  # a connection that takes all at once holds up no other request
        await send({"type": "http.response.body", "body": b""})

    async def _reply(self, scope: Scope, headers: dict[bytes, bytes], receive: Receive) -> Reply:
        content_type = V1
        try:
            content_type = _negotiated(headers.get(b"accept", b"").decode("latin-1"))
            if self._local is not None:
                self._local.check(headers)
            call = self._api.find(_request(scope, headers))
            await self._admit(scope, headers, writes=call.route.writes)
            if call.route.method in ("POST", "PUT"):
                _check_type(headers.get(b"content-type", b"").decode("latin-1"))
            body = await self._body(headers, receive)
            if call.route.writes and (forwarded := await self._forwarded(scope, headers, body)) is not None:
                return forwarded
            answer = await self._node.serve(self._api.find(_request(scope, headers, body)))
        except RegistryError as refused:
            return _refusal(refused, content_type)
        except Exception:
            log.exception("%s %s failed", scope["method"], scope["path"])
            return _refusal(RegistryError(500, 50001, "The registry failed; its log says why."), content_type)
        if answer is None:
            return Reply(204, b"", content_type)
        if isinstance(answer, Listed):
            return Reply(200, _parts(answer), content_type)
        return Reply(200, answer if isinstance(answer, bytes) else compact(answer).encode(), content_type)

    async def _forwarded(self, scope: Scope, headers: dict[bytes, bytes], body: bytes) -> Reply | None:
        """The answer of the registry that leads; None if it is this one. What was forwarded already is not again."""
        leader = None if self._leading is None else await self._leading.leader()
        if leader is None or self._forwarding is None:
            return None
        if headers.get(b"x-forward", b"").lower() == b"true":
            raise errors.no_leader(f"{leader.url} leads, and not this registry; try again")
        query = scope["query_string"].decode("latin-1")
        target = _raw_path(scope) + (f"?{query}" if query else "")
        answer = await self._forwarding.send(leader, scope["method"], target, headers, body)
        return Reply(answer.status, answer.body, answer.content_type)

    async def _admit(self, scope: Scope, headers: dict[bytes, bytes], *, writes: bool) -> None:
        """401 and 403 for those who may not, 429 and 503 for those who have to wait."""
        if self._logins is None:
            return
        address = (scope.get("client") or ("",))[0]
        user = await self._logins.admitted(headers.get(b"authorization", b""), address)
        if user is None:
            raise RegistryError(401, 401, "This registry needs the name and password of a user.")
        if writes and not user.may_write:
            raise RegistryError(403, 40301, f"User {user.name} may read, and not write.")

    async def _body(self, headers: dict[bytes, bytes], receive: Receive) -> bytes:
        """The whole body; 413 before more than the limit is kept."""
        announced = headers.get(b"content-length", b"0")
        if not announced.isdigit():
            raise errors.bad_request("Content-Length is no number")
        if len(announced) > 12 or int(announced) > self._max_body:
            raise self._too_large()
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(BODY_S):
                while True:
                    message = await receive()
                    if message["type"] != "http.request":
                        raise errors.bad_request("the connection ended within the body")
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > self._max_body:
                        raise self._too_large()
                    if not message.get("more_body", False):
                        return b"".join(parts)
        except TimeoutError as problem:
            raise RegistryError(408, 408, f"The body did not arrive within {BODY_S:.0f} s.") from problem

    def _too_large(self) -> RegistryError:
        return RegistryError(413, 413, f"A body has at most {self._max_body} bytes.")


def _parts(listed: Listed) -> Iterator[bytes]:
    """The JSON of a list, in parts of at least PART_BYTES."""
    part = bytearray(b"[")
    for number, each in enumerate(listed):
        if number:
            part += b","
        part += compact(each).encode()
        if len(part) >= PART_BYTES:
            yield bytes(part)
            part.clear()
    yield bytes(part + b"]")


def _headers(pairs: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    return {name.lower(): value for name, value in pairs}


def _request(scope: Scope, headers: dict[bytes, bytes], body: bytes = b"") -> Request:
    query: dict[str, list[str]] = {}
    try:
        pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True, max_num_fields=MAX_PARAMETERS)
    except ValueError as problem:
        raise errors.bad_request(f"a request has at most {MAX_PARAMETERS} parameters") from problem
    for name, value in pairs:
        query.setdefault(name, []).append(value)
    lenient = headers.get(b"confluent-accept-unknown-properties", b"").lower() == b"true"
    return Request(scope["method"], _raw_path(scope), query, body, lenient)


def _raw_path(scope: Scope) -> str:
    path: bytes = scope.get("raw_path") or scope["path"].encode()
    return path.partition(b"?")[0].decode("latin-1")


def _refusal(refused: RegistryError, content_type: str) -> Reply:
    body = compact({"error_code": refused.code, "message": refused.message}).encode("utf-8", "backslashreplace")
    login = ((b"www-authenticate", b'Basic realm="schema registry", charset="UTF-8"'),) if refused.status == 401 else ()
    closing = ((b"connection", b"close"),) if refused.status in (408, 503) else ()
    waiting = ((b"retry-after", str(refused.retry_after_s).encode()),) if refused.retry_after_s else ()
    return Reply(refused.status, body, content_type, (*login, *closing, *waiting))


def _negotiated(accept: str) -> str:
    """The type of the answer. 406 when the client takes none that there is."""
    ranked: list[tuple[float, int, str]] = []
    for index, part in enumerate(accept.split(",")[:50]):
        name, *parameters = (each.strip().lower() for each in part.split(";"))
        quality = next((each[2:] for each in parameters if each.startswith("q=")), "1")
        try:
            weight = float(quality)
        except ValueError:
            weight = 0.0
        if name and weight > 0:
            ranked.append((-weight, index, name))
    if not accept.strip():
        return V1
    for _, _, name in sorted(ranked):
        if name in ("*/*", "application/*"):
            return V1
        if name in ANSWERS:
            return name
    raise RegistryError(406, 406, f"This registry answers with {', '.join(ANSWERS)}.")


def _check_type(content_type: str) -> None:
    """415 for a body in another form. Without a type it is taken for JSON."""
    name = content_type.partition(";")[0].strip().lower()
    if name and name not in BODIES:
        raise RegistryError(415, 415, f"This registry reads {', '.join(BODIES)}, not {name[:80]}.")
