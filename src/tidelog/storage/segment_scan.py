"""Finds the damaged ranges of a segment by reading it after a stop.

This module decides which bytes of a ``.log`` file are batches, which are rotten, and which are a torn tail. A torn tail is what a
crash may leave of writes that were never synced. All other bad bytes are rot: they lie below the flushed offset, or the machine
has not rebooted since they were written and they are no beginning of a last write. Rot is never cut (docs/adr/0022).

The checksum covers a batch from its attributes on. Base offset, length and leader epoch come before it and are compared with the
adjacent batches: a batch that contradicts its neighbours and itself leaves a gap is the wrong one.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import NamedTuple

from tidelog.model.ports import File
from tidelog.records.batch import ATTRIBUTES_POSITION, HEADER_SIZE, MAGIC, BatchHeader
from tidelog.records.checksum import crc32c
from tidelog.storage.batch_search import MAGIC_POSITION, BatchReader, BatchSearch, Pause
from tidelog.storage.index import MAX_RELATIVE_OFFSET
from tidelog.storage.rotten_range import RottenRange

_CHUNK_BYTES = 1 << 20
_DELTA, _COUNT = slice(23, 27), slice(57, 61)
"""Last offset delta and number of records in a header."""


class Trust(NamedTuple):
    """What is known of a segment before it is read.

    ``flushed``: offsets below it were synced. ``kernel_survived``: no write can have been lost, synced or not. ``following``: the
    base offset of the next segment, None for the last one. ``complete``: all of the log was synced by a clean stop. ``exact``:
    ``flushed`` is the end of what was synced, not the last offset in it as Apache Kafka may write it down.
    """

    flushed: int = 0
    kernel_survived: bool = False
    following: int | None = None
    complete: bool = False
    exact: bool = False


class _Expected(NamedTuple):
    """What the next batch must be: at or past an offset, in this leader epoch or a later one."""

    offset: int
    epoch: int


class _Held(NamedTuple):
    """The last good batch, not yielded yet: the next one may show that its offset or epoch is wrong."""

    position: int
    header: BatchHeader
    expected: _Expected


class SegmentScan:
    """One scan of a segment's file. Blocks. Exhaust ``batches`` or ``walk`` first; then the attributes hold the findings."""

    def __init__(self, file: File, base_offset: int, size: int, trust: Trust, *, chunk_bytes: int = _CHUNK_BYTES) -> None:
        """``chunk_bytes``: bytes read at a time."""
        self.rotten: list[RottenRange] = []
        self.end = 0
        """The end of what stays; below the file's size a torn tail begins here."""
        self.next_offset = base_offset
        """One past the last offset of what stays, rotten ranges included."""
        self.valid_behind = False
        """Whether a valid batch follows the point where the scan ended."""
        self._reader = BatchReader(file, size, chunk_bytes)
        self._size = size
        self._trust = trust
        following = trust.following
        believed = following is not None and (following <= trust.flushed or trust.kernel_survived)
        self._last = base_offset + MAX_RELATIVE_OFFSET
        if believed and following is not None:
            self._last = min(self._last, following - 1)
        elif trust.complete and following is None and trust.flushed > base_offset:
            self._last = min(self._last, trust.flushed - 1)
        self._following_is_valid = believed
        self._expected = _Expected(base_offset, -1)

    @property
    def work(self) -> int:
        """Bytes read and hashed so far."""
        return self._reader.work

    def batches(self) -> Iterator[tuple[int, BatchHeader]]:
        """Yields (position, header) of each good batch, in order."""
        for found in self.walk():
            if found is not None:
                yield found

    def walk(self) -> Generator[tuple[int, BatchHeader] | None, None, None]:
        """``batches`` with None wherever the caller may pause: damage takes many reads before the next batch is found."""
        held: _Held | None = None
        reader = self._reader
        while self.end < self._size:
            header = reader.header_at(self.end)
            valid = header is not None and reader.is_valid(header)
            if valid is None and header is not None:
                valid = yield from reader.is_valid_long(header)
            if header is not None and valid and not self._fits(header, self._expected):
                if held is not None and self._is_wrong(held, header):
                    self._mark(held.position, self.end, held.expected.offset, header.base_offset)
                    self._expected, held = held.expected, None
                else:
                    valid = False
            if header is not None and valid:
                if held is not None:
                    yield held.position, held.header
                held = _Held(self.end, header, self._expected)
                self._step(self.end + header.size, header)
            elif not (yield from self._salvage(header)):
                break
        if held is not None:
            yield held.position, held.header
        self.next_offset = self._expected.offset
        if self.end >= self._size and self._trust.complete and self._trust.following is None:
            self._note_missing_end()

    def _fits(self, header: BatchHeader, expected: _Expected) -> bool:
        in_order = expected.offset <= header.base_offset <= header.last_offset <= self._last
        flushed = self._trust.flushed
        if (
            expected.offset < flushed <= min(header.base_offset, expected.offset + header.last_offset_delta + 1)
            # A single record behind a gap: its offset is the recovery point that is written down.
            and (self._trust.exact or flushed != header.last_offset)
            and (header.base_offset ^ expected.offset).bit_count() == 1
        ):
            # Flushed offsets would be missing; with one flipped bit corrected none is.
            return False
        # An older epoch after a newer one comes from a lost truncation: records that another leader replaced.
        return in_order and not 0 <= header.leader_epoch < expected.epoch

    def _is_wrong(self, held: _Held, header: BatchHeader) -> bool:
        """Whether the batch before ``header`` has the wrong offset or epoch: it leaves a gap, or raised the epoch."""
        suspect = held.header.base_offset != held.expected.offset or held.header.leader_epoch > header.leader_epoch
        return suspect and self._is_rot(held.expected.offset, True) and self._fits(header, held.expected)

    def _is_rot(self, offset: int, valid_behind: bool) -> bool:
        """Whether bad bytes where ``offset`` should begin cannot come from a crash."""
        return self._trust.complete or offset < self._trust.flushed or (self._trust.kernel_survived and valid_behind)

    def _step(self, end: int, header: BatchHeader) -> None:
        self.end = end
        self._expected = _Expected(header.last_offset + 1, max(self._expected.epoch, header.leader_epoch))

    def _mark(self, position: int, end: int, first_offset: int, next_offset: int) -> None:
        self.rotten.append(RottenRange(position, end, first_offset, next_offset))

    def _salvage(self, header: BatchHeader | None) -> Pause:
        """Skips bad bytes at ``end`` if they are rot; False when they are a torn tail. ``header``: the header of the batch
        that seems to begin there."""
        position, offset = self.end, self._expected.offset
        search = BatchSearch(self._reader, position, self._may_follow, offset, self._last)
        found = yield from search.run(None if header is None else header.end_position)
        self.valid_behind = found is not None or self._following_is_valid
        rot = self._is_rot(offset, self.valid_behind or search.gave_up)
        if not rot and self._trust.kernel_survived:
            rot = not (yield from self._may_be_cut_short(header))
        if not rot:
            return False
        if found is not None:
            self._mark(position, found.position, offset, found.base_offset)
            self.end = found.position
            self._expected = _Expected(found.base_offset, self._expected.epoch)
            return True
        next_offset = self._trust.following
        if next_offset is None:
            next_offset = max(self._trust.flushed, offset + 1, (yield from self._next_of_last()))
        self._mark(position, self._size, offset, next_offset)
        self.end = self._size
        self._expected = _Expected(next_offset, self._expected.epoch)
        return True

    def _may_follow(self, header: BatchHeader) -> bool:
        return header.base_offset > self._expected.offset and self._fits(header, self._expected)

    def _may_be_cut_short(self, header: BatchHeader | None) -> Pause:
        """Whether a killed process may have left the bytes from ``end`` on. Its last write can miss its end, nothing else: a
        batch that is there in full length, or does not begin like one, is rot. Zeros are space that another broker reserved."""
        reader, position = self._reader, self.end
        if (yield from reader.is_zero(position)):
            return True
        if header is not None:
            return False
        if self._size - position <= MAGIC_POSITION:
            return True
        if reader.bytes_at(position + MAGIC_POSITION, 1)[0] != MAGIC:
            return False
        begun = reader.peek(position)
        if begun is None:
            return True
        if begun.size <= self._size - position:
            return False
        # It states more bytes than there are. If they have its checksum, the length is what is damaged.
        crc = yield from reader.checksum(position + ATTRIBUTES_POSITION, self._size)
        return crc != begun.crc

    def _next_of_last(self) -> Generator[None, None, int]:
        """One past the last offset of a damaged batch that fills the rest of the file; 0 when its header does not tell."""
        header = self._reader.peek(self.end)
        if header is None:
            return 0
        count = header.records_count
        if header.last_offset_delta != count - 1 and not (yield from self._has_checksum_with(header, _DELTA, count - 1)):
            count = header.last_offset_delta + 1
            if not (yield from self._has_checksum_with(header, _COUNT, count)):
                return 0
        expected = self._expected.offset
        shifted = header.base_offset < expected or (header.base_offset ^ expected).bit_count() == 1
        next_offset = (expected if shifted else header.base_offset) + count
        return next_offset if count > 0 and next_offset <= self._last + 1 else 0

    def _has_checksum_with(self, header: BatchHeader, field: slice, value: int) -> Pause:
        """Whether the rest of the file has the batch's checksum once a field of four bytes is corrected."""
        raw = bytearray(self._reader.bytes_at(self.end, HEADER_SIZE))
        raw[field] = (value & 0xFFFFFFFF).to_bytes(4, "big")
        crc = crc32c(raw[ATTRIBUTES_POSITION:])
        crc = yield from self._reader.checksum(self.end + HEADER_SIZE, self._size, crc)
        return crc == header.crc

    def _note_missing_end(self) -> None:
        """A clean stop recorded a later end than the file has: the rest is lost, and its offsets stay used."""
        if self.next_offset < self._trust.flushed:
            self._mark(self._size, self._size, self.next_offset, self._trust.flushed)
            self.next_offset = self._trust.flushed
