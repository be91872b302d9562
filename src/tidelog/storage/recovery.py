"""Loads a partition's directory: after a clean stop its files are trusted, after a crash they are checked.

Steps, in this order: files that a crash left half way are removed or finished (``.deleted``, ``.cleaned``, ``.swap``); after an
unclean stop the segments from the recovery point on are recovered (segment_recovery.py), after a clean one the last, if it does
not read to its end; leader epochs follow the batches; producer state comes from the newest valid snapshot and the batches after
it. Segments in which damage was known at the last stop are read in either case, and stay marked (known_damage.py).

Invariants after ``load_log``: every batch of the log was written whole; indexes, leader epochs and producer state refer only to
batches in the log. Loading a directory blocks, and touches nothing but that directory: several may load in parallel.

A batch of format 0 or 1 with a right checksum is no torn tail. Such a directory is refused, not cut.
"""

from __future__ import annotations

import logging
from collections import deque
from itertools import pairwise
from typing import NamedTuple

from tidelog.model.errors import StorageFailure
from tidelog.model.ids import TopicPartition
from tidelog.model.ports import FileSystem, Rng
from tidelog.storage.checkpoints import (
    LEADER_EPOCHS,
    BadCheckpoint,
    begins_partition_metadata,
    read_epochs,
    read_partition_metadata,
)
from tidelog.storage.flush_job import FLUSH_FAILED, Unflushed
from tidelog.storage.flushed_marks import CutMark, FlushedMark, believed
from tidelog.storage.index import CorruptIndex
from tidelog.storage.known_damage import KnownDamage, read_damaged
from tidelog.storage.leader_epochs import LeaderEpochCache
from tidelog.storage.log_config import LogConfig
from tidelog.storage.producer_replay import iter_batches, remove_stray_snapshots, snapshot_offsets
from tidelog.storage.producer_state import DEFAULT_EXPIRATION_MS, ProducerStateManager
from tidelog.storage.segment import (
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    LogSegment,
    file_stem,
)
from tidelog.storage.segment_recovery import mark_known, recover, recover_segment, set_aside, write_again
from tidelog.storage.segment_scan import Trust
from tidelog.storage.state_rebuild import StateRebuild
from tidelog.storage.undecided import find_undecided
from tidelog.storage.unified_log import UnifiedLog

CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"
_COPY_BYTES = 1 << 20
_INTERRUPTED = (DELETED_SUFFIX, CLEANED_SUFFIX, SWAP_SUFFIX, ".tmp")

_logger = logging.getLogger(__name__)


class LoadRequest(NamedTuple):
    """What is known about a partition's directory before it is opened."""

    directory: str
    topic_partition: TopicPartition
    config: LogConfig
    clean: bool
    """Whether the log dir was closed cleanly."""
    kernel_survived: bool = False
    """Whether the machine has not rebooted since the log was last written; then no write is lost, synced or not."""
    recovery_point: int = 0
    log_start_offset: int = 0
    high_watermark: int = 0
    producer_expiration_ms: int = DEFAULT_EXPIRATION_MS
    read_all: bool = False
    """Whether to read the part below the recovery point as well."""
    flushed: FlushedMark | None = None
    checkpoint: int = 0
    """The number of the checkpoint that ``flushed`` is of."""
    cut: CutMark | None = None
    """A cut that a checkpoint may not know of."""


def load_log(fs: FileSystem, request: LoadRequest, now_ms: int, rng: Rng | None = None) -> UnifiedLog:
    """The log in a directory. StorageFailure when its disk fails, or when it contains data that must not be touched."""
    directory = request.directory
    try:
        names = finish_interrupted(fs, directory)
        segments = _find_segments(fs, directory, names)
        topic_id = _topic_id(fs, directory, segments)
        epochs = _load_epochs(fs, directory)
        sync_failed = FLUSH_FAILED in names
        if segments and request.clean and not sync_failed:
            _link(segments)
            for segment in segments[:-1]:
                segment.sealed = True
            end = _end_of_clean_stop(request, names)
            agreed = end and end == request.recovery_point
            reads = _find_end(segments[-1])
            if not reads or segments[-1].next_offset < end or (agreed and segments[-1].next_offset != end):
                recover_segment(segments[-1], request.config.index_interval_bytes, epochs, Trust(end, complete=True))
        elif segments:
            request, trust = _trusted(request, topic_id)
            trust = trust._replace(kernel_survived=request.kernel_survived and not sync_failed)
            read_from = 0 if request.read_all else request.recovery_point
            segments = recover(segments, trust, request.config.index_interval_bytes, epochs, read_from=read_from)
        if sync_failed:
            write_again(fs, directory, [segment for segment in segments if not segment.sealed])
        listed = frozenset[int]() if request.read_all else read_damaged(fs, directory)
        whole = mark_known(segments, listed)
        _check_transaction_indexes(segments, names)
        if not segments or segments[-1].next_offset < request.log_start_offset:
            if segments and request.clean and not sync_failed:
                request = _without_log_start(request, segments[-1].next_offset)
            else:
                segments = _start_anew(fs, request, segments, epochs, now_ms)
        log = _assemble(fs, request, topic_id, segments, epochs, names, now_ms, rng, KnownDamage(listed))
        _replay_what_came_back(log, whole, now_ms)
        if not request.read_all and (job := log.files.damage_job()) is not None:
            log.files.damage.written(job.run())
        return log
    except BadCheckpoint as problem:
        raise StorageFailure(directory.rpartition("/")[0], f"{directory} cannot be loaded: {problem}") from problem
    except OSError as problem:
        raise StorageFailure(directory.rpartition("/")[0], f"{directory} cannot be loaded: {problem}") from problem


def _trusted(request: LoadRequest, topic_id: bytes | None) -> tuple[LoadRequest, Trust]:
    """The request with the offsets that are to be believed after an unclean stop."""
    found = believed(request.recovery_point, request.log_start_offset, request.flushed, request.checkpoint, request.cut, topic_id)
    request = request._replace(recovery_point=found.recovery_point, log_start_offset=found.log_start_offset)
    return request, Trust(found.flushed, exact=found.exact)


def _assemble(
    fs: FileSystem,
    request: LoadRequest,
    topic_id: bytes | None,
    segments: list[LogSegment],
    epochs: LeaderEpochCache,
    names: list[str],
    now_ms: int,
    rng: Rng | None,
    damage: KnownDamage,
) -> UnifiedLog:
    start = max(request.log_start_offset, segments[0].base_offset)
    end = segments[-1].next_offset
    epochs.truncate_from_end(end)
    epochs.truncate_from_start(start)
    present = frozenset(name[:20] for name in names if name.endswith(TXN_INDEX_SUFFIX))
    log = UnifiedLog(
        fs,
        request.directory,
        request.topic_partition,
        topic_id,
        request.config,
        segments,
        leader_epochs=epochs,
        producers=ProducerStateManager(request.producer_expiration_ms),
        log_start_offset=start,
        recovery_point=min(request.recovery_point, end) if not request.clean else end,
        aborting=[segment for segment in segments if file_stem(segment.base_offset) in present],
        unflushed=Unflushed(now_ms),
        rng=rng,
        damage=damage,
    )
    log.rebuild_producers(now_ms, names)
    log.files.leave_undecided(find_undecided(log, names, request.producer_expiration_ms, now_ms))
    remove_stray_snapshots(log, names)
    log.update_high_watermark(request.high_watermark)
    return log


def _replay_what_came_back(log: UnifiedLog, whole: list[LogSegment], now_ms: int) -> None:
    """Batches that an earlier start could not read, and skipped, can be read now: a disk may get over an error, and a node may
    have stopped just after it mended them. Producers and transactions are rebuilt with them."""
    there = [segment for segment in whole if segment in log.segments]
    if there:
        rebuild = StateRebuild(log, there[0], there[0], now_ms)
        deque(rebuild.steps(), maxlen=0)
        rebuild.install()


# --- what a crash left half way ----------------------------------------------------------------------------------------


def finish_interrupted(fs: FileSystem, directory: str) -> list[str]:
    """Removes ``.deleted`` and ``.cleaned`` files. A ``.swap`` is a complete compacted segment: it is put in place, and the
    segments that it covers are removed. Returns the names that are then in the directory."""
    names = fs.listdir(directory)
    if not any(name.endswith(_INTERRUPTED) for name in names):
        return names
    swapped = [name for name in names if name.endswith(LOG_SUFFIX + SWAP_SUFFIX)]
    cleaning = any(name.endswith(CLEANED_SUFFIX) for name in names)
    for name in names:
        if name.endswith((DELETED_SUFFIX, CLEANED_SUFFIX, ".tmp")):
            fs.remove(f"{directory}/{name}")
        elif cleaning and name.endswith(SWAP_SUFFIX):
            # A segment is split by renaming all .cleaned to .swap: while one .cleaned is left, none of them counts.
            fs.remove(f"{directory}/{name}")
    if not cleaning:
        for name in swapped:
            _remove_covered(fs, directory, name)
        for name in names:
            if name.endswith(SWAP_SUFFIX) and fs.exists(f"{directory}/{name}"):
                fs.rename(f"{directory}/{name}", f"{directory}/{name.removesuffix(SWAP_SUFFIX)}")
    return fs.listdir(directory)


def _remove_covered(fs: FileSystem, directory: str, swap_name: str) -> None:
    """Removes segments that begin inside the compacted one, except the one with its name."""
    base = int(swap_name[:20])
    file = fs.open(f"{directory}/{swap_name}", write=False)
    end = base
    for header, _ in iter_batches(file, 0, file.size()):
        end = header.last_offset + 1
    file.close()
    for name in fs.listdir(directory):
        stem, dot, _ = name.partition(".")
        if dot and len(stem) == 20 and stem.isdecimal() and base < int(stem) < end and name.endswith(SEGMENT_SUFFIXES):
            fs.remove(f"{directory}/{name}")
    for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX):
        # Indexes of the replaced segment must not survive it; new ones, where they exist, are .swap too.
        if fs.exists(f"{directory}/{file_stem(base)}{suffix}"):
            fs.remove(f"{directory}/{file_stem(base)}{suffix}")


def _topic_id(fs: FileSystem, directory: str, segments: list[LogSegment]) -> bytes | None:
    """The topic id in ``partition.metadata``. None when the file was never complete: it is a prefix, and there are no records,
    since it is written before any. A full disk or a crash interrupted the write."""
    try:
        return read_partition_metadata(fs, directory)
    except BadCheckpoint:
        if any(segment.size for segment in segments) or not begins_partition_metadata(fs, directory):
            raise
        return None


def _find_segments(fs: FileSystem, directory: str, names: list[str]) -> list[LogSegment]:
    """A segment per ``.log`` file, ascending; indexes without a log are removed."""
    bases = sorted(int(name[:-4]) for name in names if name.endswith(LOG_SUFFIX) and name[:-4].isdecimal() and len(name) == 24)
    known = frozenset(bases)
    for name in names:
        stem, dot, suffix = name.partition(".")
        orphan = dot and stem.isdecimal() and len(stem) == 20 and int(stem) not in known
        if orphan and f".{suffix}" in SEGMENT_SUFFIXES:
            fs.remove(f"{directory}/{name}")
    segments: list[LogSegment] = []
    for base in bases:
        stat = fs.stat(f"{directory}/{file_stem(base)}{LOG_SUFFIX}")
        segments.append(LogSegment(fs, directory, base, size=stat.size, created_ms=stat.modified_ms))
    return segments


def _link(segments: list[LogSegment]) -> None:
    for segment, following in pairwise(segments):
        segment.next_offset = following.base_offset


def _check_transaction_indexes(segments: list[LogSegment], names: list[str]) -> None:
    """A malformed transaction index is rebuilt by replaying its segment."""
    present = frozenset(name[:20] for name in names if name.endswith(TXN_INDEX_SUFFIX))
    for segment in segments:
        if file_stem(segment.base_offset) in present:
            try:
                segment.transactions()
            except CorruptIndex as problem:
                path = segment.path(TXN_INDEX_SUFFIX)
                _logger.warning("%s: %s; aborted transactions are taken from the log", path, problem)
                segment.aborted.reset(segment.file_system, path)
                segment.sealed = False


def _load_epochs(fs: FileSystem, directory: str) -> LeaderEpochCache:
    try:
        return LeaderEpochCache(read_epochs(fs, f"{directory}/{LEADER_EPOCHS}"))
    except (BadCheckpoint, ValueError) as problem:
        _logger.warning("%s; epochs are taken from the batches that recovery reads", problem)
        return LeaderEpochCache()


def _end_of_clean_stop(request: LoadRequest, names: list[str]) -> int:
    """The log's end at the clean stop. Two files give it, neither with a checksum on its name or offset: the recovery point
    counts if there is a producer snapshot at that offset, else the newest snapshot; 0 for unknown."""
    snapshots = snapshot_offsets(names)
    return request.recovery_point if request.recovery_point in snapshots else max(snapshots, default=0)


def _find_end(active: LogSegment) -> bool:
    """Finds last offset and greatest timestamp of a cleanly closed segment, from the last index entry on. False when a batch
    is not followed by another or by the end."""
    span = active.span_at(max(active.offset_index().last_boundary(0, active.size), 0))
    active.max_timestamp, active.max_timestamp_offset = active.time_index().last()
    end = 0
    while span is not None:
        active.next_offset = span.last_offset + 1
        if span.max_timestamp > active.max_timestamp:
            active.max_timestamp, active.max_timestamp_offset = span.max_timestamp, span.last_offset
        end = span.end
        span = active.span_at(span.end)
    active.forget_recent()
    return end == active.size


def _without_log_start(request: LoadRequest, end: int) -> LoadRequest:
    """Drops an impossible log start: no clean stop leaves one past the end, so the checkpoint is wrong, and it would hide
    every record."""
    _logger.error(
        "%s was closed cleanly and ends at %d, but the checkpoint of log starts says that it begins at %d: the checkpoint is "
        "wrong, and the log begins with its first segment",
        request.directory,
        end,
        request.log_start_offset,
    )
    return request._replace(log_start_offset=0)


def _start_anew(
    fs: FileSystem, request: LoadRequest, segments: list[LogSegment], epochs: LeaderEpochCache, now_ms: int
) -> list[LogSegment]:
    """Restarts the log empty at its log start, since nothing at or past it is left."""
    if segments:
        _logger.warning(
            "%s ends at %d, before its log start %d: it begins there, empty",
            request.directory,
            segments[-1].next_offset,
            request.log_start_offset,
        )
        epochs.clear()
    kept: list[str] = []
    for segment in segments:
        set_aside(segment, kept)
    return [LogSegment.create(fs, request.directory, request.log_start_offset, now_ms)]
