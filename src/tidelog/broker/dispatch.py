"""From a request frame to the bytes of its answer: header, version check, decoding, the handler, encoding.

An error raised by a handler becomes a response only here, by the row of the table: a ``KafkaError`` with its code, an unexpected
exception as UNKNOWN_SERVER_ERROR with the traceback in the log. As in Kafka, the connection closes only for an unknown API, an
unsupported version or an unreadable body. ApiVersions answers an unsupported version with a version 0 body, because that is how
clients negotiate.

If a handler returns a coroutine, so does ``handle``; the connection drives it.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from types import CoroutineType
from typing import Any, Final, Protocol, TypeAlias

from tidelog.broker.answer_types import Answer, Encoded, Outgoing, Signal, Waiting, as_kafka_error
from tidelog.broker.api import Handler, Route
from tidelog.broker.authorization import require_for_request
from tidelog.broker.deferred import loaded
from tidelog.broker.forwarding import forwarding
from tidelog.broker.ports import Node
from tidelog.broker.request import Context, RequestContext, Session
from tidelog.broker.request_entries import bounded, decoded
from tidelog.broker.request_times import UNKNOWN_VERSION, RequestTimes, Sampling, Timed, name_of
from tidelog.broker.usage import Usage
from tidelog.model.errors import ProtocolViolation
from tidelog.protocol import registry
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.fastpath import FetchView
from tidelog.protocol.framing import (
    encode_response_message,
    read_request_header,
    response_header_is_flexible,
    response_prefix,
)

JOINED_BYTES: Final = 16 * 1024
"""Up to this size an answer that is kept encoded is copied behind its header: one buffer leaves with less work than two."""


class _Served:
    """A route with what dispatching needs as attributes, created on the first request of the API."""

    __slots__ = ("first", "handler", "key", "last", "left", "needs", "read", "refuse", "requests", "sampling")

    def __init__(self, route: Route) -> None:
        self.key = route.api.key
        self.first, self.last = route.api.versions
        self.handler: Handler = forwarding(route) if route.forwards else loaded(route.handler)
        self.read: Callable[[memoryview, int, int], Any] = route.read or registry.request_class(self.key).read
        if route.read is None and route.needs.on_cluster is None and route.api.between_brokers_from is None:
            self.read = bounded(self.read)
        self.refuse = route.api.refuse
        self.needs = None if route.forwards else route.needs.on_cluster
        """The operation on the cluster without which the request is refused; None where the handler or the controller asks."""
        self.requests = [0] * (self.last + 1)
        """Decoded requests, by version."""
        self.sampling = Sampling()
        self.left = 1
        """The ``left``-th request from here is timed."""


class Lane(Protocol):
    """The compiled path of an API's plain requests; it keeps the counters of the API's row and of the client."""

    def __call__(self, session: Session, frame: memoryview, begun: Callable[[Context], None] | None) -> Outgoing | None:
        """As ``Dispatcher.handle``; None when the request is not the lane's, and then nothing has changed."""
        ...


MakeLane: TypeAlias = Callable[..., Lane | None]
"""Makes a lane of (the node, the row of the API, the dispatcher). None: the lane does not stand for this handler."""


class Dispatcher:
    """Finds the handler of a frame and turns its answer into a response frame."""

    __slots__ = ("_apis", "_node", "_served", "_times", "_usage", "fetches", "produces")

    def __init__(
        self,
        node: Node,
        apis: Mapping[int, Route],
        times: RequestTimes | None = None,
        usage: Usage | None = None,
        fetches: MakeLane | None = None,
        produces: MakeLane | None = None,
    ) -> None:
        """``times``: where the times of some requests go; without it none is timed. ``usage``: the accounts of the listener;
        without it they are of no use, as before a login and inside of an envelope. ``fetches``, ``produces``: make the lanes of
        Fetch and Produce."""
        self._node = node
        self._apis = apis
        self._served: dict[int, _Served] = {}
        self._times = times
        self._usage = Usage() if usage is None else usage
        self.fetches = self._lane(ApiKey.FETCH, fetches)
        self.produces = self._lane(ApiKey.PRODUCE, produces)

    def _lane(self, key: ApiKey, make: MakeLane | None) -> Lane | None:
        served = self.row(key)
        if make is None or served is None:
            return None
        return make(self._node, served, self)

    def handle(
        self, session: Session, frame: memoryview, begun: Callable[[Context], None] | None = None
    ) -> Outgoing | Coroutine[Any, Any, Outgoing]:
        """Answer the request in ``frame`` (without its length prefix); the view must stay valid until the answer is ready.
        ``begun`` is called with the context before the handler runs.

        ProtocolViolation: the request cannot be read; close the connection.
        """
        if self.produces is not None and (answered := self.produces(session, frame, begun)) is not None:
            return answered
        if self.fetches is not None and (answered := self.fetches(session, frame, begun)) is not None:
            return answered
        return self.handle_unusual(session, frame, begun)

    def handle_unusual(
        self, session: Session, frame: memoryview, begun: Callable[[Context], None] | None = None
    ) -> Outgoing | Coroutine[Any, Any, Outgoing]:
        """As ``handle``, for a request that is no lane's."""
        key, version, correlation_id, client_id, position = read_request_header(frame)
        ctx = RequestContext(self._node, session, key, version, correlation_id, client_id)
        served = self._served.get(key) or self._serve(ctx)
        if begun is not None:
            begun(ctx)
        if not served.first <= version <= served.last:
            return self._unsupported(ctx, served)
        try:
            request = decoded(served.read, frame, position, version)
        except ProtocolViolation as violation:
            violation.client_id = ctx.client_id
            raise
        served.requests[version] += 1
        if key != session.api_key or client_id != session.client_id:
            self._usage.switch(session, key, client_id)
        session.requests += 1
        served.left -= 1
        timed = None if served.left else self.timed(session, served, request, version=version)
        try:
            if served.needs is not None:
                require_for_request(ctx, served.needs, request)
            answer = served.handler(ctx, request)
        except Exception as error:
            answer = served.refuse(ctx, request, as_kafka_error(error))
        outgoing: Outgoing | Coroutine[Any, Any, Outgoing]
        if type(answer) is list:
            outgoing = answer
        elif type(answer) is CoroutineType:
            outgoing = _later(ctx, served, request, answer)
        elif isinstance(answer, Waiting):
            outgoing = answer
        else:
            assert not isinstance(answer, Coroutine)
            outgoing = _outgoing(ctx, served.key, answer)
        return outgoing if timed is None else timed.follow(outgoing)

    # -- for compiled lanes -----------------------------------------------------------------------------------------------

    def row(self, key: ApiKey) -> _Served | None:
        """The row of an API, whose counters its lane keeps. None: the API is not served."""
        route = self._apis.get(key)
        if route is None:
            return None
        served = self._served.get(key)
        if served is None:
            served = self._served[key] = _Served(route)
        return served

    @property
    def clock_ns(self) -> Callable[[], int] | None:
        """The clock of stopwatches; None where none is used."""
        return None if self._times is None else self._times.clock_ns

    @property
    def switch(self) -> Callable[[Session, int, str | None], None]:
        """``Usage.switch``."""
        return self._usage.switch

    def failed(self, session: Session, served: _Served, frame: memoryview, error: Exception) -> Outgoing:
        """The answer to a request that a lane had begun to change things for when ``error`` was raised: the handler's refusal."""
        key, version, correlation_id, client_id, position = read_request_header(frame)
        ctx = RequestContext(self._node, session, key, version, correlation_id, client_id)
        request = decoded(served.read, frame, position, version)
        return _outgoing(ctx, served.key, served.refuse(ctx, request, as_kafka_error(error)))

    def timed(
        self, session: Session, served: _Served, request: Any, handled_ns: int = 0, version: int = UNKNOWN_VERSION
    ) -> Timed | None:
        """The stopwatch of a request whose turn it is; ``handled_ns`` and ``version`` as for ``Timed``."""
        if self._times is None:
            return None
        name = name_of(served.key, request)
        # Controllers read Fetch with the generated class: the long poll of another node for metadata.
        of_quorum = served.key == ApiKey.FETCH and not isinstance(request, FetchView)
        timed = Timed(self._times, session, name, served.sampling, handled_ns, version, waits_by_nature=of_quorum)
        served.left = served.sampling.weight
        return timed

    @property
    def requests(self) -> dict[tuple[ApiKey, int], int]:
        """Decoded requests by API and version."""
        return {
            (ApiKey(key), version): count
            for key, served in self._served.items()
            for version, count in enumerate(served.requests)
            if count
        }

    def _serve(self, ctx: Context) -> _Served:
        route = self._apis.get(ctx.api_key)
        if route is None:
            raise ProtocolViolation(f"API key {ctx.api_key} is not served", ctx.client_id)
        served = self._served[ctx.api_key] = _Served(route)
        return served

    def _unsupported(self, ctx: Context, served: _Served) -> Outgoing:
        if served.key != ApiKey.API_VERSIONS:
            raise ProtocolViolation(
                f"{ApiKey(served.key).name} version {ctx.api_version} is not served; "
                f"versions {served.first} to {served.last} are",
                ctx.client_id,
            )
        answer = served.handler(ctx, None)
        assert not isinstance(answer, Coroutine)
        ctx.api_version = 0
        return _outgoing(ctx, served.key, answer)


async def _later(ctx: Context, served: _Served, request: Any, answer: Coroutine[Any, Any, Answer]) -> Outgoing:
    try:
        result = await answer
    except Exception as error:
        result = served.refuse(ctx, request, as_kafka_error(error))
    return _outgoing(ctx, served.key, result)


def _outgoing(ctx: Context, key: int, answer: Answer) -> Outgoing:
    if isinstance(answer, list | Signal | Waiting):
        return answer
    version = ctx.api_version
    if isinstance(answer, Encoded):
        prefix = response_prefix(ctx.correlation_id, response_header_is_flexible(key, version), answer.size)
        only = answer.parts[0] if len(answer.parts) == 1 and answer.size <= JOINED_BYTES else None
        return [prefix + only] if type(only) is bytes else [prefix, *answer.parts]
    return [encode_response_message(ctx.correlation_id, key, version, answer)]
