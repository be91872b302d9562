"""Splice: puts the right bytes of a damaged range back into a closed segment.

A copy of the segment's file is written beside it, with the range replaced by as many bytes from another replica; it is synced and
read whole before it takes the file's name in one rename. So every byte outside of the range, every position and every offset stay
what they were: indexes keep their meaning, the log end does not move, and a crash leaves either file. The damaged bytes are kept
aside first (aside.py).

A job is created on the event loop, ``steps`` and ``finish`` block in a thread, ``put_in_place`` runs on the loop again if the
segment did not change meanwhile (``stands``). Which bytes are right is decided in ``replication/repair.py``.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator

from tidelog.model.ports import File
from tidelog.storage.checkpoints import replace_file
from tidelog.storage.cut_bytes import keep_bytes
from tidelog.storage.index import CorruptIndex, Indexer
from tidelog.storage.rotten_range import RottenRange
from tidelog.storage.segment import INDEX_SUFFIX, LOG_SUFFIX, TIME_INDEX_SUFFIX, LogSegment
from tidelog.storage.segment_scan import SegmentScan, Trust
from tidelog.storage.unified_log import UnifiedLog

COPY_SUFFIX = ".tmp"
"""A start removes files with this suffix."""
STEP_BYTES = 256 * 1024
"""Bytes read or written between two rests."""

SPARE = 2
"""Room that has to be free, in sizes of the segment: appends must not fail because a copy fills the disk."""


class SpliceFailed(Exception):
    """The segment stays as it is; the message says why."""


class SpliceJob:
    """Replaces ``rotten`` in ``segment``, which is closed and sealed, by ``data``, which is as long."""

    def __init__(self, log: UnifiedLog, segment: LogSegment, rotten: RottenRange, data: bytes) -> None:
        if len(data) != rotten.end - rotten.position:
            raise SpliceFailed(f"{len(data)} bytes do not fit in a gap of {rotten.end - rotten.position}")
        self.log = log
        self.segment = segment
        self.rotten = rotten
        self.kept: str | None = None
        """Where the damaged bytes are kept; None when they were all zero, or the disk cannot read them."""
        self.mended = LogSegment(log.fs, log.dir, segment.base_offset, size=segment.size, created_ms=segment.created_ms)
        self.mended.suffix = COPY_SUFFIX
        self.mended.next_offset = segment.next_offset
        self.mended.rotten = tuple(each for each in segment.rotten if each != rotten)
        self._data = data
        self._directory = log.dir
        self._cuts = log.files.segments.cuts
        self._indexer = Indexer(segment.base_offset, log.config.index_interval_bytes)

    def steps(self) -> Iterator[int]:
        """Writes and checks the copy, in steps that block, and yields the bytes of each. SpliceFailed, or OSError: nothing has
        changed then, and ``drop`` removes the copy."""
        _load_transactions(self.segment)
        log, rotten = self.log, self.rotten
        if log.fs.usage(self._directory)[1] < SPARE * self.segment.size:
            raise SpliceFailed(f"the disk does not have {SPARE * self.segment.size} bytes free")
        source = self.segment.file
        copy = log.fs.open(self.mended.path(LOG_SUFFIX), create=True)
        try:
            copy.truncate(0)
            yield from self._copy(source, copy, 0, rotten.position)
            copy.write(rotten.position, self._data)
            yield from self._copy(source, copy, rotten.end, self.segment.size)
            copy.sync()
            yield from self._check(copy)
        finally:
            copy.close()
        try:
            self.kept = keep_bytes(log.fs, source, self.segment.path(LOG_SUFFIX), rotten.position, rotten.end)
        except OSError as problem:
            if problem.errno != errno.EIO:  # what the disk cannot read cannot be kept
                raise

    def _copy(self, source: File, copy: File, start: int, end: int) -> Iterator[int]:
        for position in range(start, end, STEP_BYTES):
            piece = source.read(position, min(STEP_BYTES, end - position))
            copy.write(position, piece)
            yield len(piece)

    def _check(self, copy: File) -> Iterator[int]:
        """Every batch reads, fits the ones beside it, and the offsets end where they did."""
        segment, mended = self.segment, self.mended
        trust = Trust(segment.next_offset, following=segment.next_offset, complete=True)
        scan = SegmentScan(copy, segment.base_offset, segment.size, trust)
        read = 0
        for position, header in scan.batches():
            if position == 0:
                mended.first_timestamp = header.max_timestamp
            self._indexer.add(position, header.size, header.last_offset, header.max_timestamp)
            read += header.size
            if read >= STEP_BYTES:
                yield read
                read = 0
        self._indexer.finish()
        unreadable = [
            each for each in scan.rotten if not any(k.position <= each.position and each.end <= k.end for k in mended.rotten)
        ]
        if unreadable or scan.end != segment.size or scan.next_offset > segment.next_offset:
            position = unreadable[0].position if unreadable else scan.end
            raise SpliceFailed(f"the segment would not read at position {position}")
        mended.adopt_indexes(self._indexer)

    @property
    def stands(self) -> bool:
        """Whether the segment is still what was copied."""
        log, segment = self.log, self.segment
        return (
            log.failure is None
            and log.dir == self._directory
            and log.files.segments.cuts == self._cuts
            and segment in log.segments
            and segment is not log.active
            and segment.sealed
            and segment.size == self.mended.size
            and set(segment.rotten) == {*self.mended.rotten, self.rotten}
        )

    def put_in_place(self) -> None:
        """The copy becomes the segment; needs ``stands``. A new segment object takes the old one's place: reads that began with
        the old file end with it. SpliceFailed, OSError: nothing has changed then."""
        assert self.stands
        log, segment, mended = self.log, self.segment, self.mended
        _load_transactions(segment)
        mended.close_file()
        log.fs.rename(mended.path(LOG_SUFFIX), segment.path(LOG_SUFFIX))
        mended.suffix = ""
        mended.aborted = segment.aborted
        mended.sealed = True
        log.files.replace((segment,), (mended,))

    def finish(self) -> None:
        """Makes the new name safe and writes the indexes. Blocks; raises OSError. The old index files suit the new file too, so a
        crash before or in here is harmless."""
        log, mended = self.log, self.mended
        log.fs.sync_dir(self._directory)
        replace_file(log.fs, mended.path(INDEX_SUFFIX), self._indexer.offsets.encode(), sync_names=False)
        replace_file(log.fs, mended.path(TIME_INDEX_SUFFIX), self._indexer.times.encode(), sync_names=False)
        log.fs.sync_dir(self._directory)
        self._indexer.offsets.mark_written()
        self._indexer.times.mark_written()

    def drop(self) -> None:
        """Removes the copy. Blocks."""
        self.mended.close_file()
        with contextlib.suppress(OSError):
            self.log.fs.remove(f"{self._directory}/{self.mended.path(LOG_SUFFIX).rpartition('/')[2]}")


def _load_transactions(segment: LogSegment) -> None:
    try:
        segment.transactions()
    except CorruptIndex as problem:
        raise SpliceFailed(f"its transaction index is damaged: {problem}") from problem
