"""Flush jobs: what they make safe, and that a failed sync is final."""

import errno

import pytest

from sim.workload import NOW_MS, append, batch, end_transaction, load, new_log
from tidelog.model.errors import StorageFailure
from tidelog.storage.flush_job import FLUSH_FAILED
from tidelog.storage.log_config import LogConfig
from tidelog.testing.simulation.disk import SimDisk


def kinds(disk: SimDisk) -> list[tuple[str, str]]:
    seen: list[tuple[str, str]] = []
    disk.on_operation = lambda number, kind, path: seen.append((kind, path.rpartition("/")[2]))
    return seen


def test_the_recovery_point_is_the_end_when_the_job_was_made_not_when_it_ran() -> None:
    log = new_log()
    append(log, batch(2))
    job = log.flush_job()
    append(log, batch(3))
    job.run()
    log.flushed(job, NOW_MS)
    assert (log.recovery_point, log.files.last_flush_ms) == (2, NOW_MS)


def test_one_job_at_a_time() -> None:
    log = new_log()
    log.flush_job()
    with pytest.raises(AssertionError, match="under way"):
        log.flush_job()


def test_the_first_flush_syncs_the_names_and_a_later_one_only_the_data() -> None:
    disk = SimDisk()
    log = new_log(disk)
    append(log, batch())
    seen = kinds(disk)
    log.flush()
    assert ("sync_dir", "orders-0") in seen
    assert ("sync_dir", "data") in seen
    assert ("rename", "partition.metadata.tmp") in seen
    append(log, batch())
    seen.clear()
    log.flush()
    assert seen == [("sync", "00000000000000000000.log")]


def test_a_closed_segment_is_sealed_with_indexes_and_a_snapshot_of_its_end() -> None:
    disk = SimDisk()
    log = new_log(disk, LogConfig(index_interval_bytes=100))
    for _ in range(5):
        append(log, batch())
    append(log, batch(producer=(7, 0, 0), transactional=True))
    end_transaction(log, 7, commit=False)
    log.roll(NOW_MS)
    assert not log.segments[0].sealed
    log.flush()
    assert log.segments[0].sealed
    disk.sync_dir("/")
    for seed in range(10):
        stem = "00000000000000000000"
        names = disk.crash(seed).listdir("/data/orders-0")
        assert {f"{stem}.log", f"{stem}.index", f"{stem}.timeindex", f"{stem}.txnindex", "00000000000000000007.snapshot"} <= set(
            names
        )


def test_a_failed_sync_is_never_taken_for_success_later() -> None:
    disk = SimDisk()
    log = new_log(disk)
    append(log, batch())
    disk.fail("sync", 1, errno.EIO)
    job = log.flush_job()
    job.run()
    with pytest.raises(StorageFailure, match="flush"):
        log.flushed(job)
    disk.heal()
    assert log.recovery_point == 0
    with pytest.raises(StorageFailure):
        log.flush_job()
    with pytest.raises(StorageFailure):
        append(log, batch())


def test_a_log_that_was_not_touched_since_it_was_loaded_owes_nothing() -> None:
    disk = SimDisk()
    log = new_log(disk)
    append(log, batch())
    log.close()
    again = load(disk, clean=True)
    assert again.closing_job() is None
    append(again, batch())
    assert again.closing_job() is not None


def test_closing_leaves_indexes_and_a_snapshot_at_the_end() -> None:
    disk = SimDisk()
    log = new_log(disk)
    append(log, batch(3, producer=(7, 0, 0)))
    log.close()
    names = disk.listdir("/data/orders-0")
    assert "00000000000000000003.snapshot" in names
    assert "leader-epoch-checkpoint" in names
    assert load(disk, clean=True).producers.entries[7].last_sequence == 2


def test_what_to_checkpoint_lies_in_the_first_segment_that_is_not_sealed() -> None:
    log = new_log()
    append(log, batch(5))
    log.flush()
    assert (log.recovery_point, log.files.recovery_checkpoint) == (5, 4)
    log.roll(NOW_MS)
    append(log, batch(5))
    assert log.files.recovery_checkpoint == 4
    log.flush()
    assert log.files.recovery_checkpoint == 9


@pytest.mark.parametrize("syncs_that_fail", [1, 4])
def test_what_a_failed_sync_left_in_the_cache_is_written_anew_at_the_next_start(syncs_that_fail: int) -> None:
    """The kernel takes its pages for clean: the next process reads them, syncs them, and has nothing on the disk."""
    for seed in range(20):
        disk = SimDisk(seed)
        log = new_log(disk, LogConfig(segment_bytes=1 << 20))
        append(log, batch(2))
        log.flush()
        disk.sync_dir("/")
        append(log, batch(3))
        disk.fail("sync", 1, errno.EIO, times=syncs_that_fail)
        with pytest.raises(StorageFailure, match="Input/output error"):
            log.flush()
        assert disk.exists(f"{log.dir}/{FLUSH_FAILED}")
        disk = disk.kill()
        log = load(disk, clean=False)
        assert log.log_end_offset == 5
        assert not disk.exists(f"{log.dir}/{FLUSH_FAILED}")
        append(log, batch(1))
        log.roll(NOW_MS)
        log.flush()
        sizes = [segment.size for segment in log.segments]
        assert [segment.size for segment in load(disk.crash(seed), clean=False).segments] == sizes
