"""Batches of a Fetch answer as records, each with what became of its transaction."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from tidelog.records.batch import BatchHeader, CorruptBatch, TruncatedBatch, crc_is_valid, read_header
from tidelog.records.control import ControlType, control_type
from tidelog.records.record import Headers, Record, iter_records

MAX_DECOMPRESSED: Final = 64 << 20
"""Bytes of one batch: a larger one is reported, not read."""
_HEADER_BYTES: Final = 61


class Seen(NamedTuple):
    """A record. ``state``: plain, committed, aborted, open or control; ``control``: commit, abort or other."""

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    batch: BatchHeader
    state: str
    control: str | None


class Scan:
    """The batches of one answer, from ``begin`` on, and below ``stop``. Iterate it, wholly or in part;
    then ``next_offset`` is where to fetch next.

    ``stable``: the last stable offset; transactions behind it are open. ``aborted``: as in ``PartitionRead``. ``problems``:
    (offset, text) of batches that cannot be read; they are skipped.
    """

    def __init__(
        self,
        partition: int,
        records: bytes,
        begin: int,
        stable: int,
        aborted: tuple[tuple[int, int], ...],
        stop: int | None = None,
    ) -> None:
        self._partition = partition
        self._records = records
        self._begin = begin
        self._stop = stop
        self._stable = stable
        self._starting = list(aborted)
        self._aborted: set[int] = set()
        self.next_offset = begin
        self.problems: list[tuple[int, str]] = []

    def __iter__(self) -> Iterator[Seen]:
        position = 0
        while position + _HEADER_BYTES <= len(self._records):
            try:
                header = read_header(self._records, position)
            except TruncatedBatch:
                return
            except CorruptBatch as error:
                self.problems.append((self.next_offset, str(error)))
                return
            if self._stop is not None and header.base_offset >= self._stop:
                self.next_offset = max(self.next_offset, self._stop)
                return
            position = header.end_position
            yield from self._batch(header)
            self.next_offset = max(self.next_offset, header.next_offset)

    def _batch(self, header: BatchHeader) -> Iterator[Seen]:
        if not crc_is_valid(self._records, header):
            self.problems.append((header.base_offset, f"the checksum of the batch at {header.base_offset} is wrong"))
            return
        state = self._state(header)
        try:
            for record in iter_records(self._records, header, max_decompressed=MAX_DECOMPRESSED):
                control = _control(record) if header.is_control else None
                if header.is_control and control == "abort":
                    self._aborted.discard(header.producer_id)
                if self._stop is not None and record.offset >= self._stop:
                    return
                if not header.base_offset <= record.offset <= header.last_offset:
                    raise CorruptBatch(f"it has a record with the offset {record.offset}")
                if record.offset >= self._begin:
                    self.next_offset = max(self.next_offset, record.offset + 1)
                    yield Seen(
                        self._partition,
                        record.offset,
                        record.timestamp,
                        record.key,
                        record.value,
                        record.headers,
                        header,
                        state,
                        control,
                    )
        except CorruptBatch as error:
            self.problems.append((header.base_offset, f"the batch at {header.base_offset} cannot be read: {error}"))

    def _state(self, header: BatchHeader) -> str:
        while self._starting and self._starting[0][1] <= header.last_offset:
            self._aborted.add(self._starting.pop(0)[0])
        if header.is_control:
            return "control"
        if not header.is_transactional:
            return "plain"
        if header.base_offset >= self._stable:
            return "open"
        return "aborted" if header.producer_id in self._aborted else "committed"


def _control(record: Record) -> str:
    try:
        kind = control_type(record.key)
    except CorruptBatch:
        return "other"
    return {int(ControlType.ABORT): "abort", int(ControlType.COMMIT): "commit"}.get(kind, "other")
