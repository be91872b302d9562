"""One broker of the simulated cluster: real logs, partitions and fetchers on a disk that forgets, driven by the world."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tidelog.metadata.delta import ClusterDelta
from tidelog.metadata.image import ClusterImage
from tidelog.metadata.records import MetadataRecord
from tidelog.model import ids
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.fastpath import FetchView
from tidelog.protocol.fastpath.follower_fetch import PlainRequests, read_plain_answer
from tidelog.protocol.framing import encode_response, read_request_header
from tidelog.protocol.messages import fetch as wire
from tidelog.replication import follower_log
from tidelog.replication.fetch import Fetch
from tidelog.replication.fetcher import Append, Diverged, FetcherSettings, OutOfRange, ReplicaFetcher, Task
from tidelog.replication.followed_partition import Followed
from tidelog.replication.offset_lookup import OffsetAnswer, list_offset
from tidelog.replication.partition import Partition
from tidelog.replication.replica import Caller
from tidelog.replication.replica_manager import ReplicaManager
from tidelog.storage.checkpoints import MetaProperties
from tidelog.storage.log_config import LogConfig
from tidelog.storage.log_manager import LogManager
from tidelog.storage.truncation import Deferred
from tidelog.testing.simulation.disk import SimDisk

if TYPE_CHECKING:
    from sim.replica_world import ReplicaWorld

ROOT = "/data"
LAG_MAX_MS = 2_000
VERSION = 18
PLAIN_REQUESTS = {
    each: PlainRequests(VERSION, "sim", each, min_bytes=1, max_bytes=4_000, partition_max_bytes=1 << 20) for each in range(16)
}
CONFIG = LogConfig(min_insync_replicas=2, segment_bytes=1_500)


def directory_id(broker_id: int) -> bytes:
    return bytes([0xD0 + broker_id]) * 16


class SimBroker:
    """A broker between a start and its end; the next life is another object on the disk that this one left."""

    def __init__(self, world: ReplicaWorld, broker_id: int, disk: SimDisk, epoch_before: int) -> None:
        self.world = world
        self.id = broker_id
        self.disk = disk
        self.epoch = -1
        self.epoch_before = epoch_before
        self.up = True
        self.paused_until = 0
        self.image = ClusterImage()
        self.applied = 0
        """Entries of the world's metadata log."""
        self.fetchers: dict[int, ReplicaFetcher] = {}
        self.where: dict[Partition, ReplicaFetcher] = {}
        self.repairs: set[Partition] = set()
        """Partitions with a repair under way."""
        if not disk.exists(ROOT):
            disk.make_dirs(ROOT)
            file = disk.open(f"{ROOT}/meta.properties", create=True)
            file.write(0, MetaProperties("cluster", broker_id, directory_id(broker_id)).encode())
            file.sync()
            disk.sync_dir(ROOT)
            disk.sync_dir("/")
        self.logs = LogManager(
            disk,
            [ROOT],
            node_id=broker_id,
            rng=random.Random(world.rng.random()),
            config_for=lambda _: CONFIG,
            cluster_id="cluster",
        )
        self.logs.open_dirs()
        self.logs.load_all(world.now)
        self.manager = ReplicaManager(
            broker_id,
            self.logs,
            background=self._background,
            rng=random.Random(world.rng.random()),
            even_ms=lambda: world.now,
        )
        self.manager.lag_max_ms = LAG_MAX_MS
        self._answers_due = False

    def later(self, delay_ms: int, event: Callable[[], None]) -> None:
        """In this life; a broker that is paused does it when it goes on."""

        def happen() -> None:
            if not self.up:
                return
            if self.paused_until > self.world.now:
                self.world.at(self.paused_until - self.world.now, happen)
                return
            event()

        self.world.at(delay_ms, happen)

    def _background(self, job: Callable[[], None], done: Callable[[int], None]) -> None:
        def run() -> None:
            job()
            self.later(self.world.rng.randint(0, 3), lambda: done(self.world.now))

        self.later(self.world.rng.randint(0, 30), run)

    # -- metadata -------------------------------------------------------------------------------------------------------

    def begin(self, image: ClusterImage, applied: int) -> None:
        """Serve, knowing the metadata up to this broker's own registration: before that it may lead nothing."""
        self.image, self.applied = image, applied
        self.manager.load(image, self.world.now)
        self._follow()

    def catch_up(self) -> None:
        """Apply the next entry of the metadata log."""
        if self.epoch < 0 or self.applied >= len(self.world.metadata):
            return
        records, offset = self.world.metadata[self.applied]
        self.applied += 1
        self._apply(records, offset)
        self.later(self.world.rng.randint(0, 4), self.catch_up)

    def _apply(self, records: list[MetadataRecord], offset: int) -> None:
        delta = ClusterDelta(self.image)
        for record in records:
            delta.replay(record)
        self.image = delta.apply(offset, 1, self.world.now)
        self.manager.apply(delta, self.image, self.world.now)
        self._follow()

    def _follow(self) -> None:
        moved, self.manager.moved = self.manager.moved, {}
        for partition in moved:
            self._place(partition)

    def _place(self, partition: Partition) -> None:
        follows = partition.leader >= 0 and not partition.is_leader and not partition.deleted and partition.log is not None
        before = self.where.pop(partition, None)
        if before is not None and not (follows and before.leader == partition.leader):
            before.drop(partition)
        if follows:
            fetcher = self.fetchers.get(partition.leader)
            if fetcher is None:
                fetcher = self.fetchers[partition.leader] = ReplicaFetcher(
                    self.id, partition.leader, FetcherSettings(backoff_ms=200)
                )
                self.later(1, lambda: self._fetch(fetcher))
            self.where[partition] = fetcher
            fetcher.follow(partition)

    # -- the follower ---------------------------------------------------------------------------------------------------

    def _fetch(self, fetcher: ReplicaFetcher) -> None:
        """As a connection does it: a plain request where there is one, and its answer read as a plain one where it is."""
        if self.epoch >= 0 and (plain := fetcher.plain_request(self.world.now)) is not None:
            self.world.note("plain request")
            sent = memoryview(PLAIN_REQUESTS[self.id].frame(0, *plain[:3], self.epoch, plain.wanted))[4:]
            request = wire.FetchRequest.decode(sent[read_request_header(sent)[-1] :], VERSION)
        elif self.epoch < 0 or (request := fetcher.request(self.world.now, self.epoch)) is None:
            self.later(10, lambda: self._fetch(fetcher))
            return

        def answered(response: wire.FetchResponse | None) -> None:
            if response is None:
                fetcher.failed()
                self.later(self.world.rng.randint(5, 50), lambda: self._fetch(fetcher))
                return
            frame = encode_response(0, True, response.encode(VERSION))
            plain = read_plain_answer(memoryview(frame)[4:], 0)
            tasks: Sequence[Task] | None = fetcher.answered_plainly(plain) if plain is not None else None
            for task in fetcher.answered(response, self.world.now) if tasks is None else tasks:
                if task.followed.is_current:
                    self._do(fetcher, task)
            self.later(self.world.rng.randint(0, 2), lambda: self._fetch(fetcher))

        self.world.ask(self, fetcher.leader, lambda leader: leader.serve_fetch(request), answered)

    def _do(self, fetcher: ReplicaFetcher, task: Append | Diverged | OutOfRange) -> None:
        partition = task.followed.partition
        log = partition.log
        assert log is not None
        now_ms = self.world.now
        try:
            if isinstance(task, Append):
                appended = 0
                if len(task.records):
                    records = memoryview(task.records)
                    appended = follower_log.append(partition, self.logs, records, task.followed.leader_epoch, now_ms)
                partition.take_watermarks(task.high_watermark, task.log_start_offset, appended)
                self.world.looked(self, partition)
                return
        except KafkaError as error:
            self.world.note(f"refused append {error.code.name}")
            fetcher.delay(task.followed, now_ms)
            return
        if log.flush_in_flight:
            fetcher.delay(task.followed, now_ms, quickly=True)
        elif isinstance(task, Diverged):
            self.world.note("diverged")
            self._cut(partition, follower_log.truncation_offset(log, task.leader_epoch, task.end_offset))
        else:
            self.world.note("out of range")
            self._find_start(fetcher, task.followed)

    def _cut(self, partition: Partition, offset: int) -> None:
        log = partition.log
        assert log is not None
        if offset < log.high_watermark:
            self.world.violated(f"broker {self.id} cuts below its high watermark: {offset} < {log.high_watermark}")
        deferred: Deferred = []
        follower_log.truncate(partition, self.logs, offset, self.world.now, deferred)
        for sync in deferred:
            sync()

    def _find_start(self, fetcher: ReplicaFetcher, followed: Followed) -> None:
        partition = followed.partition

        def answered(found: tuple[OffsetAnswer, OffsetAnswer] | None) -> None:
            if found is None or any(each.error for each in found):
                fetcher.delay(followed, self.world.now, quickly=True)
                return
            log = partition.log
            if followed.is_current and log is not None and not log.flush_in_flight:
                end, start = found[0].offset, found[1].offset
                if end < log.log_end_offset:
                    self._cut(partition, end)
                elif start > log.log_end_offset:
                    follower_log.start_over(partition, self.logs, start, self.world.now)
            fetcher.end(followed)

        def ask(leader: SimBroker) -> Any:
            there = leader.manager.by_id(partition.topic_id, partition.index)
            if isinstance(there, ErrorCode):
                return OffsetAnswer(there), OffsetAnswer(there)
            times = (ids.LATEST_TIMESTAMP, ids.EARLIEST_TIMESTAMP)
            return tuple(list_offset(there, time, followed.leader_epoch, committed=False, follower=True) for time in times)

        self.world.ask(self, fetcher.leader, ask, answered)

    # -- the leader -----------------------------------------------------------------------------------------------------

    def serve_fetch(self, request: wire.FetchRequest) -> wire.FetchResponse | Callable[[], wire.FetchResponse]:
        """The answer, or what makes it after the long poll."""
        view = FetchView.from_message(request, 18)
        caller = Caller(view.replica_id, view.replica_epoch, self.world.now)
        context = self.manager.sessions.open(view, self.world.now, by_id=True, caller=caller)
        if isinstance(context, ErrorCode):
            return wire.FetchResponse(error_code=context)
        work = self.manager.fetch(context, min_bytes=1, max_bytes=4_000, committed=False)
        if work.cold:
            work.warm_up()
            work.read_warm()
        for wanted in work.reads:
            if wanted.partition is not None:
                self.world.looked(self, wanted.partition)
        if work.is_complete:
            return self._answer(work)

        def after_the_wait() -> wire.FetchResponse:
            work.read_warm()
            return self._answer(work)

        return after_the_wait

    def _answer(self, work: Fetch) -> wire.FetchResponse:
        answer = work.finish(lambda: self.world.now)
        topics: dict[bytes, wire.FetchableTopicResponse] = {}
        for wanted, read in answer.partitions:
            topic = topics.setdefault(wanted.topic_id, wire.FetchableTopicResponse(topic_id=wanted.topic_id))
            part = wire.PartitionData(
                partition_index=wanted.index,
                error_code=read.error,
                high_watermark=read.high_watermark,
                log_start_offset=read.log_start_offset,
                records=read.records.read() if read.records is not None else b"",
            )
            if read.diverging is not None:
                part.diverging_epoch = wire.EpochEndOffset(*read.diverging)
            topic.partitions.append(part)
        return wire.FetchResponse(error_code=answer.error, session_id=answer.session_id, responses=list(topics.values()))

    # -- keeping house --------------------------------------------------------------------------------------------------

    def isr_step(self) -> None:
        """Look for lagging followers; tell the controller what is wanted."""
        self.manager.isr_step(self.world.now)
        for partition in self.manager.partitions():
            self.world.looked(self, partition)
        self.ask_isr()
        self.later(200, self.isr_step)

    def ask_isr(self) -> None:
        request = self.manager.isr_changes.next_request(self.epoch)
        if request is None:
            return

        def answered(response: Any) -> None:
            if response is None:
                self.manager.isr_changes.failed()
            else:
                self.manager.isr_changes.answered(response, self.world.now)

        self.world.alter_partition(self, request, answered)

    def house_step(self) -> None:
        """Flush something, and checkpoint."""
        for log in list(self.logs.logs()):
            if self.world.rng.random() < 0.5:
                found = self.manager.by_name(*log.topic_partition)
                if isinstance(found, Partition):
                    self.manager.flush(found)
        if self.world.rng.random() < 0.3:
            self.manager.dir_jobs.checkpoint()
        self.later(self.world.rng.randint(100, 700), self.house_step)
