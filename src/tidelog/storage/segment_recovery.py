"""Recovers segments after an unclean stop: torn tails are cut, rotten ranges stay.

Every segment from the recovery point on is read batch by batch, and its indexes are rebuilt. Bad bytes that a crash can have left
are cut, together with later segments, and the cut bytes are kept beside the log (aside.py). Other bad bytes are rot
(segment_scan.py): they stay in place, and readers get the records before and after them. After a failed sync, the rest of the
segments is rewritten.

A batch of format 0 or 1 with a right checksum is no torn tail. Such a directory is refused, not cut.
"""

from __future__ import annotations

import binascii
import logging
from collections.abc import Collection, Sequence
from itertools import pairwise

from tidelog.model.errors import StorageFailure
from tidelog.model.ports import FileSystem
from tidelog.storage.cut_bytes import keep_bytes, keep_file
from tidelog.storage.flush_job import FLUSH_FAILED
from tidelog.storage.index import Indexer
from tidelog.storage.leader_epochs import LeaderEpochCache
from tidelog.storage.producer_state import SNAPSHOT_SUFFIX
from tidelog.storage.segment import LOG_SUFFIX, TXN_INDEX_SUFFIX, LogSegment, file_stem
from tidelog.storage.segment_scan import SegmentScan, Trust
from tidelog.storage.unreadable_blocks import TolerantFile

GUIDE = "docs/guide/operations.md"
_COPY_BYTES = 1 << 20
_logger = logging.getLogger(__name__)


def recover(
    segments: list[LogSegment], known: Trust, interval: int, epochs: LeaderEpochCache, *, read_from: int
) -> list[LogSegment]:
    """Returns the segments that stay. The one that holds the offset ``read_from`` and all later ones are read. ``known``: what
    is known of the whole log; ``interval``: index.interval.bytes. Blocks."""
    first, kept = 0, list[str]()
    for number, segment in enumerate(segments):
        if segment.base_offset <= read_from:
            first = number
    for segment in segments[:first]:
        segment.sealed = True
    for number in range(first, len(segments)):
        segment = segments[number]
        following = segments[number + 1].base_offset if number + 1 < len(segments) else None
        trust = known._replace(following=following)
        dropped = recover_segment(segment, interval, epochs, trust, kept)
        if dropped or _breaks_off(segment, trust):
            for later in segments[number + 1 :]:
                set_aside(later, kept)
            segments = segments[: number + 1]
            break
    for segment, after in pairwise(segments):
        segment.next_offset = after.base_offset
    return segments


def _breaks_off(segment: LogSegment, trust: Trust) -> bool:
    """Whether the next segment does not continue where this one ends and was not synced; then it is removed."""
    following = trust.following
    if following is None or following <= trust.flushed or trust.kernel_survived:
        return False
    return segment.next_offset > following or _lost_its_end(segment, following)


def _lost_its_end(segment: LogSegment, following: int) -> bool:
    """Whether offsets are missing before the next segment because the end of this one was never synced.

    Compaction leaves gaps too, but only in sealed segments, and sealing writes the producer snapshot with the next segment's name
    after it has synced this segment: without that snapshot a gap is a loss.
    """
    snapshot = f"{segment.dir}/{file_stem(following)}{SNAPSHOT_SUFFIX}"
    return segment.next_offset < following and not segment.file_system.exists(snapshot)


def recover_segment(
    segment: LogSegment, interval: int, epochs: LeaderEpochCache, trust: Trust, kept: list[str] | None = None
) -> int:
    """Reads every batch, rebuilds the indexes and cuts a torn tail; returns the bytes cut. ``kept``: the copies of what this
    start has cut so far. Blocks."""
    indexer = Indexer(segment.base_offset, interval)
    size, first_timestamp = segment.size, None
    scan = SegmentScan(segment.file, segment.base_offset, size, trust)
    for position, header in scan.batches():
        if position == 0:
            first_timestamp = header.max_timestamp
        indexer.add(position, header.size, header.last_offset, header.max_timestamp)
        if header.leader_epoch > epochs.latest:
            epochs.assign(header.leader_epoch, header.base_offset)
    if scan.end < size:
        _refuse_old_format(segment, scan.end)
        _cut(segment, scan, kept)
    indexer.finish()
    segment.size = scan.end
    segment.next_offset = scan.next_offset
    segment.rotten = tuple(scan.rotten)
    segment.first_timestamp = first_timestamp
    segment.adopt_indexes(indexer)
    segment.aborted.reset(segment.file_system, segment.path(TXN_INDEX_SUFFIX))
    segment.aborted.incomplete = bool(scan.rotten)
    segment.sealed = False
    _report(segment)
    return size - scan.end


def mark_known(segments: Sequence[LogSegment], listed: Collection[int] | None) -> list[LogSegment]:
    """Reads the segments whose base offsets are ``listed`` (None: all) and marks what is damaged in them; nothing else changes.
    All of them are flushed, and none was marked yet. Returns those in which nothing is damaged any more. Blocks; raises
    OSError."""
    whole: list[LogSegment] = []
    for segment in segments:
        if segment.size and not segment.rotten and (listed is None or segment.base_offset in listed):
            trust = Trust(segment.next_offset, following=None if segment is segments[-1] else segment.next_offset, complete=True)
            scan = SegmentScan(TolerantFile(segment.file), segment.base_offset, segment.size, trust)
            for _ in scan.batches():
                pass
            segment.rotten = tuple(scan.rotten)
            # The snapshot that is loaded may be of a start that skipped these batches.
            segment.aborted.incomplete = bool(scan.rotten)
            _report(segment)
            if not scan.rotten:
                whole.append(segment)
    return whole


def _report(segment: LogSegment) -> None:
    for each in segment.rotten:
        _logger.error(
            "%s: %d bytes at position %d are damaged: offsets %d to %d cannot be read. Nothing was cut, and what lies before and "
            "behind them can be read. What to do: %s, under 'Damaged log files'",
            segment.path(LOG_SUFFIX), each.end - each.position, each.position, each.first_offset, each.next_offset - 1, GUIDE,
        )  # fmt: skip


def _cut(segment: LogSegment, scan: SegmentScan, made: list[str] | None) -> None:
    """Cuts the torn tail and keeps a copy of it."""
    path = segment.path(LOG_SUFFIX)
    kept = keep_bytes(segment.file_system, segment.file, path, scan.end, segment.size, made=made)
    _logger.log(
        logging.ERROR if scan.valid_behind else logging.WARNING,
        "%s: cut %d bytes at offset %d, which were not flushed when the machine stopped%s; %s",
        path,
        segment.size - scan.end,
        scan.next_offset,
        ": the first of them are damaged, and whole batches follow" if scan.valid_behind else "",
        "they hold nothing" if kept is None else f"they are kept as {kept}",
    )
    segment.file.truncate(scan.end)


def set_aside(segment: LogSegment, made: list[str] | None = None) -> None:
    """Removes the segment from the log: its records are kept under a name that loading ignores, its indexes are deleted."""
    segment.close_file()
    kept = keep_file(segment.file_system, segment.path(LOG_SUFFIX), made=made)
    segment.remove_files()
    if kept is not None:
        _logger.warning("%s is no part of the log any more; it is kept as %s", segment.path(LOG_SUFFIX), kept)


def write_again(fs: FileSystem, directory: str, segments: Sequence[LogSegment]) -> None:
    """Rewrites the segment: after a failed sync the kernel may treat pages as clean that never reached the disk, so only
    rewritten data are synced."""
    for segment in segments:
        for position in range(0, segment.size, _COPY_BYTES):
            segment.file.write(position, segment.file.read(position, min(_COPY_BYTES, segment.size - position)))
        segment.file.sync()
    _logger.warning("%s: a sync had failed before the last stop; %d segments are written once more", directory, len(segments))
    fs.remove(f"{directory}/{FLUSH_FAILED}")
    fs.sync_dir(directory)


def _refuse_old_format(segment: LogSegment, position: int) -> None:
    head = segment.file.read(position, 17)
    if len(head) < 17 or head[16] > 1:
        return
    length = int.from_bytes(head[8:12], "big")
    if not 14 <= length <= segment.size - position:
        return
    message = segment.file.read(position + 12, length)
    if binascii.crc32(message[4:]) == int.from_bytes(message[:4], "big"):
        raise StorageFailure(
            segment.dir.rpartition("/")[0],
            f"{segment.path(LOG_SUFFIX)} holds message format {head[16]} at position {position}; only format 2 is readable: "
            "rewrite the topic with a broker that reads the old format",
        )
