"""Runs one fetcher: sends Fetch requests to a leader and applies the responses to local logs.

Appends are writes to the page cache, on the loop, which yields after each MiB. Syncs run in threads, and the next Fetch waits for
them: syncs that a topic's flush settings demand (a follower's fetch tells the leader that it has the records), and syncs of a
truncated file.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Protocol

from tidelog.config.resolve import BrokerConfig
from tidelog.model import ids
from tidelog.model.errors import ErrorCode, KafkaError, StorageFailure
from tidelog.protocol.messages import list_offsets as offsets
from tidelog.protocol.messages.fetch import FetchResponse
from tidelog.replication import follower_log
from tidelog.replication.fetcher import Append, Diverged, FetcherSettings, ReplicaFetcher, Task
from tidelog.replication.followed_partition import Followed
from tidelog.replication.partition import Partition
from tidelog.replication.purgatory import ParkedAppend
from tidelog.replication.replica_manager import ReplicaManager
from tidelog.server.cluster.channels import Channel, ChannelError
from tidelog.server.replication.plain_fetches import Applied, PlainFetches
from tidelog.server.runtime import LoopRuntime
from tidelog.storage.truncation import Deferred
from tidelog.storage.unified_log import UnifiedLog

log = logging.getLogger(__name__)

TURN_BYTES = 1 << 20
"""Bytes appended before the loop runs other work."""
INTERRUPT_AFTER_S = 0.005
"""Partitions added within this time are fetched together."""
PARTITION_S = 0.0002
"""Minimum time between two interruptions, per partition named in the new session; ten times what naming one costs."""
FLUSH_POLL_S = 0.002
NOBODY_S = 0.1
"""How often the address of a leader is looked up while it is unknown."""
FLUSH_DEADLINE_MS = 60_000
LEADER_ACKS = 1


def fetcher_settings(config: BrokerConfig) -> FetcherSettings:
    """replica.fetch.* of this broker."""
    return FetcherSettings(
        max_wait_ms=config.replica_fetch_wait_max_ms,
        min_bytes=config.replica_fetch_min_bytes,
        max_bytes=config.replica_fetch_response_max_bytes,
        partition_max_bytes=config.replica_fetch_max_bytes,
        backoff_ms=config.replica_fetch_backoff_ms,
    )


class Leaders(Protocol):
    """Where leaders are, and what a fetcher says of this broker."""

    replicas: ReplicaManager
    runtime: LoopRuntime
    config: BrokerConfig

    def broker_epoch(self) -> int: ...

    def channel(self, leader: int, purpose: str) -> Channel | None:
        """A connection to a broker; None while its address is unknown."""
        ...


class Following:
    """Fetcher ``number`` of this broker from ``leader``."""

    def __init__(self, leaders: Leaders, leader: int, number: int, settings: FetcherSettings) -> None:
        self.leader = leader
        self.number = number
        self.machine = ReplicaFetcher(leaders.replicas.broker_id, leader, settings)
        self._leaders = leaders
        self._replicas = leaders.replicas
        self._runtime = leaders.runtime
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._poll: asyncio.Future[FetchResponse | Applied] | None = None
        self._plain = PlainFetches(
            self, leaders.replicas.broker_id, settings, leaders.broker_epoch, self._runtime.steady_ms, self._runtime.loop.time
        )
        self._interrupting: asyncio.TimerHandle | None = None
        self._interrupted_s = -1e9
        self._line = 0
        self._ended = False
        self._reported = False
        self.bytes_in = 0

    def __str__(self) -> str:
        return f"fetcher {self.number} from broker {self.leader}"

    def start(self) -> None:
        self._task = self._runtime.spawn(self._run(), str(self))

    def end(self) -> asyncio.Task[None] | None:
        """Stops fetching; returns the task to wait for."""
        self._ended = True
        if self._interrupting is not None:
            self._interrupting.cancel()
        if self._task is not None:
            self._task.cancel()
        return self._task

    def follow(self, partition: Partition) -> None:
        """Follows ``partition`` too, or in its new epoch."""
        if not self.machine.follow(partition):
            return
        self._wake.set()
        if self._poll is not None and self._interrupting is None and not self.machine.answers_soon:
            # A new session names every partition: the more there are, the rarer the interruptions.
            again_s = self._interrupted_s + PARTITION_S * len(self.machine) - self._runtime.loop.time()
            self._interrupting = self._runtime.loop.call_later(max(INTERRUPT_AFTER_S, again_s), self._interrupt)

    def _interrupt(self) -> None:
        self._interrupting = None
        if self.machine.answers_soon:
            return
        self._interrupted_s = self._runtime.loop.time()
        if self._poll is not None and self._poll.cancel():
            # The answer still arrives on that connection, so the other one is used for the next request.
            self._line ^= 1
            self.machine.interrupted()

    # -- asking ---------------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        try:
            while True:
                try:
                    await self._round()
                except Exception:  # a faulty response must not end the replication of all partitions
                    log.exception("%s failed on a response, and starts again", self)
                    self.machine.start_again(self._runtime.steady_ms())
        finally:
            if self._poll is not None:
                self._poll.cancel()

    async def _round(self) -> None:
        self._wake.clear()
        request = self.machine.request(self._runtime.steady_ms(), self._leaders.broker_epoch())
        if request is None:
            await self._until_due()
            return
        response = await self._ask(request)
        if isinstance(response, Applied):
            if response.unflushed:
                await self._flush(response.unflushed)
        elif response is not None:
            await self._apply(self.machine.answered(response, self._runtime.steady_ms()))

    async def _until_due(self) -> None:
        due_ms = self.machine.next_due_ms()
        if due_ms is None:
            await self._wake.wait()
            return
        try:
            async with asyncio.timeout(max(0, due_ms - self._runtime.steady_ms()) / 1000):
                await self._wake.wait()
        except TimeoutError:
            pass

    def _channel(self) -> Channel | None:
        return self._leaders.channel(self.leader, f"replication {self.number}.{self._line}")

    async def _ask(self, request: object) -> FetchResponse | Applied | None:
        """The answer, or that one to a later plain request was applied. None when there is no answer, or the request was
        interrupted."""
        channel = self._channel()
        if channel is None:
            self.machine.failed()
            await self._runtime.sleep(NOBODY_S)
            return None
        timeout_ms = self._leaders.config.replica_socket_timeout_ms
        self._poll = poll = channel.begin(request, timeout_ms=timeout_ms, on_frame=self._plain.on_frame)
        try:
            response: FetchResponse | Applied = await poll
        except ChannelError as error:
            self._report(error)
            self.machine.failed()
            # The channel waits by itself before it reconnects.
            return None
        except asyncio.CancelledError:
            if self._ended or not poll.cancelled():
                raise
            return None
        finally:
            self._poll = None
        self._reported = False
        return response

    def _report(self, error: ChannelError) -> None:
        level = logging.DEBUG if self._reported else logging.WARNING
        self._reported = True
        log.log(level, "%s: %s", self, error)

    # -- doing ----------------------------------------------------------------------------------------------------------

    async def _apply(self, tasks: list[Task]) -> None:
        spent = 0
        unflushed: list[tuple[Partition, int]] = []
        cut: list[tuple[UnifiedLog, Deferred]] = []
        lost: list[Followed] = []
        for task in tasks:
            if not task.followed.is_current:
                continue
            try:
                if isinstance(task, Append):
                    spent += len(task.records)
                    self.append(task, unflushed)
                elif isinstance(task, Diverged):
                    await self._cut(task, cut)
                else:
                    lost.append(task.followed)
            except Exception:  # a fault in one partition must not hold up the others
                log.exception("%s failed on %s", self, task.followed.partition.topic_partition)
                self.machine.refuse(task.followed, self._runtime.steady_ms())
            if spent >= TURN_BYTES:
                spent = 0
                await asyncio.sleep(0)
        if lost:
            await self._find_start(lost, cut)
        if cut:
            await self._sync(cut)
        if unflushed:
            await self._flush(unflushed)

    def append(self, task: Append, unflushed: list[tuple[Partition, int]]) -> None:
        """Appends the batches, if any, and applies the watermarks."""
        followed, records, high_watermark, log_start_offset = task
        partition = followed.partition
        here = partition.log
        assert here is not None
        now_ms, appended = self._runtime.even_ms(), 0
        try:
            if len(records):
                appended = follower_log.append(partition, self._replicas.logs, memoryview(records), followed.leader_epoch, now_ms)
                self._count(followed, len(records), now_ms)
                if here.log_end_offset - here.recovery_point >= here.config.flush_messages:
                    unflushed.append((partition, here.log_end_offset))
            partition.take_watermarks(high_watermark, log_start_offset, appended)
        except KafkaError as error:
            log.error("%s sent what cannot be appended: %s", self, error)
            self.machine.refuse(followed, self._runtime.steady_ms())
        except StorageFailure as failure:
            self._replicas.storage_failed(failure)

    def _count(self, followed: Followed, size: int, now_ms: int) -> None:
        """Counts the bytes of a throttled replica. One that is not in sync may have to wait for its next records."""
        partition, quota = followed.partition, self._replicas.throttles.follower
        self.bytes_in += size
        if quota.applies(partition.topic, partition.index):
            quota.record(size, now_ms)
            wait_ms = quota.wait_ms(now_ms) if partition.broker_id not in partition.isr else 0
            if wait_ms > 0:
                self.machine.pause(followed, self._runtime.steady_ms(), wait_ms)

    async def _cut(self, task: Diverged, cut: list[tuple[UnifiedLog, Deferred]]) -> None:
        """Truncates to the offset where the logs diverge."""
        if await self._unflushing(task.followed):
            here = task.followed.partition.log
            assert here is not None
            self._truncate(task.followed, follower_log.truncation_offset(here, task.leader_epoch, task.end_offset), cut)

    def _truncate(self, followed: Followed, offset: int, cut: list[tuple[UnifiedLog, Deferred]]) -> None:
        partition = followed.partition
        here = partition.log
        assert here is not None
        deferred: Deferred = []
        cut.append((here, deferred))
        try:
            self._replicas.moves.restart(partition, self._runtime.even_ms())
            follower_log.truncate(partition, self._replicas.logs, offset, self._runtime.even_ms(), deferred)
        except StorageFailure as failure:
            self._replicas.storage_failed(failure)

    async def _unflushing(self, followed: Followed) -> bool:
        """Waits for a flush in flight. False: the partition is no longer followed here."""
        while followed.is_current:
            here = followed.partition.log
            if here is None or not here.flush_in_flight:
                break
            await asyncio.sleep(FLUSH_POLL_S)
        return followed.is_current

    async def _sync(self, cut: list[tuple[UnifiedLog, Deferred]]) -> None:
        def run() -> list[tuple[UnifiedLog, OSError]]:
            failed = []
            for here, deferred in cut:
                try:
                    for sync in deferred:
                        sync()
                except OSError as problem:  # the others may be on another disk
                    failed.append((here, problem))
            return failed

        for here, problem in await self._runtime.run_blocking(run):
            self._replicas.storage_failed(here.fail("sync of a truncated log", problem))

    async def _flush(self, unflushed: list[tuple[Partition, int]]) -> None:
        parked = ParkedAppend(self._runtime.now_ms() + FLUSH_DEADLINE_MS, LEADER_ACKS)
        try:
            for index, (partition, end) in enumerate(unflushed):
                parked.watch(partition, index, end - 1)
                partition.demand_flush(end)
            await self._runtime.wait(parked)
        finally:
            parked.finish()

    # -- where the leader's log begins ----------------------------------------------------------------------------------

    async def _find_start(self, lost: list[Followed], cut: list[tuple[UnifiedLog, Deferred]]) -> None:
        """Handles partitions whose end offset is not in the leader's log: the leader's log ends earlier (after an unclean
        election), or starts later."""
        try:
            ends = await self._list(lost, ids.LATEST_TIMESTAMP)
            starts = await self._list(lost, ids.EARLIEST_TIMESTAMP)
        except ChannelError as error:
            self._report(error)
            ends = starts = {}
        for followed in lost:
            key = followed.partition.topic, followed.partition.index
            end, start = ends.get(key), starts.get(key)
            if end is None or start is None or end < 0 or start < 0:
                self.machine.delay(followed, self._runtime.steady_ms(), quickly=True)
                continue
            if await self._unflushing(followed):
                self._move(followed, end, start, cut)
            self.machine.end(followed)

    def _move(self, followed: Followed, end: int, start: int, cut: list[tuple[UnifiedLog, Deferred]]) -> None:
        partition = followed.partition
        assert partition.log is not None
        ours = partition.log.log_end_offset
        if end < ours:
            self._truncate(followed, end, cut)
        elif start > ours:
            try:
                self._replicas.moves.restart(partition, self._runtime.even_ms())
                follower_log.start_over(partition, self._replicas.logs, start, self._runtime.even_ms())
            except StorageFailure as failure:
                self._replicas.storage_failed(failure)

    async def _list(self, lost: Iterable[Followed], timestamp: int) -> dict[tuple[str, int], int]:
        channel = self._channel()
        if channel is None:
            return {}
        topics: dict[str, offsets.ListOffsetsTopic] = {}
        for followed in lost:
            partition = followed.partition
            topic = topics.setdefault(partition.topic, offsets.ListOffsetsTopic(name=partition.topic))
            topic.partitions.append(
                offsets.ListOffsetsPartition(
                    partition_index=partition.index, current_leader_epoch=followed.leader_epoch, timestamp=timestamp
                )
            )
        request = offsets.ListOffsetsRequest(replica_id=self._replicas.broker_id, topics=list(topics.values()))
        timeout_ms = self._leaders.config.replica_socket_timeout_ms
        response: offsets.ListOffsetsResponse = await channel.ask(request, timeout_ms=timeout_ms)
        return {
            (topic.name, found.partition_index): found.offset
            for topic in response.topics
            for found in topic.partitions
            if found.error_code == ErrorCode.NONE
        }
