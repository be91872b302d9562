"""Runs a quorum member's Raft machine on the loop: its effects, blocking jobs, timers, and requests from other nodes.

Effects are done one after another; those on files in ``raft_files``, some of them in a thread, which later effects wait for. So
no vote leaves before it is durable. The log is synced beside them (``metadata_sync``). ``controller_runner`` takes the decisions
of the active controller, ``quorum_requests`` holds the requests of other nodes.

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

from tidelog.controller.quorum_member import QuorumMember
from tidelog.metadata.records import MetadataLogError
from tidelog.metadata.supported_features import UnsupportedFeatureLevel
from tidelog.model.errors import ErrorCode, KafkaError, StorageFailure
from tidelog.raft.effects import (
    Effect,
    HighWatermarkMoved,
    LeaderChanged,
    Reply,
    ReplyRecords,
    ReplySnapshotPart,
    Send,
)
from tidelog.raft.log_changes import snapshot_part
from tidelog.raft.raft_log import QuorumFault
from tidelog.raft.shared_reads import SharedReads
from tidelog.raft.voters import endpoint_on
from tidelog.server.cluster.controller_runner import ControllerRunner
from tidelog.server.cluster.metadata_sync import MetadataSync
from tidelog.server.cluster.node_login import PLAIN_TEXT, NodeLogin
from tidelog.server.cluster.quorum_requests import QuorumRequests
from tidelog.server.cluster.raft_channels import Peers
from tidelog.server.cluster.raft_files import Job, RaftFiles
from tidelog.server.deadline import Deadline
from tidelog.server.runtime import LoopRuntime

log = logging.getLogger(__name__)

FATAL = (StorageFailure, QuorumFault, MetadataLogError, UnsupportedFeatureLevel, OSError)
"""Errors that stop the node: the disk failed, or the quorum's data is unusable."""

TURN_BYTES = 1 << 18
"""Bytes read at a time while the node catches up with the metadata log; some ten milliseconds of the loop."""


class RaftRunner:
    """``controller`` and ``requests`` are the ports of the node. ``on_leader`` is called when the leader changes, as far as this
    node knows, and when this node becomes the active controller."""

    def __init__(
        self,
        member: QuorumMember,
        runtime: LoopRuntime,
        on_failure: Callable[[Exception], None],
        on_leader: Callable[[], None],
        login: NodeLogin = PLAIN_TEXT,
    ) -> None:
        """``login``: what the controllers' listener asks of this node."""
        self.member = member
        self.controller = ControllerRunner(member, runtime, self)
        self.requests = QuorumRequests(member, runtime, self.do)
        self._runtime = runtime
        self._on_failure = on_failure
        self._on_leader = on_leader
        self._failed = False
        self._refusal = "the controller has stopped"
        self._queue: deque[Effect] = deque()
        self._busy = False
        """Whether later effects wait for a thread, or for another turn of the loop."""
        self._pumping = False
        self._alarm = Deadline(runtime, self._ring)
        self._peers = Peers(runtime, self, f"raft-client-{member.config.raft.key.id}", login)
        self._files = RaftFiles(member, runtime)
        self._syncing = MetadataSync(member, runtime, self._blocking, self._synced, self.fail)
        self._reads = SharedReads(member.log)
        self._told = (-1, -1)
        self._stopped: asyncio.Future[None] | None = None
        self._work: set[asyncio.Future[Any]] = set()

    def start(self) -> None:
        """Looks for the quorum, and begins the timed work."""
        self._ring()
        self.controller.start()

    async def stop(self, timeout_ms: int) -> None:
        """Stops; a leader hands over first. Then the files are closed."""
        if not self._failed:
            self._stopped = self._runtime.loop.create_future()
            self.do(lambda: self.member.machine.shut_down(self._steady(), timeout_ms))
            await asyncio.wait([self._stopped], timeout=timeout_ms / 1000)
        self._failed = True
        self._peers.close()
        self._alarm.cancel()
        self.controller.stop()
        self._queue.clear()
        self._refuse_all(KafkaError(ErrorCode.NOT_CONTROLLER, "the controller stops"))
        if self._work:
            await asyncio.wait(list(self._work))
        if self.member.log.log.failure is None:
            await self._runtime.run_blocking(self.member.log.close)

    def _steady(self) -> int:
        # Real time, even in a test that shifts the node's clock: the other peers' clocks are not shifted with it.
        return self._runtime.real_ms()

    @property
    def leader_id(self) -> int:
        """-1 while unknown."""
        return self.member.machine.leader_id

    @property
    def leader_endpoint(self) -> tuple[str, int] | None:
        """The leader's address, if known."""
        quorum = self.member.machine.quorum
        at = endpoint_on(quorum.leader_endpoints, quorum.config.listener)
        return None if at is None else (at.host, at.port)

    # Events

    @property
    def settled(self) -> bool:
        """Whether no effect is pending."""
        return not (self._busy or self._pumping or self._queue)

    @property
    def refusal(self) -> str | None:
        """Why nothing is decided any more; None while it is."""
        return self._refusal if self._failed else None

    def do(self, event: Callable[[], list[Effect]]) -> None:
        """Passes an event to the machine and carries out its effects as far as possible now."""
        if self._failed:
            return
        try:
            self._queue.extend(event())
            self._pump()
        except FATAL as problem:
            self.fail(problem)

    def answered(self, request_id: int, message: Any) -> None:
        """A peer has answered."""
        self.do(lambda: self.member.machine.answer(request_id, message, self._steady()))

    def failed(self, request_id: int, *, refused: bool, unsupported: bool) -> None:
        """A peer could not be asked."""
        self.do(lambda: self.member.machine.failed(request_id, self._steady(), refused=refused, unsupported=unsupported))

    def _ring(self) -> None:
        self.do(lambda: self.member.machine.tick(self._steady()))

    # Effects

    def _pump(self) -> None:
        if self._pumping:
            return
        self._pumping = True
        try:
            while not self._busy and not self._failed and (self._queue or self.member.may_activate):
                self._one(self._queue.popleft()) if self._queue else self._activate()
        except Exception as problem:  # any exception: an effect was taken but not done, so machine and log differ
            self.fail(problem)
        finally:
            self._pumping = False
            self._reads.forget()
        if self._failed or self.controller.deciding:
            return
        if self.controller.has_deferred and not self._busy:
            self.controller.decide_deferred(lambda: not (self._busy or self._failed))
            self._pump()
            return
        self.sync()
        self._alarm.after(self.member.machine.deadline_ms - self._steady())
        if self._stopped is not None and self.member.machine.stopped and not self._queue and not self._stopped.done():
            self._stopped.set_result(None)

    def _activate(self) -> None:
        machine = self.member.machine
        log.info("node %d is the active controller of epoch %d", machine.quorum.me.id, machine.epoch)
        self._queue.extend(self.member.activate(self._runtime.now_ms(), self._steady()))
        self._on_leader()

    def _one(self, effect: Effect) -> None:
        if isinstance(effect, Send):
            self._peers.send(effect.request_id, effect.to, effect.request)
        elif isinstance(effect, Reply):
            self.requests.reply(effect.token, effect.response)
        elif isinstance(effect, ReplyRecords):
            effect.response.responses[0].partitions[0].records = self._reads.read(effect.offset, effect.max_bytes)
            self.requests.reply(effect.token, effect.response)
        elif isinstance(effect, ReplySnapshotPart):
            self._run(Job(partial(snapshot_part, self.member.log, effect), self.requests.replying(effect.token)))
        elif isinstance(effect, HighWatermarkMoved):
            self._committed(effect)
        elif isinstance(effect, LeaderChanged):
            self._leader_changed(effect)
        elif (job := self._files.apply(effect)) is not None:
            self._run(job)

    def _committed(self, effect: HighWatermarkMoved) -> None:
        """Applies committed records, ``TURN_BYTES`` per turn of the loop. Later effects wait for the last of these turns; the
        loop does other work in between."""
        self.controller.committed(self.member.high_watermark_moved(effect.offset, TURN_BYTES))
        if self.member.behind:
            self._busy = True
            self._queue.appendleft(effect)
            self._runtime.loop.call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self._busy = False
        self.do(list)

    def _leader_changed(self, effect: LeaderChanged) -> None:
        self.controller.lost(self.member.leader_changed(effect))
        if (effect.epoch, effect.leader_id) != self._told:
            self._told = effect.epoch, effect.leader_id
            leader = f"node {effect.leader_id} leads" if effect.leader_id >= 0 else "no leader is known"
            (log.debug if self._stopped else log.info)("metadata quorum, epoch %d: %s", effect.epoch, leader)
        self._on_leader()

    # Threads

    def _run(self, job: Job) -> None:
        """Runs a job in a thread; later effects wait for it."""
        self._busy = True
        if job.after_sync:
            self._syncing.when_idle(partial(self._in_thread, job))
        else:
            self._in_thread(job)

    def _in_thread(self, job: Job) -> None:
        self._busy = True

        def done(future: asyncio.Future[Any]) -> None:
            self._busy = False
            if self._failed or future.cancelled():
                return
            problem = future.exception()
            if problem is not None:
                self.fail(problem if isinstance(problem, Exception) else RuntimeError(str(problem)))
                return
            try:
                self._queue.extend(job.then(future.result()))
                self._pump()
            except Exception as failure:  # as in _pump
                self.fail(failure)

        self._blocking(job.run, done)

    def _blocking(self, job: Callable[[], Any], done: Callable[[asyncio.Future[Any]], None]) -> None:
        future = self._runtime.run_blocking(job)
        self._work.add(future)
        future.add_done_callback(self._work.discard)
        future.add_done_callback(done)

    def sync(self) -> None:
        """Begins a sync of the log if one is due."""
        if not (self._failed or self._busy or self.controller.deciding):
            self._syncing.begin()

    def _synced(self, end_offset: int, generation: int) -> None:
        if self._failed:
            return
        if self.member.log.log.failure is not None:
            self.fail(self.member.log.log.failure)
            return
        waiting = self._syncing.take_waiting()
        if waiting is not None:
            waiting()
        self.do(lambda: self.member.machine.log_synced(end_offset, generation, self._steady()))

    # Failure

    def fail(self, problem: Exception) -> None:
        """Stops the member and refuses all requests; ``on_failure`` is called once."""
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
        self.requests.close(error)
        self.controller.refuse_all(error)
