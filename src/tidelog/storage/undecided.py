"""Transactions whose end may lie in damaged bytes that a start could not read.

A start after a crash replays the end of a log, and skips batches that are damaged. The marker of a transaction that was open
there may be among them. The next marker of the same producer then ends it: what was aborted would be shown as committed, or the
other way round. So until the damage is mended, the records from the oldest transaction that was open at the damage up to the
damage itself count as damaged for readers of committed data, and are not compacted. Readers of uncommitted data get them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tidelog.storage.append_rules import note_producer
from tidelog.storage.log_view import LogView
from tidelog.storage.producer_replay import batches_of_producers, load_newest_snapshot
from tidelog.storage.producer_state import ProducerStateManager
from tidelog.storage.rotten_range import UndecidedRange
from tidelog.storage.segment import LogSegment


def find_undecided(log: LogView, names: Sequence[str], expiration_ms: int, now_ms: int) -> list[UndecidedRange]:
    """What damage that a start found leaves undecided, by a replay up to each damaged range. ``names``: the file names in the
    log's directory. Blocks; raises OSError."""
    found: list[UndecidedRange] = []
    for segment in log.segments:
        if segment.rotten and segment.aborted.incomplete:
            found += _before_damage(log, segment, names, ProducerStateManager(expiration_ms), now_ms)
    return found


def _before_damage(
    log: LogView, damaged: LogSegment, names: Sequence[str], producers: ProducerStateManager, now_ms: int
) -> Iterator[UndecidedRange]:
    oldest = log.segments[0].base_offset
    start = load_newest_snapshot(log, names, producers, oldest=oldest, newest=damaged.base_offset, now_ms=now_ms)
    for segment in log.segments[log.segment_index(start) :]:
        if segment.base_offset > damaged.base_offset:
            return
        position = segment.position_of(start) if segment.next_offset > start else segment.size
        for rotten in segment.rotten:
            _replay(segment, position, rotten.position, start, producers)
            position = max(position, rotten.end)
            first = producers.first_undecided_offset()
            if segment is damaged and first is not None and first < rotten.first_offset:
                yield UndecidedRange(segment.base_offset, first, rotten.first_offset)
        _replay(segment, position, segment.size, start, producers)


def _replay(segment: LogSegment, position: int, end: int, start: int, producers: ProducerStateManager) -> None:
    for header, batch in batches_of_producers(segment, position, end, start):
        note_producer(producers, batch, header)


def undecided_at(log: LogView, offset: int) -> tuple[bool, int | None]:
    """Whether a reader of committed data may not have ``offset``, and else the offset before which its read has to end."""
    bound: int | None = None
    for each in _standing(log):
        if each.first_offset <= offset < each.end_offset:
            return True, None
        if each.first_offset > offset:
            bound = each.first_offset if bound is None else min(bound, each.first_offset)
    return False, bound


def first_undecided(log: LogView) -> int | None:
    """The lowest offset that is undecided; None when there is none."""
    return min((each.first_offset for each in _standing(log)), default=None)


def _standing(log: LogView) -> Iterator[UndecidedRange]:
    """Those whose damage is still in the log."""
    for each in log.files.undecided:
        segment = log.segment_for(each.segment)
        if segment.base_offset == each.segment and segment.rotten:
            yield each
