"""Retention by age, by size and by log start: what goes, what must stay."""

import pytest

from sim.workload import NOW_MS, append, batch, load, new_log, offsets
from tidelog.storage import reading
from tidelog.storage.index import TIME_ENTRY_BYTES
from tidelog.storage.log_config import UNLIMITED, LogConfig
from tidelog.storage.segment import TIME_INDEX_SUFFIX
from tidelog.storage.unified_log import UnifiedLog
from tidelog.testing.simulation.disk import SimDisk


def filled(config: LogConfig, disk: SimDisk | None = None) -> UnifiedLog:
    """Ten segments of one batch (some 380 bytes each), a second apart; the last one is active."""
    log = new_log(disk, config)
    for number in range(10):
        append(log, batch(value=bytes(300), timestamp_ms=NOW_MS + number * 1000))
    log.flush()
    assert len(log.segments) == 10
    return log


def config(**settings: object) -> LogConfig:
    return LogConfig(segment_bytes=500, retention_ms=UNLIMITED, **settings)  # type: ignore[arg-type]


def test_segments_older_than_retention_ms_go_from_the_oldest_on() -> None:
    log = filled(LogConfig(segment_bytes=500, retention_ms=5000))
    result = log.retention_step(NOW_MS + 8000)
    assert [segment.base_offset for segment in result.segments] == [0, 1, 2]
    assert (log.log_start_offset, offsets(log)[0]) == (3, (3, 3))
    assert "retention.ms" in result.reasons[0]
    log.check()


@pytest.mark.parametrize("bit", range(64))
def test_no_segment_goes_for_its_age_because_a_bit_has_turned_in_its_time_index(bit: int) -> None:
    disk = SimDisk()
    log = filled(LogConfig(segment_bytes=500, retention_ms=86_400_000), disk)
    log.close()
    path = log.segments[0].path(TIME_INDEX_SUFFIX)
    disk.flip(path, disk.stat(path).size - TIME_ENTRY_BYTES + bit // 8, bit % 8)
    again = load(disk, log.config, clean=True, recovery_point=10, high_watermark=10)
    assert again.retention_step(NOW_MS + 8000).segments == ()
    old = again.retention_step(NOW_MS + 86_400_000 + 8000)
    assert [segment.base_offset for segment in old.segments][:2] in ([], [0, 1])


def test_segments_go_while_the_rest_is_still_as_large_as_retention_bytes() -> None:
    log = filled(config(retention_bytes=1200))
    size = log.segments[0].size
    log.retention_step(NOW_MS)
    assert len(log.segments) == -(-1200 // size)
    assert log.files.segments.size_bytes >= 1200


def test_nothing_goes_for_ever_without_limits() -> None:
    assert filled(config()).retention_step(NOW_MS + 10**12).segments == ()


def test_compaction_alone_keeps_old_segments_but_not_deleted_records() -> None:
    log = filled(LogConfig(segment_bytes=500, retention_ms=1, cleanup_policy=frozenset({"compact"})))
    assert log.retention_step(NOW_MS + 10**9).segments == ()
    log.delete_records_before(4)
    assert len(log.retention_step(NOW_MS + 10**9).segments) == 4


def test_nothing_at_or_above_the_high_watermark_goes() -> None:
    log = filled(LogConfig(segment_bytes=500, retention_ms=0))
    log.update_high_watermark(4)
    assert [segment.base_offset for segment in log.retention_step(NOW_MS + 10**9).segments] == [0, 1, 2, 3]


def test_segments_that_are_not_sealed_stay() -> None:
    log = filled(LogConfig(segment_bytes=500, retention_ms=0))
    log.segments[2].sealed = False
    assert [segment.base_offset for segment in log.retention_step(NOW_MS + 10**9).segments] == [0, 1]


def test_nothing_goes_while_a_flush_is_under_way() -> None:
    log = filled(LogConfig(segment_bytes=500, retention_ms=0))
    log.flush_job()
    assert log.retention_step(NOW_MS + 10**9).segments == ()


def test_an_old_active_segment_is_rolled_and_goes_once_it_is_sealed() -> None:
    log = filled(LogConfig(segment_bytes=500, retention_ms=1000))
    log.retention_step(NOW_MS + 10**6)
    assert offsets(log) == [(9, 9)]
    log.flush()
    log.retention_step(NOW_MS + 10**6)
    assert (offsets(log), log.log_start_offset, log.log_end_offset) == ([], 10, 10)
    log.check()


def test_files_are_renamed_at_once_and_removed_by_the_result() -> None:
    disk = SimDisk()
    log = filled(LogConfig(segment_bytes=500, retention_ms=7500, file_delete_delay_ms=60_000), disk)
    held = reading.read(log, 0, 1000, upto=10, min_one=True)
    result = log.retention_step(NOW_MS + 9000)
    assert result.due_ms == NOW_MS + 9000 + 60_000
    names = disk.listdir("/data/orders-0")
    assert "00000000000000000000.log.deleted" in names
    assert "00000000000000000001.snapshot.deleted" in names
    assert "00000000000000000002.snapshot" in names
    assert held.slice is not None
    assert len(held.slice.read()) == held.slice.length
    result.remove()
    assert not [name for name in disk.listdir("/data/orders-0") if name.endswith(".deleted")]


def test_a_segment_without_timestamps_is_as_old_as_its_file() -> None:
    disk = SimDisk()
    disk.now_ms = NOW_MS
    log = new_log(disk, LogConfig(segment_bytes=500, retention_ms=1000))
    for _ in range(2):
        append(log, batch(value=bytes(300), timestamp_ms=-1))
    log.flush()
    assert log.retention_step(NOW_MS + 1000).segments == ()
    assert len(log.retention_step(NOW_MS + 1001).segments) == 1
