"""Bugs planted on purpose into replication: the simulation has to find each of them, or it is worth nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from sim import replica_rot
from sim.replica_broker import SimBroker
from tidelog.model.errors import ErrorCode
from tidelog.replication import acks_and_min_isr, isr_and_high_watermark, partition, reads, repair
from tidelog.replication.partition import Partition
from tidelog.replication.reads import read_partition
from tidelog.storage.splice import SpliceFailed, SpliceJob
from tidelog.testing.simulation.patching import Patch, patched


def _shrunk_without_the_controller() -> list[Patch]:
    """Who lags counts no more before the controller has agreed."""
    honest = Partition.ask_isr

    def ask(partition: Partition, isr: tuple[int, ...] | None) -> None:
        honest(partition, isr)
        leadership = partition.leadership
        if leadership is not None and isr is not None and len(isr) < len(partition.isr):
            leadership.maximal_isr = frozenset(isr)
            partition.isr = (*isr, *isr[:1])
            partition.expose(partition.host.even_ms())

    return [(Partition, "ask_isr", ask)]


def _joined_too_early() -> list[Patch]:
    """A follower joins as soon as it is heard of, whatever it lacks."""

    def may_join(partition: Partition, replica: Any) -> bool:
        return partition.host.brokers.may_join_isr(replica.broker_id, replica.broker_epoch)

    return [(module, "may_join", may_join) for module in (isr_and_high_watermark, partition)]


def _high_watermark_moves_back() -> list[Patch]:
    def take(self: Partition, high_watermark: int, log_start_offset: int, appended: int) -> None:
        assert self.log is not None
        self.log.update_high_watermark(min(high_watermark, self.log.log_end_offset))

    return [(Partition, "take_watermarks", take)]


def _divergence_ignored() -> list[Patch]:
    return [(reads, "_diverging", lambda partition, log, offset, epoch: None)]


def _cut_at_the_high_watermark() -> list[Patch]:
    """As before KIP-101: a follower's high watermark may lie below what is committed."""

    def begin(self: Any, partition: Partition) -> None:
        honest(self, partition)
        log = partition.log
        if partition in self.where and log is not None and not log.flush_in_flight and log.high_watermark < log.log_end_offset:
            log.truncate_to(log.high_watermark, self.world.now, [])

    honest = SimBroker._place
    return [(SimBroker, "_place", begin)]


def _too_few_in_sync() -> list[Patch]:
    """min.insync.replicas is not looked at."""
    return [(Partition, "_count_in_sync", lambda self: setattr(self, "spare_in_sync", len(self.isr) - 1))]


def _stale_leader_acknowledges() -> list[Patch]:
    """An append counts as safe when the leader has it."""
    honest = acks_and_min_isr.acknowledge

    def acknowledge(partition: Partition, last_offset: int, acks: int) -> ErrorCode:
        error = honest(partition, last_offset, acks)
        return ErrorCode.NONE if error is ErrorCode.REQUEST_TIMED_OUT else error

    return [(acks_and_min_isr, "acknowledge", acknowledge)]


def _mended_across_epochs() -> list[Patch]:
    """A repair asks for no leader epoch and looks at none, nor at the high watermark, nor at what it has written."""
    honest, honest_check = read_partition, SpliceJob._check

    def check(self: SpliceJob, copy: Any) -> Iterator[int]:
        try:
            yield from honest_check(self, copy)
        except SpliceFailed:
            self.mended.adopt_indexes(self._indexer)

    def read(self: Partition, fetch_offset: int, max_bytes: int, **how: Any) -> Any:
        if how.get("any_replica"):
            how["leader_epoch"] = -1
        return honest(self, fetch_offset, max_bytes, **how)

    return [
        (repair, "has_the_epoch", lambda log, header: True),
        (repair, "is_committed", lambda log, end: True),
        (replica_rot, "read_partition", read),
        (SpliceJob, "_check", check),
    ]


def _forgotten_not_mended() -> list[Patch]:
    """The damaged range is forgotten, its bytes stay."""

    def put_in_place(self: SpliceJob) -> None:
        self.segment.rotten = self.mended.rotten

    return [(SpliceJob, "put_in_place", put_in_place)]


BUGS: dict[str, Callable[[], list[Patch]]] = {
    "ISR shrunk without the controller": _shrunk_without_the_controller,
    "joined before it caught up": _joined_too_early,
    "high watermark moved back": _high_watermark_moves_back,
    "divergence ignored": _divergence_ignored,
    "cut at the high watermark": _cut_at_the_high_watermark,
    "min.insync.replicas ignored": _too_few_in_sync,
    "leader alone acknowledges": _stale_leader_acknowledges,
    "mended across leader epochs": _mended_across_epochs,
    "forgotten, not mended": _forgotten_not_mended,
}


def planted(name: str) -> AbstractContextManager[None]:
    """With one of the bugs."""
    return patched(BUGS[name]())
