"""One life of a simulated broker: the shipped share partitions, sessions and handlers, over a simulated log, a simulated state
log, and requests between brokers that are lost, late, or answered too late."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from sim.share_log import SimPartition
from sim.share_state import SimShards
from sim.share_tasks import Promise, SimRuntime, Task
from tidelog.broker.apis.groups import share_state
from tidelog.broker.apis.records import share_fetch
from tidelog.broker.shares.share_partitions import SharePartitions
from tidelog.config.resolve import BrokerConfig
from tidelog.metadata.image import GROUP_RESOURCE
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ids import SHARE_STATE_TOPIC, Uuid
from tidelog.protocol.messages.initialize_share_group_state import InitializeShareGroupStateRequest
from tidelog.protocol.messages.read_share_group_state import ReadShareGroupStateRequest
from tidelog.protocol.messages.read_share_group_state_summary import ReadShareGroupStateSummaryRequest
from tidelog.protocol.messages.share_acknowledge import ShareAcknowledgeRequest
from tidelog.protocol.messages.share_fetch import ShareFetchRequest
from tidelog.protocol.messages.write_share_group_state import WriteShareGroupStateRequest

if TYPE_CHECKING:
    from sim.share_world import ShareWorld

TOPIC_ID = Uuid(b"T" * 16)
STATE_ID = Uuid(b"S" * 16)
CONFIG = BrokerConfig.from_properties(
    {
        "group.share.min.record.lock.duration.ms": "1000",
        "group.share.partition.max.record.locks": "2000",
    }
)
HANDLERS: dict[type[Any], Any] = {
    InitializeShareGroupStateRequest: share_state.initialize_share_group_state,
    ReadShareGroupStateRequest: share_state.read_share_group_state,
    WriteShareGroupStateRequest: share_state.write_share_group_state,
    ReadShareGroupStateSummaryRequest: share_state.read_share_group_state_summary,
    ShareFetchRequest: share_fetch.share_fetch,
    ShareAcknowledgeRequest: share_fetch.share_acknowledge,
}


class Connection:
    """A member's connection; to the handlers its session."""

    def __init__(self, broker: SimShareBroker) -> None:
        self.broker = broker
        self.on_closed: Callable[[], None] | None = None
        self.open = True
        self.waits: Task | None = None
        """The request in flight."""

    def close(self) -> None:
        """The broker notices that the client is gone."""
        if self.open:
            self.open = False
            if self.waits is not None:
                self.waits.abandon()
            if self.on_closed is not None and self.broker.runtime.alive:
                self.on_closed()


class SimShareBroker:
    def __init__(self, world: ShareWorld, broker_id: int) -> None:
        self.world = world
        self.id = broker_id
        self.runtime = SimRuntime(world)
        self.partition = SimPartition(TOPIC_ID, world.log)
        self.known_state_leader = world.state_leader
        self.config = CONFIG
        self.image = self._image()
        self.shards = SimShards(self, world.coordinator_settings)
        self.connections: list[Connection] = []
        host: Any = SimpleNamespace(
            node_id=broker_id,
            config=CONFIG,
            runtime=self.runtime,
            others=self,
            shares=self.shards,
            create_share_topic=lambda: None,
        )
        self._host = host
        host.image = self.image
        self.shares = SharePartitions(host)
        replicas = SimpleNamespace(by_id=self._by_id)
        self.node = SimpleNamespace(
            share_partitions=self.shares,
            runtime=self.runtime,
            replicas=replicas,
            access=None,
            node_id=broker_id,
            shares=self.shards,
        )

    @property
    def up(self) -> bool:
        return self.runtime.alive

    def _by_id(self, topic_id: bytes, index: int) -> SimPartition | ErrorCode:
        known = topic_id == TOPIC_ID and index == 0
        return self.partition if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    # -- metadata -------------------------------------------------------------------------------------------------------------

    def _image(self) -> Any:
        world = self.world
        data = SimpleNamespace(leader=world.leader[0], leader_epoch=world.leader[1])
        state = SimpleNamespace(leader=self.known_state_leader[0], leader_epoch=self.known_state_leader[1])
        topic = SimpleNamespace(name="t", id=TOPIC_ID, partitions=(data,))
        states = SimpleNamespace(name=SHARE_STATE_TOPIC, id=STATE_ID, partitions=(state,))
        topics = SimpleNamespace(by_id={TOPIC_ID: topic, STATE_ID: states}, by_name={"t": topic, SHARE_STATE_TOPIC: states})
        configs = {(GROUP_RESOURCE, group): dict(settings) for group, settings in world.group_configs.items()}
        return SimpleNamespace(topics=topics, features={"share.version": 1}, configs=configs, brokers={})

    def catch_up(self) -> None:
        """Reads the newest metadata."""
        leader, epoch = self.world.leader
        self.known_state_leader = self.world.state_leader
        self.image = self._host.image = self._image()
        leads = leader == self.id
        if self.partition.leader_epoch != epoch or self.partition.is_leader != leads:
            self.partition.lead(epoch, leads=leads)
        self.shards.follow()
        self.shares.follow()

    # -- requests -------------------------------------------------------------------------------------------------------------

    def serve(self, request: Any, session: Any, answered: Callable[[Any], None]) -> Task:
        """Runs the handler. The first step is taken at once."""
        ctx = SimpleNamespace(
            node=self.node,
            image=self.image,
            config=self.config,
            session=session,
            listener="PLAINTEXT",
            wait=self.runtime.wait,
            run_blocking=self.runtime.run_blocking,
        )
        task = self.runtime.start(HANDLERS[type(request)](ctx, request), answered)
        task.step()
        return task

    async def ask(self, broker_id: int, purpose: str, request: Any, timeout_ms: int) -> Any:
        """As ``broker.ports.OtherBrokers``: the other broker's answer, or KafkaError. What timed out may still arrive."""
        promise = Promise()
        world = self.world

        def arrive() -> None:
            there = world.brokers.get(broker_id)
            if there is None or not there.up:
                self.runtime.later(world.rng.randint(0, 50), lambda: fail(ErrorCode.NETWORK_EXCEPTION))
                return
            there.serve(request, None, answered)

        def answered(answer: Any) -> None:
            if world.loses():
                world.note("answer of the coordinator lost")
                self.runtime.later(world.rng.choice([50, timeout_ms]), lambda: fail(ErrorCode.NETWORK_EXCEPTION))
            else:
                self.runtime.later(world.rng.randint(0, 10), lambda: promise.keep(answer))

        def fail(error: ErrorCode) -> None:
            promise.keep(error=KafkaError(error, f"broker {broker_id}"))

        self.runtime.later(timeout_ms, lambda: fail(ErrorCode.REQUEST_TIMED_OUT))
        if world.loses():
            if world.rng.random() < 0.5:
                world.note("request to the coordinator late")
                late_ms = world.rng.randint(100, 3_000) if world.rng.random() < 0.8 else timeout_ms + world.rng.randint(1, 9_000)
                world.at(late_ms, arrive)
                self.runtime.later(world.rng.randint(20, 90), lambda: fail(ErrorCode.NETWORK_EXCEPTION))
            else:
                world.note("request to the coordinator lost")
                self.runtime.later(world.rng.randint(20, 90), lambda: fail(ErrorCode.NETWORK_EXCEPTION))
        else:
            world.at(world.rng.randint(0, 10), arrive)
        return await promise

    # -- the end --------------------------------------------------------------------------------------------------------------

    def kill(self) -> None:
        """The process ends."""
        self.runtime.end()
        if self.shards.shard is not None:
            self.shards.shard.stop()
