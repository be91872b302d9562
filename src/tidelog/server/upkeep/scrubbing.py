"""Runs the scrub: one segment at a time, in a thread, at a bounded rate, pass after pass.

Decided here: a pass begins ``tidelog.scrub.interval.ms`` after the last one began (the first, ten minutes after the start). It
reads ``tidelog.scrub.max.bytes.per.second`` at most, on a tenth of a core at most: a pass takes the bytes that are stored divided
by that rate. What was not in the page cache does not stay in it.

Deliberately elsewhere: what is looked at, and what a finding means (storage/scrub.py).
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Sequence
from functools import partial

from tidelog.config.resolve import BrokerConfig
from tidelog.model.ports import Buffer, File
from tidelog.replication.replica_manager import ReplicaManager
from tidelog.server.runtime import LoopRuntime
from tidelog.server.serving.residency import resident_length
from tidelog.storage.log import UnifiedLog
from tidelog.storage.scrub import ScrubPass, SegmentCheck, damaged_snapshots, rest_after, segments_of

log = logging.getLogger(__name__)

FIRST_MS = 600_000
STEP_BYTES = 256 * 1024
"""Read between two rests."""


class PassingFile:
    """A file that is read once from end to end: pages that were not in the cache before are given back."""

    def __init__(self, file: File) -> None:
        self._file = file

    @property
    def path(self) -> str:
        return self._file.path

    def size(self) -> int:
        return self._file.size()

    def read(self, position: int, length: int) -> bytes:
        cold = self._is_cold(position, length)
        data = self._file.read(position, length)
        if cold:
            os.posix_fadvise(self._file.fileno(), position, length, os.POSIX_FADV_DONTNEED)
        return data

    def _is_cold(self, position: int, length: int) -> bool:
        fd = self._file.fileno()
        return fd >= 0 and length > 0 and hasattr(os, "posix_fadvise") and resident_length(fd, position, length) < length

    def write(self, position: int, data: Buffer | Sequence[Buffer]) -> int:
        raise AssertionError("the scrub writes nothing")

    def truncate(self, length: int) -> None:
        raise AssertionError("the scrub cuts nothing")

    def sync(self) -> None:
        """Nothing was written."""

    def close(self) -> None:
        """The file is the log's."""

    def fileno(self) -> int:
        return self._file.fileno()


class Scrubbing:
    """The scrub of one node, and what its metrics say."""

    def __init__(self, replicas: ReplicaManager, config: BrokerConfig, runtime: LoopRuntime) -> None:
        self._replicas = replicas
        self._config = config
        self._runtime = runtime
        self._worker: asyncio.Task[None] | None = None
        self._snapshots: set[str] = set()
        """Damaged producer snapshots that were counted."""
        self.bytes = 0
        self.found = 0
        self.passes = 0
        self.pass_s = 0.0
        """How long the last whole pass took."""
        self.ended_ms = 0
        """When it ended, by the wall clock; 0 before the first."""

    def start(self) -> None:
        """Begin to look, unless the rate is 0."""
        if self._config.tidelog_scrub_max_bytes_per_second > 0:
            self._worker = self._runtime.spawn(self._work(), "scrub")

    def stop(self) -> None:
        """A step that runs is the last."""
        if self._worker is not None:
            self._worker.cancel()

    @property
    def damaged(self) -> int:
        """Ranges that are known to be damaged now, over all logs."""
        return sum(len(segment.rotten) for each in self._replicas.logs.logs() for segment in each.segments)

    async def _work(self) -> None:
        wait_s = min(FIRST_MS, self._config.tidelog_scrub_interval_ms) / 1000
        while True:
            await self._runtime.sleep(wait_s)
            took_s = await self.run_pass()
            wait_s = max(self._config.tidelog_scrub_interval_ms / 1000 - took_s, 1)

    async def run_pass(self) -> float:
        """One pass over everything; seconds that it took."""
        logs = self._replicas.logs
        current = ScrubPass((each.topic_partition for each in logs.logs()), self._runtime.real_ms() / 1000)
        before = self.bytes, self.found
        while (partition := current.next_partition()) is not None:
            found = logs.get(partition)
            if found is not None:
                await self._look_at(found)
        self.pass_s = self._runtime.real_ms() / 1000 - current.started_s
        self.ended_ms = self._runtime.now_ms()
        self.passes += 1
        damage = self.found - before[1]
        log.log(
            logging.ERROR if damage else logging.INFO,
            "scrub: %d bytes in %.0f s, %d damaged places found",
            self.bytes - before[0],
            self.pass_s,
            damage,
        )
        return self.pass_s

    async def _look_at(self, stored: UnifiedLog) -> None:
        segments = segments_of(stored)
        try:
            for segment in segments:
                if segment in stored.segments:
                    first = await self._run(SegmentCheck(stored, segment, PassingFile(segment.file)))
                    second = first.again(PassingFile(segment.file))
                    if second is not None:
                        self.found += (await self._run(second)).take()
            snapshots = await self._runtime.run_long(partial(damaged_snapshots, stored, segments))
            self.found += len({*snapshots} - self._snapshots)
            self._snapshots |= {*snapshots}
        except FileNotFoundError:
            return  # retention or a deletion was faster
        except OSError as problem:
            log.error("the scrub cannot read %s: %s", stored.dir, problem)

    async def _run(self, check: SegmentCheck) -> SegmentCheck:
        rate = self._config.tidelog_scrub_max_bytes_per_second
        while not check.done:
            at, began = check.position, self._runtime.loop.time()
            await self._runtime.run_long(partial(check.advance, STEP_BYTES))
            length = check.position - at
            self.bytes += length
            await self._runtime.sleep(rest_after(length, self._runtime.loop.time() - began, rate))
        return check
