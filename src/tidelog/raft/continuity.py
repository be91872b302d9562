"""Finds the first place where a metadata log stops being the log that was written.

Storage compares each batch with its checksum. The checksum covers neither the base offset nor the leader epoch, and it says
nothing about a file that lost its end. A metadata log has no gaps, though: it is never compacted, only replaced by a snapshot
from its beginning on. So this module checks that each batch begins where the one before it ends, that a new epoch begins with a
LeaderChange record (as each leader writes it) and nothing else does, that no epoch is higher than the one in quorum-state (which
is synced before any record of that epoch is written), and that the log reaches as far as ``tidelog-flushed`` says.

It also decides what the log's end was, damage included: the demand that a damaged voter makes of candidates (docs/adr/0023).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tidelog.raft.log_shape import LogEnd
from tidelog.records.batch import BatchHeader, CorruptBatch, read_header
from tidelog.records.control import ControlType, control_type
from tidelog.records.record import iter_records
from tidelog.storage.producer_replay import iter_batches
from tidelog.storage.rotten_range import RottenRange
from tidelog.storage.segment import LogSegment
from tidelog.storage.unified_log import UnifiedLog

LOG_SUFFIX = ".log"


class Damage(NamedTuple):
    """A range of the metadata log that cannot be used: the bytes [position, end) of the file at ``path``, or, when the range has
    no bytes, records that are missing there. ``why``: what is wrong, for the operator."""

    path: str
    rotten: RottenRange
    why: str


class Known(NamedTuple):
    """What other files say of the log. ``begin``: the snapshot that the log continues, or its first offset. ``flushed``: epoch
    (-1 for unknown) and offset below which everything was synced. ``epoch``: that of quorum-state, None without the file."""

    begin: LogEnd
    flushed: LogEnd
    epoch: int | None


class ContinuityCheck:
    """One look at a log that storage has recovered. Blocks; raises OSError."""

    def __init__(self, log: UnifiedLog, known: Known) -> None:
        self.damages: list[Damage] = []
        """In the order of the log."""
        self.epochs: list[tuple[int, int]] = []
        """(epoch, its first offset) of the batches that can be used."""
        self._known = known
        self._end = known.begin
        self._claimed = known.begin
        self._sure = True
        self._started = False
        self._behind_gap = -1
        self._walk(log)
        self._note_missing_end(log)

    @property
    def end(self) -> LogEnd:
        """The end that the log had, or a later one: what the damaged part was may be unknown."""
        flushed = self._known.flushed
        if flushed.offset >= self._claimed.offset and flushed.epoch >= 0:
            return flushed
        if self._sure:
            return self._claimed
        # Only an end in a later epoch is certain to be past what was there.
        return LogEnd(max(self._known.epoch or 0, self._claimed.epoch) + 1, 0)

    def _walk(self, log: UnifiedLog) -> None:
        first = log.segments[0]
        if log.log_start_offset > self._end.offset:
            self._missing(first, 0, self._end.offset, log.log_start_offset)
        for segment in log.segments:
            if not self._started and segment.next_offset <= self._end.offset and segment is not log.active:
                continue
            if segment.base_offset > self._end.offset:
                self._missing(segment, 0, self._end.offset, segment.base_offset)
            for part in _parts(segment):
                if isinstance(part, RottenRange):
                    self._rotten(segment, part)
                else:
                    self._batches(segment, *part)

    def _batches(self, segment: LogSegment, start: int, end: int) -> None:
        position = start
        for header, batch in iter_batches(segment.file, start, end):
            if self._started or header.next_offset > self._end.offset:
                self._batch(segment, position, header, batch)
            position += header.size
        if position < end:
            self._rotten(segment, RottenRange(position, end, self._end.offset, self._end.offset + 1))

    def _batch(self, segment: LogSegment, position: int, header: BatchHeader, batch: memoryview) -> None:
        if self._behind_gap == header.base_offset > self._end.offset:
            # Two batches agree on their offsets: those before them are missing.
            self._missing(segment, position, self._end.offset, header.base_offset)
        fault = self._fault(header, batch)
        self._started, self._behind_gap = True, -1
        if fault is None:
            if not self.epochs or header.leader_epoch > self.epochs[-1][0]:
                self.epochs.append((header.leader_epoch, max(header.base_offset, self._end.offset)))
            alone, self._end = self._end.epoch < 0, LogEnd(header.leader_epoch, header.next_offset)
            if alone:
                # Behind damage, nothing confirms the epoch of this batch but the next one.
                highest = max(self._known.epoch or 0, self._claimed.epoch, header.leader_epoch)
                self._claim(LogEnd(highest, header.next_offset), sure=self._known.epoch is not None)
            else:
                self._claim(self._end, sure=True)
            return
        self._behind_gap = header.next_offset
        next_offset = self._end.offset + header.last_offset_delta + 1
        self._damage(segment, RottenRange(position, position + header.size, self._end.offset, next_offset), fault)
        # The checksum covers the number of records, not their offset and epoch.
        self._claim_unknown_epoch(next_offset, sure=True)

    def _fault(self, header: BatchHeader, batch: memoryview) -> str | None:
        """What contradicts the batches before this one; None when nothing does."""
        before, known = self._end, self._known
        says = f"the batch that should begin at offset {before.offset} "
        begins_inside = before == known.begin and header.base_offset < before.offset < header.next_offset
        if header.base_offset != before.offset and not begins_inside:
            return f"{says}has the base offset {header.base_offset}"
        if known.epoch is not None and header.leader_epoch > known.epoch:
            return f"{says}has epoch {header.leader_epoch}, and this voter knows none above {known.epoch}"
        last_flushed = header.base_offset < known.flushed.offset <= header.next_offset
        if last_flushed and known.flushed.epoch not in (-1, header.leader_epoch):
            return f"{says}has epoch {header.leader_epoch}, and was flushed with epoch {known.flushed.epoch}"
        if begins_inside or before.epoch < 0:
            return None
        rises = header.leader_epoch > before.epoch
        if header.leader_epoch < before.epoch or rises != _begins_epoch(header, batch):
            return f"{says}has epoch {header.leader_epoch} after {before.epoch}, which contradicts its records"
        return None

    def _rotten(self, segment: LogSegment, rotten: RottenRange) -> None:
        if rotten.next_offset > self._end.offset:
            self._damage(segment, rotten, "the batch there has a wrong checksum or length")
            self._claim_unknown_epoch(rotten.next_offset, sure=_is_one_batch(segment, rotten, self._end.offset))

    def _missing(self, segment: LogSegment, position: int, first: int, following: int) -> None:
        self._damage(segment, RottenRange(position, position, first, following), "no file has them")
        self._claim_unknown_epoch(following, sure=True)

    def _claim_unknown_epoch(self, next_offset: int, *, sure: bool) -> None:
        """The log reached ``next_offset``, in an epoch that quorum-state is not below."""
        self._claim(
            LogEnd(max(self._known.epoch or 0, self._claimed.epoch), next_offset), sure=sure and self._known.epoch is not None
        )
        self._end = LogEnd(-1, next_offset)

    def _damage(self, segment: LogSegment, rotten: RottenRange, why: str) -> None:
        self.damages.append(Damage(segment.path(LOG_SUFFIX), rotten, why))
        self._started = True

    def _claim(self, end: LogEnd, *, sure: bool) -> None:
        self._claimed, self._sure = end, sure

    def _note_missing_end(self, log: UnifiedLog) -> None:
        if self._end.offset < self._known.flushed.offset:
            self._missing(log.active, log.active.size, self._end.offset, self._known.flushed.offset)


def _parts(segment: LogSegment) -> Iterator[tuple[int, int] | RottenRange]:
    """The readable parts of the file and the rotten ranges between them, in order."""
    position = 0
    for rotten in segment.rotten:
        if position < rotten.position:
            yield position, rotten.position
        yield rotten
        position = rotten.end
    if position < segment.size:
        yield position, segment.size


def _is_one_batch(segment: LogSegment, rotten: RottenRange, offset: int) -> bool:
    """Whether the range is one batch whose header is consistent, so that its end offset is known."""
    try:
        header = read_header(segment.file.read(rotten.position, min(rotten.end - rotten.position, 61)))
    except CorruptBatch:
        return False
    plausible = header.records_count == header.last_offset_delta + 1 and header.base_offset == offset
    return plausible and header.size == rotten.end - rotten.position


def _begins_epoch(header: BatchHeader, batch: memoryview) -> bool:
    """Whether the first record is a LeaderChange."""
    if not header.is_control:
        return False
    return next((control_type(each.key) == ControlType.LEADER_CHANGE for each in iter_records(batch)), False)
