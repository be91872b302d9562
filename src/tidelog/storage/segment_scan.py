"""Finds the damaged ranges of a segment by reading it after a stop.

This module decides which bytes of a ``.log`` file are batches, which are rotten, and which are a torn tail. A torn tail is what a
crash may leave of writes that were never synced. All other bad bytes are rot: they lie below the flushed offset, or the machine
has not rebooted since they were written and valid batches follow. Rot is never cut (docs/adr/0022).

The checksum covers a batch from its attributes on. Base offset, length and leader epoch come before it and are compared with the
adjacent batches: a batch that contradicts its neighbours and itself leaves a gap is the wrong one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tidelog.model.ports import File
from tidelog.records.batch import HEADER_SIZE, BatchHeader, crc_is_valid
from tidelog.storage.index import MAX_RELATIVE_OFFSET
from tidelog.storage.replay import iter_batches
from tidelog.storage.rotten_range import RottenRange

_CHUNK_BYTES = 1 << 20
_MAGIC_AT = 16


@dataclass(frozen=True, slots=True)
class Trust:
    """What is known of a segment before it is read.

    ``flushed``: offsets below it were synced. ``kernel_survived``: no write can have been lost, synced or not. ``following``: the
    base offset of the next segment, None for the last one. ``complete``: all of the log was synced by a clean stop.
    """

    flushed: int = 0
    kernel_survived: bool = False
    following: int | None = None
    complete: bool = False


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
    """One scan of a segment's file. Blocks. Exhaust ``batches`` first; then the attributes hold the findings."""

    def __init__(self, file: File, base_offset: int, size: int, trust: Trust, *, chunk_bytes: int = _CHUNK_BYTES) -> None:
        """``chunk_bytes``: bytes read at a time."""
        self.rotten: list[RottenRange] = []
        self.end = 0
        """The end of what stays; below the file's size a torn tail begins here."""
        self.next_offset = base_offset
        """One past the last offset of what stays, rotten ranges included."""
        self.valid_behind = False
        """Whether a valid batch follows the point where the scan ended."""
        self._file = file
        self._chunk_bytes = chunk_bytes
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

    def batches(self) -> Iterator[tuple[int, BatchHeader]]:
        """Yields (position, header) of each good batch, in order."""
        held: _Held | None = None
        while self.end < self._size:
            stopped_at: BatchHeader | None = None
            for header, batch in iter_batches(self._file, self.end, self._size, self._chunk_bytes):
                stopped_at = header
                if not crc_is_valid(batch, header):
                    break
                if not self._fits(header, self._expected):
                    if held is None or not self._is_wrong(held, header):
                        break
                    self._mark(held.position, self.end, held.expected.offset, header.base_offset)
                    self._expected, held = held.expected, None
                if held is not None:
                    yield held.position, held.header
                held = _Held(self.end, header, self._expected)
                self._step(self.end + header.size, header)
                stopped_at = None
            if self.end >= self._size or not self._salvage(stopped_at):
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
            and flushed
            != header.last_offset  # a single record behind a gap: its offset is the recovery point that is written down
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

    def _salvage(self, header: BatchHeader | None) -> bool:
        """Skips bad bytes at ``end`` if they are rot; False when they are a torn tail. ``header``: the header of the batch
        that seems to begin there."""
        position, offset = self.end, self._expected.offset
        found = self._next_valid(position, header)
        self.valid_behind = found is not None or self._following_is_valid
        if not self._is_rot(offset, self.valid_behind):
            return False
        if found is not None:
            self._mark(position, found[0], offset, found[1].base_offset)
            self.end = found[0]
            self._expected = _Expected(found[1].base_offset, self._expected.epoch)
            return True
        next_offset = self._trust.following
        if next_offset is None:
            next_offset = max(self._trust.flushed, offset + 1)
            if header is not None and header.base_offset == offset and header.size == self._size - position:
                plausible = header.records_count == header.last_offset_delta + 1 and header.last_offset <= self._last
                next_offset = max(next_offset, header.last_offset + 1 if plausible else 0)
        self._mark(position, self._size, offset, next_offset)
        self.end = self._size
        self._expected = _Expected(next_offset, self._expected.epoch)
        return True

    def _note_missing_end(self) -> None:
        """A clean stop recorded a later end than the file has: the rest is lost, and its offsets stay used."""
        if self.next_offset < self._trust.flushed:
            self._mark(self._size, self._size, self.next_offset, self._trust.flushed)
            self.next_offset = self._trust.flushed

    # --- looking for the next batch ------------------------------------------------------------------------------------

    def _next_valid(self, position: int, header: BatchHeader | None) -> tuple[int, BatchHeader] | None:
        """The next good batch after ``position``: at the end that the bad one states, else at the first position where one is
        valid."""
        if header is not None:
            found = self._valid_at(position + header.size)
            if found is not None:
                return position + header.size, found
        for candidate in self._candidates(position + 1):
            found = self._valid_at(candidate)
            if found is not None and self._leads_on(candidate + found.size, found):
                return candidate, found
        return None

    def _valid_at(self, position: int) -> BatchHeader | None:
        for header, batch in iter_batches(self._file, position, self._size, self._chunk_bytes):
            good = self._fits(header, self._expected) and header.base_offset > self._expected.offset
            return header if good and crc_is_valid(batch, header) else None
        return None

    def _leads_on(self, end: int, header: BatchHeader) -> bool:
        """Whether the batch ends at the segment's end or where another one seems to begin: a record value may contain a whole
        batch, by accident or malice, that was never a batch of this log."""
        if end >= self._size:
            return True
        head = self._file.read(end, HEADER_SIZE)
        if len(head) < HEADER_SIZE:
            return True
        return head[_MAGIC_AT] == 2 and header.last_offset < int.from_bytes(head[:8], "big", signed=True) <= self._last

    def _candidates(self, start: int) -> Iterator[int]:
        """Positions where the first bytes of a possible offset and the magic byte of a batch are in place."""
        first, last = (number.to_bytes(8, "big") for number in (self._expected.offset, self._last))
        prefix = first[: next((at for at in range(8) if first[at] != last[at]), 8)]
        pattern = re.compile(b"(?=" + re.escape(prefix) + b".{%d}\x02)" % (_MAGIC_AT - len(prefix)), re.DOTALL)
        position = start
        while self._size - position >= HEADER_SIZE:
            chunk = self._file.read(position, min(_CHUNK_BYTES + _MAGIC_AT, self._size - position))
            for match in pattern.finditer(chunk):
                if match.start() < _CHUNK_BYTES:
                    yield position + match.start()
            position += _CHUNK_BYTES
