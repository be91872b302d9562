"""Bugs planted on purpose into share groups: the simulation has to find each of them, or it is worth nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from tidelog.broker.shares.hosted_share import HostedShare
from tidelog.broker.shares.share_partitions import SharePartitions
from tidelog.broker.shares.state_store import StateStore
from tidelog.coordinator.share import coordinator
from tidelog.coordinator.share.coordinator import Answer, ShareCoordinator, StoredShare
from tidelog.coordinator.share.state_batches import merged
from tidelog.model.errors import ErrorCode
from tidelog.model.machine import Outcome, Reply
from tidelog.replication.share import acknowledging, share_partition
from tidelog.replication.share.acknowledging import refusal
from tidelog.replication.share.in_flight import InFlight, Span
from tidelog.replication.share.record_state import RecordState, StateBatch
from tidelog.replication.share.share_partition import Change, ShareLimits, SharePartition
from tidelog.testing.simulation.patching import Patch, patched


def _acknowledged_alone() -> list[Patch]:
    """A write is answered before it is sent, and never is."""

    async def write(self: StateStore, key: Any, written: Any) -> Answer:
        return Answer()

    return [(StateStore, "write", write)]


def _leaders_not_fenced() -> list[Patch]:
    """Whatever its epoch, a leader may write."""
    honest = vars(ShareCoordinator)["_stale"].__func__

    def stale(stored: StoredShare | None, leader_epoch: int, state_epoch: int) -> Answer | None:
        found: Answer | None = honest(stored, -1, state_epoch)
        return found

    return [(ShareCoordinator, "_stale", staticmethod(stale))]


def _resets_not_fenced() -> list[Patch]:
    """A leader that loaded the state before a reset may go on writing."""
    honest = vars(ShareCoordinator)["_stale"].__func__

    def stale(stored: StoredShare | None, leader_epoch: int, state_epoch: int) -> Answer | None:
        found: Answer | None = honest(stored, leader_epoch, -1)
        return found

    return [(ShareCoordinator, "_stale", staticmethod(stale))]


def _read_not_recorded() -> list[Patch]:
    """A new leader reads without a record of its epoch."""
    honest = ShareCoordinator.read

    def read(self: ShareCoordinator, token: Any, key: Any, leader_epoch: int, now_ms: int) -> Outcome:
        outcome = honest(self, token, key, leader_epoch, now_ms)
        return Outcome(replies=tuple(Reply(each.token, each.response) for each in outcome.replies))

    return [(ShareCoordinator, "read", read)]


def _start_goes_back() -> list[Patch]:
    """A late write takes the start offset back."""

    def moved(self: StoredShare, start_offset: int, complete_count: int) -> tuple[int, int]:
        return (self.start_offset if start_offset == -1 else start_offset), complete_count

    return [(StoredShare, "moved", moved)]


def _last_write_wins() -> list[Patch]:
    """A late write takes back deliveries and acknowledgements."""

    def merge(stored: Sequence[StateBatch], new: Iterable[StateBatch], start_offset: int) -> list[StateBatch]:
        result = list(stored)
        for one in new:
            lower = [each._replace(last=min(each.last, one.first - 1)) for each in result if each.first < one.first]
            upper = [each._replace(first=max(each.first, one.last + 1)) for each in result if each.last > one.last]
            result = [*lower, one, *upper]
        return merged(result, (), start_offset)

    return [(coordinator, "merged", merge)]


def _rollback_forgotten() -> list[Patch]:
    """What could not be persisted is taken for persisted."""
    honest = SharePartition.complete

    def complete(self: SharePartition, change: Change, now_ms: int, *, persisted: bool) -> None:
        honest(self, change, now_ms, persisted=True)

    return [(SharePartition, "complete", complete)]


def _locks_never_time_out() -> list[Patch]:
    """The clock of the locks stands still."""
    return [(SharePartitions, "acquired", lambda self: None)]


def _renewal_forgotten() -> list[Patch]:
    """A renewed lock is acknowledged and ends when it would have ended."""
    honest = share_partition.runs

    def runs(ack: Any, start: int) -> Any:
        return [each for each in honest(ack, start) if each[2] != 4]

    return [(share_partition, "runs", runs)]


def _delivered_without_end() -> list[Patch]:
    """The limit of deliveries is not looked at."""

    def time_out(self: SharePartition, span: Span, limits: ShareLimits) -> None:
        span.leave(RecordState.AVAILABLE)
        self._freed_from(span.first)

    return [(SharePartition, "_time_out", time_out)]


def _holes_skipped() -> list[Patch]:
    """What lies between the stored ranges is taken for compacted away."""
    honest = SharePartition.__init__

    def make(self: SharePartition, start_offset: int, batches: Iterable[StateBatch], limits: Callable[[], ShareLimits]) -> None:
        honest(self, start_offset, batches, limits)
        self._gap_from = self._gap_end
        self._advance()

    return [(SharePartition, "__init__", make)]


def _anyone_acknowledges() -> list[Patch]:
    """Any member may acknowledge what another one holds."""

    def refuse(spans: InFlight, start: int, member: str, ack: Any, *, renews: bool) -> ErrorCode:
        holder = next((span.member for span in spans.within(max(ack.first, start), ack.last) if span.member), member)
        return refusal(spans, start, holder, ack, renews=renews)

    return [(acknowledging, "refusal", refuse)]


def _limit_ignored() -> list[Patch]:
    """As many records may be in flight as members want."""

    def room(end: int, in_flight: int, fetch_offset: int, last: int, max_records: int, max_locks: int) -> tuple[int, int]:
        return max_records, last

    return [(share_partition, "_room", room), (SharePartition, "can_acquire", property(lambda self: True))]


def _aborted_delivered() -> list[Patch]:
    return [(SharePartition, "_give_up_aborted", lambda self, ranges, aborted: ranges)]


def _nothing_wakes() -> list[Patch]:
    """Fetches wait for the log alone."""
    return [(HostedShare, "wake", lambda self: None)]


def _read_lock_kept() -> list[Patch]:
    """A read that has ended still keeps others out."""
    return [(HostedShare, "end_read", lambda self: None)]


def _turned_away_asleep() -> list[Patch]:
    """A fetch that met another one's read is not woken when that ends."""

    def end_read(self: HostedShare) -> None:
        self._is_read = False
        self._turned_away = {}

    return [(HostedShare, "end_read", end_read)]


def _release_forgotten() -> list[Patch]:
    """A lost connection keeps what its member held."""

    def lost(self: SharePartitions, owner: object) -> None:
        self.sessions.lost(owner)

    return [(SharePartitions, "lost", lost)]


def _snapshot_without_batches() -> list[Patch]:
    honest = StoredShare.snapshot
    return [(StoredShare, "snapshot", lambda self, now_ms: honest(self, now_ms)._replace(batches=()))]


def _pruned_too_far() -> list[Patch]:
    """Records that some key still needs are deleted."""

    def prunable_offset(self: ShareCoordinator, safe_to: int) -> int | None:
        return safe_to if self._shares else None

    return [(ShareCoordinator, "prunable_offset", prunable_offset)]


def _initialized_again() -> list[Patch]:
    """An order that comes again resets what members have acknowledged since."""
    honest = ShareCoordinator.initialize

    def initialize(self: ShareCoordinator, token: Any, key: Any, state_epoch: int, start_offset: int, now_ms: int) -> Outcome:
        stored = self._shares.get(key)
        if stored is None or stored.state_epoch != state_epoch:
            return honest(self, token, key, state_epoch, start_offset, now_ms)
        stored.state_epoch -= 1
        try:
            return honest(self, token, key, state_epoch, start_offset, now_ms)
        finally:
            stored.state_epoch += 1

    return [(ShareCoordinator, "initialize", initialize)]


BUGS: dict[str, Callable[[], list[Patch]]] = {
    "acknowledged without a write": _acknowledged_alone,
    "former leaders not fenced": _leaders_not_fenced,
    "resets not fenced": _resets_not_fenced,
    "a read is not recorded": _read_not_recorded,
    "the start goes back": _start_goes_back,
    "the last write wins": _last_write_wins,
    "rollback forgotten": _rollback_forgotten,
    "locks never time out": _locks_never_time_out,
    "renewal forgotten": _renewal_forgotten,
    "delivered without end": _delivered_without_end,
    "holes skipped": _holes_skipped,
    "any member acknowledges": _anyone_acknowledges,
    "limit ignored": _limit_ignored,
    "aborted delivered": _aborted_delivered,
    "nothing wakes": _nothing_wakes,
    "read lock kept": _read_lock_kept,
    "turned away and asleep": _turned_away_asleep,
    "release forgotten": _release_forgotten,
    "snapshot without batches": _snapshot_without_batches,
    "pruned too far": _pruned_too_far,
    "initialized again": _initialized_again,
}


def planted(name: str) -> AbstractContextManager[None]:
    """With one of the bugs."""
    return patched(BUGS[name]())
