"""How long requests take, by API: in the queue, at work on the loop, parked, and on their way out.

The phases are those of Kafka's ``RequestMetrics``. Not every request is timed: the first ``ALL_OF`` of an API in a minute are,
then one in ``ONE_IN``, which counts for all of these. What a phase is here:

- request queue: from the read of its last bytes to its handler. A request that is still in the kernel's buffer is not seen;
- local: the handler on the loop, until it has an answer or waits;
- remote: parked in the purgatory, or waiting for a thread, the controller or another broker;
- response queue: until the answer's turn to be sent; response send: until the socket has taken it.

A request that gets no answer because its connection ends is not counted.

While slow requests are reported (``RequestTimes.slow_ns``), every request is timed. What a request waits on purpose is not slow:
a fetch for records, a member of a group for the others.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from typing import Any, Final, NamedTuple

from tidelog.broker.answer_types import NO_RESPONSE, Frame, Outgoing, Signal, Waiting
from tidelog.broker.request import Session, Stopwatch
from tidelog.metrics.latency import WINDOW_NS, Latencies, record_all
from tidelog.model.errors import KafkaError
from tidelog.protocol.api_keys import API_FACTS, ApiKey
from tidelog.protocol.fastpath import FetchView
from tidelog.replication.purgatory import Parked

ALL_OF: Final = 16
ONE_IN: Final = 64
FETCH_CONSUMER: Final = "FetchConsumer"
FETCH_FOLLOWER: Final = "FetchFollower"
PHASES: Final = ("total", "request queue", "local", "remote", "throttle", "response queue", "response send")
_MS: Final = 1_000_000
_LONG_POLLS: Final = ("Fetch", "ShareFetch")
"""Operations of the purgatory that wait for records."""
UNKNOWN_VERSION: Final = -1
_REBALANCES: Final = ("JoinGroup", "SyncGroup")
"""Requests that wait for other members of their group."""


def name_of(key: int, read: Any) -> str:
    """The name under which Kafka counts a request: a Fetch has one for consumers and one for followers. Controllers, which read
    Fetch with the generated class, serve followers only."""
    if isinstance(read, FetchView):
        return FETCH_FOLLOWER if read.replica_id >= 0 else FETCH_CONSUMER
    return FETCH_FOLLOWER if key == ApiKey.FETCH else API_FACTS[key].name


class Sampling:
    """Which requests of one API are timed."""

    __slots__ = ("_minute", "_taken", "weight")

    def __init__(self) -> None:
        self.weight = 1
        """The next request to be timed is the one after so many, and counts for all of them."""
        self._minute = 0
        self._taken = 0

    def take(self, minute: int) -> int:
        """The weight of the request to be timed now."""
        weight = self.weight
        if minute != self._minute:
            self._minute, self._taken = minute, 0
        self._taken += 1
        self.weight = 1 if self._taken < ALL_OF else ONE_IN
        return weight


class SlowRequest(NamedTuple):
    """A request that took longer than it should."""

    name: str
    version: int
    """-1 where it is not known."""
    session: Session
    client_id: str | None
    times_ns: tuple[int, ...]
    """In the order of ``PHASES``."""
    on_purpose_ns: int
    """The part of the remote time in which it waited on purpose."""


class RequestTimes:
    """The times of a listener's requests. ``clock_ns`` never goes back."""

    __slots__ = ("by_name", "clock_ns", "slow_ns", "tell_slow")

    def __init__(self, clock_ns: Callable[[], int], tell_slow: Callable[[SlowRequest], None] = lambda slow: None) -> None:
        """``tell_slow`` gets each slow request."""
        self.clock_ns = clock_ns
        self.tell_slow = tell_slow
        self.slow_ns = 0
        """How long a request takes that is slow, without what it waits on purpose; 0: none is reported."""
        self.by_name: dict[str, tuple[Latencies, ...]] = {}
        """By the name of a request: its latencies, in the order of ``PHASES``."""

    def minute(self) -> int:
        """The number of this minute, for ``Latencies``."""
        return self.clock_ns() // WINDOW_NS

    def sending(self, timed: list[Stopwatch]) -> None:
        """The answers of ``timed`` are about to be sent."""
        now_ns = self.clock_ns()
        for each in timed:
            each.sending_ns = each.sending_ns or now_ns

    def sent(self, timed: list[Stopwatch]) -> None:
        """The socket has taken what was being sent. Answers that became ready meanwhile stay in ``timed``."""
        now_ns = self.clock_ns()
        for each in timed:
            if each.sending_ns:
                each.sent(now_ns)
        timed[:] = [each for each in timed if not each.sending_ns]

    def record(self, name: str, weight: int, now_ns: int, times_ns: tuple[int, ...]) -> None:
        """Counts one request, ``times_ns`` in the order of ``PHASES``."""
        latencies = self.by_name.get(name)
        if latencies is None:
            latencies = self.by_name[name] = tuple(Latencies() for _ in PHASES)
        minute = now_ns // WINDOW_NS
        record_all(latencies, times_ns, minute, weight)


class Timed:
    """One request whose times are taken, from its handler on."""

    __slots__ = (
        "_client_id",
        "_handled_ns",
        "_local_ns",
        "_name",
        "_on_purpose_ns",
        "_ready_ns",
        "_received_ns",
        "_session",
        "_times",
        "_version",
        "_waits_by_nature",
        "_weight",
        "sending_ns",
    )

    def __init__(
        self,
        times: RequestTimes,
        session: Session,
        name: str,
        sampling: Sampling,
        handled_ns: int = 0,
        version: int = UNKNOWN_VERSION,
        *,
        waits_by_nature: bool = False,
    ) -> None:
        """``handled_ns``: when the handler's work began; 0: now. ``waits_by_nature``: its remote time is never slow, wherever it
        waits."""
        self._times = times
        self._session = session
        self._name = name
        self._handled_ns = now_ns = handled_ns or times.clock_ns()
        self._received_ns = session.received_ns or now_ns
        self._local_ns = 0
        self._ready_ns = 0
        self.sending_ns = 0
        """When the answer's turn came; 0 before."""
        self._weight = sampling.take(now_ns // WINDOW_NS)
        self._version = version
        self._client_id = session.client_id
        self._waits_by_nature = waits_by_nature or name in _REBALANCES
        self._on_purpose_ns = 0
        if times.slow_ns:
            sampling.weight = 1

    def waited(self, parked: Parked, since_ns: int) -> None:
        """A wait is over."""
        if parked.operation in _LONG_POLLS:
            self._on_purpose_ns += self._times.clock_ns() - since_ns

    def now_ns(self) -> int:
        return self._times.clock_ns()

    def follow(self, outgoing: Outgoing | Coroutine[Any, Any, Outgoing]) -> Outgoing | Coroutine[Any, Any, Outgoing]:
        """``outgoing``, or what takes its times and is answered alike."""
        if isinstance(outgoing, Coroutine):
            return self._awaited(outgoing)
        self.local_over()
        if isinstance(outgoing, Waiting):
            return _TimedWaiting(self, outgoing)
        self.ready(outgoing)
        return outgoing

    def local_over(self) -> None:
        """The request has an answer, or waits for the first time."""
        self._local_ns = self._local_ns or self._times.clock_ns()

    async def _awaited(self, coroutine: Coroutine[Any, Any, Outgoing]) -> Any:
        return self.follow(await _Steps(self, coroutine))

    def ready(self, outgoing: Frame | Signal) -> None:
        """``outgoing`` is the answer."""
        self._ready_ns = self._times.clock_ns()
        if isinstance(outgoing, list):
            self._session.timed.append(self)
        elif outgoing is NO_RESPONSE:
            self.sending_ns = self._ready_ns
            self.sent(self._ready_ns)

    def sent(self, now_ns: int) -> None:
        """The answer has left."""
        local_ns, ready_ns, sending_ns = self._local_ns, self._ready_ns, self.sending_ns
        times_ns = (
            now_ns - self._received_ns,
            self._handled_ns - self._received_ns,
            local_ns - self._handled_ns,
            ready_ns - local_ns,
            self._session.throttle_ms * _MS,
            sending_ns - ready_ns,
            now_ns - sending_ns,
        )
        self._times.record(self._name, self._weight, now_ns, times_ns)
        slow_ns = self._times.slow_ns
        if slow_ns and times_ns[0] >= slow_ns:
            on_purpose_ns = times_ns[3] if self._waits_by_nature else self._on_purpose_ns
            if times_ns[0] - on_purpose_ns >= slow_ns:
                slow = SlowRequest(self._name, self._version, self._session, self._client_id, times_ns, on_purpose_ns)
                self._times.tell_slow(slow)


class _TimedWaiting(Waiting):
    """A wait of a request whose times are taken."""

    __slots__ = ("_inner", "_since_ns", "_timed", "lets_next_in")

    def __init__(self, timed: Timed, inner: Waiting) -> None:
        super().__init__(inner.parked)
        self._timed = timed
        self._inner = inner
        self._since_ns = timed.now_ns()
        self.lets_next_in = inner.lets_next_in

    def go_on(self) -> Outgoing | Coroutine[Any, Any, Outgoing]:
        self._timed.waited(self.parked, self._since_ns)
        return self._timed.follow(self._inner.go_on())

    def refuse(self, error: KafkaError) -> Outgoing:
        outgoing = self._inner.refuse(error)
        if not isinstance(outgoing, Waiting):
            self._timed.ready(outgoing)
        return outgoing


class _Steps:
    """Awaits a handler's coroutine; its first wait ends the local time."""

    __slots__ = ("_coroutine", "_timed")

    def __init__(self, timed: Timed, coroutine: Coroutine[Any, Any, Outgoing]) -> None:
        self._timed = timed
        self._coroutine = coroutine

    def __await__(self) -> Generator[Any, None, Outgoing]:
        coroutine = self._coroutine
        try:
            while True:
                try:
                    future = coroutine.send(None)
                except StopIteration as stop:
                    return stop.value  # type: ignore[no-any-return]
                self._timed.local_over()
                yield future
        finally:
            coroutine.close()
