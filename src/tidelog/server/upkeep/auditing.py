"""The audit of one process: its log, and the tasks that carry lines to the file and to the topic."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from tidelog.broker.audit.audit_log import AuditLog, AuditSettings
from tidelog.broker.audit.line_queue import LineQueue
from tidelog.broker.node import Broker
from tidelog.config.resolve import BrokerConfig
from tidelog.model.errors import ConfigError, KafkaError
from tidelog.server.runtime import Alarm, LoopRuntime
from tidelog.server.upkeep.audit_file import AuditFile
from tidelog.server.upkeep.audit_topic import AuditTopic, NotWritten, NotYet

log = logging.getLogger(__name__)

GATHER_S = 0.2
"""How long the first line waits for others before they are written together."""
RETRY_S = 1.0
BATCH_LINES = 500
BATCH_BYTES = 256 * 1024
"""Of one write; a record batch of this size is below every usual max.message.bytes."""
COUNTS_S = 60.0
FLUSH_WITHIN_S = 3.0

Write = Callable[[Sequence[bytes]], Awaitable[None]]


class Carrier:
    """Carries the lines of a queue to one place, one batch at a time. What cannot be written stays in the queue and is tried
    again, until the queue is full and drops what comes then."""

    def __init__(self, place: str, runtime: LoopRuntime) -> None:
        self._place = place
        self.queue = LineQueue()
        self._runtime = runtime
        self._write: Write | None = None
        self._alarm: Alarm | None = None
        self._task: asyncio.Task[None] | None = None
        self._failing = False
        self._pause_s = GATHER_S
        self._stopped = False

    def start(self, write: Write) -> None:
        """Writes by ``write`` from now on, which raises OSError, KafkaError or NotWritten."""
        self._write = write
        self.queue.on_line = self._wake
        self._wake()

    @property
    def is_idle(self) -> bool:
        """Whether no batch is being written."""
        return self._task is None

    async def flush(self) -> None:
        """Tries to write what waits now, within FLUSH_WITHIN_S."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if self._task is None:
            self._begin()
        assert self._task is not None
        await asyncio.wait([self._task], timeout=FLUSH_WITHIN_S)

    async def stop(self) -> None:
        """The last ``flush``. Nothing is written after it."""
        self._stopped = True
        self.queue.on_line = None
        await self.flush()
        if self.queue and self._write is not None:
            log.warning("the audit loses %d events, which %s did not take before the node stopped", len(self.queue), self._place)

    def _wake(self) -> None:
        if self._alarm is None and self._task is None and not self._stopped:
            self._alarm = self._runtime.call_later(self._pause_s, self._begin)

    def _begin(self) -> None:
        self._alarm = None
        self._task = self._runtime.spawn(self._carry(), f"audit to {self._place}")

    async def _carry(self) -> None:
        try:
            await self._carry_all()
        finally:
            self._task = None
        if self.queue:
            self._wake()

    async def _carry_all(self) -> None:
        while self._write is not None and (lines := self.queue.first(BATCH_LINES, BATCH_BYTES)):
            try:
                await self._write(lines)
            except NotYet:
                self._pause_s = RETRY_S
                return
            except (OSError, KafkaError, NotWritten) as problem:
                self._pause_s = RETRY_S
                if not self._failing:
                    log.warning("the audit cannot be written to %s, which is tried again: %s", self._place, problem)
                self._failing = True
                return
            self.queue.done(len(lines))
            self._pause_s = GATHER_S
            if self._failing:
                self._failing = False
                dropped = self.queue.dropped
                log.info("the audit is written to %s again; %d events were dropped since the start", self._place, dropped)


class Auditing:
    """Made at the start of a process whose settings ask for an audit. Lifecycle: ``start``, ``serve`` on a broker, ``stop``."""

    def __init__(self, config: BrokerConfig, runtime: LoopRuntime) -> None:
        """Opens the file. ConfigError when that fails."""
        self._runtime = runtime
        self._alarm: Alarm | None = None
        self._file = _opened(config)
        self._to_file = Carrier(config.tidelog_audit_file, runtime) if self._file is not None else None
        self._topic = config.tidelog_audit_topic
        self._to_topic = Carrier(f"topic {self._topic}", runtime) if self._topic else None
        self._carriers = [each for each in (self._to_file, self._to_topic) if each is not None]
        settings = AuditSettings(config.tidelog_audit_sample_interval_ms, config.tidelog_audit_max_per_second, self._topic)
        queues = [each.queue for each in self._carriers]
        self.log = AuditLog(config.node_id, settings, queues, now_ms=runtime.now_ms, even_ms=runtime.even_ms)

    def start(self) -> None:
        """Writes to the file from now on."""
        if self._file is not None and self._to_file is not None:
            self._to_file.start(partial(self._append, self._file))
        self._alarm = self._runtime.call_later(COUNTS_S, self._count)

    def serve(self, broker: Broker) -> None:
        """Writes to the topic from now on."""
        if self._to_topic is not None:
            self._to_topic.start(AuditTopic(broker, self._topic).write)

    async def flush(self) -> None:
        """Writes what waits, as far as that is possible, before this broker gives up its partitions."""
        self.log.minute()
        await asyncio.gather(*(carrier.flush() for carrier in self._carriers))

    async def stop(self) -> None:
        """Writes what has come since, and closes the file."""
        if self._alarm is not None:
            self._alarm.cancel()
        self.log.minute()
        await asyncio.gather(*(carrier.stop() for carrier in self._carriers))
        if self._file is not None and self._to_file is not None and self._to_file.is_idle:
            try:
                await self._runtime.run_blocking(self._file.close)
            except OSError as problem:
                log.warning("the audit's file was not closed in order: %s", problem)

    def _count(self) -> None:
        self._alarm = self._runtime.call_later(COUNTS_S, self._count)
        self.log.minute()

    async def _append(self, file: AuditFile, lines: Sequence[bytes]) -> None:
        await self._runtime.run_blocking(partial(file.append, lines))


def _opened(config: BrokerConfig) -> AuditFile | None:
    if not config.tidelog_audit_file:
        return None
    file = AuditFile(config.tidelog_audit_file, config.tidelog_audit_file_max_bytes, config.tidelog_audit_file_count)
    try:
        file.open()
    except OSError as problem:
        raise ConfigError(f"tidelog.audit.file is {file.path}, which cannot be written: {problem.strerror}.") from problem
    return file
