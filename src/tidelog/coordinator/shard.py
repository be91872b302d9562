"""Runs a record machine on one partition of an internal topic: loads it, appends its records, and holds its responses back.

This module decides when a response, or a request to another node, may leave. Outcomes are released in the order in which they
were made. An outcome with records waits until they are safe (below the high watermark); one without waits behind those before it,
so that no client reads what may still be lost. The loaded log counts as the first outcome. Records are replayed as they are
appended. A request that waits too long for the replicas is answered with COORDINATOR_NOT_AVAILABLE, and the client retries; the
request may still take effect. When an append fails, the machine may be ahead of its log: it is dropped, waiting requests get an
error that makes clients find the coordinator again, and the machine is reloaded.

Elsewhere: the meaning of the records (the machine), which partitions there are and when timers fire (``shards``).
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import partial
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

from tidelog.model.errors import ErrorCode
from tidelog.model.machine import NOTHING, Outcome, Reply, Token
from tidelog.model.ports import FileSlice
from tidelog.records.batch import HEADER_SIZE, CorruptBatch, crc_is_valid, iter_headers
from tidelog.records.builder import RecordData, build_batch
from tidelog.records.record import Record, iter_records
from tidelog.replication.marker_append import Marker
from tidelog.replication.partition import Partition
from tidelog.replication.purgatory import ParkedAppend, Watched
from tidelog.storage import reading
from tidelog.storage.append_rules import read_marker
from tidelog.storage.verification_guard import Verification

log = logging.getLogger(__name__)

LOAD_BYTES = 1 << 20
_OTHER_REPLICA = "let another replica lead the partition, and throw this one away"
NEVER_MS = 1 << 62
RECORD_OVERHEAD = 32
"""Upper bound in bytes of a record without its key and value: lengths, deltas, no headers."""


class RecordMachine(Protocol):
    """What a shard runs. Its handlers return Outcomes whose records it can turn into keys and values."""

    def replay_stored(self, record: Record, now_ms: int) -> None:
        """Replays a record from the log, at load."""
        ...

    def replay(self, record: Any, now_ms: int) -> None:
        """Replays a record of an Outcome that was just appended."""
        ...

    def loaded(self, now_ms: int) -> None: ...

    def to_record(self, record: Any, now_ms: int) -> RecordData: ...

    def next_deadline(self) -> int: ...

    def expire(self, now_ms: int) -> Outcome: ...


@runtime_checkable
class TransactionalMachine(Protocol):
    """A machine into whose log other producers write transactions, as into ``__consumer_offsets``."""

    def replay_pending(self, record: Any, producer_id: int, now_ms: int) -> None:
        """Replays a record that was just appended within the producer's transaction."""
        ...

    def replay_stored_pending(self, record: Record, producer_id: int, now_ms: int) -> None:
        """Replays a record of a producer's transaction from the log, at load."""
        ...

    def replay_marker(self, producer_id: int, *, committed: bool) -> None:
        """Replays the end of the producer's transaction."""
        ...


@runtime_checkable
class OffsetMachine(Protocol):
    """A machine that knows at which offsets its records are."""

    def appending(self, first_offset: int) -> None:
        """The records that are replayed next have consecutive offsets from here on."""
        ...


class WithinTransaction(NamedTuple):
    """The transaction that records belong to. ``proof`` shows that its coordinator knows it, as with ``Partition.append``."""

    producer_id: int
    producer_epoch: int
    proof: Verification | None


class Waiting:
    """A request that waits for a machine's response; a ``Parked`` without partitions. ``error`` is set instead of ``response``
    when the shard moved or failed meanwhile."""

    __slots__ = ("deadline_ms", "done", "error", "expired", "on_done", "response")

    operation = "Coordinator"
    places = 0

    def __init__(self) -> None:
        self.deadline_ms = NEVER_MS
        self.done = False
        self.expired = False
        self.on_done: Callable[[], None] | None = None
        self.response: Any = None
        self.error = ErrorCode.NONE

    def changed(self, partition: Watched, index: int, new_bytes: int) -> None:
        """Nothing to do: it watches no partition."""

    def finish(self) -> None:
        """Ends the wait."""
        if not self.done:
            self.done = True
            if self.on_done is not None:
                self.on_done()


class _Pending:
    """An outcome whose records are not safe yet: responses, the last offset to wait for, and the deadline of the wait."""

    __slots__ = ("last_offset", "outcome", "until_ms")

    def __init__(self, outcome: Outcome, last_offset: int, until_ms: int) -> None:
        self.outcome = outcome
        self.last_offset = last_offset
        self.until_ms = until_ms


M = TypeVar("M", bound=RecordMachine)
Sender = Callable[["Shard[M]", Any], None]
"""Takes what a machine sends once that is safe; must not block."""


class Shard(Generic[M]):
    """One machine on one partition. Everything but the reading at load runs on the event loop."""

    __slots__ = (
        "_base_sequence",
        "_last_token",
        "_make",
        "_patience_ms",
        "_pending",
        "_send",
        "_stopped",
        "_waiting",
        "_watch",
        "epoch",
        "machine",
        "partition",
        "starved",
    )

    def __init__(
        self,
        partition: Partition,
        make: Callable[[int], M],
        *,
        send: Sender[M] | None = None,
        base_sequence: int = 0,
        patience_ms: int = NEVER_MS,
    ) -> None:
        """``make(now_ms)`` returns a new machine that has replayed nothing. ``base_sequence`` is what Kafka's coordinator of
        this kind writes into its batches. ``patience_ms``: how long a response waits for the replicas."""
        self.partition = partition
        self.epoch = partition.leader_epoch
        self.machine: M | None = None
        self._make = make
        self._send = send
        self._base_sequence = base_sequence
        self._patience_ms = patience_ms
        self.starved = False
        """Work was refused because too few replicas are in sync; the machine is out of date."""
        self._last_token = 0
        self._waiting: dict[Token, Waiting] = {}
        self._pending: deque[_Pending] = deque()
        self._watch: ParkedAppend | None = None
        self._stopped = False

    # -- loading -------------------------------------------------------------------------------------------------------------

    async def load(self, run_blocking: Callable[[Callable[[], Any]], Awaitable[Any]], even_ms: Callable[[], int]) -> bool:
        """Replays the partition from start to end. False when the partition moved meanwhile."""
        stored = self.partition.log
        if stored is None:
            return False
        machine = self._make(even_ms())
        offset, end = stored.log_start_offset, stored.log_end_offset
        while offset < end:
            if self._stopped or self.partition.log is not stored:
                return False
            found = reading.read(stored, max(offset, stored.log_start_offset), LOAD_BYTES, upto=end, min_one=True)
            if found.error is not ErrorCode.NONE:
                raise CorruptBatch(f"{stored.dir}: offset {offset} cannot be read: {_OTHER_REPLICA}")
            if found.slice is None:
                break
            offset = await run_blocking(partial(_replay, machine, found.slice, even_ms()))
        if self._stopped:
            return False
        machine.loaded(even_ms())
        self.machine = machine
        if end and not self.partition.is_safe(end - 1, -1):
            self._pending.append(_Pending(NOTHING, end - 1, NEVER_MS))
            self._watch_pending()
        return not self._stopped

    @property
    def failed(self) -> bool:
        """Whether the shard has stopped and must not be used any more."""
        return self._stopped

    def stop(self, error: ErrorCode) -> None:
        """Stops the shard: the partition moved, failed or was deleted. Waiting requests get ``error``."""
        self._stopped = True
        self.machine = None
        self._pending.clear()
        if self._watch is not None:
            self._watch.on_done = None
            self._watch.finish()
            self._watch = None
        waiting, self._waiting = self._waiting, {}
        for one in waiting.values():
            one.error = error
            one.finish()

    # -- running -------------------------------------------------------------------------------------------------------------

    def wait(self) -> tuple[Token, Waiting]:
        """A token for a request, and the object that its handler waits on."""
        self._last_token += 1
        token = Token(self._last_token)
        waiting = self._waiting[token] = Waiting()
        return token, waiting

    @property
    def waits(self) -> int:
        """The number of requests that wait for a response."""
        return len(self._waiting)

    def abandon(self, token: Token) -> None:
        """Drops a response that is no longer wanted. It counts as done, so that the deadline queue releases it and its
        client's connection: the wait has no deadline of its own."""
        waiting = self._waiting.pop(token, None)
        if waiting is not None:
            waiting.on_done = None
            waiting.finish()

    def run(self, outcome: Outcome, now_ms: int) -> None:
        """Appends an outcome's records and releases its responses once they are safe."""
        last_offset = -1
        if outcome.records:
            appended = self._append(outcome.records, now_ms)
            if appended is None:
                self.stop(ErrorCode.NOT_COORDINATOR)
                return
            last_offset = appended
        if not outcome.replies and not outcome.sends and last_offset < 0:
            return
        self._hold(outcome, last_offset, now_ms)

    def _hold(self, outcome: Outcome, last_offset: int, now_ms: int) -> None:
        """Holds the outcome until ``last_offset`` is safe and the outcomes before it are released."""
        if self._pending or (last_offset >= 0 and not self.partition.is_safe(last_offset, -1)):
            until_ms = now_ms + self._patience_ms if outcome.replies else NEVER_MS
            self._pending.append(_Pending(outcome, last_offset, until_ms))
            self._watch_pending()
        else:
            self._release(outcome)

    def run_within(self, transaction: WithinTransaction, outcome: Outcome, now_ms: int) -> ErrorCode:
        """Like ``run``, for records that take effect with the transaction's marker. Returns an error when the partition
        refuses the producer; then nothing has happened and no response is sent."""
        machine, last_offset = self.machine, -1
        assert machine is not None and isinstance(machine, TransactionalMachine)
        records = [(record, machine.to_record(record, now_ms)) for record in outcome.records]
        for records_of_batch, stored in self._batches(records) if records else ():
            batch = build_batch(
                stored,
                producer_id=transaction.producer_id,
                producer_epoch=transaction.producer_epoch,
                base_sequence=0,
                transactional=True,
            )
            result = self.partition.append_own(memoryview(batch), now_ms, proof=transaction.proof)
            if result.error is not ErrorCode.NONE:
                if last_offset >= 0:
                    # Part of it is in the log. The producer gets an error and aborts; the machine is reloaded.
                    self.stop(ErrorCode.NOT_COORDINATOR)
                return result.error
            for record in records_of_batch:
                machine.replay_pending(record, transaction.producer_id, now_ms)
            last_offset = result.last_offset
        self._hold(outcome, last_offset, now_ms)
        return ErrorCode.NONE

    def complete_transaction(self, marker: Marker, now_ms: int) -> ErrorCode | Waiting:
        """Writes the marker of a producer's transaction, and lets the machine apply or drop its pending records. The returned
        wait ends without an error when the marker is safe."""
        machine = self.machine
        assert machine is not None
        result = self.partition.append_own(marker.batch(now_ms), now_ms, transaction_version=marker.transaction_version)
        if result.error is not ErrorCode.NONE:
            return result.error
        if isinstance(machine, TransactionalMachine):
            machine.replay_marker(marker.producer_id, committed=marker.committed)
        token, waiting = self.wait()
        self._hold(Outcome(replies=(Reply(token, None),)), result.last_offset, now_ms)
        return waiting

    def _append(self, records: Iterable[Any], now_ms: int) -> int | None:
        """The last offset; None when an append failed. Records that exceed one batch of the topic are split over several
        batches: each record stands alone, and no response leaves before the last one is safe."""
        machine = self.machine
        assert machine is not None
        last_offset = None
        for records_of_batch, stored in self._batches([(record, machine.to_record(record, now_ms)) for record in records]):
            result = self.partition.append_own(memoryview(build_batch(stored, base_sequence=self._base_sequence)), now_ms)
            if result.error is not ErrorCode.NONE:
                log.error("%s: append of %d records failed: %s", self.partition.topic_partition, len(stored), result.error.name)
                return None
            if isinstance(machine, OffsetMachine):
                machine.appending(result.first_offset)
            for record in records_of_batch:
                machine.replay(record, now_ms)
            last_offset = result.last_offset
        return last_offset

    def _batches(self, records: list[tuple[Any, RecordData]]) -> Iterator[tuple[list[Any], list[RecordData]]]:
        stored = self.partition.log
        limit = min(stored.config.max_message_bytes, stored.config.segment_bytes) if stored is not None else 0
        own: list[Any] = []
        data: list[RecordData] = []
        size = HEADER_SIZE
        for record, one in records:
            bytes_of_one = len(one.key or b"") + len(one.value or b"") + RECORD_OVERHEAD
            if data and size + bytes_of_one > limit:
                yield own, data
                own, data, size = [], [], HEADER_SIZE
            own.append(record)
            data.append(one)
            size += bytes_of_one
        yield own, data

    def _watch_pending(self) -> None:
        """Waits until the oldest pending outcome is safe; one without records is as safe as those before it."""
        while self._pending and self._watch is None:
            last_offset = self._pending[0].last_offset
            if last_offset < 0 or self.partition.is_safe(last_offset, -1):
                self._release(self._pending.popleft().outcome)
                continue
            self._watch = ParkedAppend(NEVER_MS, -1)
            self._watch.watch(self.partition, 0, last_offset)
            self._watch.on_done = self._woken

    def _woken(self) -> None:
        self._watch = None
        if not self.partition.is_leader or self.partition.log is None:
            self.stop(ErrorCode.NOT_COORDINATOR)
            return
        self._watch_pending()

    def next_deadline(self) -> int:
        """When the machine wants to be woken, or a response has waited too long for the replicas. Only for a loaded shard."""
        assert self.machine is not None
        due_ms = self.machine.next_deadline()
        for pending in self._pending:
            if pending.until_ms < NEVER_MS:
                return min(due_ms, pending.until_ms)
        return due_ms

    def give_up(self, now_ms: int) -> None:
        """Answers requests that have waited too long for the replicas. Their records stay and may still take effect."""
        for pending in self._pending:
            if pending.until_ms > now_ms:
                continue
            replies, pending.outcome = pending.outcome.replies, pending.outcome._replace(replies=())
            pending.until_ms = NEVER_MS
            for reply in replies:
                waiting = self._waiting.pop(reply.token, None)
                if waiting is not None:
                    waiting.error = ErrorCode.COORDINATOR_NOT_AVAILABLE
                    waiting.finish()

    def _release(self, outcome: Outcome) -> None:
        for reply in outcome.replies:
            waiting = self._waiting.pop(reply.token, None)
            if waiting is not None:
                waiting.response = reply.response
                waiting.finish()
        for request in outcome.sends:
            if self._stopped:
                return
            assert self._send is not None, f"{self.partition.topic_partition}: there is no way to send {request}"
            self._send(self, request)


def _replay(machine: RecordMachine, batches: FileSlice, now_ms: int) -> int:
    """Replays whole batches and returns the offset after the last one. Runs in a thread: nothing else uses the machine yet.

    CorruptBatch on a checksum mismatch: groups with wrong offsets would be worse than none.
    """
    data = batches.read()
    offset = -1
    for header in iter_headers(data):
        if not crc_is_valid(data, header):
            raise CorruptBatch(
                f"{batches.file.path}: the batch at offset {header.base_offset} has a wrong checksum: {_OTHER_REPLICA}"
            )
        offset = header.last_offset + 1
        if header.is_control:
            marker = read_marker(memoryview(data)[header.position : header.position + header.size])
            if marker is not None and isinstance(machine, TransactionalMachine):
                machine.replay_marker(header.producer_id, committed=marker.commit)
        elif header.is_transactional and isinstance(machine, TransactionalMachine):
            for record in iter_records(data, header):
                machine.replay_stored_pending(record, header.producer_id, now_ms)
        else:
            for record in iter_records(data, header):
                machine.replay_stored(record, now_ms)
    return offset
