"""Faults on demand: the next requests of an API are refused, delayed, held, repeated, or lose their connection or their
response.

Faults are queued per API and taken in order by the requests of any client. A refused or dropped request does not reach the
broker: a refused Produce is not appended, nor is a dropped one; a delayed or held one is served as usual, later.

Besides APIs, faults can be planned for two places inside of the broker, under the names ``MARKER`` and ``COORDINATOR_LOAD``: a
transaction's marker on its way from the coordinator to a partition, and the reading of a coordinator's log. Clients see the
effect that they would see in a cluster whose coordinator and partition leaders are on different brokers.
"""

from __future__ import annotations

import asyncio
import copy
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from tidelog.broker.answer_types import CLOSE_CONNECTION, NO_RESPONSE, settled
from tidelog.broker.api import Handler, Route
from tidelog.broker.request import Context
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ids import TopicPartition
from tidelog.protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from tidelog.replication.marker_append import Marker
    from tidelog.server.cluster.coordinators import Coordinators
    from tidelog.server.cluster.marker_channels import WriteMarker

E = TypeVar("E", bound=Enum)
Sleep = Callable[[float], Coroutine[Any, Any, None]]
MARKER = "MARKER"
COORDINATOR_LOAD = "COORDINATOR_LOAD"
HELD_TIMEOUT_S = 30.0


class _Kind(Enum):
    REFUSE = 0
    DELAY = 1
    DROP = 2
    HOLD = 3
    REPEAT = 4
    LOSE_ANSWER = 5


# The combinations that make sense: a load has no response, and repeating it changes nothing.
_OF_LOADS = frozenset({_Kind.DELAY, _Kind.HOLD, _Kind.DROP})


class _Fault(NamedTuple):
    kind: _Kind
    error: ErrorCode = ErrorCode.NONE
    delay_s: float = 0.0


class LoadFailed(Exception):
    """A planned fault made the reading of a coordinator's log fail."""


class Faults:
    """Planned faults of one broker; every method may be called from the test's thread.

    ``api`` is always ``ApiKey.PRODUCE`` or ``"PRODUCE"`` and so on, or ``"MARKER"``, or ``"COORDINATOR_LOAD"``; ``error`` is
    ``ErrorCode.NOT_LEADER_OR_FOLLOWER`` or its name. A name that does not exist is a ValueError with the closest that does.
    """

    def __init__(self, sleep: Sleep) -> None:
        self._sleep = sleep
        self._guard = threading.Condition()
        self._planned: dict[int | str, deque[_Fault]] = {}
        self._held: dict[int | str, list[tuple[asyncio.AbstractEventLoop, asyncio.Event]]] = {}

    def refuse(self, api: ApiKey | str, error: ErrorCode | str, times: int = 1) -> None:
        """Answer the next ``times`` of ``api`` with ``error``."""
        self._plan(api, _Fault(_Kind.REFUSE, _named(ErrorCode, error, "error")), times)

    def delay(self, api: ApiKey | str, seconds: float, times: int = 1) -> None:
        """Serve the next ``times`` of ``api`` that much later."""
        self._plan(api, _Fault(_Kind.DELAY, delay_s=seconds), times)

    def hold(self, api: ApiKey | str, times: int = 1) -> None:
        """The next ``times`` of ``api`` wait until ``release``, and are served then. See ``wait_held``."""
        self._plan(api, _Fault(_Kind.HOLD), times)

    def drop(self, api: ApiKey | str, times: int = 1) -> None:
        """Do not serve the next ``times`` of ``api``: their connections close. A marker is lost, and its coordinator sends it
        again; a load fails, and is tried again after a minute (``Broker.advance``)."""
        self._plan(api, _Fault(_Kind.DROP), times)

    def lose_answer(self, api: ApiKey | str, times: int = 1) -> None:
        """Serve the next ``times`` of ``api`` without a response: their connections close. A client that retries has sent the
        request twice."""
        self._plan(api, _Fault(_Kind.LOSE_ANSWER), times)

    def repeat(self, api: ApiKey | str, times: int = 1, *, seconds: float = 0.0) -> None:
        """Let the next ``times`` of ``api`` arrive twice: a copy is served this much after the first, and its response is
        dropped."""
        key = self._key(api)
        if key in {int(ApiKey.PRODUCE), int(ApiKey.FETCH)} and seconds:
            raise ValueError(f"{api} is read where it was received, so that a copy cannot come later; repeat it without seconds")
        self._plan(api, _Fault(_Kind.REPEAT, delay_s=seconds), times)

    def release(self, api: ApiKey | str | None = None) -> int:
        """Continue what is held, all of it or that of ``api``; returns how many. Planned holds stay planned."""
        with self._guard:
            keys = list(self._held) if api is None else [self._key(api)]
            freed = [each for key in keys for each in self._held.pop(key, [])]
        for loop, event in freed:
            loop.call_soon_threadsafe(event.set)
        return len(freed)

    def wait_held(self, api: ApiKey | str, count: int = 1, timeout_s: float = HELD_TIMEOUT_S) -> None:
        """Returns once ``count`` of ``api`` are held. TimeoutError when they do not come."""
        key = self._key(api)
        with self._guard:
            if not self._guard.wait_for(lambda: len(self._held.get(key, [])) >= count, timeout_s):
                raise TimeoutError(f"{len(self._held.get(key, []))} of {api} are held after {timeout_s:.0f} s, not {count}")

    def clear(self) -> None:
        """Cancel all planned faults and release what is held."""
        with self._guard:
            self._planned.clear()
        self.release()

    @property
    def pending(self) -> int:
        """How many planned faults have not been taken yet."""
        with self._guard:
            return sum(len(faults) for faults in self._planned.values())

    @staticmethod
    def _key(api: ApiKey | str) -> int | str:
        if api in {MARKER, COORDINATOR_LOAD}:
            return str(api)
        return int(_named(ApiKey, api, "API", MARKER, COORDINATOR_LOAD))

    def _plan(self, api: ApiKey | str, fault: _Fault, times: int) -> None:
        if times < 1:
            raise ValueError(f"a fault for {times} requests; ask for at least one")
        key = self._key(api)
        if key == COORDINATOR_LOAD and fault.kind not in _OF_LOADS:
            raise ValueError("a load has no answer: it can be delayed, held and dropped")
        with self._guard:
            self._planned.setdefault(key, deque()).extend([fault] * times)

    def _take(self, key: int | str) -> _Fault | None:
        if not self._planned:
            return None
        with self._guard:
            waiting = self._planned.get(key)
            fault = waiting.popleft() if waiting else None
            if waiting is not None and not waiting:
                del self._planned[key]
            return fault

    async def _pause(self, key: int | str, fault: _Fault) -> None:
        """Pause as long as the fault says."""
        if fault.kind is _Kind.DELAY:
            await self._sleep(fault.delay_s)
        elif fault.kind is _Kind.HOLD:
            held = (asyncio.get_running_loop(), asyncio.Event())
            with self._guard:
                self._held.setdefault(key, []).append(held)
                self._guard.notify_all()
            try:
                await held[1].wait()
            finally:
                # Not released, if it is still there: its client has gone, or its broker.
                with self._guard:
                    if held in self._held.get(key, []):
                        self._held[key].remove(held)

    # -- requests ------------------------------------------------------------------------------------------------------------

    def over(self, apis: Mapping[int, Route]) -> dict[int, Route]:
        """The handlers, with faults in front of them."""
        return {key: replace(route, handler=self._faulty(route)) for key, route in apis.items()}

    def _faulty(self, route: Route) -> Handler:
        serve, planned, key = route.handler, self._planned, int(route.api.key)

        def handler(ctx: Context, request: Any) -> Any:
            if not planned:
                return serve(ctx, request)
            fault = self._take(key)
            if fault is None:
                return serve(ctx, request)
            if fault.kind is _Kind.DROP:
                return CLOSE_CONNECTION
            if fault.kind is _Kind.REFUSE:
                # A producer with acks=0 gets no response, not even a refusal.
                if getattr(request, "acks", 1) == 0:
                    return NO_RESPONSE
                return route.api.refuse(ctx, request, KafkaError(fault.error, "a planned fault of the test"))
            return self._served(key, fault, serve, ctx, request)

        return handler

    async def _served(self, key: int, fault: _Fault, serve: Callable[[Context, Any], Any], ctx: Context, request: Any) -> Any:
        await self._pause(key, fault)
        answer = await _answer(serve, ctx, request)
        if fault.kind is _Kind.LOSE_ANSWER:
            return CLOSE_CONNECTION
        if fault.kind is _Kind.REPEAT:
            if not fault.delay_s:
                await _answer(serve, ctx, request)
            else:
                # The connection's context continues to its next request: the copy needs its own.
                ctx.node.runtime.spawn(self._repeated(fault, serve, copy.copy(ctx), request), "a request that is repeated")
        return answer

    async def _repeated(self, fault: _Fault, serve: Callable[[Context, Any], Any], ctx: Context, request: Any) -> None:
        await self._sleep(fault.delay_s)
        await _answer(serve, ctx, request)

    # -- inside of the broker ------------------------------------------------------------------------------------------------

    def within(self, coordinators: Coordinators) -> None:
        """Put faults in front of these coordinators' markers and loads from now on."""
        coordinators.markers.write = self._around(coordinators.markers.write)
        for shards in (coordinators.groups, coordinators.transactions, coordinators.shares):
            shards.before_load = self._before_load

    def _around(self, write: WriteMarker) -> WriteMarker:
        def faulty(where: TopicPartition, marker: Marker) -> ErrorCode | Awaitable[ErrorCode]:
            fault = self._take(MARKER)
            return write(where, marker) if fault is None else self._marker(fault, write, where, marker)

        return faulty

    async def _marker(self, fault: _Fault, write: WriteMarker, where: TopicPartition, marker: Marker) -> ErrorCode:
        if fault.kind is _Kind.REFUSE:
            return fault.error
        if fault.kind is _Kind.DROP:
            return ErrorCode.REQUEST_TIMED_OUT  # The coordinator's own handling of a leader that does not answer.
        await self._pause(MARKER, fault)
        answer = await _written(write, where, marker)
        if fault.kind is _Kind.REPEAT:
            await self._sleep(fault.delay_s)
            await _written(write, where, marker)
        return ErrorCode.REQUEST_TIMED_OUT if fault.kind is _Kind.LOSE_ANSWER else answer

    async def _before_load(self, where: TopicPartition) -> None:
        fault = self._take(COORDINATOR_LOAD)
        if fault is None:
            return
        if fault.kind is _Kind.DROP:
            raise LoadFailed(f"{where}: a planned fault has ended the load")
        await self._pause(COORDINATOR_LOAD, fault)


def _named(kind: type[E], member: E | str, what: str, *more: str) -> E:
    """The member of an enum, also by its name. ``more``: further valid names."""
    if not isinstance(member, str):
        return member
    try:
        return kind[member]
    except KeyError:
        import difflib  # Only for a wrong name.

        close = difflib.get_close_matches(member.upper(), [*kind.__members__, *more], n=1)
        hint = f" Did you mean {close[0]}?" if close else f" The names are those of {kind.__name__}."
        raise ValueError(f"there is no {what} {member}.{hint}") from None


async def _answer(serve: Callable[[Context, Any], Any], ctx: Context, request: Any) -> Any:
    return await settled(ctx.wait, serve(ctx, request))


async def _written(write: WriteMarker, where: TopicPartition, marker: Marker) -> ErrorCode:
    answer = write(where, marker)
    return answer if isinstance(answer, ErrorCode) else await answer
