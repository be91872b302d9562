"""Meters the requests of a listener while client quotas exist: records usage, sets throttle times and mutes connections.

It replaces ``Dispatcher.handle`` only while there are quotas for clients; otherwise requests go straight to the dispatcher.
Handlers do not know about it, except for Fetch: the quota decides whether its records are sent (``RequestContext.fetch_quota``).

A Produce is judged when its records are in the log, any other request when it is answered (KIP-219: the answer is sent at once,
and the connection is not read until the throttle time is over). Of two throttle times the longer one applies. Requests between
brokers are exempt.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator, Mapping
from dataclasses import replace
from functools import partial
from types import CoroutineType
from typing import Any

from tidelog.broker.answer_types import CLOSE_CONNECTION, NO_RESPONSE, Answer, Later, Outgoing, Waiting, resume
from tidelog.broker.api import Handler, Route
from tidelog.broker.dispatch import Dispatcher, MakeLane
from tidelog.broker.node import BrokerContext
from tidelog.broker.ports import Node
from tidelog.broker.quotas.client_quotas import ClientQuotas
from tidelog.broker.quotas.frames import told_wait, with_wait
from tidelog.broker.quotas.limits import Client, Kind
from tidelog.broker.request import Context, Session
from tidelog.broker.request_times import RequestTimes
from tidelog.broker.usage import Usage
from tidelog.model.errors import KafkaError
from tidelog.protocol.fastpath import FetchView


class Metered:
    """One request: its client, and the loop time spent on it."""

    __slots__ = (
        "_clock_ns",
        "_since_ns",
        "_spent_ns",
        "client",
        "ctx",
        "exempt",
        "judged",
        "quota",
        "size",
        "wait_ms",
    )

    ctx: Context
    client: Client

    def __init__(self, size: int, clock_ns: Callable[[], int]) -> None:
        self.size = size
        self.quota = Kind.REQUEST
        self.exempt = False
        self.judged = False
        """Whether the throttle time, ``wait_ms``, has been decided."""
        self.wait_ms = 0
        self._clock_ns = clock_ns
        self._spent_ns = 0
        self._since_ns = clock_ns()

    def begin(self) -> None:
        """The loop starts to work on the request."""
        self._since_ns = self._clock_ns()

    def pause(self) -> None:
        """The loop stops working on the request."""
        self._spent_ns += self._clock_ns() - self._since_ns

    def take_spent_ns(self) -> int:
        """The time not yet recorded; resets it."""
        spent, self._spent_ns = self._spent_ns, 0
        return spent


class FetchQuota:
    """Asked by a consumer's Fetch before its records are sent."""

    __slots__ = ("_metering", "request")

    def __init__(self, metering: Metering, request: Metered) -> None:
        self._metering = metering
        self.request = request

    def wait_ms(self, size: int) -> int:
        return self._metering.fetched(self.request, size)


class Metering:
    """Meters one listener. ``even_ms`` must be monotonic; ``clock_ns`` measures durations."""

    def __init__(
        self,
        node: Node,
        quotas: ClientQuotas,
        apis: Mapping[int, Route],
        even_ms: Callable[[], int],
        clock_ns: Callable[[], int],
        times: RequestTimes | None = None,
        usage: Usage | None = None,
        produces: MakeLane | None = None,
    ) -> None:
        """``times``, ``usage`` and ``produces``: as for ``Dispatcher``."""
        self._quotas = quotas
        self._even_ms = even_ms
        self._clock_ns = clock_ns
        self._apis = apis
        bounded = {key: self._bounded(route) for key, route in apis.items()}
        self.dispatcher = Dispatcher(node, bounded, times, usage, produces=produces)

    def handle(self, session: Session, frame: memoryview) -> Outgoing | Coroutine[Any, Any, Outgoing]:
        """Like ``Dispatcher.handle``."""
        request = Metered(len(frame), self._clock_ns)
        outgoing = self.dispatcher.handle(session, frame, partial(self._begun, request))
        request.pause()
        if request.exempt:
            return outgoing
        judged: Outgoing | Coroutine[Any, Any, Outgoing] = self._judged(request, outgoing)
        return judged

    def _begun(self, request: Metered, ctx: Context) -> None:
        api = self._apis[ctx.api_key].api
        request.ctx, request.client = ctx, Client(ctx.principal.name, ctx.client_id or "")
        request.quota, request.exempt = api.quota, api.is_between_brokers(ctx.api_version)
        if request.quota is Kind.FETCH:
            ctx.fetch_quota = FetchQuota(self, request)

    # -- answers --------------------------------------------------------------------------------------------------------

    def _judged(self, request: Metered, outgoing: Any) -> Any:
        """The outgoing answer with its throttle time."""
        if type(outgoing) is list:
            return self._answered(request, outgoing)
        if outgoing is NO_RESPONSE:
            # As in Kafka, a request without an answer does not count against request time.
            self._mute(request, Kind.PRODUCE, self._quotas.produced(request.client, request.size, self._even_ms()))
            return outgoing
        if outgoing is CLOSE_CONNECTION:
            return outgoing
        if isinstance(outgoing, Waiting):
            if request.quota is Kind.PRODUCE and not request.judged:
                self._judge(request)
                if not request.wait_ms:
                    return outgoing
            return MeteredWaiting(self, request, outgoing)
        return self._later(request, outgoing)

    def _answered(self, request: Metered, parts: list[Any]) -> list[Any]:
        key, version = request.ctx.api_key, request.ctx.api_version
        if request.judged:
            # Time spent after the decision counts for the client's next request.
            self._quotas.worked(request.client, request.take_spent_ns(), self._even_ms())
            if request.quota is Kind.FETCH:
                return parts
        else:
            self._judge(request, told_wait(key, version, parts) if request.quota is Kind.MUTATION else 0)
        return with_wait(key, version, parts, request.wait_ms) if request.wait_ms else parts

    def _judge(self, request: Metered, told_ms: int = 0) -> None:
        """Decide the throttle time: at least ``told_ms``, which the controller returned."""
        now_ms = self._even_ms()
        kind, wait_ms = Kind.REQUEST, self._quotas.worked(request.client, request.take_spent_ns(), now_ms)
        if request.quota is Kind.PRODUCE:
            told_ms = self._quotas.produced(request.client, request.size, now_ms)
        if told_ms > wait_ms:
            kind, wait_ms = request.quota, told_ms
        self._mute(request, kind, wait_ms)

    def _mute(self, request: Metered, kind: Kind, wait_ms: int) -> None:
        request.judged = True
        request.wait_ms = request.ctx.session.throttle_ms = wait_ms
        if wait_ms:
            self._quotas.throttled(kind, request.client, wait_ms, self._even_ms())
            mute = request.ctx.session.mute
            if mute is not None:
                mute(wait_ms)

    async def _later(self, request: Metered, answering: Coroutine[Any, Any, Outgoing]) -> Any:
        return self._judged(request, await _Steps(request, answering))

    def go_on(self, request: Metered, waiting: Waiting) -> Any:
        """Resume a request whose wait is over."""
        request.begin()
        outgoing = resume(waiting)
        request.pause()
        return self._judged(request, outgoing)

    # -- fetches --------------------------------------------------------------------------------------------------------

    def _bounded(self, route: Route) -> Route:
        return replace(route, handler=partial(self._bounded_fetch, route.handler)) if route.api.quota is Kind.FETCH else route

    def _bounded_fetch(self, fetch: Handler, ctx: BrokerContext, request: FetchView) -> Answer | Later:
        quota = ctx.fetch_quota
        assert isinstance(quota, FetchQuota)
        if request.replica_id >= 0:
            quota.request.exempt = True
            ctx.fetch_quota = None
        else:
            most = self._quotas.most_to_fetch(quota.request.client)
            if most is not None:
                request.max_bytes = min(request.max_bytes, most)
        return fetch(ctx, request)

    def fetched(self, request: Metered, size: int) -> int:
        """The throttle time of a Fetch with ``size`` bytes of records."""
        now_ms = self._even_ms()
        request.pause()
        request.begin()
        kind, wait_ms = Kind.REQUEST, self._quotas.worked(request.client, request.take_spent_ns(), now_ms)
        for_bytes_ms = self._quotas.fetched(request.client, size, now_ms, waits=wait_ms > 0)
        if for_bytes_ms > wait_ms:
            kind, wait_ms = Kind.FETCH, for_bytes_ms
        self._mute(request, kind, wait_ms)
        return wait_ms


class MeteredWaiting(Waiting):
    """A wait whose answer is judged."""

    __slots__ = ("_inner", "_metering", "_request", "lets_next_in")

    def __init__(self, metering: Metering, request: Metered, inner: Waiting) -> None:
        super().__init__(inner.parked)
        self._metering = metering
        self._request = request
        self._inner = inner
        self.lets_next_in = inner.lets_next_in

    def go_on(self) -> Outgoing | Coroutine[Any, Any, Outgoing]:
        outgoing: Outgoing | Coroutine[Any, Any, Outgoing] = self._metering.go_on(self._request, self._inner)
        return outgoing

    def refuse(self, error: KafkaError) -> Outgoing:
        return self._inner.refuse(error)


class _Steps:
    """Awaits a handler's coroutine and times each of its steps on the loop."""

    __slots__ = ("_coroutine", "_request")

    def __init__(self, request: Metered, coroutine: Coroutine[Any, Any, Outgoing]) -> None:
        self._request = request
        self._coroutine = coroutine

    def __await__(self) -> Generator[Any, None, Outgoing]:
        request, coroutine = self._request, self._coroutine
        assert type(coroutine) is CoroutineType
        try:
            while True:
                request.begin()
                try:
                    future = coroutine.send(None)
                except StopIteration as stop:
                    return stop.value  # type: ignore[no-any-return]
                finally:
                    request.pause()
                yield future
        finally:
            coroutine.close()
