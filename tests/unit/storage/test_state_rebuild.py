"""Producers and transactions after batches came back that a replay had skipped."""

from __future__ import annotations

from collections import deque

import pytest

from sim.workload import NOW_MS, append, batch, end_transaction, load, new_log
from tidelog.records.batch import iter_headers
from tidelog.replication.repair import Replacement, damages
from tidelog.storage import reading, state_rebuild
from tidelog.storage.log_config import LogConfig
from tidelog.storage.rotten_range import RottenRange
from tidelog.storage.splice import SpliceJob
from tidelog.storage.state_rebuild import StateRebuild
from tidelog.storage.unified_log import UnifiedLog
from tidelog.testing.simulation.disk import SimDisk

SMALL = LogConfig(segment_bytes=500)


def install(rebuild: StateRebuild) -> None:
    while not rebuild.ready:
        deque(rebuild.more(), maxlen=0)
    rebuild.install()


def transactions(log: UnifiedLog) -> None:
    """One aborted and one committed transaction of producer 7, an idempotent producer 8, an open transaction of 9."""
    for number in range(3):
        append(log, batch(1, producer=(7, 0, number), transactional=True))
    end_transaction(log, 7, commit=False)
    for number in range(3):
        append(log, batch(1, producer=(7, 0, 3 + number), transactional=True))
        append(log, batch(1, producer=(8, 0, number)))
    end_transaction(log, 7, commit=True)
    append(log, batch(1, producer=(9, 0, 0), transactional=True))


def state(log: UnifiedLog) -> tuple[object, ...]:
    entries = [
        (each.producer_id, each.epoch, each.last_sequence, each.txn_first_offset) for each in log.producers.entries.values()
    ]
    end = log.log_end_offset
    return sorted(entries), reading.aborted_transactions(log, 0, end), log.last_stable_offset


@pytest.mark.parametrize("number", range(12))
@pytest.mark.parametrize("meanwhile", [False, True], ids=["quiet", "written meanwhile"])
def test_the_state_is_as_if_nothing_had_been_damaged(number: int, meanwhile: bool) -> None:
    disk = SimDisk()
    log = new_log(disk, SMALL)
    transactions(log)
    log.roll(NOW_MS)
    log.flush()
    headers = [(each, header) for each in log.segments for header in iter_headers(each.file.read(0, each.size))]
    where, header = headers[number]
    right = where.file.read(header.position, header.size)
    disk.flip(where.path(".log"), header.end_position - 1, 2)
    log = load(disk.kill(), SMALL, survived=True)
    log.update_high_watermark(log.log_end_offset)
    segment = log.segment_for(header.base_offset)
    rotten = RottenRange(header.position, header.end_position, header.base_offset, header.last_offset + 1)
    assert segment.rotten == (rotten,) and segment.aborted.incomplete
    log.flush()
    job = SpliceJob(log, segment, rotten, right)
    deque(job.steps(), maxlen=0)
    rebuild = StateRebuild(log, segment, job.mended, NOW_MS)
    deque(rebuild.steps(), maxlen=0)
    whole = new_log(SimDisk(), SMALL)
    transactions(whole)
    whole.roll(NOW_MS)
    if meanwhile:
        for each in (log, whole):
            append(each, batch(1, producer=(10, 0, 0)))
            each.roll(NOW_MS)
            append(each, batch(1, producer=(10, 0, 1)))
    assert job.stands and rebuild.stands
    install(rebuild)
    job.put_in_place()
    job.finish()
    assert state(log) == state(whole)
    assert not any(each.aborted.incomplete for each in log.segments)
    log.check()
    log.close()
    again = load(log.fs, SMALL, clean=True, recovery_point=log.log_end_offset)  # type: ignore[arg-type]
    again.update_high_watermark(again.log_end_offset)
    assert state(again) == state(whole)


@pytest.mark.parametrize("clean", [True, False], ids=["clean stop", "kill"])
def test_a_marker_that_an_earlier_start_did_without_ends_its_transaction(clean: bool) -> None:
    """The second start loads a producer snapshot that the first one took without the marker."""
    disk = SimDisk()
    log = new_log(disk)
    append(log, batch(1, producer=(7, 0, 0), transactional=True))
    end_transaction(log, 7, commit=True)
    append(log, batch(3))
    log.flush()
    segment = log.active
    header = list(iter_headers(segment.file.read(0, segment.size)))[1]
    right = segment.file.read(header.position, header.size)
    disk.flip(segment.path(".log"), header.end_position - 1, 2)
    log = load(disk.kill(), survived=True)
    log.roll(NOW_MS)
    append(log, batch(1))
    log.close()
    fs = log.fs
    assert isinstance(fs, SimDisk)
    log = load(fs if clean else fs.kill(), clean=clean, survived=True, recovery_point=log.log_end_offset if clean else 0)
    log.update_high_watermark(log.log_end_offset)
    assert log.last_stable_offset == 0
    log.flush()
    (damage,) = damages(log)
    found = Replacement(log, damage.rotten)
    found.take(right)
    assert found.changes_state(damage.segment)
    job = SpliceJob(log, damage.segment, damage.rotten, found.data)
    deque(job.steps(), maxlen=0)
    rebuild = StateRebuild(log, damage.segment, job.mended, NOW_MS)
    deque(rebuild.steps(), maxlen=0)
    install(rebuild)
    job.put_in_place()
    assert log.last_stable_offset == log.log_end_offset
    log.check()


def test_segments_that_retention_deletes_meanwhile_do_not_matter() -> None:
    log, whole = new_log(SimDisk(), SMALL), new_log(SimDisk(), SMALL)
    for each in (log, whole):
        transactions(each)
        each.roll(NOW_MS)
        each.flush()
    segment = log.segments[2]
    rebuild = StateRebuild(log, segment, segment, NOW_MS)
    deque(rebuild.steps(), maxlen=0)
    log.delete_records_before(log.segments[1].base_offset)
    assert len(log.retention_step(NOW_MS).segments) == 1 and rebuild.stands
    install(rebuild)
    assert state(log)[0] == state(whole)[0]
    log.check()


@pytest.mark.parametrize("meanwhile", [False, True], ids=["before", "meanwhile"])
def test_a_gap_between_segments_does_not_pass_for_a_loss_after_a_rebuild(meanwhile: bool) -> None:
    """Compaction leaves such gaps. A start after a power loss, with no or an old checkpoint, tells them from a loss by the
    snapshot behind the gap."""
    disk = SimDisk()
    log = new_log(disk)
    append(log, batch(1, producer=(7, 0, 0)))
    log.roll(NOW_MS)
    append(log, batch(2))
    if meanwhile:
        rebuild = StateRebuild(log, log.segments[0], log.segments[0], NOW_MS)
        deque(rebuild.steps(), maxlen=0)
    log.roll(NOW_MS, at_least=log.log_end_offset + 2)
    append(log, batch(1, producer=(7, 0, 1)))
    append(log, batch(1))
    log.flush()
    if not meanwhile:
        rebuild = StateRebuild(log, log.segments[0], log.segments[0], NOW_MS)
        deque(rebuild.steps(), maxlen=0)
    install(rebuild)
    log.flush()
    disk.sync_dir(log.log_dir)
    disk.sync_dir("/")
    again = load(disk.crash(seed=1))
    assert again.log_end_offset == log.log_end_offset and len(again.segments) == 3
    assert state(again)[0] == state(log)[0]


def test_a_log_that_was_cut_meanwhile_keeps_its_state() -> None:
    log = new_log(SimDisk(), SMALL)
    transactions(log)
    log.flush()
    rebuild = StateRebuild(log, log.segments[0], log.segments[0], NOW_MS)
    deque(rebuild.steps(), maxlen=0)
    assert rebuild.stands
    log.truncate_to(log.log_end_offset - 1, NOW_MS)
    assert not rebuild.stands


def broken_indexes(*, sealed_after: bool) -> tuple[SimDisk, UnifiedLog, StateRebuild]:
    """Three segments whose transaction indexes are empty, and a rebuild of them; the second is sealed before or after it ran."""
    disk = SimDisk()
    log = new_log(disk, SMALL)
    append(log, batch(1, producer=(7, 0, 0), transactional=True))
    end_transaction(log, 7, commit=False)
    log.roll(NOW_MS)
    log.flush()
    append(log, batch(1, producer=(7, 0, 1), transactional=True))
    end_transaction(log, 7, commit=False)
    if not sealed_after:
        log.roll(NOW_MS)
        log.flush()
    for segment in log.segments:
        segment.aborted.reset(disk, segment.path(".txnindex"))
    rebuild = StateRebuild(log, log.segments[0], log.segments[0], NOW_MS)
    deque(rebuild.steps(), maxlen=0)
    if sealed_after:
        log.roll(NOW_MS)
        log.flush()
    return disk, log, rebuild


@pytest.mark.parametrize("sealed_after", [False, True])
def test_the_event_loop_waits_for_no_sync(sealed_after: bool) -> None:
    disk, log, rebuild = broken_indexes(sealed_after=sealed_after)
    assert rebuild.ready is not sealed_after
    if sealed_after:
        deque(rebuild.more(), maxlen=0)
    append(log, batch(1, producer=(7, 0, 2), transactional=True))
    end_transaction(log, 7, commit=False)
    log.active.aborted.reset(disk, log.active.path(".txnindex"))
    for kind in ("sync", "sync_dir"):
        disk.fail(kind, 1, 5)
    assert rebuild.ready
    rebuild.install()
    disk.heal()
    right = [(7, 0), (7, 2), (7, 4)]
    assert [(each.producer_id, each.first_offset) for each in reading.aborted_transactions(log, 0, 6)] == right
    log.flush()
    disk.sync_dir(log.log_dir)
    disk.sync_dir("/")
    again = load(disk.crash(seed=2), SMALL, recovery_point=log.recovery_point)
    assert [(each.producer_id, each.first_offset) for each in reading.aborted_transactions(again, 0, 6)] == right


def test_much_that_was_appended_is_not_read_on_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    _, log, rebuild = broken_indexes(sealed_after=False)
    append(log, batch(1, producer=(7, 0, 2)))
    assert rebuild.ready
    monkeypatch.setattr(state_rebuild, "STEP_BYTES", 100)
    append(log, batch(1, producer=(7, 0, 3), value=bytes(200)))
    assert not rebuild.ready
    deque(rebuild.more(), maxlen=0)
    assert rebuild.ready
    rebuild.install()
    assert log.producers.entries[7].last_sequence == 3
