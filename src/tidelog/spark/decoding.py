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

from tidelog.model.ids import TopicPartition
from tidelog.records.batch import (
    HEADER_SIZE,
    BatchHeader,
    Buffer,
    CorruptBatch,
    TruncatedBatch,
    crc_is_valid,
    read_header,
)
from tidelog.records.compression import DecompressionBomb, decompress
from tidelog.spark.columns import PlainColumns, Wanted

_ABORT = 0
MARKER_KEY = Wanted(offset=False, timestamp=False, key=True, value=False)


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
        self._start = start
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

    def headers(self, records: Buffer) -> list[BatchHeader]:
        """The whole batches in ``records`` that the range needs. A torn last one is left for the next Fetch.

        UnreadableBatch for bytes that are not a batch.
        """
        found: list[BatchHeader] = []
        position, expected = 0, self.position
        while position < len(records) and expected < self.end:
            try:
                header = read_header(records, position)
            except TruncatedBatch:
                break
            except CorruptBatch as error:
                raise UnreadableBatch(
                    f"{self._at} after offset {expected}: {error}. Messages of formats before magic 2 can be read "
                    "after the topic was rewritten, or by Spark's own connector."
                ) from None
            position = header.end_position
            if header.next_offset > expected:
                found.append(header)
                expected = header.next_offset
        return found

    def feed(self, records: Buffer, headers: Sequence[BatchHeader], aborted: Sequence[tuple[int, int]]) -> None:
        """Decode batches of ``headers``. ``aborted``: (producer id, first offset), sorted by offset; empty for
        read_uncommitted. UnreadableBatch names the batch."""
        for _ in self.steps(records, headers, aborted):
            pass

    def steps(self, records: Buffer, headers: Sequence[BatchHeader], aborted: Sequence[tuple[int, int]]) -> Iterator[None]:
        """As ``feed``, batch by batch: decoded, a response may be a hundred times as large."""
        pending = deque(aborted)
        self._aborting.clear()  # The list of each Fetch begins with the transactions that are open where it begins.
        for header in headers:
            if header.next_offset <= self.position:
                continue
            self._batch(records, header, pending)
            self.position = header.next_offset
            yield

    def _batch(self, records: Buffer, header: BatchHeader, pending: deque[tuple[int, int]]) -> None:
        if self._check_crcs and not crc_is_valid(records, header):
            raise self._unreadable(header, "its CRC does not match; another replica may be intact")
        while pending and pending[0][1] <= header.last_offset:
            self._aborting.add(pending.popleft()[0])
        if header.is_control:
            if header.producer_id in self._aborting and self._is_abort_marker(records, header):
                self._aborting.discard(header.producer_id)
            return
        if header.is_transactional and header.producer_id in self._aborting:
            return
        body = self._body(records, header)
        try:
            rows = self._columns.append(
                body,
                header.records_count,
                header.base_offset,
                header.base_timestamp,
                header.max_timestamp if header.log_append_time else None,
                self.position if self.position > self._start else self._start,
                self.end,
            )
        except CorruptBatch as error:
            raise self._unreadable(header, str(error)) from None
        self.timestamp_types.add(1 if header.log_append_time else 0, rows)

    def _body(self, records: Buffer, header: BatchHeader) -> Buffer:
        view = memoryview(records)[header.position + HEADER_SIZE : header.end_position]
        if not header.codec:
            return view
        try:
            return decompress(header.codec, view, self._max_batch_bytes)
        except DecompressionBomb as error:
            raise self._unreadable(header, f"{error}; the option maxBatchBytes allows {self._max_batch_bytes}") from None
        except CorruptBatch as error:
            raise self._unreadable(header, str(error)) from None

    def _is_abort_marker(self, records: Buffer, header: BatchHeader) -> bool:
        """The key of a marker is two int16: version and type."""
        columns = PlainColumns(MARKER_KEY)
        try:
            columns.append(self._body(records, header), header.records_count, 0, 0, None, -(1 << 62), 1 << 62)
        except CorruptBatch as error:
            raise self._unreadable(header, str(error)) from None
        key = columns.take().key
        return key is not None and len(key.data) >= 4 and int.from_bytes(key.data[2:4], "big") == _ABORT

    def _unreadable(self, header: BatchHeader, why: str) -> UnreadableBatch:
        span = f"offsets {header.base_offset} to {header.last_offset}"
        return UnreadableBatch(f"{self._at}, {span}: the batch cannot be read: {why}.")
