"""ProducerStateManager: the state of each producer in one partition, so that a retry is appended once (KIP-98).

This module decides whether a batch of an idempotent producer is new, a duplicate, out of order or fenced; which transactions
are open, and from which offset on read_committed consumers must wait.

- The last five batches are remembered: a client may have five requests in flight. A duplicate is answered with the offset and
  timestamp of the original.
- For a producer without state any sequence is accepted, since retention or expiry removed its state.
- A new epoch starts at sequence 0 and empties the batch history; so does a marker with a bumped epoch.
- A transaction stays unstable until its marker is below the high watermark.
- A transactional batch needs an open transaction of its producer and epoch, or proof that the coordinator knows it
  (verification.py); a producer of transaction.version 2 begins each transaction at sequence 0.

Snapshot files hold one batch per producer and no history of markers, exactly as Kafka writes them (version 1, crc32c).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_PRODUCER_EPOCH, NO_SEQUENCE
from tidelog.records.batch import MAX_SEQUENCE, TRANSACTIONAL_BIT, BatchHeader
from tidelog.records.checksum import crc32c
from tidelog.storage.index import AbortedTransaction
from tidelog.storage.verification_guard import Verification, Verifications

BATCHES_REMEMBERED = 5
DEFAULT_EXPIRATION_MS = 86_400_000
SNAPSHOT_SUFFIX = ".snapshot"

_SNAPSHOT_HEAD = struct.Struct(">hIi")
_SNAPSHOT_ENTRY = struct.Struct(">qhiqiqiq")
_COUNT_POSITION = 6


class CorruptSnapshot(Exception):
    """A malformed snapshot file; an older one and more of the log are used instead."""


class BatchMetadata(NamedTuple):
    """One remembered batch."""

    first_sequence: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


class ProducerEntry:
    """One producer's state in one partition."""

    __slots__ = ("batches", "coordinator_epoch", "epoch", "last_timestamp", "producer_id", "transactional_id", "txn_first_offset")

    def __init__(self, producer_id: int, epoch: int) -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self.coordinator_epoch = -1
        self.last_timestamp = -1
        self.txn_first_offset = -1
        """First offset of its open transaction, -1 without one."""
        self.transactional_id: str | None = None
        """The transactional id of the last transaction, if this broker knows it; not in snapshots."""
        self.batches: list[BatchMetadata] = []

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else -1

    def move_to_epoch(self, epoch: int) -> None:
        """Changes the epoch; the batches of the previous epoch are forgotten."""
        if epoch != self.epoch:
            self.batches.clear()
            self.epoch = epoch


class CompletedTransaction(NamedTuple):
    """A transaction of ``producer_id`` that a marker closed: its first offset, the marker's offset, and the outcome."""

    producer_id: int
    first_offset: int
    last_offset: int
    aborted: bool


class ProducerStateManager:
    """All producers of one partition. The log calls ``check`` before and ``update`` after it has written a batch."""

    __slots__ = ("_completed", "_open", "end_offset", "entries", "expiration_ms", "verifications")

    def __init__(self, expiration_ms: int = DEFAULT_EXPIRATION_MS) -> None:
        self.entries: dict[int, ProducerEntry] = {}
        self.verifications = Verifications()
        self.expiration_ms = expiration_ms
        self.end_offset = 0
        """The state covers every batch below this offset."""
        self._open: dict[int, int] = {}
        """First offset -> producer of open transactions; ascending, since offsets are assigned in order."""
        self._completed: dict[int, int] = {}
        """First offset -> marker offset of transactions whose marker may still be above the high watermark."""

    # --- checks --------------------------------------------------------------------------------------------------------

    def check(self, header: BatchHeader) -> ErrorCode | BatchMetadata:
        """Checks a client's batch: NONE, the batch that it duplicates, or the error.

        47 when fenced by a newer epoch, 45 when not the next sequence, 48 when it is outside the producer's own open transaction.
        """
        entry = self.entries.get(header.producer_id)
        if entry is None:
            return ErrorCode.NONE
        epoch = header.producer_epoch
        first = header.base_sequence
        if epoch == entry.epoch:
            last = entry.last_sequence
            if first != last + 1 and not (first == 0 and last == MAX_SEQUENCE):
                return self._duplicate(entry, first, header.last_sequence) or ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        elif epoch < entry.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        elif first != 0 and entry.epoch != NO_PRODUCER_EPOCH:
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        if entry.txn_first_offset >= 0 and not header.attributes & TRANSACTIONAL_BIT:
            return ErrorCode.INVALID_TXN_STATE
        return ErrorCode.NONE

    def begin_verification(
        self, producer_id: int, epoch: int, sequence: int, *, starts_at_zero: bool, transactional_id: str, now_ms: int
    ) -> Verification | None:
        """The verification to hold while the coordinator is asked; None when the producer's transaction is open already."""
        if self.has_open_transaction(producer_id, epoch):
            return None
        return self.verifications.begin(
            producer_id, epoch, sequence, starts_at_zero=starts_at_zero, transactional_id=transactional_id, now_ms=now_ms
        )

    def has_open_transaction(self, producer_id: int, epoch: int) -> bool:
        """Whether the producer has an open transaction in exactly this epoch."""
        entry = self.entries.get(producer_id)
        return entry is not None and entry.txn_first_offset >= 0 and entry.epoch == epoch

    def check_transactional(self, header: BatchHeader, proof: Verification | None) -> ErrorCode | BatchMetadata:
        """Like ``check``, for a batch within a transaction. 48 when the coordinator has not confirmed the transaction."""
        producer_id, epoch, first = header.producer_id, header.producer_epoch, header.base_sequence
        entry = self.entries.get(producer_id)
        same_epoch = entry is not None and epoch == entry.epoch
        if entry is not None and same_epoch:
            duplicate = self._duplicate(entry, first, header.last_sequence)
            if duplicate is not None:
                return duplicate
        error = self.check_coordinated(producer_id, epoch, proof)
        if error:
            return error
        known = entry is not None and bool(entry.batches)
        # An open transaction needs no verification: a pending one belongs to another instance.
        asked = None if self.has_open_transaction(producer_id, epoch) else self.verifications.get(producer_id)
        if asked is not None and ((asked.starts_at_zero and first != 0 and not known) or first > asked.lowest_sequence):
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        if entry is None or entry.epoch == NO_PRODUCER_EPOCH:
            return ErrorCode.NONE
        last = entry.last_sequence if same_epoch else NO_SEQUENCE
        in_order = first == last + 1 or (first == 0 and last == MAX_SEQUENCE)
        return ErrorCode.NONE if in_order else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    def check_coordinated(self, producer_id: int, epoch: int, proof: Verification | None) -> ErrorCode:
        """Checks for every transactional batch, including one without sequences that a coordinator writes for a producer."""
        entry = self.entries.get(producer_id)
        is_open = entry is not None and entry.txn_first_offset >= 0 and entry.epoch == epoch
        if not is_open and not self.verifications.holds(producer_id, proof):
            return ErrorCode.INVALID_TXN_STATE
        if entry is not None and epoch < entry.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        return ErrorCode.NONE

    @staticmethod
    def _duplicate(entry: ProducerEntry, first: int, last: int) -> BatchMetadata | None:
        for batch in entry.batches:
            if batch.first_sequence == first and batch.last_sequence == last:
                return batch
        return None

    def check_marker(self, producer_id: int, epoch: int, coordinator_epoch: int, *, transaction_version: int) -> ErrorCode:
        """Checks a coordinator's marker: 47 for an old epoch, 52 for an old coordinator.

        From transaction version 2 on the marker carries the bumped epoch: an equal one is a retry, valid only when no transaction
        is open (KIP-890, KAFKA-19999).
        """
        entry = self.entries.get(producer_id)
        if entry is None:
            return ErrorCode.NONE
        if epoch < entry.epoch or (transaction_version >= 2 and epoch == entry.epoch and entry.txn_first_offset >= 0):
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if coordinator_epoch < entry.coordinator_epoch:
            return ErrorCode.TRANSACTION_COORDINATOR_FENCED
        return ErrorCode.NONE

    # --- updates -------------------------------------------------------------------------------------------------------

    def update(self, header: BatchHeader) -> None:
        """Records a data batch of a producer (this broker's own append, a leader's batch, or replay)."""
        producer_id = header.producer_id
        epoch = header.producer_epoch
        entry = self.entries.get(producer_id)
        if entry is None:
            entry = self.entries[producer_id] = ProducerEntry(producer_id, epoch)
        elif epoch != entry.epoch:
            entry.move_to_epoch(epoch)
        batches = entry.batches
        if len(batches) == BATCHES_REMEMBERED:
            del batches[0]
        delta = header.last_offset_delta
        last_offset = header.base_offset + delta
        batches.append(BatchMetadata(header.base_sequence, header.last_sequence, last_offset, delta, header.max_timestamp))
        entry.last_timestamp = header.max_timestamp
        if header.attributes & TRANSACTIONAL_BIT:
            asked = self.verifications.end(producer_id)
            if entry.txn_first_offset < 0:
                entry.txn_first_offset = header.base_offset
                self._open[header.base_offset] = producer_id
                entry.transactional_id = asked.transactional_id if asked is not None else None
        self.end_offset = last_offset + 1

    def update_marker(self, header: BatchHeader, *, commit: bool, coordinator_epoch: int) -> CompletedTransaction | None:
        """Records a marker; returns the transaction that it closed, if one was open."""
        producer_id = header.producer_id
        self.verifications.marked(producer_id, header.producer_epoch)
        entry = self.entries.get(producer_id)
        if entry is None:
            entry = self.entries[producer_id] = ProducerEntry(producer_id, header.producer_epoch)
        entry.move_to_epoch(header.producer_epoch)
        entry.coordinator_epoch = coordinator_epoch
        entry.last_timestamp = header.max_timestamp
        self.end_offset = header.last_offset + 1
        first_offset, entry.txn_first_offset = entry.txn_first_offset, -1
        if first_offset < 0:
            return None
        return CompletedTransaction(producer_id, first_offset, header.last_offset, not commit)

    def complete(self, transaction: CompletedTransaction) -> AbortedTransaction:
        """Closes the transaction; it stays unstable until the high watermark passes its marker.

        Returns the entry for the transaction index in case it was aborted: its last stable offset is that of the other
        transactions.
        """
        producer = self._open.pop(transaction.first_offset, None)
        assert producer == transaction.producer_id, f"{transaction} was not open: {self._open}"
        self._completed[transaction.first_offset] = transaction.last_offset
        stable = next(iter(self._open), transaction.last_offset + 1)
        return AbortedTransaction(transaction.producer_id, transaction.first_offset, transaction.last_offset, stable)

    # --- what is stable ------------------------------------------------------------------------------------------------

    def first_unstable_offset(self) -> int | None:
        """The first offset that a reader of committed data may not see yet; None when there is none."""
        if self._completed:
            undecided = next(iter(self._open), None)
            decided = min(self._completed)
            return decided if undecided is None else min(undecided, decided)
        return next(iter(self._open), None) if self._open else None

    def first_undecided_offset(self) -> int | None:
        """The first offset of the oldest open transaction; None when there is none."""
        return next(iter(self._open), None)

    def oldest_open(self) -> ProducerEntry | None:
        """The producer of the oldest open transaction, which holds back the last stable offset; None when there is none."""
        for producer_id in self._open.values():
            return self.entries[producer_id]
        return None

    def high_watermark_moved(self, high_watermark: int) -> None:
        """Transactions whose marker is below the high watermark become stable."""
        if self._completed:
            self._completed = {first: last for first, last in self._completed.items() if last >= high_watermark}

    # --- expiry, snapshots, rebuilding ----------------------------------------------------------------------------------

    def remove_expired(self, now_ms: int) -> int:
        """Forgets producers that were silent for ``producer.id.expiration.ms`` and have no open transaction; returns how many."""
        expired = [entry.producer_id for entry in self.entries.values() if self._is_expired(entry, now_ms)]
        for producer_id in expired:
            del self.entries[producer_id]
        self.verifications.remove_begun_before(now_ms - self.expiration_ms)
        return len(expired)

    def _is_expired(self, entry: ProducerEntry, now_ms: int) -> bool:
        return entry.txn_first_offset < 0 and now_ms - entry.last_timestamp >= self.expiration_ms

    def clear(self, end_offset: int) -> None:
        """Forgets all state; the state is now that of ``end_offset``."""
        self.entries.clear()
        self.verifications.clear()
        self._open.clear()
        self._completed.clear()
        self.end_offset = end_offset

    def encode_snapshot(self) -> bytes:
        """The snapshot file of the current state, to be named by ``end_offset``."""
        return encode_snapshot(self.entries.values())

    def load_snapshot(self, raw: bytes, offset: int, now_ms: int) -> None:
        """Loads a snapshot taken at ``offset``, without producers that have expired since. CorruptSnapshot leaves everything
        unchanged."""
        entries = decode_snapshot(raw)
        self.clear(offset)
        for entry in entries:
            if not self._is_expired(entry, now_ms):
                self.entries[entry.producer_id] = entry
        open_entries = sorted((entry.txn_first_offset, entry.producer_id) for entry in entries if entry.txn_first_offset >= 0)
        self._open = dict(open_entries)

    def take_over(self, rebuilt: ProducerStateManager) -> None:
        """Takes the state that was rebuilt from the log. Verifications under way, and names that only this broker knows, stay."""
        for producer_id, entry in rebuilt.entries.items():
            known = self.entries.get(producer_id)
            entry.transactional_id = known.transactional_id if known is not None else None
        self.entries, self._open, self._completed = rebuilt.entries, rebuilt._open, rebuilt._completed
        self.end_offset = rebuilt.end_offset

    def check_invariants(self) -> None:
        """Asserts the invariants between the entries and the open transactions."""
        assert list(self._open) == sorted(self._open)
        assert all(self.entries[producer].txn_first_offset == first for first, producer in self._open.items())
        assert all(len(entry.batches) <= BATCHES_REMEMBERED for entry in self.entries.values())


def encode_snapshot(entries: Iterable[ProducerEntry]) -> bytes:
    """int16 version 1, crc32c of what follows it, count, 46 bytes per producer."""
    packed = [
        _SNAPSHOT_ENTRY.pack(
            entry.producer_id,
            entry.epoch,
            entry.last_sequence,
            entry.last_offset,
            entry.batches[-1].offset_delta if entry.batches else 0,
            entry.last_timestamp,
            entry.coordinator_epoch,
            entry.txn_first_offset,
        )
        for entry in entries
    ]
    body = len(packed).to_bytes(4, "big") + b"".join(packed)
    return (1).to_bytes(2, "big") + crc32c(body).to_bytes(4, "big") + body


def decode_snapshot(raw: bytes) -> list[ProducerEntry]:
    """The producers in a snapshot file. CorruptSnapshot unless version, checksum and length are right."""
    if len(raw) < _SNAPSHOT_HEAD.size:
        raise CorruptSnapshot(f"{len(raw)} bytes are too few")
    version, crc, count = _SNAPSHOT_HEAD.unpack_from(raw)
    if version != 1:
        raise CorruptSnapshot(f"version {version} is not readable")
    if crc32c(memoryview(raw)[_COUNT_POSITION:]) != crc:
        raise CorruptSnapshot("checksum does not match")
    if len(raw) != _SNAPSHOT_HEAD.size + count * _SNAPSHOT_ENTRY.size:
        raise CorruptSnapshot(f"{count} producers do not fill {len(raw)} bytes")
    return [_decode_entry(fields) for fields in _SNAPSHOT_ENTRY.iter_unpack(memoryview(raw)[_SNAPSHOT_HEAD.size :])]


def _decode_entry(fields: tuple[int, ...]) -> ProducerEntry:
    producer_id, epoch, last_sequence, last_offset, delta, timestamp, coordinator_epoch, txn_first_offset = fields
    entry = ProducerEntry(producer_id, epoch)
    entry.last_timestamp = timestamp
    entry.coordinator_epoch = coordinator_epoch
    entry.txn_first_offset = txn_first_offset
    if last_offset >= 0:
        first = last_sequence - delta
        if first < 0:
            first += MAX_SEQUENCE + 1
        entry.batches.append(BatchMetadata(first, last_sequence, last_offset, delta, timestamp))
    return entry
