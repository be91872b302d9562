"""Runs a quorum member's Raft machine on the loop: its effects, blocking jobs, timers, and requests from other nodes.

Effects are done one after another. The quorum-state file is synced in a thread before any later effect, so no vote leaves before
it is durable. One job at a time syncs the log, for everything appended since the last one; its result carries the generation of
the log at the time of the job. Truncating the log waits for a running sync.

The machine uses the monotonic clock, so a change of the wall clock starts no election. When the disk fails, or the quorum state
is contradictory, ``on_failure`` is called once and nothing more is sent.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from tidelog.broker.ports import ControllerHandler
from tidelog.controller.quorum_member import Pending, QuorumMember
from tidelog.metadata.features import UnsupportedFeatureLevel
from tidelog.metadata.records import MetadataLogError
from tidelog.model.errors import ErrorCode, KafkaError, StorageFailure
from tidelog.model.machine import Token
from tidelog.raft import log_changes, quorum_state
from tidelog.raft.description import QuorumDescription, describe_quorum
from tidelog.raft.effects import (
    AppendControl,
    AppendFetched,
    BeginSnapshot,
    Effect,
    HighWatermarkMoved,
    InstallSnapshot,
    LeaderChanged,
    Persist,
    Reply,
    ReplyRecords,
    ReplySnapshotPart,
    Send,
    StoreSnapshotPart,
    Truncate,
)
from tidelog.raft.log_changes import IncomingSnapshot, snapshot_part
from tidelog.raft.raft_log import QuorumFault
from tidelog.raft.shared_reads import SharedReads
from tidelog.raft.snapshots import Snapshot, SnapshotJob
from tidelog.raft.voters import VoterSet
from tidelog.server.cluster.peers import Peers
from tidelog.server.deadline import Deadline
from tidelog.server.runtime import LoopRuntime
from tidelog.storage.flush import FlushJob

log = logging.getLogger(__name__)

FATAL = (StorageFailure, QuorumFault, MetadataLogError, UnsupportedFeatureLevel, OSError)
"""Errors that stop the node: the disk failed, or the quorum's data is unusable."""

TURN_BYTES = 1 << 18
"""Bytes read at a time while the node catches up with the metadata log; some ten milliseconds of the loop."""

TICK_S = 0.1
"""How often the active controller does its timed work: fencing silent brokers, balancing leaders."""


class RaftRunner:
    def __init__(
        self, member: QuorumMember, runtime: LoopRuntime, on_failure: Callable[[Exception], None], on_leader: Callable[[], None]
    ) -> None:
        self.member = member
        self._runtime = runtime
        self._on_failure = on_failure
        self._on_leader = on_leader
        self._failed = False
        self._refusal = "the controller has stopped"
        self._queue: deque[Effect] = deque()
        self._busy = False
        self._flushing = False
        self._after_flush: Callable[[], None] | None = None
        self._alarm = Deadline(runtime, self._ring)
        self._ticking: asyncio.TimerHandle | None = None
        self._pumping = False
        self._deciding = False
        self._deferred: deque[Callable[[], None]] = deque()
        self._peers = Peers(runtime, self, f"raft-client-{member.config.raft.key.id}")
        self._tokens = 0
        self._asking: dict[int, asyncio.Future[Any]] = {}
        self._submitted: dict[int, tuple[asyncio.Future[Any], Any]] = {}
        self._incoming: IncomingSnapshot | None = None
        self._reads = SharedReads(member.log)
        self._told = (-1, -1)
        self._stopped: asyncio.Future[None] | None = None
        self._work: set[asyncio.Future[Any]] = set()

    def start(self) -> None:
        self._do(lambda: self.member.machine.tick(self._steady()))
        self._tick()

    async def stop(self, timeout_ms: int) -> None:
        """Stops; a leader hands over first. Then the files are closed."""
        if not self._failed:
            self._stopped = self._runtime.loop.create_future()
            self._do(lambda: self.member.machine.shut_down(self._steady(), timeout_ms))
            await asyncio.wait([self._stopped], timeout=timeout_ms / 1000)
        self._failed = True
        self._peers.close()
        self._alarm.cancel()
        if self._ticking is not None:
            self._ticking.cancel()
        self._queue.clear()
        self._refuse_all(KafkaError(ErrorCode.NOT_CONTROLLER, "the controller stops"))
        if self._work:
            await asyncio.wait(list(self._work))
        if self.member.log.log.failure is None:
            await self._runtime.run_blocking(self.member.log.close)

    def _steady(self) -> int:
        # Real time, even in a test that shifts the node's clock: the other peers' clocks are not shifted with it.
        return self._runtime.real_ms()

    # Events

    def _do(self, event: Callable[[], list[Effect]]) -> None:
        """Passes an event to the machine and carries out its effects as far as possible now."""
        if self._failed:
            return
        try:
            self._queue.extend(event())
            self._pump()
        except FATAL as problem:
            self._fail(problem)

    async def ask(self, api_key: int, version: int, listener: str, request: Any) -> Any:
        """The answer to another node's request. KafkaError BROKER_NOT_AVAILABLE when this controller has stopped."""
        if self._failed:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, "this controller has stopped")
        self._tokens += 1
        token = Token(self._tokens)
        future = self._asking[token] = self._runtime.promise()
        self._do(lambda: self.member.machine.request(token, api_key, version, listener, request, self._steady()))
        try:
            return await future
        finally:
            if self._asking.pop(token, None) is not None and not future.done():
                self.member.machine.abandon(token)

    def answered(self, request_id: int, message: Any) -> None:
        self._do(lambda: self.member.machine.answer(request_id, message, self._steady()))

    def failed(self, request_id: int, *, refused: bool, unsupported: bool) -> None:
        self._do(lambda: self.member.machine.failed(request_id, self._steady(), refused=refused, unsupported=unsupported))

    def submit(self, handler: ControllerHandler, request: Any, version: Any = None, asker: Any = None) -> asyncio.Future[Any]:
        """Decides now if this is the active controller, answers once committed. See ``broker.ports.Controller``."""
        future = self._runtime.promise()
        if self._failed:
            future.set_exception(KafkaError(ErrorCode.NOT_CONTROLLER, self._refusal))
        else:
            self._when_settled(lambda: self._decide(handler, request, future))
        return future

    def _decide(self, handler: ControllerHandler, request: Any, future: asyncio.Future[Any]) -> None:
        if future.done():
            return

        def decide() -> list[Effect]:
            now_ms = self._runtime.now_ms()
            pending, effects = self.member.submit(handler, request, now_ms, self._steady())
            if pending.done:
                future.set_result(pending.response)
            else:
                self._submitted[pending.token] = future, pending.response
            return effects

        try:
            self._do(decide)
        except KafkaError as error:
            future.set_exception(error)
        if self._failed and not future.done():
            future.set_exception(KafkaError(ErrorCode.NOT_CONTROLLER, self._refusal))
        self._sync()

    def _when_settled(self, job: Callable[[], None]) -> None:
        """Runs ``job`` now, or once the pending effects are done, because a decision appends at the end of the log."""
        if self._busy or self._pumping or self._queue:
            self._deferred.append(job)
        else:
            job()

    def tell_signs_of_life(self, idle_ms: int) -> None:
        """Called periodically."""
        self._when_settled(lambda: self._by_itself(lambda now, steady: self.member.sign_of_life(now, steady, idle_ms)))

    def _tick(self) -> None:
        if self._failed:
            return
        self._ticking = self._runtime.loop.call_later(TICK_S, self._tick)
        if self.member.controller is not None:
            self._when_settled(self._look_at_time)

    def _look_at_time(self) -> None:
        self._by_itself(self.member.tick)
        if self.member.more_due and self._ticking is not None and not self._failed:
            self._ticking.cancel()
            self._ticking = self._runtime.loop.call_later(0, self._tick)

    def _by_itself(self, decide: Callable[[int, int], list[Effect]]) -> None:
        self._do(lambda: decide(self._runtime.now_ms(), self._steady()))
        self._sync()

    @property
    def voters(self) -> VoterSet:
        """The voters, as far as this replica knows."""
        return self.member.machine.voters

    @property
    def kraft_version(self) -> int:
        return self.member.machine.kraft_version

    @property
    def leader_id(self) -> int:
        """-1 while unknown."""
        return self.member.machine.leader_id

    @property
    def leader_endpoint(self) -> tuple[str, int] | None:
        """The leader's address, if known."""
        endpoints = self.member.machine.quorum.leader_endpoints
        return (endpoints[0].host, endpoints[0].port) if endpoints else None

    def describe_quorum(self) -> QuorumDescription | None:
        """Leader and voters as the leader sees them; None on any other node."""
        offset_ms = self._runtime.now_ms() - self._steady()
        return describe_quorum(self.member.machine.quorum, offset_ms)

    # Effects

    def _pump(self) -> None:
        if self._pumping:
            return
        self._pumping = True
        try:
            while not self._busy and not self._failed and (self._queue or self.member.may_activate):
                self._one(self._queue.popleft()) if self._queue else self._activate()
        except Exception as problem:  # any exception: an effect was taken but not done, so machine and log differ
            self._fail(problem)
        finally:
            self._pumping = False
            self._reads.forget()
        if self._failed or self._deciding:
            return
        if self._deferred and not self._busy:
            self._decide_deferred()
            return
        self._sync()
        self._arm()
        if self._stopped is not None and self.member.machine.stopped and not self._queue and not self._stopped.done():
            self._stopped.set_result(None)

    def _decide_deferred(self) -> None:
        """Runs the deferred decisions, perhaps hundreds, one after another instead of nested. One sync covers them all."""
        self._deciding = True
        try:
            while self._deferred and not self._busy and not self._failed:
                self._deferred.popleft()()
        finally:
            self._deciding = False
        self._pump()

    def _activate(self) -> None:
        machine = self.member.machine
        log.info("node %d is the active controller of epoch %d", machine.quorum.me.id, machine.epoch)
        self._queue.extend(self.member.activate(self._runtime.now_ms(), self._steady()))
        self._on_leader()

    def _one(self, effect: Effect) -> None:
        if isinstance(effect, Send):
            self._peers.send(effect.request_id, effect.to, effect.request)
        elif isinstance(effect, Reply):
            self._reply(effect.token, effect.response)
        elif isinstance(effect, ReplyRecords):
            self._reply_records(effect)
        elif isinstance(effect, ReplySnapshotPart):
            self._in_thread(partial(snapshot_part, self.member.log, effect), lambda answer: self._reply(effect.token, answer))
        elif isinstance(effect, HighWatermarkMoved):
            self._committed(effect)
        elif isinstance(effect, LeaderChanged):
            self._leader_changed(effect)
        elif isinstance(effect, Persist):
            fs, directory, state = self.member.log.fs, self.member.log.dir, effect.state
            self._in_thread(lambda: quorum_state.store(fs, directory, state), lambda _: None)
        else:
            self._to_log(effect)

    def _committed(self, effect: HighWatermarkMoved) -> None:
        """Applies committed records, ``TURN_BYTES`` per turn of the loop. Later effects wait for the last of these turns; the
        loop does other work in between."""
        self._release(self.member.high_watermark_moved(effect.offset, TURN_BYTES))
        if self.member.behind:
            self._busy = True
            self._queue.appendleft(effect)
            self._runtime.loop.call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self._busy = False
        self._do(list)

    def _to_log(self, effect: Effect) -> None:
        now_ms = self._runtime.now_ms()
        metadata_log = self.member.log
        if isinstance(effect, AppendControl):
            log_changes.append_control(metadata_log, effect, now_ms)
            self.member.generation = effect.generation
        elif isinstance(effect, AppendFetched):
            log_changes.append_fetched(metadata_log, effect, now_ms)
            self.member.generation = effect.generation
        elif isinstance(effect, Truncate):
            self._without_flush(lambda: log_changes.truncate(metadata_log, effect, now_ms), effect.generation)
        elif isinstance(effect, BeginSnapshot):
            if self._incoming is not None:
                self._incoming.close()
            self._incoming = IncomingSnapshot(metadata_log, effect.snapshot_id)
        elif isinstance(effect, StoreSnapshotPart):
            assert self._incoming is not None and self._incoming.id == effect.snapshot_id
            self._incoming.write(effect.position, effect.data)
        else:
            assert isinstance(effect, InstallSnapshot)
            self._install(effect)

    def _blocking(self, job: Callable[[], Any], done: Callable[[asyncio.Future[Any]], None]) -> None:
        future = self._runtime.run_blocking(job)
        self._work.add(future)
        future.add_done_callback(self._work.discard)
        future.add_done_callback(done)

    def _in_thread(self, job: Callable[[], Any], then: Callable[[Any], None]) -> None:
        """Runs ``job`` in a thread; later effects wait for it."""
        self._busy = True

        def done(future: asyncio.Future[Any]) -> None:
            self._busy = False
            if self._failed or future.cancelled():
                return
            problem = future.exception()
            if problem is not None:
                self._fail(problem if isinstance(problem, Exception) else RuntimeError(str(problem)))
                return
            try:
                then(future.result())
                self._pump()
            except Exception as failure:  # as above
                self._fail(failure)

        self._blocking(job, done)

    def _without_flush(self, change: Callable[[], None], generation: int) -> None:
        """Changes the end of the log once no sync is running."""
        self._when_flushed(lambda: self._in_thread(change, lambda _: setattr(self.member, "generation", generation)))

    def _when_flushed(self, do: Callable[[], None]) -> None:
        if self._flushing:
            self._busy = True
            self._after_flush = do
        else:
            do()

    def _install(self, effect: InstallSnapshot) -> None:
        incoming, self._incoming = self._incoming, None
        assert incoming is not None and incoming.id == effect.snapshot_id

        def take(snapshot: Snapshot | None) -> None:
            if snapshot is None:
                log.error("the metadata snapshot %s from the leader is damaged, it is fetched again", effect.snapshot_id)
                self._queue.extend(self.member.machine.snapshot_refused(self._steady()))
                return
            now_ms = self._runtime.now_ms()
            self._queue.extend(self.member.snapshot_loaded(effect.snapshot_id, snapshot, effect.size, now_ms, self._steady()))
            log.info("metadata snapshot %s was fetched from the leader", effect.snapshot_id.file_name)

        self._when_flushed(lambda: self._in_thread(incoming.finish, take))

    def _leader_changed(self, effect: LeaderChanged) -> None:
        for pending in self.member.leader_changed(effect):
            future, _ = self._submitted.pop(pending.token)
            if not future.done():
                future.set_exception(KafkaError(ErrorCode.NOT_CONTROLLER, "the leadership ended before it was committed"))
        if (effect.epoch, effect.leader_id) != self._told:
            self._told = effect.epoch, effect.leader_id
            leader = f"node {effect.leader_id} leads" if effect.leader_id >= 0 else "no leader is known"
            (log.debug if self._stopped else log.info)("metadata quorum, epoch %d: %s", effect.epoch, leader)
        self._on_leader()

    # Answers

    def _reply(self, token: Token, response: Any) -> None:
        future = self._asking.pop(token, None)
        if future is not None and not future.done():
            future.set_result(response)

    def _reply_records(self, effect: ReplyRecords) -> None:
        effect.response.responses[0].partitions[0].records = self._reads.read(effect.offset, effect.max_bytes)
        self._reply(effect.token, effect.response)

    def _release(self, released: list[Pending]) -> None:
        for pending in released:
            future, response = self._submitted.pop(pending.token)
            if not future.done():
                future.set_result(response)

    # Syncing

    def _sync(self) -> None:
        if self._flushing or self._failed or self._deciding or self._after_flush is not None or self._busy:
            return
        metadata_log = self.member.log
        shape = self.member.machine.quorum.log.shape
        behind = metadata_log.log.recovery_point < metadata_log.end_offset
        unheard = self.member.generation == shape.generation and shape.synced < min(metadata_log.end_offset, shape.end_offset)
        if not behind and not unheard:
            return
        try:
            job = metadata_log.flush_job()
        except StorageFailure as failure:
            self._fail(failure)
            return
        self._flushing = True
        generation = self.member.generation
        self._blocking(job.run, lambda _: self._synced(job, generation))

    def _synced(self, job: FlushJob, generation: int) -> None:
        self._flushing = False
        try:
            end_offset = self.member.log.flushed(job, self._runtime.now_ms())
        except StorageFailure as failure:
            self._fail(failure)
            return
        if self._failed:
            return
        if self.member.log.log.failure is not None:
            self._fail(self.member.log.log.failure)
            return
        waiting, self._after_flush = self._after_flush, None
        if waiting is not None:
            self._busy = False
            waiting()
        self._do(lambda: self.member.machine.log_synced(end_offset, generation, self._steady()))

    # Time and snapshots

    def _arm(self) -> None:
        self._alarm.after(self.member.machine.deadline_ms - self._steady())

    def _ring(self) -> None:
        self._do(lambda: self.member.machine.tick(self._steady()))

    def snapshot_step(self) -> None:
        """Begins a snapshot when one is due; called periodically."""
        if self._failed or not self.member.snapshot_due(self._runtime.now_ms()):
            return
        job = self.member.snapshot_job(self._runtime.now_ms())
        self._runtime.run_long(lambda: job.run(self._runtime.breathe)).add_done_callback(lambda _: self._snapshot_finished(job))

    def _snapshot_finished(self, job: SnapshotJob) -> None:
        try:
            removed = self.member.snapshot_finished(job, self._runtime.now_ms())
        except FATAL as failure:
            self._fail(failure)
            return
        log.info("metadata snapshot %s written, %d bytes", job.id.file_name, job.size)
        for what in removed:
            log.info("metadata: removed %s", what)

    def _fail(self, problem: Exception) -> None:
        if self._failed:
            return
        self._failed = True
        self._queue.clear()
        self._peers.close()
        for line in self.member.machine.quorum.story:
            log.info("metadata quorum: %s", line)
        if not isinstance(problem, FATAL):
            log.error("what the metadata quorum decided was not done", exc_info=problem)
        why = ", its disk failed" if isinstance(problem, StorageFailure) else ""
        self._refusal = f"the controller has stopped{why}: {problem}"
        self._refuse_all(KafkaError(ErrorCode.NOT_CONTROLLER, self._refusal))
        self._on_failure(problem)

    def _refuse_all(self, error: KafkaError) -> None:
        waiting = [*self._asking.values(), *(future for future, _ in self._submitted.values())]
        self._asking.clear()
        self._submitted.clear()
        for future in waiting:
            if not future.done():
                future.set_exception(error)
        while self._deferred:
            # The job finds this controller stopped and fails its future.
            self._deferred.popleft()()
