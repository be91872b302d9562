"""Recurring work on all logs: checkpoints, retention, removals, flushes, idle producers."""

import errno

from sim.workload import NOW_MS, append, batch
from tests.unit.storage.managed_logs import TOPIC, manager, partition
from tidelog.storage import checkpoints
from tidelog.storage.log_config import LogConfig
from tidelog.testing.simulation.disk import SimDisk


def test_a_checkpoint_that_cannot_be_written_takes_its_dir_offline() -> None:
    disk = SimDisk()
    logs = manager(disk, "/a", "/b")
    disk.fail("rename", 1, errno.EROFS, path_part="/b/")
    for job in logs.upkeep.checkpoint_jobs():
        job.run()
        logs.upkeep.checkpointed(job)
    assert [log_dir.online for log_dir in logs.dirs] == [True, False]


def test_a_slow_disk_is_not_given_the_next_checkpoint_before_it_is_done_with_the_last() -> None:
    """Two at once rename each other's new files away, and a dir went offline for it while everything was only slow."""
    logs = manager(SimDisk(), "/a", "/b")
    first, other = logs.upkeep.checkpoint_jobs()
    assert logs.upkeep.checkpoint_jobs() == []
    first.run()
    logs.upkeep.checkpointed(first)
    (again,) = logs.upkeep.checkpoint_jobs()
    assert again.log_dir is first.log_dir
    for job in (again, other):
        job.run()
        logs.upkeep.checkpointed(job)
    assert len(logs.upkeep.checkpoint_jobs()) == 2


def test_checkpoints_are_kafkas_files() -> None:
    disk = SimDisk()
    logs = manager(disk, "/a")
    log = logs.get_or_create(partition(0), TOPIC, NOW_MS)
    append(log, batch(5))
    log.flush()
    for job in logs.upkeep.checkpoint_jobs():
        job.run()
        logs.upkeep.checkpointed(job)
    assert checkpoints.read_offsets(disk, "/a/replication-offset-checkpoint") == {partition(0): 5}
    assert checkpoints.read_offsets(disk, "/a/log-start-offset-checkpoint") == {}
    assert checkpoints.read_offsets(disk, "/a/recovery-point-offset-checkpoint") == {partition(0): 4}


def test_retention_removes_segments_after_their_delay() -> None:
    disk = SimDisk()
    logs = manager(disk, "/a", config=LogConfig(segment_bytes=500, retention_ms=0))
    log = logs.get_or_create(partition(0), TOPIC, NOW_MS)
    for _ in range(3):
        append(log, batch(value=bytes(300)))
    log.flush()
    assert len(logs.upkeep.retain(NOW_MS + 1000, NOW_MS + 1000)) == 2
    for job in logs.upkeep.removals_due(NOW_MS + 100_000):
        job.run()
        logs.upkeep.removed(job)
    assert not [name for name in disk.listdir("/a/orders-0") if name.endswith(".deleted")]


def test_records_are_as_old_as_one_clock_says_and_files_go_when_the_other_does() -> None:
    hour_ms = 3_600_000
    logs = manager(SimDisk(), "/a", config=LogConfig(segment_bytes=500, retention_ms=hour_ms, file_delete_delay_ms=60_000))
    log = logs.get_or_create(partition(0), TOPIC, NOW_MS)
    for _ in range(3):
        append(log, batch(value=bytes(300)))
    log.flush()
    assert logs.upkeep.retain(NOW_MS + 2 * hour_ms, NOW_MS + 1000) == []
    assert len(logs.upkeep.retain(NOW_MS + 3 * hour_ms, NOW_MS + hour_ms + 1000)) == 2
    assert logs.upkeep.removals_due(NOW_MS + 3 * hour_ms + 59_999) == []
    assert len(logs.upkeep.removals_due(NOW_MS + 3 * hour_ms + 60_000)) == 1


def test_idle_producers_are_forgotten_everywhere() -> None:
    logs = manager(SimDisk(), "/a")
    for number in range(3):
        append(logs.get_or_create(partition(number), TOPIC, NOW_MS), batch(producer=(number, 0, 0)))
    assert logs.upkeep.expire_producers(NOW_MS + 86_400_000) == 3
