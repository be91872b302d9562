"""Runs the scrub: one segment at a time, in a thread, at a bounded rate, pass after pass.

A pass begins ``tidelog.scrub.interval.ms`` after the previous one began; the first begins ten minutes after the start, or after
the interval if that is shorter. It reads at most ``tidelog.scrub.max.bytes.per.second`` and uses at most a tenth of a core, so a
pass takes the stored bytes divided by that rate. Pages that were not in the page cache before are dropped again.

``storage/scrub.py`` decides what is checked and what a finding means.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Protocol, TypeVar

from tidelog.config.resolve import BrokerConfig
from tidelog.model.ports import Buffer, File
from tidelog.replication.replica_manager import ReplicaManager
from tidelog.server.runtime import LoopRuntime
from tidelog.server.serving.page_cache import Borrowed, resident_length
from tidelog.server.upkeep.damage_list import write_damage_list
from tidelog.storage.known_damage import DAMAGED
from tidelog.storage.scrub import ScrubPass, SegmentCheck, damaged_snapshots, rest_after, segments_of
from tidelog.storage.segment import LOG_SUFFIX, LogSegment
from tidelog.storage.small_files import PartitionFiles, check_log_dir
from tidelog.storage.unified_log import UnifiedLog

log = logging.getLogger(__name__)

FIRST_MS = 600_000
STEP_BYTES = 256 * 1024
"""Bytes read between two rests."""


class PassingFile:
    """A file that is read once from end to end; pages that were not cached before are dropped from the page cache."""

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
        return (
            fd >= 0 and length > 0 and hasattr(os, "posix_fadvise") and resident_length(Borrowed(fd), position, length) < length
        )

    def write(self, position: int, data: Buffer | Sequence[Buffer]) -> int:
        raise AssertionError("the scrub writes nothing")

    def truncate(self, length: int) -> None:
        raise AssertionError("the scrub cuts nothing")

    def sync(self) -> None:
        """Does nothing: nothing was written."""

    def close(self) -> None:
        """Does nothing: the log owns the file."""

    def fileno(self) -> int:
        return self._file.fileno()


class Check(Protocol):
    """One read of one file, piece by piece."""

    @property
    def done(self) -> bool: ...
    @property
    def work(self) -> int: ...
    def advance(self, budget: int) -> None: ...


SomeCheck = TypeVar("SomeCheck", bound=Check)


class ScrubWorker(ABC):
    """Pass after pass at the pace of the settings, and the metrics of that. ``look`` is one pass."""

    def __init__(self, config: BrokerConfig, runtime: LoopRuntime) -> None:
        self._config = config
        self._runtime = runtime
        self._worker: asyncio.Task[None] | None = None
        self._snapshots: set[str] = set()
        """Damaged producer snapshots counted so far."""
        self.bytes = 0
        self.found = 0
        self.passes = 0
        self.pass_s = 0.0
        """Duration of the last complete pass."""
        self.ended_ms = 0
        """End of the last pass, by the wall clock; 0 before the first."""

    def start(self) -> None:
        """Starts scrubbing, unless the rate is 0."""
        if self._config.tidelog_scrub_max_bytes_per_second > 0:
            self._worker = self._runtime.spawn(self._work(), "scrub")

    def stop(self) -> None:
        """Stops after the running step."""
        if self._worker is not None:
            self._worker.cancel()

    @abstractmethod
    async def look(self) -> None:
        """Checks everything once."""

    async def _work(self) -> None:
        wait_s = min(FIRST_MS, self._config.tidelog_scrub_interval_ms) / 1000
        while True:
            await self._runtime.sleep(wait_s)
            took_s = await self.run_pass()
            wait_s = max(self._config.tidelog_scrub_interval_ms / 1000 - took_s, 1)

    async def run_pass(self) -> float:
        """Checks everything once; returns the duration in seconds."""
        started_s = self._runtime.real_ms() / 1000
        before = self.bytes, self.found
        await self.look()
        self.pass_s = self._runtime.real_ms() / 1000 - started_s
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

    async def look_at(self, stored: UnifiedLog) -> None:
        segments = segments_of(stored)
        for segment in segments:
            try:
                if segment in stored.segments:
                    await self._look_at_segment(stored, segment)
            except FileNotFoundError:
                continue  # retention or a deletion removed it meanwhile
            except OSError as problem:
                log.error("the scrub cannot read %s: %s", segment.path(LOG_SUFFIX), problem)
                if problem.errno != errno.EIO:
                    return
        await self._look_at_small_files(stored)
        await write_damage_list(self._runtime, stored)
        snapshots = await self._runtime.run_long(partial(damaged_snapshots, stored, segments))
        self.found += len({*snapshots} - self._snapshots)
        self._snapshots |= {*snapshots}

    async def _look_at_small_files(self, stored: UnifiedLog) -> None:
        if stored.failure is not None:
            return
        files = PartitionFiles(stored.fs, stored.dir, stored.topic_id)
        try:
            damaged = await self._runtime.run_long(files.check)
        except OSError as problem:
            log.error("the scrub cannot check the files in %s: %s", files.directory, problem)
            return
        self.found += len(damaged)
        if DAMAGED in damaged:
            stored.files.damage.forget()

    async def _look_at_segment(self, stored: UnifiedLog, segment: LogSegment) -> None:
        first = await self.run(SegmentCheck(stored, segment, PassingFile(segment.file)))
        second = first.again(PassingFile(segment.file))
        if second is not None:
            self.found += (await self.run(second)).take()

    async def run(self, check: SomeCheck) -> SomeCheck:
        """Runs the check to its end, with rests."""
        rate = self._config.tidelog_scrub_max_bytes_per_second
        while not check.done:
            before, began = check.work, self._runtime.loop.time()
            await self._runtime.run_long(partial(check.advance, STEP_BYTES))
            length = check.work - before
            self.bytes += length
            await self._runtime.sleep(rest_after(length, self._runtime.loop.time() - began, rate))
        return check


class Scrubbing(ScrubWorker):
    """The scrub of the partitions of one broker."""

    def __init__(self, replicas: ReplicaManager, config: BrokerConfig, runtime: LoopRuntime) -> None:
        super().__init__(config, runtime)
        self._replicas = replicas

    @property
    def damaged(self) -> int:
        """Damaged ranges known now, over all logs."""
        return sum(len(segment.rotten) for each in self._replicas.logs.logs() for segment in each.segments)

    async def look(self) -> None:
        """One pass over all logs."""
        logs = self._replicas.logs
        current = ScrubPass(each.topic_partition for each in logs.logs())
        while (partition := current.next_partition()) is not None:
            found = logs.get(partition)
            if found is not None:
                await self.look_at(found)
        for log_dir in logs.online_dirs():
            if log_dir.meta is not None:
                check = partial(check_log_dir, log_dir.fs, log_dir.path, log_dir.meta, kernel_noted=log_dir.kernel_noted)
                try:
                    self.found += len(await self._runtime.run_long(check))
                except OSError as problem:
                    log.error("the scrub cannot check the files in %s: %s", log_dir.path, problem)
