"""UnifiedLog: rolling, and offsets that move only where they may."""

import random

import pytest

from sim.workload import NOW_MS, PARTITION, append, batch, end_transaction, load, new_log, offsets
from tidelog.storage.log_config import LogConfig
from tidelog.storage.log_creation import create_log
from tidelog.storage.unified_log import UnifiedLog
from tidelog.testing.simulation.disk import SimDisk


def test_segments_roll_by_size_and_are_named_by_their_first_offset() -> None:
    log = new_log(config=LogConfig(segment_bytes=1000))
    for _ in range(10):
        append(log, batch(2, value=bytes(100)))
    assert all(segment.size <= 1000 for segment in log.segments)
    assert [segment.base_offset for segment in log.segments[1:]] == [before.next_offset for before in log.segments[:-1]]
    log.check()


def test_segments_roll_by_the_time_of_their_records() -> None:
    log = new_log(config=LogConfig(segment_ms=1000))
    append(log, batch(timestamp_ms=NOW_MS))
    append(log, batch(timestamp_ms=NOW_MS + 1000))
    append(log, batch(timestamp_ms=NOW_MS + 1001))
    assert [segment.base_offset for segment in log.segments] == [0, 2]


def test_jitter_makes_segments_younger_and_comes_from_the_given_randomness() -> None:
    disk = SimDisk()
    config = LogConfig(segment_ms=10_000, segment_jitter_ms=5_000)
    ages = {
        create_log(disk, f"/data/t-{n}", PARTITION, None, config, NOW_MS, rng=random.Random(n)).files.limits.segment_ms
        for n in range(20)
    }
    assert len(ages) > 10
    assert all(5_000 <= age <= 10_000 for age in ages)


def test_an_empty_segment_is_not_rolled_again() -> None:
    log = new_log()
    log.roll(NOW_MS)
    append(log, batch())
    log.roll(NOW_MS)
    log.roll(NOW_MS)
    assert [segment.base_offset for segment in log.segments] == [0, 1]


def test_who_asked_is_told_of_a_roll() -> None:
    told: list[UnifiedLog] = []
    log = new_log()
    log.on_roll = told.append
    append(log, batch())
    log.roll(NOW_MS)
    assert told == [log]


def test_new_settings_hold_from_the_next_append_on() -> None:
    log = new_log()
    log.set_config(LogConfig(segment_bytes=100))
    assert append(log, batch(value=bytes(200))).error
    log.set_config(LogConfig(max_message_bytes=1000))
    assert not append(log, batch(value=bytes(200))).error


def test_the_high_watermark_stays_between_start_and_end() -> None:
    log = new_log()
    append(log, batch(5))
    assert (log.update_high_watermark(3), log.update_high_watermark(99), log.update_high_watermark(-1)) == (3, 5, 0)


def test_committed_data_ends_at_the_first_open_transaction_but_not_past_the_high_watermark() -> None:
    log = new_log()
    append(log, batch(2))
    append(log, batch(2, producer=(7, 0, 0), transactional=True))
    append(log, batch(2))
    assert log.last_stable_offset == 2
    log.update_high_watermark(1)
    assert log.last_stable_offset == 1
    log.update_high_watermark(6)
    end_transaction(log, 7, commit=True)
    assert log.last_stable_offset == 7


def test_a_decided_transaction_waits_for_its_marker_to_be_replicated() -> None:
    log = new_log()
    append(log, batch(2, producer=(7, 0, 0), transactional=True))
    end_transaction(log, 7, commit=True)
    log.update_high_watermark(2)
    again = load(log.fs)
    again.update_high_watermark(2)
    assert again.last_stable_offset == 0
    again.update_high_watermark(3)
    assert again.last_stable_offset == 3


def test_records_are_deleted_up_to_the_high_watermark_only() -> None:
    log = new_log()
    append(log, batch(5), leader_epoch=3)
    log.update_high_watermark(4)
    assert log.delete_records_before(2)
    assert not log.delete_records_before(2)
    assert (log.log_start_offset, log.leader_epochs.entries()) == (2, [(3, 2)])
    with pytest.raises(ValueError, match="high watermark 4"):
        log.delete_records_before(5)


def test_the_end_of_an_epoch_is_the_start_of_the_next() -> None:
    log = new_log()
    append(log, batch(2), leader_epoch=1)
    append(log, batch(3), leader_epoch=4)
    end = log.log_end_offset
    assert [log.leader_epochs.end_offset_for(epoch, end) for epoch in (1, 3, 4, 5)] == [
        (1, 2),
        (1, 2),
        (4, 5),
        (-1, -1),
    ]


def test_the_segment_of_an_offset() -> None:
    log = new_log(config=LogConfig(segment_bytes=300))
    for _ in range(6):
        append(log, batch(value=bytes(150)))
    assert [log.segment_for(offset).base_offset for offset in range(6)] == [0, 1, 2, 3, 4, 5]
    assert log.segment_index(-5) == 0
    assert log.files.segments.size_bytes == sum(segment.size for segment in log.segments)


def test_closed_files_are_opened_again_when_needed() -> None:
    log = new_log()
    append(log, batch())
    log.files.close_files()
    append(log, batch())
    assert offsets(log) == [(0, 0), (1, 1)]
