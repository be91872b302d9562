"""Periodic work of a node: retention, timed flushes, checkpoints, file removal, late transactions.

Each duty has its own interval, Kafka's where Kafka has one, and its own timer. A failure is logged, and the duty runs again at
the next interval.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from tidelog.broker.node import Broker
from tidelog.model.errors import ErrorCode, StorageFailure
from tidelog.replication.late_transactions import LateTransactions
from tidelog.server.runtime import Alarm, LoopRuntime
from tidelog.server.upkeep.scrubbing import Scrubbing

log = logging.getLogger(__name__)

FLUSH_INTERVAL_MS = 1000
REMOVAL_INTERVAL_MS = 1000
LATE_CHECK_MS = 10_000


class Housekeeping:
    """The periodic duties of one node."""

    def __init__(self, broker: Broker, runtime: LoopRuntime, prune_shares: Callable[[], object] = lambda: None) -> None:
        """``prune_shares`` deletes replaced state of share partitions."""
        self._prune_shares = prune_shares
        self._broker = broker
        self._runtime = runtime
        self._timers: dict[str, Alarm] = {}
        self._stopped = False
        self.late = LateTransactions(self._transactional_id)
        self.scrubbing = Scrubbing(broker.replicas, broker.config, runtime)

    def start(self) -> None:
        """Starts all duties."""
        broker, config, even_ms = self._broker, self._broker.config, self._runtime.even_ms
        replicas = broker.replicas
        checkpoint_ms = min(
            config.replica_high_watermark_checkpoint_interval_ms,
            config.log_flush_offset_checkpoint_interval_ms,
            config.log_flush_start_offset_checkpoint_interval_ms,
        )
        self.every("retention", config.log_retention_check_interval_ms, self._retain, first_ms=config.log_initial_task_delay_ms)
        self.every("flush.ms", FLUSH_INTERVAL_MS, lambda: replicas.flush_step(even_ms()))
        self.every("file removal", REMOVAL_INTERVAL_MS, lambda: replicas.dir_jobs.remove_due(even_ms()))
        self.every("checkpoints", checkpoint_ms, replicas.dir_jobs.checkpoint)
        self.every(
            "producer expiry",
            config.producer_id_expiration_check_interval_ms,
            lambda: replicas.logs.upkeep.expire_producers(self._runtime.records_ms()),
        )
        self.every("late transactions", LATE_CHECK_MS, self._name_late)
        self.every("share state", config.share_coordinator_state_topic_prune_interval_ms, self._prune_shares)
        self.scrubbing.start()

    def every(self, name: str, interval_ms: int, duty: Callable[[], object], *, first_ms: int | None = None) -> None:
        """Runs ``duty`` on the loop every ``interval_ms``, first after ``first_ms`` (None: after ``interval_ms``)."""
        interval_s = max(1, interval_ms) / 1000

        def do() -> None:
            if self._stopped:
                return
            self._timers[name] = self._runtime.call_later(interval_s, do)
            try:
                duty()
            except StorageFailure as failure:
                log.error("%s: %s", name, failure)

        self._timers[name] = self._runtime.call_later(interval_s if first_ms is None else first_ms / 1000, do)

    def stop(self) -> None:
        """Cancels all timers; no further duty starts."""
        self._stopped = True
        self.scrubbing.stop()
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _name_late(self) -> None:
        replicas, config = self._broker.replicas, self._broker.config
        for line in self.late.look(replicas.partitions(), self._runtime.records_ms(), config.transaction_max_timeout_ms):
            log.warning("%s", line)

    def _transactional_id(self, producer_id: int) -> str | None:
        """The transactional id of a producer whose coordinator is here."""
        machines = self._broker.transactions.machines()
        if isinstance(machines, ErrorCode):
            return None
        known = (each for machine in machines for each in machine.transactions.values())
        return next((each.transactional_id for each in known if each.producer_id == producer_id), None)

    def _retain(self) -> None:
        for reason in self._broker.replicas.retention_step(self._runtime.even_ms(), self._runtime.records_ms()):
            log.info("retention: %s", reason)
