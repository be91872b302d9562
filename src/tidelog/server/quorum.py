"""Runs the metadata quorum's machine on the loop: its syncs in threads, its responses to whoever waits for them.

Requests that arrive while a sync is under way are committed together by the next one. When the disk under the metadata log
fails, nobody can decide anything any more: ``on_failure`` is told, once, and every request is refused.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from tidelog.broker.context import ControllerHandler
from tidelog.controller.metadata_node import MetadataNode
from tidelog.model.errors import ErrorCode, KafkaError, StorageFailure
from tidelog.raft.description import QuorumDescription, describe_sole_voter
from tidelog.raft.snapshots import SnapshotJob
from tidelog.server.runtime import LoopRuntime
from tidelog.storage.flush import FlushJob

log = logging.getLogger(__name__)


class LocalController:
    """The active controller, in this process. See ``broker.context.Controller``."""

    def __init__(self, node: MetadataNode, runtime: LoopRuntime, on_failure: Callable[[StorageFailure], None]) -> None:
        self.node = node
        self._runtime = runtime
        self._on_failure = on_failure
        self._failed = False
        self._waiting: dict[int, tuple[asyncio.Future[Any], Any]] = {}
        self._idle: asyncio.Future[None] | None = None

    def submit(self, handler: ControllerHandler, request: Any, version: int | None = None) -> asyncio.Future[Any]:
        """Decided now, answered when committed. The work goes on whether or not the future is awaited."""
        future: asyncio.Future[Any] = self._runtime.loop.create_future()
        try:
            pending = self.node.submit(handler, request, self._runtime.now_ms())
        except KafkaError as error:
            future.set_exception(error)
            return future
        except StorageFailure as failure:
            self._fail(failure)
            future.set_exception(_refused(failure))
            return future
        if pending.done:
            future.set_result(pending.response)
        else:
            self._waiting[pending.token] = future, pending.response
            self._flush()
        return future

    async def forward(self, api_key: int, version: int, request: Any) -> Any:
        """There is nobody to pass anything on to."""
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "The metadata quorum of this node has one fixed member: the node itself.")

    @property
    def kraft_version(self) -> int:
        return self.node.raft.kraft_version

    def describe_quorum(self) -> QuorumDescription:
        """Who leads and votes, as of now."""
        return describe_sole_voter(self.node.raft, self.node.log.end_offset)

    def snapshot_step(self) -> None:
        """Begin a snapshot when one is due; called now and then."""
        if self._failed or not self.node.snapshot_due(self._runtime.now_ms()):
            return
        job = self.node.snapshot_job(self._runtime.now_ms())
        self._runtime.run_long(job.run).add_done_callback(lambda _: self._snapshot_finished(job))

    async def close(self) -> None:
        """Commit what is pending and close the log."""
        if self.node.flush_in_flight:
            self._idle = self._runtime.loop.create_future()
            await self._idle
        if not self._failed:
            now_ms = self._runtime.now_ms()
            await self._runtime.run_blocking(lambda: self.node.close(now_ms))

    def _flush(self) -> None:
        if self.node.flush_needed:
            try:
                job = self.node.flush_job()
            except StorageFailure as failure:
                self._fail(failure)
                return
            self._runtime.run_blocking(job.run).add_done_callback(lambda _: self._flushed(job))

    def _flushed(self, job: FlushJob) -> None:
        try:
            released = self.node.flushed(job, self._runtime.now_ms())
        except StorageFailure as failure:
            self._fail(failure)
            return
        for pending in released:
            future, response = self._waiting.pop(pending.token)
            if not future.done():
                future.set_result(response)
        if self._idle is not None and not self._idle.done():
            self._idle.set_result(None)
        else:
            self._flush()

    def _snapshot_finished(self, job: SnapshotJob) -> None:
        try:
            removed = self.node.snapshot_finished(job, self._runtime.now_ms())
        except StorageFailure as failure:
            self._fail(failure)
            return
        log.info("metadata snapshot %s written, %d bytes", job.id.file_name, job.size)
        for what in removed:
            log.info("metadata: removed %s", what)

    def _fail(self, failure: StorageFailure) -> None:
        if self._failed:
            return
        self._failed = True
        for future, _ in self._waiting.values():
            if not future.done():
                future.set_exception(_refused(failure))
        self._waiting.clear()
        if self._idle is not None and not self._idle.done():
            self._idle.set_result(None)
        self._on_failure(failure)


def _refused(failure: StorageFailure) -> KafkaError:
    return KafkaError(ErrorCode.NOT_CONTROLLER, f"the controller has stopped, its disk failed: {failure}")
