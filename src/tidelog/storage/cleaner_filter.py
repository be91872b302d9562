"""Which records compaction keeps: the latest of each key, tombstones and markers until they expire (KIP-534, KIP-98).

Decided batch by batch, as in Kafka's Cleaner; no files. ``OffsetMap`` has the latest offset of each key in the dirty part of
the log, in bounded memory. ``TransactionFilter`` tracks aborted transactions while the batches are read in order.
``BatchFilter`` decides what is left of a batch:

- a record is kept when its offset is past the map, or is the latest of its key; one without a key is dropped; a tombstone is
  dropped once the batch's delete horizon has passed;
- records of aborted transactions are dropped immediately; a marker is dropped when no record of its transaction is left and
  its horizon has passed;
- a batch without records is dropped, unless it is the last of its producer (it holds the sequence number) or the last of the
  round (else the log's end offset would be lost): then its header is kept;
- a batch with tombstones, or with the marker of an empty transaction, gets the horizon now + delete.retention.ms if it has
  none. A batch that otherwise keeps everything stays unchanged, byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from heapq import heappop, heappush
from typing import NamedTuple

from tidelog.records.batch import BatchHeader, Buffer, CorruptBatch, crc_is_valid
from tidelog.records.builder import empty_batch, rebuild_batch
from tidelog.records.control import parse_end_txn_marker
from tidelog.records.record import RecordSpan, iter_records, iter_spans, records_body
from tidelog.storage.index import AbortedTransaction

BYTES_PER_KEY = 160
"""Memory per key in an OffsetMap; log.cleaner.dedupe.buffer.size divided by it is the map's limit."""
SMALLEST_LIMIT = 10_000
MAX_DECOMPRESSED = 1 << 30
"""Bytes that one batch may decompress to during compaction; more than the limit for producers, because the batch is in the
log."""
_DIGEST_SIZE = 16
_DIGEST_NAME = b"tidelog.cleaner"


class OffsetMap:
    """Latest offset by key. Keys of 16 bytes and more are stored as 16-byte digests, shorter ones as they are."""

    __slots__ = ("_offsets", "latest_offset", "limit")

    def __init__(self, limit: int) -> None:
        self._offsets: dict[bytes, int] = {}
        self.limit = limit
        self.latest_offset = -1
        """Every record up to and including this offset is in the map or need not be."""

    @classmethod
    def within(cls, memory_bytes: int) -> OffsetMap:
        """A map that takes about this many bytes when it is full."""
        return cls(max(memory_bytes // BYTES_PER_KEY, SMALLEST_LIMIT))

    def __len__(self) -> int:
        return len(self._offsets)

    def offset_of(self, key: bytes) -> int:
        """The latest offset of ``key``, -1 when the map does not have it."""
        return self._offsets.get(key if len(key) < _DIGEST_SIZE else _digest(key), -1)

    def put(self, key: bytes, offset: int) -> bool:
        """False when the map is full and the key is new."""
        if len(key) >= _DIGEST_SIZE:
            key = _digest(key)
        if len(self._offsets) >= self.limit and key not in self._offsets:
            return False
        self._offsets[key] = offset
        return True

    def add_batch(self, header: BatchHeader, batch: Buffer, start_offset: int) -> bool:
        """Adds the keys of a data batch, from ``start_offset`` on. False when the map was full before all were in."""
        base_offset = header.base_offset
        body = records_body(batch, header, MAX_DECOMPRESSED)
        for _, _, _, delta, _, key_start, key_end, _ in iter_spans(body, header.records_count):
            offset = base_offset + delta
            if key_start >= 0 and offset >= start_offset and not self.put(body[key_start:key_end], offset):
                return False
        return True

    def accounted_for(self, offset: int) -> None:
        """Everything up to ``offset`` is in the map or need not be."""
        self.latest_offset = max(self.latest_offset, offset)


def _digest(key: bytes) -> bytes:
    return blake2b(key, digest_size=_DIGEST_SIZE, person=_DIGEST_NAME).digest()


class _OngoingAbort:
    """An aborted transaction whose marker has not been seen yet."""

    __slots__ = ("entry", "has_records")

    def __init__(self, entry: AbortedTransaction) -> None:
        self.entry = entry
        self.has_records = False


class TransactionFilter:
    """Tracks transactions while batches are read in offset order. ``kept``: aborts with remaining records."""

    __slots__ = ("_aborted", "_committed", "_waiting", "kept")

    def __init__(self) -> None:
        self._waiting: list[tuple[int, AbortedTransaction]] = []
        self._aborted: dict[int, _OngoingAbort] = {}
        self._committed: set[int] = set()
        self.kept: list[AbortedTransaction] = []
        """Entries for the transaction index of the segment that is being written; its writer empties the list."""

    def add_aborted(self, entries: Iterable[AbortedTransaction]) -> None:
        """Adds aborted transactions that overlap the following batches."""
        for entry in entries:
            heappush(self._waiting, (entry.first_offset, entry))

    def _begin_up_to(self, offset: int) -> None:
        while self._waiting and self._waiting[0][0] <= offset:
            entry = heappop(self._waiting)[1]
            if entry.producer_id not in self._aborted:
                self._aborted[entry.producer_id] = _OngoingAbort(entry)

    def on_data(self, header: BatchHeader) -> bool:
        """Takes the next data batch: whether it belongs to an aborted transaction and may be dropped."""
        self._begin_up_to(header.last_offset)
        if not header.is_transactional:
            return False
        ongoing = self._aborted.get(header.producer_id)
        if ongoing is None:
            self._committed.add(header.producer_id)
            return False
        ongoing.has_records = True
        return True

    def on_control(self, header: BatchHeader, batch: Buffer) -> bool:
        """Takes the next control batch: whether nothing is left of its transaction, so that the marker may be dropped as well."""
        self._begin_up_to(header.last_offset)
        if header.records_count == 0:
            return True
        record = next(iter_records(batch, header), None)
        marker = None if record is None else parse_end_txn_marker(record.key, record.value)
        if marker is None:
            return False
        if marker.commit:
            had_records = header.producer_id in self._committed
            self._committed.discard(header.producer_id)
            return not had_records
        ongoing = self._aborted.pop(header.producer_id, None)
        if ongoing is None or not ongoing.has_records:
            return True
        # The batches seen are dropped in this same round; the marker waits for the next one.
        self.kept.append(ongoing.entry)
        return False


class LastRecord(NamedTuple):
    """An active producer's last position: the last offset of its last data batch (None: only a marker is known), and its
    epoch."""

    last_data_offset: int | None
    producer_epoch: int


class BatchFilter:
    """What is left of each batch of a segment. Batches come in offset order. The counters are for statistics."""

    __slots__ = (
        "_delete_retention_ms",
        "_last_records",
        "_now_ms",
        "_offsets",
        "_transactions",
        "_upper_bound",
        "records_kept",
        "records_read",
    )

    def __init__(
        self,
        offsets: OffsetMap,
        transactions: TransactionFilter,
        last_records: Mapping[int, LastRecord],
        *,
        upper_bound: int,
        now_ms: int,
        delete_retention_ms: int,
    ) -> None:
        """``upper_bound``: the offset at which this round of cleaning ends; at least the header of the batch before it is
        kept."""
        self._offsets = offsets
        self._transactions = transactions
        self._last_records = last_records
        self._upper_bound = upper_bound
        self._now_ms = now_ms
        self._delete_retention_ms = delete_retention_ms
        self.records_read = 0
        self.records_kept = 0

    def filter(self, header: BatchHeader, batch: Buffer) -> Buffer | None:
        """``batch`` itself, a smaller or re-dated one, or None. CorruptBatch when its records cannot be read."""
        emptied = self._transactions.on_control(header, batch) if header.is_control else self._transactions.on_data(header)
        horizon = header.delete_horizon_ms
        discard = emptied and (not header.is_control or (horizon is not None and horizon <= self._now_ms))
        self.records_read += header.records_count
        if discard or header.records_count == 0:
            return empty_batch(header) if self._keeps_header(header) else None
        if not crc_is_valid(batch, header):
            # A rewritten batch gets a new checksum, so corruption would go unnoticed.
            raise CorruptBatch(f"the batch at offset {header.base_offset} does not have the checksum it claims")
        body = records_body(batch, header, MAX_DECOMPRESSED)
        kept, has_tombstones = self._kept(header, body)
        if not kept:
            return empty_batch(header) if self._keeps_header(header) else None
        self.records_kept += len(kept)
        if horizon is None and (has_tombstones or emptied):
            return rebuild_batch(header, body, kept, delete_horizon_ms=self._now_ms + self._delete_retention_ms)
        if len(kept) == header.records_count:
            return batch
        return rebuild_batch(header, body, kept)

    def _kept(self, header: BatchHeader, body: bytes) -> tuple[list[RecordSpan], bool]:
        """The records to keep, and whether there are tombstones among them."""
        spans = iter_spans(body, header.records_count)
        if header.is_control:
            return list(spans), False
        base_offset, latest, offset_of = header.base_offset, self._offsets.latest_offset, self._offsets.offset_of
        horizon = header.delete_horizon_ms
        tombstones_stay = horizon is None or self._now_ms < horizon
        kept: list[RecordSpan] = []
        has_tombstones = False
        for span in spans:
            _, _, _, delta, _, key_start, key_end, has_value = span
            offset = base_offset + delta
            if offset <= latest and (
                key_start < 0 or not (has_value or tombstones_stay) or offset < offset_of(body[key_start:key_end])
            ):
                continue
            kept.append(span)
            if not has_value:
                has_tombstones = True
        return kept, has_tombstones

    def _keeps_header(self, header: BatchHeader) -> bool:
        """Whether a batch without records is kept for its header."""
        if header.next_offset == self._upper_bound:
            return True
        last = self._last_records.get(header.producer_id) if header.has_producer_id else None
        if last is None:
            return False
        if last.last_data_offset is not None:
            return header.last_offset == last.last_data_offset
        return header.is_control and header.producer_epoch == last.producer_epoch
