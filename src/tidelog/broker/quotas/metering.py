"""Requests of a listener's clients while there are quotas: recorded, answered with how long to wait, and their connection muted.

This stands in the place of ``Dispatcher.handle``, and only while there are quotas for clients: without any, a request goes
straight to the dispatcher and nothing here is asked. Handlers know nothing of it, but for Fetch: whether its records are sent
depends on the quota (``RequestContext.fetch_quota``).

A Produce is judged when its records are in the log, all others when they are answered (KIP-219: the answer leaves at once, and
the connection is not read until the wait is over). Of two waits the longer one counts. What brokers ask of each other is exempt.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator, Mapping
from dataclasses import replace
from functools import partial
from types import CoroutineType
from typing import Any

from tidelog.broker.answers import CLOSE_CONNECTION, NO_RESPONSE, Answer, Later, Outgoing, Waiting, resume
from tidelog.broker.api import Handler, Route
from tidelog.broker.dispatch import Dispatcher
from tidelog.broker.node import BrokerContext
from tidelog.broker.ports import Node
from tidelog.broker.quotas.client_quotas import ClientQuotas
from tidelog.broker.quotas.frames import told_wait, with_wait
from tidelog.broker.quotas.limits import Client, Kind
from tidelog.broker.request import Context, Session
from tidelog.model.errors import KafkaError
from tidelog.protocol.fastpath import FetchView


class Metered:
    """One request: whose it is, and how long the loop has been at it."""

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
        """Whether it is decided how long the client waits: so long, ``wait_ms``."""
        self.wait_ms = 0
        self._clock_ns = clock_ns
        self._spent_ns = 0
        self._since_ns = clock_ns()

    def begin(self) -> None:
        """The loop is at it."""
        self._since_ns = self._clock_ns()

    def pause(self) -> None:
        """The loop does something else."""
        self._spent_ns += self._clock_ns() - self._since_ns

    def take_spent_ns(self) -> int:
        """What was not taken into account yet."""
        spent, self._spent_ns = self._spent_ns, 0
        return spent


class FetchQuota:
    """What a consumer's Fetch asks before its records are sent."""

    __slots__ = ("_metering", "request")

    def __init__(self, metering: Metering, request: Metered) -> None:
        self._metering = metering
        self.request = request

    def wait_ms(self, size: int) -> int:
        """See ``request.FetchQuota``."""
        return self._metering.fetched(self.request, size)


class Metering:
    """One listener's. ``now_ms`` must not jump; ``clock_ns`` is for how long something takes."""

    def __init__(
        self, node: Node, quotas: ClientQuotas, apis: Mapping[int, Route], now_ms: Callable[[], int], clock_ns: Callable[[], int]
    ) -> None:
        self._quotas = quotas
        self._now_ms = now_ms
        self._clock_ns = clock_ns
        self._apis = apis
        self.dispatcher = Dispatcher(node, {key: self._bounded(route) for key, route in apis.items()})

    def handle(self, session: Session, frame: memoryview) -> Outgoing | Coroutine[Any, Any, Outgoing]:
        """As ``Dispatcher.handle``."""
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
        """The same, with what the client has to know in it."""
        if type(outgoing) is list:
            return self._answered(request, outgoing)
        if outgoing is NO_RESPONSE:
            # Kafka asks for no time of who gets no answer.
            self._mute(request, Kind.PRODUCE, self._quotas.produced(request.client, request.size, self._now_ms()))
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
            # What is left of its time counts for the next one.
            self._quotas.worked(request.client, request.take_spent_ns(), self._now_ms())
            if request.quota is Kind.FETCH:
                return parts
        else:
            self._judge(request, told_wait(key, version, parts) if request.quota is Kind.MUTATION else 0)
        return with_wait(key, version, parts, request.wait_ms) if request.wait_ms else parts

    def _judge(self, request: Metered, told_ms: int = 0) -> None:
        """How long the client has to wait: ``told_ms`` at least, as the controller said."""
        now_ms = self._now_ms()
        kind, wait_ms = Kind.REQUEST, self._quotas.worked(request.client, request.take_spent_ns(), now_ms)
        if request.quota is Kind.PRODUCE:
            told_ms = self._quotas.produced(request.client, request.size, now_ms)
        if told_ms > wait_ms:
            kind, wait_ms = request.quota, told_ms
        self._mute(request, kind, wait_ms)

    def _mute(self, request: Metered, kind: Kind, wait_ms: int) -> None:
        request.judged = True
        request.wait_ms = wait_ms
        if wait_ms:
            self._quotas.throttled(kind, request.client, wait_ms, self._now_ms())
            mute = request.ctx.session.mute
            if mute is not None:
                mute(wait_ms)

    async def _later(self, request: Metered, answering: Coroutine[Any, Any, Outgoing]) -> Any:
        return self._judged(request, await _Steps(request, answering))

    def go_on(self, request: Metered, waiting: Waiting) -> Any:
        """What a request waited for is there."""
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
        """See ``FetchQuota``."""
        now_ms = self._now_ms()
        request.pause()
        request.begin()
        kind, wait_ms = Kind.REQUEST, self._quotas.worked(request.client, request.take_spent_ns(), now_ms)
        for_bytes_ms = self._quotas.fetched(request.client, size, now_ms, waits=wait_ms > 0)
        if for_bytes_ms > wait_ms:
            kind, wait_ms = Kind.FETCH, for_bytes_ms
        self._mute(request, kind, wait_ms)
        return wait_ms


class MeteredWaiting(Waiting):
    """The same wait, whose answer is judged."""

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
    """Awaited: a handler's coroutine, each of its steps on the loop timed."""

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
