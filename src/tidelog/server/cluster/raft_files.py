"""What the effects of a Raft machine do to files: the metadata log, snapshots that arrive, the quorum-state file.

An effect is done at once when it only appends; otherwise it becomes a ``Job`` for a thread, and all later effects wait for it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from tidelog.controller.quorum_member import QuorumMember
from tidelog.raft import log_changes, mending, quorum_state
from tidelog.raft.effects import (
    AppendControl,
    AppendFetched,
    BeginSnapshot,
    Effect,
    ForgetLoss,
    InstallSnapshot,
    Persist,
    StoreSnapshotPart,
    Truncate,
)
from tidelog.raft.log_changes import IncomingSnapshot
from tidelog.raft.snapshots import Snapshot
from tidelog.server.runtime import LoopRuntime

log = logging.getLogger(__name__)


class Job(NamedTuple):
    """``run`` in a thread, then ``then`` with its result on the loop; ``then`` returns further effects."""

    run: Callable[[], Any]
    then: Callable[[Any], list[Effect]]
    after_sync: bool = False
    """Whether a running sync of the log must end first."""


class RaftFiles:
    """The files of one quorum member."""

    def __init__(self, member: QuorumMember, runtime: LoopRuntime) -> None:
        self._member = member
        self._runtime = runtime
        self._incoming: IncomingSnapshot | None = None

    def apply(self, effect: Effect) -> Job | None:
        """Does the effect, or returns the job that does it."""
        member, now_ms = self._member, self._runtime.now_ms()
        if isinstance(effect, AppendControl):
            log_changes.append_control(member.log, effect, now_ms)
            member.generation = effect.generation
        elif isinstance(effect, AppendFetched):
            log_changes.append_fetched(member.log, effect, now_ms)
            member.generation = effect.generation
        elif isinstance(effect, Persist):
            return Job(partial(quorum_state.store, member.log.fs, member.log.dir, effect.state), _nothing)
        elif isinstance(effect, ForgetLoss):
            return Job(partial(mending.forget_loss, member.log), _nothing)
        elif isinstance(effect, Truncate):
            run = partial(log_changes.truncate, member.log, effect, now_ms)
            return Job(run, partial(self._truncated, effect.generation), after_sync=True)
        elif isinstance(effect, BeginSnapshot):
            if self._incoming is not None:
                self._incoming.close()
            self._incoming = IncomingSnapshot(member.log, effect.snapshot_id)
        elif isinstance(effect, StoreSnapshotPart):
            assert self._incoming is not None and self._incoming.id == effect.snapshot_id
            self._incoming.write(effect.position, effect.data)
        else:
            assert isinstance(effect, InstallSnapshot)
            incoming, self._incoming = self._incoming, None
            assert incoming is not None and incoming.id == effect.snapshot_id
            return Job(incoming.finish, partial(self._fetched, effect), after_sync=True)
        return None

    def _truncated(self, generation: int, _: None) -> list[Effect]:
        self._member.generation = generation
        return []

    def _fetched(self, effect: InstallSnapshot, snapshot: Snapshot | None) -> list[Effect]:
        member, steady_ms = self._member, self._runtime.real_ms()
        if snapshot is None:
            log.error("the metadata snapshot %s from the leader is damaged, it is fetched again", effect.snapshot_id)
            return member.machine.snapshot_refused(steady_ms)
        effects = member.snapshot_loaded(effect.snapshot_id, snapshot, effect.size, self._runtime.now_ms(), steady_ms)
        log.info("metadata snapshot %s was fetched from the leader", effect.snapshot_id.file_name)
        return effects


def _nothing(_: Any) -> list[Effect]:
    return []
