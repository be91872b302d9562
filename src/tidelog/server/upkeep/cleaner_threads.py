"""Runs log compaction: up to log.cleaner.threads cleanings in threads, without blocking the loop.

It decides when the cleaner looks for work (immediately after it found some, otherwise every log.cleaner.backoff.ms), how much it
reads per second, and how often it rests. A computing thread keeps the loop from running Python code, so it sleeps briefly after
every few KiB; the loop then waits a fraction of a millisecond instead of the interpreter's five. When the node stops, a cleaning
ends at its next rest and its output is removed.

``storage/cleaner.py`` decides which log is compacted, how far, and which records stay.
"""

from __future__ import annotations

import asyncio
import logging
import time
from functools import partial

from tidelog.config.resolve import BrokerConfig
from tidelog.model.errors import StorageFailure
from tidelog.replication.replica_manager import ReplicaManager
from tidelog.server.runtime import LoopRuntime
from tidelog.storage.cleaner import Cleaning, LogCleaner
from tidelog.storage.cleaner_jobs import CleaningInterrupted
from tidelog.storage.retention import RetentionResult

log = logging.getLogger(__name__)

REST_S = 0.0002
"""Rest after each 16 KiB read, long enough for the loop to take over."""


class Compaction:
    """The cleaner threads of one node."""

    def __init__(self, replicas: ReplicaManager, config: BrokerConfig, runtime: LoopRuntime) -> None:
        self._replicas = replicas
        self._config = config
        self._runtime = runtime
        self._stopped = False
        self._workers: list[asyncio.Task[None]] = []
        self._removals: list[RetentionResult] = []
        threads = max(config.log_cleaner_threads, 1)
        self.cleaner = LogCleaner(replicas.logs.fs, dedupe_buffer_bytes=config.log_cleaner_dedupe_buffer_size // threads)
        self.cleanings_done = 0
        replicas.on_mended = self.cleaner.mended

    def start(self) -> None:
        """Starts the cleaner threads, unless log.cleaner.enable is false."""
        if not self._config.log_cleaner_enable:
            return
        self.cleaner.load([log_dir.path for log_dir in self._replicas.logs.online_dirs()])
        for number in range(max(self._config.log_cleaner_threads, 1)):
            self._workers.append(self._runtime.spawn(self._work(), f"log cleaner {number}"))

    async def stop(self) -> None:
        """Interrupts running cleanings and waits for their end."""
        self._stopped = True
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)

    async def _work(self) -> None:
        while not self._stopped:
            found = False
            cleaning: Cleaning | None = None
            try:
                cleaning = self.cleaner.begin(self._replicas.logs.logs(), self._runtime.records_ms())
                if cleaning is not None:
                    found = True
                    await self._clean(cleaning)
            except StorageFailure as failure:
                self._replicas.storage_failed(failure)
            except Exception as error:  # bad records in one log must not end the compaction of all others
                log.exception("the log cleaner failed")
                if cleaning is not None:
                    self.cleaner.exclude(cleaning.log.topic_partition, repr(error))
            await self._remove_due()
            if not found:
                await self._runtime.sleep(self._config.log_cleaner_backoff_ms / 1000)

    async def _clean(self, cleaning: Cleaning) -> None:
        """Runs all steps of one cleaning. A started step is always waited for, even when the node stops."""
        started_ms = self._runtime.steady_ms()
        interrupted = False
        while cleaning.job is not None:
            job = asyncio.ensure_future(self._runtime.run_long(partial(cleaning.job.run, partial(self._breathe, cleaning))))
            try:
                await asyncio.shield(job)
            except asyncio.CancelledError:
                interrupted = True
                await asyncio.wait([job])
            if interrupted:
                self.cleaner.cancel(cleaning.log.topic_partition)
            cleaning.advance(self._runtime.even_ms())
            self._removals += cleaning.removals
            cleaning.removals.clear()
        if interrupted:
            raise asyncio.CancelledError
        self.cleanings_done += 1
        stats = cleaning.stats
        log.info(
            "compacted %s: %d of %d records stay, %d of %d bytes, in %d ms",
            cleaning.log.topic_partition,
            stats.records_kept,
            stats.records_read,
            stats.bytes_written,
            stats.bytes_read,
            self._runtime.steady_ms() - started_ms,
        )

    def _breathe(self, cleaning: Cleaning, bytes_read: int) -> None:
        """Runs in the thread: rests, long enough to keep to the limit of bytes per second."""
        if self._stopped or cleaning.cancelled:
            raise CleaningInterrupted
        time.sleep(max(REST_S, bytes_read / self._config.log_cleaner_io_max_bytes_per_second))

    async def _remove_due(self) -> None:
        """Removes old segments whose file.delete.delay.ms is over. A restart removes those left behind."""
        even_ms = self._runtime.even_ms()
        due = [removal for removal in self._removals if removal.due_ms <= even_ms]
        self._removals = [removal for removal in self._removals if removal.due_ms > even_ms]
        for removal in due:
            try:
                await self._runtime.run_long(removal.remove)
            except FileNotFoundError:
                continue  # its partition was deleted meanwhile
            except OSError as problem:
                directory = removal.segments[0].dir.rpartition("/")[0]
                self._replicas.storage_failed(StorageFailure(directory, f"removal of compacted segments: {problem}"))
