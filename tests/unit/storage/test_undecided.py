"""Transactions whose marker may lie in damaged bytes are shown to no reader of committed data, and are not compacted."""

from __future__ import annotations

import pytest

from sim.workload import NOW_MS, append, batch, end_transaction, load, new_log
from tidelog.records.batch import iter_headers
from tidelog.storage import reading
from tidelog.storage.cleanable_ratio import cleanable_range
from tidelog.storage.log_config import LogConfig
from tidelog.storage.rotten_range import UndecidedRange
from tidelog.storage.undecided import first_undecided, undecided_at
from tidelog.storage.unified_log import UnifiedLog
from tidelog.testing.simulation.disk import SimDisk

SEGMENTS = LogConfig(segment_bytes=220)


def transaction(log: UnifiedLog, sequence: int, *, commit: bool) -> None:
    """One record of producer 7 and its marker."""
    append(log, batch(1, producer=(7, 0, sequence), transactional=True))
    end_transaction(log, 7, commit=commit)


def damaged(offset: int, config: LogConfig | None = None) -> UnifiedLog:
    """Offsets 0, 1 committed, 2, 3 aborted, 4, 5 committed, 6 to 8 plain; started again after damage at ``offset``."""
    disk = SimDisk()
    log = new_log(disk, config)
    for number, commit in enumerate((True, False, True)):
        transaction(log, number, commit=commit)
    append(log, batch(3))
    log.roll(NOW_MS)
    log.flush()
    segment = log.segment_for(offset)
    header = next(each for each in iter_headers(segment.file.read(0, segment.size)) if each.base_offset == offset)
    disk.flip(segment.path(".log"), header.end_position - 1, 2)
    log = load(disk.kill(), config, survived=True)
    log.update_high_watermark(log.log_end_offset)
    assert log.segment_for(offset).rotten
    return log


@pytest.mark.parametrize("config", [None, SEGMENTS], ids=["one segment", "several segments"])
def test_what_a_damaged_marker_may_have_aborted_is_undecided(config: LogConfig | None) -> None:
    log = damaged(3, config)
    assert log.last_stable_offset == log.log_end_offset, "the next marker of the producer ends the transaction"
    assert not reading.aborted_transactions(log, 0, log.log_end_offset), "as committed"
    assert undecided_at(log, 2) == (True, None)
    assert [undecided_at(log, offset) for offset in (0, 1)] == [(False, 2)] * 2, "a read from there ends before"
    assert [undecided_at(log, offset) for offset in (4, 6)] == [(False, None)] * 2
    assert first_undecided(log) == 2


@pytest.mark.parametrize("offset", [0, 1, 6])
def test_damage_without_an_open_transaction_in_front_of_it_leaves_nothing_undecided(offset: int) -> None:
    log = damaged(offset)
    expected = [UndecidedRange(0, 0, 1)] if offset == 1 else []
    assert list(log.files.undecided) == expected


def test_records_that_are_undecided_are_not_compacted() -> None:
    log = damaged(3, SEGMENTS)
    log.flush()
    assert len(log.segments) > 2
    assert cleanable_range(log, None, NOW_MS).first_uncleanable_offset <= 2


def test_a_segment_without_damage_leaves_nothing_undecided() -> None:
    log = damaged(3)
    log.segments[0].rotten = ()
    assert (undecided_at(log, 2), first_undecided(log)) == ((False, None), None)
    log.truncate_fully_and_start_at(20, NOW_MS)
    assert first_undecided(log) is None


@pytest.mark.parametrize("snapshot", ["whole", "damaged", "missing"])
def test_the_replay_begins_at_the_newest_snapshot_that_reads(snapshot: str) -> None:
    disk = SimDisk()
    log = new_log(disk)
    append(log, batch(1, producer=(7, 0, 0), transactional=True))
    log.roll(NOW_MS)
    append(log, batch(1, producer=(7, 0, 1), transactional=True))
    end_transaction(log, 7, commit=False)
    transaction(log, 2, commit=True)
    log.roll(NOW_MS)
    log.flush()
    segment = log.segments[1]
    header = list(iter_headers(segment.file.read(0, segment.size)))[1]
    disk.flip(segment.path(".log"), header.end_position - 1, 2)
    path = f"{log.dir}/00000000000000000001.snapshot"
    if snapshot == "damaged":
        disk.flip(path, 3, 1)
    elif snapshot == "missing":
        disk.remove(path)
    log = load(disk.kill(), survived=True)
    assert list(log.files.undecided) == [UndecidedRange(1, 0, 2)]
