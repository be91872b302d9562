"""Reads the batches of a segment's file in small pieces, and searches damaged bytes for the next valid batch.

This module decides what looks like a batch before its body is read, and how much a search may cost. A position counts as a
candidate when the 61 bytes of a header are possible there (sizes, offsets, attributes, producer) and the batch leads to the
segment's end or to another header; only then is its checksum computed. A search does at most ``FREE_WORK`` + ``WORK_PER_BYTE``
times the bytes it covers of such work, where a candidate counts ``CANDIDATE_WORK``, and then gives up: bytes may be chosen to
look like headers.

Generators here yield None wherever a caller may pause; the work between two pauses is at most one piece or one candidate.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator
from functools import lru_cache

from tidelog.model.ports import File
from tidelog.records.batch import ATTRIBUTES_POSITION, HEADER, HEADER_SIZE, LOG_OVERHEAD, MAGIC, BatchHeader
from tidelog.records.checksum import crc32c

FREE_WORK = 16 << 20
"""Bytes of work that each search may do, however little it covers."""
WORK_PER_BYTE = 4
CANDIDATE_WORK = 8192
"""The cost of a candidate, in bytes read and hashed in the same time."""
MAGIC_POSITION = 16
_CODECS = 5

Pause = Generator[None, None, bool]


class BatchReader:
    """Headers and checksums of one file up to ``size``. Holds one piece in memory, whatever lengths the headers state."""

    __slots__ = ("_at", "_chunk_bytes", "_file", "_window", "size", "work")

    def __init__(self, file: File, size: int, chunk_bytes: int) -> None:
        """``chunk_bytes``: bytes read at a time."""
        self._file = file
        self._chunk_bytes = chunk_bytes
        self._window = memoryview(b"")
        self._at = 0
        self.size = size
        self.work = 0
        """Bytes read and hashed so far, and ``CANDIDATE_WORK`` for each candidate."""

    def bytes_at(self, position: int, length: int) -> memoryview:
        """Up to ``length`` bytes, at most a piece; fewer at the end. Raises OSError."""
        start = position - self._at
        if start < 0 or start + length > len(self._window):
            wanted = min(max(length, self._chunk_bytes), self.size - position)
            if start < 0 or wanted > len(self._window) - start:
                self._window, self._at, start = memoryview(self._file.read(position, wanted)), position, 0
                self.work += len(self._window)
        return self._window[start : start + length]

    def peek(self, position: int) -> BatchHeader | None:
        """What stands at ``position``, read as a header; None where the file ends too soon."""
        raw = memoryview(self._file.read(position, HEADER_SIZE))
        self.work += len(raw)
        return _unpacked(raw, position) if len(raw) == HEADER_SIZE else None

    def header_at(self, position: int) -> BatchHeader | None:
        """The header at ``position`` if it is one of magic 2 and states a length that ends in the file."""
        raw = self.bytes_at(position, HEADER_SIZE)
        if len(raw) < HEADER_SIZE:
            return None
        header = _unpacked(raw, position)
        good = header.magic == MAGIC and HEADER_SIZE <= header.size <= self.size - position
        return header if good else None

    def is_valid(self, header: BatchHeader) -> bool | None:
        """Whether the batch has its checksum; None when it is longer than a piece: then use ``is_valid_long``."""
        if header.size > self._chunk_bytes:
            return None
        batch = self.bytes_at(header.position, header.size)
        return crc32c(batch[ATTRIBUTES_POSITION:]) == header.crc

    def is_valid_long(self, header: BatchHeader) -> Pause:
        """``is_valid`` for any length, piece by piece."""
        crc = yield from self.checksum(header.position + ATTRIBUTES_POSITION, header.position + header.size)
        return crc == header.crc

    def checksum(self, start: int, end: int, crc: int = 0) -> Generator[None, None, int]:
        """CRC-32C of [start, end), continued from ``crc``."""
        position = start
        while position < end:
            piece = self.bytes_at(position, min(self._chunk_bytes, end - position))
            if not piece:
                break
            crc = crc32c(piece, crc)
            self.work += len(piece)
            position += len(piece)
            yield None
        return crc

    def is_zero(self, start: int) -> Pause:
        """Whether all bytes from ``start`` to the end are zero."""
        position = start
        while position < self.size:
            piece = self.bytes_at(position, min(self._chunk_bytes, self.size - position))
            if not piece or bytes(piece).strip(b"\0"):
                return not piece
            position += len(piece)
            yield None
        return True

    def candidates(self, start: int, pattern: re.Pattern[bytes]) -> Iterator[BatchHeader | None]:
        """Headers from ``start`` on whose 61 bytes match ``pattern`` and that end in the file; None for a pause."""
        position = start
        while self.size - position >= HEADER_SIZE:
            # The magic byte is searched for; its header begins 16 bytes before it.
            piece = self.bytes_at(position, min(max(self._chunk_bytes, 4 * HEADER_SIZE), self.size - position))
            if len(piece) < HEADER_SIZE:
                return
            at = MAGIC_POSITION
            while (match := pattern.search(piece, at)) is not None:
                at = match.start() + 1
                header = _unpacked(piece[at - 1 - MAGIC_POSITION :], position + at - 1 - MAGIC_POSITION)
                self.work += CANDIDATE_WORK
                yield header if header.size <= self.size - header.position else None
            position += len(piece) - HEADER_SIZE + 1
            yield None


def _unpacked(raw: memoryview, position: int) -> BatchHeader:
    base_offset, length, epoch, magic, crc, attributes, last_delta, base_ts, max_ts, pid, pepoch, sequence, count = (
        HEADER.unpack_from(raw)
    )
    return BatchHeader(
        position, base_offset, length + LOG_OVERHEAD, epoch, magic, crc, attributes, last_delta, base_ts, max_ts, pid, pepoch,
        sequence, count,
    )  # fmt: skip


@lru_cache(maxsize=8)
def header_pattern(prefix: bytes) -> re.Pattern[bytes]:
    """Matches at the magic byte of a possible header whose base offset begins with ``prefix``."""
    codecs = b"".join(b"\\x%02x" % low for low in range(128) if low & 7 < _CODECS)
    length = rb"(?!\x00\x00\x00[\x00-\x30])[\x00-\x7f].{3}"
    before = re.escape(prefix) + rb".{%d}" % (8 - len(prefix)) + length + rb"(?:[\x00-\x7f].{3}|\xff{4})"
    producer = rb"(?:[\x00-\x7f].{7}|\xff{8})(?:[\x00-\x7f].|\xff\xff)(?:[\x00-\x7f].{3}|\xff{4})"
    return re.compile(
        rb"\x02(?<=" + before + rb"\x02).{4}\x00[" + codecs + rb"][\x00-\x7f].{3}.{16}" + producer + rb"[\x00-\x7f].{3}",
        re.DOTALL,
    )


class BatchSearch:
    """One search for the next valid batch behind bad bytes at ``start``."""

    def __init__(self, reader: BatchReader, start: int, accepts: Callable[[BatchHeader], bool], first: int, last: int) -> None:
        """``accepts``: whether a batch with this header may follow. Its offsets lie in [first, last]."""
        self.gave_up = False
        """Whether there was more to search when the allowance was used up."""
        self._reader = reader
        self._start = start
        self._accepts = accepts
        self._last = last
        low, high = (max(number, 0).to_bytes(8, "big") for number in (first, last))
        self._pattern = header_pattern(low[: next((at for at in range(8) if low[at] != high[at]), 8)])

    def run(self, stated_end: int | None) -> Generator[None, None, BatchHeader | None]:
        """The header of the first valid batch: at ``stated_end``, where the bad batch claims to end, or at the first position
        where one is valid and leads on."""
        reader = self._reader
        stated = None if stated_end is None else reader.header_at(stated_end)
        if stated is not None and self._accepts(stated) and (yield from reader.is_valid_long(stated)):
            return stated
        limit = reader.work + FREE_WORK + WORK_PER_BYTE * (reader.size - self._start)
        for found in reader.candidates(self._start + 1, self._pattern):
            likely = found is not None and self._accepts(found) and self._leads_on(found)
            if found is not None and likely and (yield from reader.is_valid_long(found)):
                return found
            if reader.work > limit:
                self.gave_up = True
                return None
            yield None
        return None

    def _leads_on(self, header: BatchHeader) -> bool:
        """Whether the batch ends at the segment's end or where another one seems to begin: a record value may contain a whole
        batch, by accident or malice, that was never a batch of this log."""
        if header.records_count > header.last_offset_delta + 1:
            return False
        if self._reader.size - header.end_position < HEADER_SIZE:
            return True
        following = self._reader.peek(header.end_position)
        return following is None or (following.magic == MAGIC and header.last_offset < following.base_offset <= self._last)
