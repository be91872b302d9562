"""Syncs the metadata log in a thread: one sync at a time, for everything appended since the last one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tidelog.controller.quorum_member import QuorumMember
from tidelog.model.errors import StorageFailure
from tidelog.server.runtime import LoopRuntime
from tidelog.storage.flush_job import FlushJob

Blocking = Callable[[Callable[[], Any], Callable[[Any], None]], None]
"""Runs the first callable in a thread and then the second with the future."""


class MetadataSync:
    """``synced(end_offset, generation)`` is called after each sync with the end of what it covers and the generation that the log
    had at its beginning; ``failed`` when the disk fails."""

    def __init__(
        self,
        member: QuorumMember,
        runtime: LoopRuntime,
        blocking: Blocking,
        synced: Callable[[int, int], None],
        failed: Callable[[Exception], None],
    ) -> None:
        self._member = member
        self._runtime = runtime
        self._blocking = blocking
        self._synced = synced
        self._failed = failed
        self._running = False
        self._after: Callable[[], None] | None = None

    def begin(self) -> None:
        """Begins a sync, unless one is running or a change of the log waits for its end, or all is synced and reported."""
        if self._running or self._after is not None:
            return
        member = self._member
        shape = member.machine.quorum.log.shape
        behind = member.log.log.recovery_point < member.log.end_offset
        unheard = member.generation == shape.generation and shape.synced < min(member.log.end_offset, shape.end_offset)
        if not behind and not unheard:
            return
        try:
            job = member.log.flush_job()
        except StorageFailure as failure:
            self._failed(failure)
            return
        self._running = True
        generation = member.generation
        self._blocking(job.run, lambda _: self._ended(job, generation))

    def when_idle(self, do: Callable[[], None]) -> None:
        """Calls ``do`` now, or when the running sync has ended."""
        if self._running:
            self._after = do
        else:
            do()

    def take_waiting(self) -> Callable[[], None] | None:
        """What waited for the end of the last sync."""
        waiting, self._after = self._after, None
        return waiting

    def _ended(self, job: FlushJob, generation: int) -> None:
        self._running = False
        try:
            end_offset = self._member.log.flushed(job, self._runtime.now_ms())
        except StorageFailure as failure:
            self._failed(failure)
            return
        self._synced(end_offset, generation)
