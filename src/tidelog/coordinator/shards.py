"""The shards of one internal topic that this broker leads: which exist, which one owns a key, when to wake them.

This module decides that a shard lives while this broker leads its partition in one leader epoch, that it answers
COORDINATOR_LOAD_IN_PROGRESS until its log has been read, and that a failed shard is reloaded. While too few replicas are in sync
for records to be written, a shard only answers reads: its timers do not fire, and when enough replicas are back it is reloaded
from its log, with full sessions for all members.

A broker that is cut off still believes that it leads. Once another leader may have been elected without its knowledge (``World
.leads``), a shard answers nothing, not even reads: a client that commits its offsets elsewhere must not read old ones here, and
members that have been replaced must not get a success. Apache Kafka's coordinators answer until they learn of their successor.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, Protocol, TypeVar

from tidelog.coordinator.partition_for_key import partition_of
from tidelog.coordinator.shard import NEVER_MS, RecordMachine, Sender, Shard, Waiting, WithinTransaction
from tidelog.model.errors import ErrorCode, StorageFailure
from tidelog.model.ids import TopicPartition
from tidelog.model.machine import Outcome, Token
from tidelog.replication.marker_append import Marker
from tidelog.replication.partition import Partition
from tidelog.replication.replica_manager import ReplicaManager

M = TypeVar("M", bound=RecordMachine)
log = logging.getLogger(__name__)

RELOAD_AFTER_MS = 1_000
RELOAD_AFTER_FAILED_LOAD_MS = 60_000
"""Back-off after a failed load: a log that cannot be read will hardly be better in a second, and reading it is expensive."""
LOOK_AGAIN_MS = 1_000
"""How often a shard that cannot write records checks whether it can again."""


class World(Protocol):
    """What the shards need from the node."""

    def even_ms(self) -> int:
        """The one clock of shards and their machines, for ages and timeouts; setting the wall clock does not move it."""
        ...

    def leads(self, partition: Partition) -> bool:
        """Whether no other broker can have become leader of a partition that this broker led, as far as it knows."""
        ...

    def run_blocking(self, job: Callable[[], Any]) -> Awaitable[Any]: ...

    def spawn(self, coroutine: Coroutine[Any, Any, Any], name: str) -> Any: ...

    def wake_at(self, deadline_ms: int, callback: Callable[[], None]) -> None:
        """Calls ``callback`` at about ``deadline_ms``; a later call replaces an earlier one of the same callback."""
        ...


class Shards(Generic[M]):
    """All shards of ``topic`` on this broker."""

    __slots__ = (
        "_armed_ms",
        "_base_sequence",
        "_make",
        "_patience_ms",
        "_reload_ms",
        "_replicas",
        "_send",
        "_shards",
        "_world",
        "before_load",
        "topic",
    )

    def __init__(
        self,
        topic: str,
        replicas: ReplicaManager,
        make: Callable[[int], M],
        world: World,
        *,
        send: Sender[M] | None = None,
        base_sequence: int = 0,
        patience_ms: int = NEVER_MS,
    ) -> None:
        """``patience_ms``: how long responses wait for the replicas."""
        self.topic = topic
        self.before_load: Callable[[TopicPartition], Awaitable[None]] | None = None
        """Awaited before a log is read; a hook for tests of clients during a load."""
        self._send = send
        self._base_sequence = base_sequence
        self._patience_ms = patience_ms
        self._replicas = replicas
        self._make = make
        self._world = world
        self._shards: dict[int, Shard[M]] = {}
        self._armed_ms: int | None = None
        self._reload_ms: int | None = None

    # -- following the cluster -----------------------------------------------------------------------------------------------

    def follow(self) -> None:
        """Starts a shard for each partition that this broker now leads, and stops the others."""
        image = self._replicas.image.topics.by_name.get(self.topic)
        led: dict[int, Partition] = {}
        for index in range(len(image.partitions) if image is not None else 0):
            found = self._replicas.by_name(self.topic, index)
            if isinstance(found, Partition) and found.is_leader and found.log is not None:
                led[index] = found
        for index, shard in list(self._shards.items()):
            partition = shard.partition
            moved = led.get(index) is not partition or shard.epoch != partition.leader_epoch
            if moved or shard.failed or (shard.starved and partition.spare_in_sync >= 0 and self._world.leads(partition)):
                del self._shards[index]
                shard.stop(ErrorCode.NOT_COORDINATOR)
        for index, partition in led.items():
            if index not in self._shards:
                shard = Shard(
                    partition,
                    self._make,
                    send=self._send,
                    base_sequence=self._base_sequence,
                    patience_ms=self._patience_ms,
                )
                self._shards[index] = shard
                self._world.spawn(self._load(shard), f"loading {partition.topic_partition}")

    async def _load(self, shard: Shard[M]) -> None:
        loaded = False
        try:
            if self.before_load is not None:
                await self.before_load(shard.partition.topic_partition)
            loaded = await shard.load(self._world.run_blocking, self._world.even_ms)
        except StorageFailure as failure:
            self._replicas.storage_failed(failure)
        except Exception:  # whatever a log holds, its groups must not be stuck without an error in the log
            log.exception("%s cannot be loaded", shard.partition.topic_partition)
        if loaded:
            self._arm()
        elif not shard.failed:
            shard.stop(ErrorCode.NOT_COORDINATOR)
            self._reload_in(RELOAD_AFTER_FAILED_LOAD_MS)

    def reload(self) -> None:
        """Reloads all shards from their logs, as after the loss of leadership."""
        for shard in self._shards.values():
            shard.stop(ErrorCode.NOT_COORDINATOR)
        self.follow()

    def stop(self) -> None:
        """The node stops: all waiting requests are answered."""
        shards, self._shards = self._shards, {}
        for shard in shards.values():
            shard.stop(ErrorCode.NOT_COORDINATOR)

    # -- asking --------------------------------------------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        """Whether any shard exists here."""
        return bool(self._shards)

    @property
    def exists(self) -> bool:
        """Whether the topic has been created."""
        return self.topic in self._replicas.image.topics.by_name

    def partition_of(self, key: str) -> int | None:
        """The partition that owns ``key``; None while the topic does not exist."""
        image = self._replicas.image.topics.by_name.get(self.topic)
        return None if image is None else partition_of(key, len(image.partitions))

    def find(self, key: str, *, writes: bool = True) -> Shard[M] | ErrorCode:
        """The loaded shard that owns ``key``, or an error: NOT_COORDINATOR, also when another broker may be the coordinator by
        now, COORDINATOR_LOAD_IN_PROGRESS, and with ``writes`` COORDINATOR_NOT_AVAILABLE while too few replicas are in sync."""
        index = self.partition_of(key)
        if index is None:
            return ErrorCode.NOT_COORDINATOR
        shard = self._shards.get(index)
        if shard is None or shard.failed or not shard.partition.is_leader or shard.partition.log is None:
            return ErrorCode.NOT_COORDINATOR
        if shard.machine is None:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        if not self._leads(shard):
            return ErrorCode.NOT_COORDINATOR
        if shard.starved and shard.partition.spare_in_sync >= 0:
            self._reload_in(0)
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return shard if not writes or self._can_record(shard) else ErrorCode.COORDINATOR_NOT_AVAILABLE

    def doubts(self, key: str) -> bool:
        """Whether this broker seems to be ``key``'s coordinator but another one may have taken over."""
        index = self.partition_of(key)
        shard = self._shards.get(index) if index is not None else None
        return shard is not None and not self._leads(shard)

    def _leads(self, shard: Shard[M]) -> bool:
        """Whether no other broker can have become leader of the shard's partition. A shard asked while that is in doubt is
        marked for reload: its members were sent away."""
        if self._world.leads(shard.partition):
            return True
        shard.starved = True
        return False

    def _can_record(self, shard: Shard[M]) -> bool:
        """Whether the shard can write records. A shard that was asked while it could not is marked, and reloaded when it can."""
        if shard.partition.spare_in_sync < 0 or not self._world.leads(shard.partition):
            shard.starved = True
        elif shard.starved:
            self._reload_in(0)
        return not shard.starved

    def ask(self, shard: Shard[M], call: Callable[[M, Token, int], Outcome]) -> tuple[Token, Waiting]:
        """Passes a request to a loaded shard's machine. The response may be there already when this returns."""
        assert shard.machine is not None
        now_ms = self._world.even_ms()
        token, waiting = shard.wait()
        try:
            shard.run(call(shard.machine, token, now_ms), now_ms)
        except BaseException:
            shard.abandon(token)
            raise
        self._after(shard)
        return token, waiting

    def tell(self, shard: Shard[M], call: Callable[[M, int], Outcome]) -> None:
        """Passes ``shard`` an event without a waiting client, such as the response to a request it sent. Nothing happens if
        the shard was stopped or cannot write records: its successor starts from the log."""
        if shard.machine is not None and self._can_record(shard):
            now_ms = self._world.even_ms()
            shard.run(call(shard.machine, now_ms), now_ms)
            self._after(shard)

    def ask_within(
        self, shard: Shard[M], transaction: WithinTransaction, call: Callable[[M, Token, int], Outcome]
    ) -> tuple[Token, Waiting]:
        """Like ``ask``, for a request whose records belong to a producer's transaction; an error when the producer may not
        write."""
        assert shard.machine is not None
        now_ms = self._world.even_ms()
        token, waiting = shard.wait()
        try:
            error = shard.run_within(transaction, call(shard.machine, token, now_ms), now_ms)
        except BaseException:
            shard.abandon(token)
            raise
        if error is not ErrorCode.NONE and not waiting.done:
            shard.abandon(token)
            waiting.error = error
            waiting.finish()
        self._after(shard)
        return token, waiting

    def complete_transaction(self, index: int, marker: Marker) -> ErrorCode | Waiting:
        """Writes a marker into partition ``index`` once its machine is loaded; NOT_LEADER_OR_FOLLOWER before that, and on
        other brokers."""
        shard = self._shards.get(index)
        if shard is None or shard.failed or shard.machine is None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return shard.complete_transaction(marker, self._world.even_ms())

    def tell_all(self, call: Callable[[M], Outcome]) -> None:
        """Runs something on every loaded machine, without a waiting client."""
        now_ms = self._world.even_ms()
        for shard in list(self._shards.values()):
            if shard.machine is not None and self._can_record(shard):
                shard.run(call(shard.machine), now_ms)
                self._after(shard)

    def loaded(self) -> list[Shard[M]] | ErrorCode:
        """All shards here; COORDINATOR_LOAD_IN_PROGRESS while one is still loading."""
        shards = [shard for shard in self._shards.values() if not shard.failed and self._world.leads(shard.partition)]
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if any(shard.machine is None for shard in shards) else shards

    def machines(self) -> list[M] | ErrorCode:
        """The machines, which may hold state that is not safe yet."""
        shards = self.loaded()
        if isinstance(shards, ErrorCode):
            return shards
        return [shard.machine for shard in shards if shard.machine is not None]

    # -- time ----------------------------------------------------------------------------------------------------------------

    def _reload_in(self, delay_ms: int) -> None:
        at_ms = self._world.even_ms() + delay_ms
        if self._reload_ms is None or at_ms < self._reload_ms:
            self._reload_ms = at_ms
            self._arm()

    def _after(self, shard: Shard[M]) -> None:
        if shard.failed:
            self._reload_in(RELOAD_AFTER_MS)
        elif shard.machine is not None:
            deadline_ms = shard.next_deadline()
            if self._armed_ms is None or deadline_ms < self._armed_ms:
                self._arm()

    def _arm(self) -> None:
        times = [self._deadline(shard) for shard in self._shards.values() if shard.machine is not None]
        if self._reload_ms is not None:
            times.append(self._reload_ms)
        if times:
            self._armed_ms = min(times)
            self._world.wake_at(self._armed_ms, self._due)

    def _deadline(self, shard: Shard[M]) -> int:
        due_ms = shard.next_deadline()
        return max(due_ms, self._world.even_ms() + LOOK_AGAIN_MS) if shard.starved else due_ms

    def _due(self) -> None:
        self._armed_ms = None
        now_ms = self._world.even_ms()
        for shard in list(self._shards.values()):
            if shard.machine is not None and shard.next_deadline() <= now_ms:
                shard.give_up(now_ms)
                if self._can_record(shard):
                    self._expire(shard, shard.machine, now_ms)
        if self._reload_ms is not None and self._reload_ms <= now_ms:
            self._reload_ms = None
            self.follow()
        self._arm()

    def _expire(self, shard: Shard[M], machine: M, now_ms: int) -> None:
        try:
            shard.run(machine.expire(now_ms), now_ms)
        except Exception:  # a bug in one machine must not stop the timers of the others
            log.exception("%s: the timers of its groups failed", shard.partition.topic_partition)
            shard.stop(ErrorCode.NOT_COORDINATOR)
        if shard.failed:
            self._reload_in(RELOAD_AFTER_MS)
