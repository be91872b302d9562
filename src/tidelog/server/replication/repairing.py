"""Mends damaged batches from other replicas: one range at a time, at the scrub's rate, off the event loop.

Every few seconds it looks for damaged ranges that the scrub or a start has found. For each it asks the replicas in turn, as a
consumer does: such a fetch returns only committed records, moves no follower's position at the leader, and is served by followers
too. A range that no replica can mend is tried again with a back-off, at most ``LONGEST_S``.

``replication/repair.py`` decides which ranges and which answers, ``storage/splice.py`` how bytes are replaced.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple, Protocol

from tidelog.model.errors import ErrorCode, StorageFailure
from tidelog.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from tidelog.replication import repair
from tidelog.replication.partition import Partition
from tidelog.replication.repair import Damage, NotNow, Readiness, Refusal, Replacement, UnreadableThere
from tidelog.replication.replica_manager import ReplicaManager
from tidelog.replication.unmended import never
from tidelog.server.cluster.channels import Channel, ChannelError
from tidelog.server.runtime import LoopRuntime
from tidelog.server.upkeep.damage_list import write_damage_list
from tidelog.storage.scrub import GUIDE, rest_after
from tidelog.storage.segment import LOG_SUFFIX
from tidelog.storage.splice import SpliceFailed, SpliceJob
from tidelog.storage.state_rebuild import StateRebuild
from tidelog.storage.unified_log import UnifiedLog

log = logging.getLogger(__name__)

LOOK_S = 5.0
"""How often damaged ranges are looked for."""
LONGEST_S = 600.0
"""The longest back-off of a range that could not be mended."""
TIMEOUT_MS = 30_000
ANSWER_BYTES = 1 << 20
FLUSH_POLL_S = 0.01
MOST_CATCHING_UP = 10
"""How often a rebuild of the state may read what was appended during it, before it is put off."""
BYTES_PER_SECOND = 16 << 20
"""The rate while the scrub is off."""
_READ_UNCOMMITTED, _READ_COMMITTED = 0, 1
_UNREADABLE = frozenset({ErrorCode.CORRUPT_MESSAGE, ErrorCode.KAFKA_STORAGE_ERROR})
"""A donor that is damaged at the same place, or whose log dir has failed."""


class Attempt(NamedTuple):
    """The last attempt to mend a range: when the next one is due, the back-off after that, and what was logged."""

    due_s: float
    back_off_s: float
    said: str


class World(Protocol):
    """What is needed of this broker's replication."""

    @property
    def replicas(self) -> ReplicaManager: ...
    @property
    def runtime(self) -> LoopRuntime: ...
    def channel(self, leader: int, purpose: str) -> Channel | None: ...


class Repairing:
    """The repair of one node and its metrics."""

    def __init__(self, world: World, bytes_per_second: int) -> None:
        self._world = world
        self._replicas = world.replicas
        self._runtime = world.runtime
        self._rate = bytes_per_second or BYTES_PER_SECOND
        self._worker: asyncio.Task[None] | None = None
        self._attempts: dict[tuple[str, int], Attempt] = {}
        """By directory and first offset of ranges that could not be mended."""
        self.mended = 0
        """Ranges replaced."""

    def start(self) -> None:
        """Begins to look for damage."""
        self._worker = self._runtime.spawn(self._work(), "repair")

    def stop(self) -> asyncio.Task[None] | None:
        """Ends after the running step; returns the task to wait for."""
        if self._worker is not None:
            self._worker.cancel()
        return self._worker

    async def _work(self) -> None:
        while True:
            await self._runtime.sleep(LOOK_S)
            try:
                await self.look()
            except Exception:  # a fault in one partition must not end the repair of all
                log.exception("a repair ended")

    async def look(self) -> None:
        """Mends what can be mended now."""
        known: set[tuple[str, int]] = set()
        for partition in list(self._replicas.partitions()):
            here = partition.log
            if here is None or here.failure is not None or partition.deleted:
                continue
            found = repair.damages(here)
            if not found:
                partition.unmended.keep(())
                continue
            known.update((here.dir, damage.rotten.first_offset) for damage in found)
            partition.unmended.keep(damage.rotten for damage in found)
            for damage in found:
                if not self._is_due(here, damage):
                    continue
                try:
                    await self._mend(partition, here, damage)
                except StorageFailure as failure:
                    self._replicas.storage_failed(failure)
                break  # the others of this log in the next round: its segments may have changed
        for gone in self._attempts.keys() - known:
            del self._attempts[gone]

    def _is_due(self, here: UnifiedLog, damage: Damage) -> bool:
        last = self._attempts.get((here.dir, damage.rotten.first_offset))
        return last is None or self._runtime.loop.time() >= last.due_s

    def _put_off(self, here: UnifiedLog, damage: Damage, reasons: Iterable[str]) -> None:
        """Tries again later; a reason that was not logged yet is logged."""
        key = here.dir, damage.rotten.first_offset
        last = self._attempts.get(key, Attempt(0.0, LOOK_S, ""))
        said = "; ".join(reasons)
        due_s = self._runtime.loop.time() + last.back_off_s
        self._attempts[key] = Attempt(due_s, min(2 * last.back_off_s, LONGEST_S), said)
        if last.said != said:
            log.error(
                "%s: offsets %d to %d are damaged and cannot be mended from another replica now: %s. What to do: %s",
                damage.segment.path(LOG_SUFFIX), damage.rotten.first_offset, damage.rotten.next_offset - 1, said, GUIDE,
            )  # fmt: skip

    # -- one range ------------------------------------------------------------------------------------------------------

    async def _mend(self, partition: Partition, here: UnifiedLog, damage: Damage) -> None:
        impossible = never(damage.rotten)
        if impossible is not None:
            self._put_off(here, damage, [impossible])
            return
        ready = repair.readiness(here, damage)
        if ready is Readiness.ROLL:
            here.roll(self._runtime.even_ms())
        if ready in (Readiness.ROLL, Readiness.FLUSH):
            self._replicas.flush(partition)
        if ready is not Readiness.READY:
            return
        reasons = []
        may_succeed = False
        for donor in repair.donors(partition):
            epoch = partition.leader_epoch
            try:
                found = await self._copied(partition, here, damage, donor)
                await self._replace(partition, here, damage, found, epoch, donor)
            except (Refusal, SpliceFailed, ChannelError, OSError) as problem:
                if partition.deleted or damage.segment not in here.segments:
                    log.warning("%s: a repair ended early, the segment is not in the log any more: %s", here.dir, problem)
                    return
                reasons.append(f"broker {donor}: {problem}")
                may_succeed |= isinstance(problem, NotNow | ChannelError)
                continue
            return
        self._put_off(here, damage, reasons or ["the partition has one replica"])
        if not may_succeed:
            partition.unmended.give_up(damage.rotten)

    async def _copied(self, partition: Partition, here: UnifiedLog, damage: Damage, donor: int) -> Replacement:
        """The bytes that ``donor`` has for the range. Refusal, ChannelError."""
        try:
            return await self._fetched(partition, Replacement(here, damage.rotten), donor, _READ_COMMITTED)
        except UnreadableThere:
            # Damage of its own may leave undecided what was aborted there, and it may wait for our copy. The bytes will do.
            return await self._fetched(partition, Replacement(here, damage.rotten), donor, _READ_UNCOMMITTED)

    async def _fetched(self, partition: Partition, found: Replacement, donor: int, isolation: int) -> Replacement:
        channel = self._world.channel(donor, "repair")
        if channel is None:
            raise NotNow("it is not in service")
        while not found.complete:
            wanted = FetchPartition(
                partition=partition.index,
                current_leader_epoch=partition.leader_epoch,
                fetch_offset=found.next_offset,
                partition_max_bytes=min(ANSWER_BYTES, found.missing_bytes + 1),
            )
            request = FetchRequest(
                max_bytes=ANSWER_BYTES,
                isolation_level=isolation,
                topics=[FetchTopic(topic=partition.topic, topic_id=partition.topic_id, partitions=[wanted])],
            )
            began = self._runtime.loop.time()
            answer = _only_partition(await channel.ask(request, timeout_ms=TIMEOUT_MS))
            records = answer.records if answer.records is not None else b""
            known = isolation == _READ_COMMITTED
            aborted = [(each.producer_id, each.first_offset) for each in answer.aborted_transactions or ()]
            found.take(records, aborted if known else None)
            await self._rest(len(records), began)
        return found

    async def _replace(
        self, partition: Partition, here: UnifiedLog, damage: Damage, found: Replacement, epoch: int, donor: int
    ) -> None:
        """Puts the bytes in place. SpliceFailed when the log changed meanwhile, OSError."""
        job = SpliceJob(here, damage.segment, damage.rotten, found.data)
        try:
            await self._run(job.steps())
            state = None
            if found.changes_state(damage.segment):
                state = StateRebuild(here, damage.segment, job.mended, self._runtime.even_ms())
                await self._run(state.steps())
            await self._no_flush(here)
            for _ in range(MOST_CATCHING_UP):
                if state is None or not state.stands or state.ready:
                    break
                await self._run(state.more(), hurry=True)
                await self._no_flush(here)
            unchanged = partition.log is here and not partition.deleted and partition.leader_epoch == epoch
            if not (unchanged and job.stands and (state is None or (state.stands and state.ready))):
                raise NotNow("the log changed meanwhile")
            if state is not None:
                # Before the records can be read: readers of committed data must not get what was aborted.
                state.install()
            job.put_in_place()
            found.teach_epochs()
        except BaseException:
            await self._runtime.run_long(job.drop)
            raise
        self._mended(here, damage, donor, job)
        await self._runtime.run_long(job.finish)
        await write_damage_list(self._runtime, here)
        self._replicas.flush(partition)

    async def _no_flush(self, here: UnifiedLog) -> None:
        """Waits until no flush is under way: it might write a producer snapshot of the state that is replaced."""
        while here.flush_in_flight:
            await self._runtime.sleep(FLUSH_POLL_S)

    def _mended(self, here: UnifiedLog, damage: Damage, donor: int, job: SpliceJob) -> None:
        self.mended += 1
        key = here.dir, damage.rotten.first_offset
        self._attempts.pop(key, None)
        if self._replicas.on_mended is not None:
            self._replicas.on_mended(here)
        rotten = damage.rotten
        log.warning(
            "%s: %d damaged bytes at position %d, offsets %d to %d, are replaced by those of broker %d; %s",
            damage.segment.path(LOG_SUFFIX), rotten.end - rotten.position, rotten.position, rotten.first_offset,
            rotten.next_offset - 1, donor, "nothing of them can be kept" if job.kept is None else f"they are kept as {job.kept}",
        )  # fmt: skip

    # -- pace -----------------------------------------------------------------------------------------------------------

    async def _run(self, steps: Iterator[int], *, hurry: bool = False) -> None:
        """Runs the steps in a thread; with ``hurry`` without rests, to catch up with a log that grows."""
        step: Callable[[], int] = partial(next, steps, -1)
        while True:
            began = self._runtime.loop.time()
            length = await self._runtime.run_long(step)
            if length < 0:
                return
            if not hurry:
                await self._rest(length, began)

    async def _rest(self, length: int, began_s: float) -> None:
        await self._runtime.sleep(rest_after(length, self._runtime.loop.time() - began_s, self._rate))


def _only_partition(response: FetchResponse) -> PartitionData:
    """The answer about the one partition that was asked for. Refusal for an error."""
    error = ErrorCode(response.error_code)
    parts = [part for topic in response.responses for part in topic.partitions]
    if not error and len(parts) == 1:
        error = ErrorCode(parts[0].error_code)
        if not error:
            return parts[0]
    if not error:
        raise Refusal("it does not answer for the partition")
    if error in _UNREADABLE:
        raise UnreadableThere("it cannot read its own copy")
    passes = error.retriable or error is ErrorCode.OFFSET_OUT_OF_RANGE  # a replica that is behind, or knows another leader
    raise (NotNow if passes else Refusal)(f"it answers {error.name}")
