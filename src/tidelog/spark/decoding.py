"""Record batches of a Fetch response into columns: CRC, codecs, control batches, aborted transactions, compacted logs.

Follows Kafka's consumer: with read_committed, batches of an aborted transaction are skipped. The broker lists (producer id, first
offset) of those transactions; one is active from the first batch at or after its first offset until the producer's abort marker.
Control batches are never rows. Offsets without a record (compaction, markers, aborts) are normal: the position after a batch is
its last offset plus one, whether or not a record has it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tidelog.model.ids import TopicPartition
from tidelog.records.batch import (
    ATTRIBUTES_POSITION,
    CODEC_MASK,
    CONTROL_BIT,
    HEADER,
    HEADER_SIZE,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    MAGIC,
    TRANSACTIONAL_BIT,
    Buffer,
    CorruptBatch,
    read_header,
)
from tidelog.records.checksum import crc32c
from tidelog.records.compression import DecompressionBomb, decompress
from tidelog.spark.columns import PlainColumns, Wanted

_ABORT = 0
_ATTRIBUTES, _COUNT = 5, 12
"""Places of fields in ``batch.HEADER``."""
_Batch = tuple[int, int, tuple[Any, ...]]
"""Where a batch begins, the offset after it, and the fields of its header as ``batch.HEADER`` unpacks them. Plain tuples: the
objects and properties of ``BatchHeader`` cost as much as the records of a batch of a hundred."""
MARKER_KEY = Wanted(offset=False, timestamp=False, key=True, value=False)


class Batches(NamedTuple):
    """Whole batches of a response. ``next_offset``: the one after the last; ``size``: their bytes."""

    found: list[_Batch]
    next_offset: int
    size: int


class UnreadableBatch(Exception):
    """A batch that cannot be read; the text says which, why, and what to do."""


@dataclass(slots=True)
class TimestampTypes:
    """Runs of rows with the same ``timestampType``: 0 the producer's time, 1 the broker's."""

    runs: list[tuple[int, int]] = field(default_factory=list)

    def add(self, kind: int, rows: int) -> None:
        """Add ``rows`` rows of this type."""
        if rows and self.runs and self.runs[-1][0] == kind:
            self.runs[-1] = (kind, self.runs[-1][1] + rows)
        elif rows:
            self.runs.append((kind, rows))

    def take(self) -> list[tuple[int, int]]:
        """(type, rows) of what was added, and start over."""
        runs, self.runs = self.runs, []
        return runs


class BatchDecoder:
    """Decodes a range of one partition. ``position`` is the next offset to look at."""

    def __init__(
        self, at: TopicPartition, start: int, end: int, columns: PlainColumns, *, check_crcs: bool, max_batch_bytes: int
    ) -> None:
        self._at = at
        self.end = end
        self.position = start
        self._columns = columns
        self._check_crcs = check_crcs
        self._max_batch_bytes = max_batch_bytes
        self.timestamp_types = TimestampTypes()
        self._aborting: set[int] = set()

    @property
    def done(self) -> bool:
        """Whether everything before ``end`` was looked at."""
        return self.position >= self.end

    def skip_to(self, offset: int) -> None:
        """Nothing before ``offset`` is available."""
        self.position = max(self.position, min(offset, self.end))

    def headers(self, records: Buffer) -> Batches:
        """The whole batches in ``records`` that the range needs. A torn last one is left for the next Fetch.

        UnreadableBatch for bytes that are not a batch.
        """
        found: list[_Batch] = []
        position, expected, available = 0, self.position, len(records)
        while available - position >= HEADER_SIZE and expected < self.end:
            fields = HEADER.unpack_from(records, position)
            size = fields[1] + LOG_OVERHEAD
            if fields[3] != MAGIC or size < HEADER_SIZE:
                raise self._no_batch(records, position, expected)
            if size > available - position:
                break
            following = fields[0] + fields[6] + 1
            if following > expected:
                found.append((position, following, fields))
                expected = following
            position += size
        return Batches(found, expected, position - found[0][0] if found else 0)

    def feed(self, records: Buffer, batches: Batches, aborted: Sequence[tuple[int, int]]) -> None:
        """Decode what ``headers`` found. ``aborted``: (producer id, first offset), sorted by offset; empty for
        read_uncommitted. UnreadableBatch names the batch."""
        for _ in self.steps(records, batches, aborted):
            pass

    def steps(self, records: Buffer, batches: Batches, aborted: Sequence[tuple[int, int]]) -> Iterator[None]:
        """As ``feed``, batch by batch: decoded, a response may be a hundred times as large."""
        pending = deque(aborted)
        self._aborting.clear()  # The list of each Fetch begins with the transactions that are open where it begins.
        view = memoryview(records)
        for batch in batches.found:
            following = batch[1]
            if following <= self.position:
                continue
            self._batch(view, batch, pending)
            self.position = following
            yield

    def _batch(self, records: memoryview, batch: _Batch, pending: deque[tuple[int, int]]) -> None:
        position, following, fields = batch
        base_offset, length, _, _, crc, attributes, _, base_timestamp, max_timestamp, producer, _, _, count = fields
        checked = records[position + ATTRIBUTES_POSITION : position + LOG_OVERHEAD + length]
        if self._check_crcs and crc32c(checked) != crc:
            raise self._unreadable(batch, "its CRC does not match; another replica may be intact")
        while pending and pending[0][1] < following:
            self._aborting.add(pending.popleft()[0])
        body: Buffer = checked[HEADER_SIZE - ATTRIBUTES_POSITION :]
        if attributes & (CODEC_MASK | CONTROL_BIT | TRANSACTIONAL_BIT):
            if attributes & CONTROL_BIT:
                if producer in self._aborting and self._is_abort_marker(body, batch):
                    self._aborting.discard(producer)
                return
            if attributes & TRANSACTIONAL_BIT and producer in self._aborting:
                return
            body = self._decompressed(body, batch)
        append_time = attributes & LOG_APPEND_TIME_BIT
        try:
            rows = self._columns.append(
                body, count, base_offset, base_timestamp, max_timestamp if append_time else None, self.position, self.end
            )
        except CorruptBatch as error:
            raise self._unreadable(batch, str(error)) from None
        self.timestamp_types.add(1 if append_time else 0, rows)

    def _decompressed(self, body: Buffer, batch: _Batch) -> Buffer:
        codec = batch[2][_ATTRIBUTES] & CODEC_MASK
        if not codec:
            return body
        try:
            return decompress(codec, body, self._max_batch_bytes)
        except DecompressionBomb as error:
            raise self._unreadable(batch, f"{error}; the option maxBatchBytes allows {self._max_batch_bytes}") from None
        except CorruptBatch as error:
            raise self._unreadable(batch, str(error)) from None

    def _is_abort_marker(self, body: Buffer, batch: _Batch) -> bool:
        """The key of a marker is two int16: version and type."""
        columns = PlainColumns(MARKER_KEY)
        try:
            columns.append(self._decompressed(body, batch), batch[2][_COUNT], 0, 0, None, -(1 << 62), 1 << 62)
        except CorruptBatch as error:
            raise self._unreadable(batch, str(error)) from None
        key = columns.take().key
        return key is not None and len(key.data) >= 4 and int.from_bytes(key.data[2:4], "big") == _ABORT

    def _no_batch(self, records: Buffer, position: int, expected: int) -> UnreadableBatch:
        reason: object = "no record batch"
        try:
            read_header(records, position)
        except CorruptBatch as error:
            reason = error
        return UnreadableBatch(
            f"{self._at} after offset {expected}: {reason}. Messages of formats before magic 2 can be read "
            "after the topic was rewritten, or by Spark's own connector."
        )

    def _unreadable(self, batch: _Batch, why: str) -> UnreadableBatch:
        _, following, fields = batch
        return UnreadableBatch(f"{self._at}, offsets {fields[0]} to {following - 1}: the batch cannot be read: {why}.")
