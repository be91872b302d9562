"""Moves a replica between log dirs of this broker (KIP-113) while it is written and read.

The copy is a separate log in ``<topic>-<n>.<id>-future``. Batches are read from the replica 1 MiB at a time, outside the event
loop, and appended to the copy the way a follower appends. The copy is flushed; then one uninterrupted step copies the last few
batches and puts the copy in the replica's place.

Decided here: what is copied next, and when the copy may take over. The caller runs what ``next_step`` returns and passes the
result back. A move ends early when the replica is deleted, goes offline, or gets another target.

Invariant: the copy holds nothing that the replica does not hold, and is not read until it takes over.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from tidelog.model.errors import ErrorCode
from tidelog.model.ports import FileSlice
from tidelog.records.batch import CorruptBatch, iter_headers, read_header
from tidelog.replication.partition import Partition
from tidelog.storage import reading
from tidelog.storage.flush_job import FlushJob
from tidelog.storage.future_logs import FutureLogs
from tidelog.storage.log_dir import LogDir
from tidelog.storage.unified_log import UnifiedLog

READ_BYTES = 1 << 20
"""Bytes copied at a time, outside the loop."""
LAST_BYTES = 128 << 10
"""At most this much is copied on the loop, from what was just written; a few requests write no more."""


class MoveState(Enum):
    COPYING = "copying"
    DONE = "done"
    ENDED = "ended early"


class ReadStep(NamedTuple):
    """Read ``source`` in a thread, then ``ReplicaMove.take`` the bytes."""

    source: FileSlice


class FlushStep(NamedTuple):
    """Run ``job`` in a thread, then ``ReplicaMove.flushed``."""

    job: FlushJob


Step = ReadStep | FlushStep | None


class ReplicaMove:
    """One partition on its way to ``target``."""

    __slots__ = ("_flushed_once", "_future", "_outdated", "_reading", "copy", "partition", "source", "state", "target")

    def __init__(self, partition: Partition, target: LogDir, future: FutureLogs) -> None:
        assert partition.log is not None
        self.partition = partition
        self.target = target
        self.source: UnifiedLog = partition.log
        self.copy: UnifiedLog | None = None
        self.state = MoveState.COPYING
        self._future = future
        self._flushed_once = False
        self._reading = False
        self._outdated = False
        """The read in progress started before a truncation of the replica."""

    def restart(self, now_ms: int) -> None:
        """The replica was truncated: copy it from the beginning."""
        if self.state is MoveState.COPYING:
            self._future.drop(self.partition.topic_partition, now_ms)
            self.copy = None
            self._flushed_once = False
            self._outdated = self._reading

    def end_early(self, now_ms: int) -> None:
        """The replica stays where it is; the copy is deleted."""
        if self.state is MoveState.COPYING:
            self.state = MoveState.ENDED
            self._future.drop(self.partition.topic_partition, now_ms)

    def next_step(self, now_ms: int) -> Step:
        """The next step to run outside the loop; None when the move is over (see ``state``).

        StorageFailure when one of the two dirs fails; KafkaError or CorruptBatch when the replica holds records that cannot be
        copied.
        """
        if self.state is not MoveState.COPYING:
            return None
        if self.partition.deleted or self.partition.log is not self.source:
            self.end_early(now_ms)
            return None
        missing = self._read(READ_BYTES)
        if missing is not None and (missing.length > LAST_BYTES or self.copy is None):
            self._reading = True
            return ReadStep(missing)
        copy = self._copy(self.source.log_end_offset, now_ms)
        if not self._flushed_once:
            self._flushed_once = True
            return FlushStep(copy.flush_job())
        while missing is not None:
            self.take(missing.read(), now_ms)
            missing = self._read(LAST_BYTES)
        self._take_over(copy, now_ms)
        return None

    def _read(self, max_bytes: int) -> FileSlice | None:
        source = self.source
        offset = source.log_start_offset if self.copy is None else max(self.copy.log_end_offset, source.log_start_offset)
        found = reading.read(source, offset, max_bytes, upto=source.log_end_offset, min_one=True)
        if found.error is ErrorCode.CORRUPT_MESSAGE:
            # Otherwise the copy would take over without the records behind.
            raise CorruptBatch(f"{source.dir}: offset {offset} cannot be read: the replica stays where it is")
        return found.slice

    def take(self, records: bytes, now_ms: int) -> None:
        """Append whole batches of the replica to the copy. Batches already in the copy are skipped."""
        outdated = self._outdated
        self._reading = self._outdated = False
        if self.state is not MoveState.COPYING or outdated:
            return
        copy = self._copy(read_header(records).base_offset, now_ms)
        view = memoryview(records)
        for header in iter_headers(view):
            if header.last_offset >= copy.log_end_offset:
                # No batch in the log has an epoch above the newest one that the log knows.
                newest = max(self.source.leader_epochs.latest, self.partition.leader_epoch)
                copy.append_as_follower(view[header.position :], newest, now_ms)
                return

    def flushed(self, job: FlushJob, now_ms: int) -> None:
        """A flush of the copy ended. StorageFailure when it failed."""
        if self.copy is not None and job.directory == self.copy.dir:
            self.copy.flushed(job, now_ms)

    def _copy(self, start_offset: int, now_ms: int) -> UnifiedLog:
        if self.copy is None:
            self.copy = self._future.create(self.source, self.target, start_offset, now_ms)
        return self.copy

    def _take_over(self, copy: UnifiedLog, now_ms: int) -> None:
        """Give the copy the replica's state beyond its batches, and put it in the replica's place."""
        source = self.source
        if copy.log_end_offset < source.log_end_offset:
            # The replica ends with offsets that are in no batch any more.
            copy.roll(now_ms, at_least=source.log_end_offset)
        assert copy.log_end_offset == source.log_end_offset, (copy.log_end_offset, source.log_end_offset)
        copy.take_over(source)
        if copy.recovery_point < source.recovery_point:
            # Records that the topic's flush settings made safe, and that were acknowledged, must not become unsafe again. This
            # blocks for the few batches since the last flush, once per move.
            copy.flush(now_ms)
        self._future.put_in_place(self.partition.topic_partition, now_ms)
        self.partition.replace_log(copy)
        self.state = MoveState.DONE
