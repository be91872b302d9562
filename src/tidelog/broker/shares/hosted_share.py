"""HostedShare: one share partition on the broker that leads the partition, from its load to the end of its leadership.

It is loaded with the leader's epoch, which fences the leader before it. Changes are persisted one after another, in the order in
which they were made. When the share coordinator fences this leader, nothing that is here counts any more: it is dropped, and the
next fetch loads it again if this broker still leads. A coordinator that cannot be reached costs nothing but the change: the
records are as before, and their locks go on.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

from tidelog.broker.shares.group_settings import EARLIEST, LATEST, GroupSettings
from tidelog.coordinator.share.coordinator import Written
from tidelog.coordinator.share.records import ShareKey
from tidelog.model.errors import ErrorCode
from tidelog.replication.offset_lookup import OffsetAnswer, list_offset
from tidelog.replication.partition import Partition
from tidelog.replication.purgatory import STATE_CHANGED
from tidelog.replication.share.dead_letters import DeadLetter, unfinished
from tidelog.replication.share.record_state import Acknowledgement
from tidelog.replication.share.share_partition import Change, SharePartition

if TYPE_CHECKING:
    from tidelog.broker.ports import Runtime
    from tidelog.broker.shares.state_store import StateStore

log = logging.getLogger(__name__)

_NONE = ErrorCode.NONE
_COORDINATOR = frozenset({ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR})
_FENCED = frozenset({ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.FENCED_STATE_EPOCH})
_ENDS = _FENCED | {ErrorCode.INVALID_REQUEST}
"""Answers to a write after which nothing here counts: another leader, a reset, a state that was deleted."""
_KEPT = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.GROUP_ID_NOT_FOUND})


def told(error: ErrorCode) -> ErrorCode:
    """What a member receives for an error of the share coordinator."""
    if error is _NONE or error in _KEPT:
        return error
    if error in _COORDINATOR:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return ErrorCode.NOT_LEADER_OR_FOLLOWER if error in _FENCED else ErrorCode.UNKNOWN_SERVER_ERROR


class Phase(Enum):
    """What may be done with it."""

    LOADING = "loading"
    ACTIVE = "active"
    GONE = "gone"
    """The load failed, or another leader or a reset has fenced it."""


class Persisting:
    """A change on its way to the share coordinator; a ``Parked`` without partitions."""

    __slots__ = ("change", "deadline_ms", "done", "error", "expired", "on_done")

    operation = "ShareAcknowledge"
    places = 0

    def __init__(self, change: Change) -> None:
        self.change = change
        self.deadline_ms = 1 << 62
        self.done = False
        self.expired = False
        self.error = _NONE
        self.on_done: Callable[[], None] | None = None

    def changed(self, partition: object, key: object, new_bytes: int) -> None:
        """Nothing to do: it watches no partition."""

    def finish(self) -> None:
        """Ends the wait."""
        if not self.done:
            self.done = True
            if self.on_done is not None:
                self.on_done()


class Turned(Protocol):
    """A fetch that waits."""

    def finish(self) -> None: ...


class HostedShare:
    def __init__(self, key: ShareKey, partition: Partition, store: StateStore, runtime: Runtime, settings: GroupSettings) -> None:
        self.key = key
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.phase = Phase.LOADING
        self.error = _NONE
        """Why it is gone."""
        self.was_active = False
        """Whether it has been loaded."""
        self.bury: Callable[[DeadLetter], Awaitable[None]] | None = None
        """Writes dead letters, and returns when they are written or lost."""
        self._burials = 0
        self.lock_timeouts = 0
        """Records whose lock timed out."""
        self.on_loaded: Callable[[int], None] = lambda took_ms: None
        """Called when it has been loaded."""
        self.on_locked: Callable[[], None] = lambda: None
        """Called when locks come back that are to be watched again, because a change was not persisted."""
        self.on_idle: Callable[[], None] = lambda: None
        """Called when no change and no dead letter is under way any more."""
        self._is_read = False
        self._turned_away: dict[Turned, None] = {}
        self.watchers: dict[Any, Any] = {}
        """Fetches that wait for records."""
        self._store = store
        self._runtime = runtime
        self._settings = settings
        self._machine: SharePartition | None = None
        self._state_epoch = -1
        self._queue: deque[Persisting] = deque()
        self._persists = False

    @property
    def machine(self) -> SharePartition:
        """The records in flight; only while ACTIVE."""
        assert self._machine is not None and self.phase is Phase.ACTIVE
        return self._machine

    @property
    def is_current(self) -> bool:
        """Whether this broker still leads as it did when this was loaded."""
        partition = self.partition
        return partition.is_leader and not partition.deleted and partition.leader_epoch == self.leader_epoch

    @property
    def is_idle(self) -> bool:
        """Whether no change is being persisted, and no dead letter is on its way: its record is not finished before."""
        return not self._persists and not self._burials

    def begin_read(self, fetch: Turned) -> bool:
        """One fetch at a time reads it. False for any other, which is woken when the read ends."""
        if self._is_read:
            self._turned_away[fetch] = None
            return False
        self._is_read = True
        return True

    def end_read(self) -> None:
        """Another fetch may read it."""
        self._is_read = False
        turned_away, self._turned_away = self._turned_away, {}
        for fetch in turned_away:
            fetch.finish()

    def follow_log(self) -> None:
        """Gives up records that are below the start of the log."""
        log = self.partition.log
        if log is not None:
            self.machine.move_start(log.log_start_offset)

    def wake(self) -> None:
        """Makes the fetches that wait look again."""
        for watcher, key in list(self.watchers.items()):
            watcher.changed(self.partition, key, STATE_CHANGED)

    def end(self, error: ErrorCode) -> None:
        """Nothing here counts any more; what waits for a change gets ``error``."""
        if self.phase is Phase.GONE:
            return
        self.phase, self.error, self._machine = Phase.GONE, error, None
        queue, self._queue = self._queue, deque()
        for waiting in queue:
            waiting.error = error
            waiting.finish()
        self.wake()

    # -- loading -------------------------------------------------------------------------------------------------------------

    async def load(self) -> None:
        """Reads the stored state."""
        began_ms = self._runtime.even_ms()
        try:
            await self._load()
        except Exception:
            self.end(ErrorCode.UNKNOWN_SERVER_ERROR)
            raise
        if self.was_active:
            self.on_loaded(self._runtime.even_ms() - began_ms)

    async def _load(self) -> None:
        answer = await self._store.read(self.key, self.leader_epoch)
        if self.phase is not Phase.LOADING:
            return
        if answer.error is not _NONE or answer.stored is None:
            self.end(told(answer.error) if answer.error is not _NONE else ErrorCode.UNKNOWN_SERVER_ERROR)
            return
        stored = answer.stored
        start = stored.start_offset if stored.start_offset >= 0 else await self._first_offset()
        log = self.partition.log
        if self.phase is not Phase.LOADING:
            return
        if isinstance(start, ErrorCode) or log is None:
            self.end(start if isinstance(start, ErrorCode) else ErrorCode.KAFKA_STORAGE_ERROR)
            return
        machine = SharePartition(start, stored.batches, lambda: self._settings.limits(self.key.group_id))
        machine.move_start(log.log_start_offset)
        self._machine, self._state_epoch, self.phase = machine, stored.state_epoch, Phase.ACTIVE
        self.was_active = True
        # They are written whether or not the group still has a dead-letter queue: else they would hold up the start for good.
        self._bury(unfinished(machine.spans(), self._settings.limits(self.key.group_id).delivery_count))
        self.wake()

    async def _first_offset(self) -> int | ErrorCode:
        """Where a group without a start offset begins."""
        reset, log = self._settings.reset(self.key.group_id), self.partition.log
        if log is None:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if reset == EARLIEST:
            return log.log_start_offset
        if reset == LATEST or isinstance(reset, str):
            return log.high_watermark
        found = list_offset(self.partition, max(0, self._runtime.now_ms() - reset), -1, committed=False)
        if not isinstance(found, OffsetAnswer):
            at = await self._runtime.run_blocking(found.run)
            return ErrorCode.OFFSET_NOT_AVAILABLE if at is None else at.offset
        return found.error if found.error is not _NONE else ErrorCode.OFFSET_NOT_AVAILABLE

    # -- changes -------------------------------------------------------------------------------------------------------------

    def acknowledge(self, member: str, acks: Sequence[Acknowledgement]) -> Persisting | ErrorCode:
        """All of ``acks`` or none; what is returned ends when they are durable."""
        if self.phase is not Phase.ACTIVE:
            return self.error or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        change = self.machine.acknowledge(member, acks, self._runtime.even_ms())
        if isinstance(change, ErrorCode):
            return change
        return self._persist(change) if change.batches else _NONE

    def release(self, member: str) -> Persisting | None:
        """The member's session ended."""
        change = self.machine.release(member) if self.phase is Phase.ACTIVE else None
        return None if change is None else self._persist(change)

    def expire(self) -> None:
        """Frees records whose lock has timed out."""
        change = self.machine.expire(self._runtime.even_ms()) if self.phase is Phase.ACTIVE else None
        if change is not None:
            self.lock_timeouts += sum(batch.last - batch.first + 1 for batch in change.batches)
            self._persist(change)
            self.wake()

    def _persist(self, change: Change) -> Persisting:
        waiting = Persisting(change)
        self._queue.append(waiting)
        if not self._persists:
            self._persists = True
            self._runtime.spawn(self._persist_all(), f"persisting {self.key.text}")
        return waiting

    async def _persist_all(self) -> None:
        try:
            while self._queue:
                await self._persist_one(self._queue[0])
        except Exception:
            self.end(ErrorCode.UNKNOWN_SERVER_ERROR)
            raise
        finally:
            self._persists = False
        self.on_idle()

    async def _persist_one(self, waiting: Persisting) -> None:
        change = waiting.change
        written = Written(
            self._state_epoch, self.leader_epoch, change.start_offset, change.delivery_complete_count, change.batches
        )
        answer = await self._store.write(self.key, written)
        if self.phase is not Phase.ACTIVE:
            return
        self._queue.popleft()
        again = self.machine.complete(change, self._runtime.even_ms(), persisted=answer.error is _NONE)
        if again is not None:
            self._persist(again)
        waiting.error = told(answer.error)
        if answer.error in _ENDS:
            self.end(waiting.error)
        elif answer.error is not _NONE:
            self.on_locked()
        if answer.error is _NONE or (change.mark is None and self.phase is Phase.ACTIVE):
            self._bury(change.dead_letters)
        waiting.finish()
        self.wake()

    # -- dead letters --------------------------------------------------------------------------------------------------------

    def _bury(self, letters: Sequence[DeadLetter]) -> None:
        for letter in letters:
            self._burials += 1
            self._runtime.spawn(self._buried(letter), f"dead letters of {self.key.text}")

    async def _buried(self, letter: DeadLetter) -> None:
        try:
            if self.bury is not None:
                await self.bury(letter)
        except Exception:  # they are lost, and must not hold up the records behind them
            log.exception("dead letters of %s from offset %d could not be written", self.key.text, letter.first)
        finally:
            self._burials -= 1
        change = self.machine.archive(letter) if self.phase is Phase.ACTIVE else None
        if change is not None:
            self._persist(change)
            self.wake()
        if not self._burials:
            self.on_idle()
