"""Users' own code on a simulated cluster: ``simulate(seed, scenario)``.

A scenario is an ``async`` function. It runs on a machine of its own in the simulated world, so ``asyncio.sleep``, time-outs,
tasks and connections are in virtual time, and ``time.time()``, ``time.monotonic()``, ``random`` and ``os.urandom`` as this thread
calls them are the world's: the same seed gives the same run. It talks to the cluster through its ``Cluster``, or with any client
that is all asyncio and opens its connections through the running loop.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_BROKER, TopicPartition
from tidelog.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from tidelog.testing.simulation.client import Client, Later, check
from tidelog.testing.simulation.cluster import Shape, SimCluster, newest_image
from tidelog.testing.simulation.faults import Faults
from tidelog.testing.simulation.loop import Agenda, SimLoop, Stuck
from tidelog.testing.simulation.machines import EPOCH_MS, Machine
from tidelog.testing.simulation.patching import Patch, patched
from tidelog.testing.simulation.producing import Producer
from tidelog.testing.simulation.reading import DamagedBatch, Record, fetch

# Nodes' messages about faults are shown only if the user sets up logging; without this Python prints them.
logging.getLogger("tidelog").addHandler(logging.NullHandler())

T = TypeVar("T")
TICK_S = 0.1
START_S = 60.0
SETTLE_S = 120.0


class SimulationFailed(AssertionError):
    """The scenario's expectation did not come true, or a node failed without a fault that explains it. The text names the
    seed, the virtual time, the nodes' states and the last faults; the cause is in ``__cause__``."""


@dataclass(frozen=True, slots=True)
class Run(Generic[T]):
    """A run that ended well. ``result``: the scenario's return value. ``virtual_s``: its duration in virtual seconds.
    ``faults``: how many of each kind. ``digest``: a hash of every byte that was sent, from which node to which and when."""

    seed: int
    result: T
    virtual_s: float
    faults: Mapping[str, int]
    digest: str


class Cluster:
    """A scenario's view of the cluster: its nodes by id, and clients that handle elections and lost connections.

    Times are in virtual seconds. Methods that talk to the cluster retry until they have an answer: bound them with
    ``asyncio.wait_for`` where that matters.
    """

    def __init__(self, hardware: SimCluster, faults: Faults, loop: SimLoop, seed: int) -> None:
        self.hardware, self.faults = hardware, faults
        self.seed = seed
        self.rng = random.Random(seed)
        """For the scenario's own random choices."""
        self._loop = loop
        self._client = self.client(loop)
        self._producer = Producer(self._client)

    @property
    def now(self) -> float:
        """Virtual seconds since the world began."""
        return self.hardware.agenda.now

    @property
    def bootstrap_servers(self) -> str:
        """The value for a client's setting of that name."""
        return ",".join(f"{host}:{port}" for host, port in self.hardware.bootstrap)

    @property
    def nodes(self) -> Mapping[int, Machine]:
        """By id: ``kill()``, ``stop()``, ``lose_power()``, ``start()``, ``pause()``, ``resume()``, ``set_clock(by_ms)``, and
        ``disk`` with its own faults."""
        return {machine.node_id: machine for machine in self.hardware.machines}

    def client(self, loop: SimLoop | None = None) -> Client:
        """A client that speaks Kafka's messages (``tidelog.protocol.messages``), on the machine of the caller."""
        running = asyncio.get_running_loop() if loop is None else loop
        assert isinstance(running, SimLoop), running
        return Client(running, self.rng.getrandbits(64), self.hardware.bootstrap)

    def process(self, job: Callable[[], Coroutine[Any, Any, T]]) -> asyncio.Future[T]:
        """Runs ``job`` on another machine with its own address and returns its result."""
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        task = self.hardware.process().create_task(job())

        def tell(ended: asyncio.Task[T]) -> None:
            if done.done():
                return
            error = ended.exception()
            if error is not None:
                done.set_exception(error)
            else:
                done.set_result(ended.result())

        task.add_done_callback(tell)
        return done

    def leader(self, topic: str, partition: int = 0) -> int | None:
        """The partition's leader as the most up-to-date broker knows it; None without a leader."""
        image = newest_image(self.hardware.brokers)
        found = image.topics.by_name.get(topic) if image is not None else None
        if found is None or partition >= len(found.partitions) or found.partitions[partition].leader == NO_BROKER:
            return None
        return found.partitions[partition].leader

    def cut(self, source: int, target: int) -> None:
        """Drops everything from the first node to the second one, until ``heal``."""
        self.hardware.network.cut(self.nodes[source].host, self.nodes[target].host)

    def isolate(self, node_id: int) -> None:
        """Drops everything to and from this node, until ``heal``."""
        here = self.nodes[node_id].host
        for other in [each for each in self.hardware.network.hosts if each != here]:
            self.hardware.network.cut(here, other)
            self.hardware.network.cut(other, here)

    def heal(self) -> None:
        """Ends cuts and delays of the network."""
        self.hardware.network.heal()

    async def settle(self, within_s: float = SETTLE_S) -> None:
        """Ends all faults and starts nodes that are down; returns when every node serves and every partition has its replicas
        in sync.

        TimeoutError when that takes longer.
        """
        self.faults.end()
        async with asyncio.timeout(within_s):
            while True:
                repaired = self.faults.damage.repair()
                if repaired and self.hardware.serving() and self.hardware.healthy():
                    return
                await asyncio.sleep(1.0)

    async def until(self, done: Callable[[], bool]) -> None:
        """Checks ten times per virtual second."""
        while not done():  # noqa: ASYNC110
            await asyncio.sleep(TICK_S)

    async def create_topic(
        self, name: str, partitions: int = 1, *, replication_factor: int = -1, config: Mapping[str, str] | None = None
    ) -> None:
        """As kafka-topics does; ``replication_factor`` -1 uses the cluster's default. An existing topic stays as it is."""
        configs = [CreatableTopicConfig(name=key, value=value) for key, value in (config or {}).items()]
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=replication_factor, configs=configs)

        async def attempt() -> None:
            response = await self._client.ask_any(CreateTopicsRequest(topics=[topic], timeout_ms=5_000))
            (made,) = response.topics
            if made.error_code != ErrorCode.TOPIC_ALREADY_EXISTS:
                check(made.error_code, f"CreateTopics {name}: {made.error_message}")

        await self._client.until(attempt, _never, lambda: None)
        await self.until(lambda: self.leader(name, partitions - 1) is not None)

    async def produce(self, topic: str, *values: bytes | str, key: bytes | None = None, partition: int = 0) -> int:
        """One batch, idempotent and with acks=all; returns the offset of its first record when it is acknowledged (-1 when an
        earlier attempt had written it and its offset is unknown)."""
        records = [(key, value.encode() if isinstance(value, str) else value) for value in values]
        offset = await self._producer.send(TopicPartition(topic, partition), records)
        assert offset is not None
        return offset

    async def read(self, topic: str, *, committed: bool = False) -> list[Record]:
        """Every record that a consumer can see now, by partition and offset. ``committed``: as isolation.level=read_committed."""
        await self._client.until(lambda: self._client.refresh(topic), _never, lambda: None)
        records: list[Record] = []
        for partition in sorted(self._client.metadata.topics[topic].leaders):
            records += await self._read(TopicPartition(topic, partition), committed=committed)
        return records

    async def _read(self, at: TopicPartition, *, committed: bool) -> list[Record]:
        records: list[Record] = []
        offset, end = 0, None
        while end is None or offset < end:
            try:
                page = await fetch(self._client, at, offset, committed=committed)
            except (Later, DamagedBatch):
                self._client.lost(at)
                await self._client.pause()
                continue
            records += page.records
            offset, end = page.next_offset, page.end if end is None else end
        return records


Scenario = Callable[[Cluster], Awaitable[T]]


def simulate(
    seed: int, scenario: Scenario[T], *, shape: Shape | None = None, faults: Sequence[str] = (), limit_s: float = 600.0
) -> Run[T]:
    """Runs a scenario on its own cluster of the given ``shape``; None is three brokers that are also controllers.

    ``faults``: kinds that occur until the scenario calls ``settle`` or ends, such as ``("kill", "isolate")`` or ``faults.KINDS``
    for all of them; the seed decides what happens when. ``limit_s``: virtual seconds that the run may take. SimulationFailed,
    with the seed in its text; ValueError for an unknown kind of fault. Not re-entrant, and not beside a running asyncio loop of
    this thread.
    """
    hardware = SimCluster(shape or Shape(), seed)
    weather = Faults(hardware, seed ^ 0x5EED, faults)
    try:
        with _virtual_time(hardware.agenda, seed):
            return _run(seed, scenario, hardware, weather, limit_s)
    except (Exception, Stuck) as error:
        told = ", ".join(weather.told[-12:]) or "none"
        what = f"{type(error).__name__}: {error}"
        raise SimulationFailed(
            f"seed {seed}, at {hardware.agenda.now:.3f} s: {what}; nodes {hardware.state()}; faults: {told}"
        ) from error
    finally:
        hardware.end()


def _run(seed: int, scenario: Scenario[T], hardware: SimCluster, weather: Faults, limit_s: float) -> Run[T]:
    agenda = hardware.agenda
    problems: list[str] = []

    def look() -> None:
        problem = hardware.problem(weather.explains)
        if problem is not None:
            problems.append(problem)
        agenda.call_later(TICK_S, look)

    def until(done: Callable[[], bool], seconds: float, what: str) -> None:
        if not agenda.run_until(lambda: bool(problems) or done(), agenda.now + seconds):
            raise TimeoutError(f"not within {seconds:g} s: {what}")
        if problems:
            raise RuntimeError(problems[0])

    hardware.start()
    look()
    until(hardware.serving, START_S, "the cluster starts")
    loop = hardware.process()
    cluster = Cluster(hardware, weather, loop, seed)

    async def play() -> T:
        return await scenario(cluster)

    task = loop.create_task(play())
    weather.begin()
    until(task.done, limit_s, "the scenario ends")
    result = task.result()
    return Run(seed, result, agenda.now, dict(weather.done), hardware.network.digest())


def _never() -> bool:
    return False


@contextmanager
def _virtual_time(agenda: Agenda, seed: int) -> Iterator[None]:
    """Replaces clocks and randomness of the standard library with the world's, for this thread."""
    thread = threading.get_ident()
    rng = random.Random(seed ^ 0x71DE)

    def ours(honest: Callable[..., Any], simulated: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            return (simulated if threading.get_ident() == thread else honest)(*args)

        return call

    clocks: dict[str, Callable[[], float]] = {
        "time": lambda: EPOCH_MS / 1000 + agenda.now,
        "monotonic": lambda: agenda.now,
        "perf_counter": lambda: agenda.now,
        "time_ns": lambda: EPOCH_MS * 1_000_000 + int(agenda.now * 1e9),
        "monotonic_ns": lambda: int(agenda.now * 1e9),
        "perf_counter_ns": lambda: int(agenda.now * 1e9),
    }
    patches: list[Patch] = [(time, name, ours(vars(time)[name], clock)) for name, clock in clocks.items()]
    patches.append((os, "urandom", ours(os.urandom, rng.randbytes)))
    state = random.getstate()
    random.seed(seed)
    try:
        with patched(patches):
            yield
    finally:
        random.setstate(state)
