"""Which address gets a request, and when it is retried: turns calls into moves that a driver carries out.

For any broker the order is: the one that answered last, the others of the cluster, the bootstrap servers; those with fewer
requests in flight first. A coordinator is looked up, cached, and looked up again after it has moved. With controllers as
bootstrap servers (KIP-919) "any" means the active controller.

Transient errors are retried until ``default.api.timeout.ms`` is over. A read-only request is retried once when its connection
broke before the response. A request that changes something is not sent twice: its outcome is unknown.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeVar

from tidelog.client.calls import Ask, Call, Coordinator, Each, Locate, Node, Step, To, VersionOf
from tidelog.client.failures import NoConnection, NoRoute
from tidelog.client.settings import ClientSettings
from tidelog.config.listeners import address_text
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.messages.find_coordinator import FindCoordinatorRequest
from tidelog.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tidelog.protocol.structure import Message

T = TypeVar("T")
Address = tuple[str, int]
PASSING = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_CONTROLLER,
    }
)
SEVERAL_COORDINATORS_FROM = 4
CONTROLLERS = 2
"""The endpoint type of DescribeCluster for controllers."""
_READS = frozenset(
    key
    for key in ApiKey
    if key.name.startswith(("DESCRIBE_", "LIST_", "FIND_"))
    or key in (ApiKey.METADATA, ApiKey.OFFSET_FETCH, ApiKey.CONSUMER_GROUP_DESCRIBE, ApiKey.API_VERSIONS)
)


@dataclass(frozen=True, slots=True)
class Exchange:
    """Send a request to an address and return the response. NoConnection when there is none."""

    address: Address
    request: Message
    highest: int | None = None


@dataclass(frozen=True, slots=True)
class VersionAt:
    """Returns the version negotiated with an address."""

    address: Address
    api_key: int


@dataclass(frozen=True, slots=True)
class Sleep:
    seconds: float


@dataclass(frozen=True, slots=True)
class Together:
    """Run all of them, concurrently if the driver can; returns a list of their results."""

    parts: list[Generator[Any, Any, Any]]


Move = Exchange | VersionAt | Sleep | Together
Moves = Generator[Move, Any, T]


class Pauses:
    """Back-off between attempts: doubles up to a limit, with a jitter of a fifth; ends at the deadline.

    The jitter keeps the clients of a restarted broker from reconnecting all at once (retry.backoff.ms, retry.backoff.max.ms).
    """

    def __init__(
        self,
        settings: ClientSettings,
        limit_ms: float,
        now: Callable[[], float],
        rng: random.Random,
        first_ms: int | None = None,
    ) -> None:
        """``now``: monotonic seconds; ``first_ms``: the first back-off, if shorter than ``retry.backoff.ms``."""
        self._now, self._rng = now, rng
        self._deadline = now() + limit_ms / 1000
        self._pause = min(settings.retry_backoff_ms, settings.retry_backoff_ms if first_ms is None else first_ms) / 1000
        self._longest = settings.retry_backoff_max_ms / 1000

    def next(self) -> float | None:
        """Seconds to wait before the next attempt; None after the deadline."""
        left = self._deadline - self._now()
        if left <= 0:
            return None
        pause, self._pause = self._pause, min(2 * self._pause, self._longest)
        return min(left, pause * self._rng.uniform(0.8, 1.2))


class Routing:
    """The addresses of a cluster's nodes, as far as one client knows them."""

    def __init__(
        self, settings: ClientSettings, now: Callable[[], float], rng: random.Random, *, controllers: bool = False
    ) -> None:
        """``now``: monotonic seconds; ``controllers``: the bootstrap servers are controllers."""
        self._settings = settings
        self._now, self._rng = now, rng
        self._controllers = controllers
        self._nodes: dict[int, Address] = {}
        self._coordinators: dict[Coordinator, tuple[int, Address]] = {}
        self._active: Address | None = None
        self._answered: Address | None = None
        self._under_way: Counter[Address] = Counter()

    def run(self, call: Call[T]) -> Moves[T]:
        """The moves of a call; they return the call's result."""
        try:
            step = next(call)
            while True:
                try:
                    result = yield from self._do(step)
                except Exception as error:
                    step = call.throw(error)
                else:
                    step = call.send(result)
        except StopIteration as end:
            found: T = end.value
            return found

    def _do(self, step: Step) -> Moves[Any]:
        match step:
            case Ask():
                return (yield from self._ask(step))
            case VersionOf():
                return (yield from self._first_of(step.to, lambda address: _version(address, step.api_key)))
            case Locate():
                node_id, (host, port) = yield from self._coordinator(step.to)
                return node_id, host, port
            case Each():
                return (yield Together([self.run(call) for call in step.calls]))

    def _ask(self, step: Ask) -> Moves[Any]:
        pauses = Pauses(self._settings, self._settings.api_timeout_ms, self._now, self._rng)
        spare = step.request.API_KEY in _READS  # type: ignore[attr-defined]
        while True:
            try:
                answer = yield from self._first_of(step.to, lambda address: self._exchange(address, step))
            except NoConnection as error:
                self._forget(step.to)
                if not (spare and error.sent):
                    raise
                spare = False
                continue
            if step.code_of is None or step.code_of(answer) not in PASSING:
                return answer
            self._forget(step.to)
            pause = pauses.next()
            if pause is None:
                return answer
            yield Sleep(pause)

    def _exchange(self, address: Address, step: Ask) -> Moves[Any]:
        self._under_way[address] += 1
        try:
            answer = yield Exchange(address, step.request, step.highest)
        finally:
            self._under_way[address] -= 1
        if isinstance(answer, MetadataResponse):
            self._nodes = {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}
        return answer

    def _first_of(self, to: To, attempt: Callable[[Address], Moves[T]]) -> Moves[T]:
        """The result from the first address that can be reached. NoConnection names all that cannot."""
        problems: list[tuple[Address, NoConnection]] = []
        for address in (yield from self._candidates(to)):
            try:
                found = yield from attempt(address)
            except NoConnection as error:
                if address == self._answered:
                    self._answered = None
                if isinstance(to, Node):
                    self._nodes.pop(to.node_id, None)
                if error.sent:
                    raise
                problems.append((address, error))
            else:
                if to is None:
                    self._answered = address
                return found
        raise _nowhere(problems)

    def _candidates(self, to: To) -> Moves[list[Address]]:
        match to:
            case Node():
                return [(yield from self._node(to.node_id))]
            case Coordinator():
                return [(yield from self._coordinator(to))[1]]
        if self._controllers:
            return [(yield from self._active_controller())]
        known = [*self._nodes.values(), *self._settings.bootstrap]
        first = [] if self._answered is None else [self._answered]
        return sorted(dict.fromkeys(first + known), key=lambda address: self._under_way[address])

    def _node(self, node_id: int) -> Moves[Address]:
        if node_id not in self._nodes:
            if self._controllers:
                yield from self._active_controller()
            else:
                yield from self._ask(Ask(MetadataRequest(topics=[], allow_auto_topic_creation=False)))
        found = self._nodes.get(node_id)
        if found is None:
            there = ", ".join(map(str, sorted(self._nodes)))
            kind = "controller" if self._controllers else "broker"
            raise NoRoute(ErrorCode.BROKER_NOT_AVAILABLE, f"The cluster has no {kind} {node_id}; it has {there}.")
        return found

    def _coordinator(self, wanted: Coordinator) -> Moves[tuple[int, Address]]:
        found = self._coordinators.get(wanted)
        if found is None:
            version = yield from self._do(VersionOf(ApiKey.FIND_COORDINATOR))
            if version >= SEVERAL_COORDINATORS_FROM:
                request = FindCoordinatorRequest(key_type=wanted.kind, coordinator_keys=[wanted.key])
            else:
                request = FindCoordinatorRequest(key=wanted.key, key_type=wanted.kind)
            said = _found((yield from self._ask(Ask(request, code_of=lambda answer: int(_found(answer).error_code)))))
            if said.error_code != ErrorCode.NONE:
                raise KafkaError(ErrorCode(said.error_code), said.error_message or ErrorCode(said.error_code).text)
            found = self._coordinators[wanted] = (said.node_id, (said.host, said.port))
            self._nodes.setdefault(said.node_id, found[1])
        return found

    def _active_controller(self) -> Moves[Address]:
        if self._active is None:
            from tidelog.protocol.messages.describe_cluster import DescribeClusterRequest

            servers = ", ".join(address_text(*each) for each in self._settings.bootstrap)
            request = Ask(DescribeClusterRequest(endpoint_type=CONTROLLERS))
            problems: list[tuple[Address, NoConnection]] = []
            for address in self._settings.bootstrap:
                try:
                    found = yield from self._exchange(address, request)
                    break
                except NoConnection as error:
                    problems.append((address, error))
            else:
                raise _nowhere(problems)
            code = ErrorCode(found.error_code)
            if code == ErrorCode.MISMATCHED_ENDPOINT_TYPE:
                raise NoRoute(code, f"{servers} is a listener of a broker: give it as --bootstrap-server.")
            if code != ErrorCode.NONE:
                raise KafkaError(code, found.error_message or code.text)
            self._nodes = {each.broker_id: (each.host, each.port) for each in found.brokers}
            self._active = self._nodes.get(found.controller_id)
            if self._active is None:
                raise NoRoute(
                    ErrorCode.NOT_CONTROLLER,
                    f"The controllers at {servers} have no leader at present. Try again when a majority is up.",
                )
        return self._active

    def _forget(self, to: To) -> None:
        self._active = None
        if isinstance(to, Coordinator):
            self._coordinators.pop(to, None)


def _version(address: Address, api_key: int) -> Moves[int]:
    version: int = yield VersionAt(address, api_key)
    return version


def _found(answer: Any) -> Any:
    return answer.coordinators[0] if answer.coordinators else answer


def _nowhere(problems: list[tuple[Address, NoConnection]]) -> NoConnection:
    """One failure for all addresses tried."""
    if len(problems) == 1 and problems[0][1].reached:
        return problems[0][1]
    tried = ", ".join(f"{address_text(*address)} ({error.reason})" for address, error in problems)
    return NoConnection(f"No broker answers at {tried}. Is it running, and listening there?")
