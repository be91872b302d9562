"""Several log dirs: placing, loading, truncating and stopping."""

import errno

import pytest

from sim.workload import NOW_MS, append, batch, offsets
from tests.unit.storage.managed_logs import TOPIC, manager, partition
from tidelog.model.errors import ConfigError, StorageFailure
from tidelog.model.ids import TopicPartition
from tidelog.storage import checkpoints
from tidelog.storage.flushed_marks import CutMark, read_cut
from tidelog.storage.log_manager import LogManager
from tidelog.storage.truncation import Deferred
from tidelog.testing.simulation.disk import SimDisk


def test_a_new_partition_goes_where_the_fewest_are_or_where_it_is_told() -> None:
    logs = manager(SimDisk(), "/a", "/b", "/c")
    for number in range(6):
        logs.get_or_create(partition(number), TOPIC, NOW_MS)
    assert [len(log_dir.logs) for log_dir in logs.dirs] == [2, 2, 2]
    logs.get_or_create(partition(9), TOPIC, NOW_MS, directory_id=b"\3" * 16)
    assert logs.dir_of(partition(9)) is logs.dirs[2]
    assert logs.get_or_create(partition(9), TOPIC, NOW_MS) is logs.get(partition(9))
    assert len(logs) == 7


def test_a_clean_stop_is_believed_and_keeps_all_offsets() -> None:
    disk = SimDisk()
    logs = manager(disk, "/a", "/b")
    for number in range(4):
        log = logs.get_or_create(partition(number), TOPIC, NOW_MS)
        append(log, batch(number + 2))
        log.update_high_watermark(number + 1)
    logs.get_or_create(partition(3), TOPIC, NOW_MS).delete_records_before(2)
    logs.close(broker_epoch=12)
    again = manager(disk, "/a", "/b")
    assert [(log_dir.clean, log_dir.previous_broker_epoch) for log_dir in again.dirs] == [(True, 12)] * 2
    for number in range(4):
        log = again.get(partition(number))
        assert log is not None
        assert (log.log_end_offset, log.high_watermark, log.log_start_offset) == (number + 2, number + 1, 2 if number == 3 else 0)
        log.check()


def test_the_marker_of_a_clean_stop_is_the_last_write() -> None:
    disk = SimDisk()
    logs = manager(disk, "/a")
    append(logs.get_or_create(partition(0), TOPIC, NOW_MS), batch())
    changes: list[str] = []
    disk.on_operation = lambda number, kind, path: changes.append(f"{kind} {path}")
    logs.close()
    assert changes[-2:] == ["rename /a/.kafka_cleanshutdown.tmp", "sync_dir /a"]


def test_without_a_clean_stop_logs_are_recovered() -> None:
    disk = SimDisk()
    append(manager(disk, "/a").get_or_create(partition(0), TOPIC, NOW_MS), batch(3))
    again = manager(disk.kill(), "/a")
    log = again.get(partition(0))
    assert log is not None
    assert not again.dirs[0].clean
    assert offsets(log) == [(0, 2)]


def test_a_partition_in_two_dirs_stops_the_start() -> None:
    disk = SimDisk()
    manager(disk, "/a").get_or_create(partition(0), TOPIC, NOW_MS)
    disk = disk.kill()
    disk.make_dirs("/b/orders-0")
    with pytest.raises(ConfigError, match=r"orders-0 lies in /a and in /b"):
        manager(disk, "/a", "/b")


def test_what_was_deleted_before_a_stop_is_removed_after_it() -> None:
    disk = SimDisk()
    logs = manager(disk, "/a")
    logs.get_or_create(partition(0), TOPIC, NOW_MS)
    logs.delete_async(partition(0), NOW_MS)
    logs.close()
    again = manager(disk, "/a")
    for job in again.upkeep.removals_due(NOW_MS):
        job.run()
    assert [name for name in disk.listdir("/a") if name.endswith("-delete")] == []


def test_an_older_topic_of_the_same_name_is_set_aside_not_served() -> None:
    disk = SimDisk()
    logs = manager(disk, "/a")
    append(logs.get_or_create(partition(0), TOPIC, NOW_MS), batch(3))
    log = logs.get_or_create(partition(0), b"\6" * 16, NOW_MS)
    assert (log.log_end_offset, log.topic_id) == (0, b"\6" * 16)
    assert [name.rpartition("-")[2] for name in disk.listdir("/a") if name.startswith("orders-0.")] == ["stray"]


@pytest.mark.parametrize("bit", [3, 0])
def test_a_topic_id_with_a_flipped_bit_is_not_taken_for_another_topic(bit: int, caplog: pytest.LogCaptureFixture) -> None:
    disk = SimDisk()
    logs = manager(disk, "/a")
    append(logs.get_or_create(partition(0), TOPIC, NOW_MS), batch(3))
    logs.close()
    disk.flip("/a/orders-0/partition.metadata", 40, bit)
    again = manager(disk, "/a")
    log = again.get_or_create(partition(0), TOPIC, NOW_MS)
    assert (log.topic_id, log.log_end_offset) == (TOPIC, 3)
    assert "with damage" in caplog.text
    again.close()
    found = manager(disk, "/a").get(partition(0))
    assert found is not None and found.topic_id == TOPIC


def test_a_directory_without_a_topic_id_gets_the_one_of_the_metadata() -> None:
    disk = SimDisk()
    logs = manager(disk, "/a")
    append(logs.get_or_create(partition(0), TOPIC, NOW_MS), batch(3))
    logs.close()
    disk.remove("/a/orders-0/partition.metadata")
    log = manager(disk, "/a").get_or_create(partition(0), TOPIC, NOW_MS)
    assert (log.log_end_offset, log.topic_id) == (3, TOPIC)
    assert checkpoints.read_partition_metadata(disk, "/a/orders-0") == TOPIC


def test_a_dir_that_cannot_be_opened_is_offline_and_the_others_start() -> None:
    disk = SimDisk()
    manager(disk, "/a", "/b").close()
    disk.fail("lock", 1, errno.EIO, path_part="/a")
    logs = manager(disk, "/a", "/b")
    assert [log_dir.online for log_dir in logs.dirs] == [False, True]


def test_no_dir_that_opens_is_a_failure() -> None:
    disk = SimDisk()
    manager(disk, "/a").close()
    disk.fail("lock", 1, errno.EIO)
    with pytest.raises(StorageFailure, match="/a"):
        manager(disk, "/a")


@pytest.mark.parametrize("kind", ["create", "mkdir", "write"])
def test_a_partition_that_cannot_be_created_takes_the_dir_offline(kind: str) -> None:
    disk = SimDisk()
    logs = manager(disk, "/a", "/b")
    disk.fail(kind, 1, errno.ENOSPC, path_part="/a/")
    with pytest.raises(StorageFailure):
        logs.get_or_create(partition(0), TOPIC, NOW_MS)
    assert logs.get_or_create(partition(0), TOPIC, NOW_MS).log_dir == "/b"


def test_a_log_that_cannot_be_loaded_takes_its_dir_offline() -> None:
    disk = SimDisk()
    logs = manager(disk, "/a", "/b")
    for number in range(4):
        append(logs.get_or_create(partition(number), TOPIC, NOW_MS), batch())
    logs.close()
    disk.fail("read", 1, errno.EIO, path_part="/a/orders-0/")
    again = manager(disk, "/a", "/b")
    assert [log_dir.online for log_dir in again.dirs] == [False, True]
    assert len(again) == 2


def test_a_truncation_is_noted_while_a_checkpoint_says_more() -> None:
    disk = SimDisk()
    logs = manager(disk, "/a")
    log = logs.get_or_create(partition(0), TOPIC, NOW_MS)
    for _ in range(5):
        append(log, batch())
    log.flush()
    (job,) = logs.upkeep.checkpoint_jobs()
    job.run()
    logs.truncate(log, 2, NOW_MS)
    assert read_cut(disk, log.dir) == CutMark(1, 2, 0)
    logs.truncate(log, 700, NOW_MS, fully=True)
    assert (log.log_start_offset, log.log_end_offset) == (700, 700)
    assert read_cut(disk, log.dir) == CutMark(1, 2, 0), "the checkpoint says less than is true"


def test_a_later_checkpoint_takes_the_place_of_a_noted_cut() -> None:
    disk = SimDisk()
    logs = manager(disk, "/a")
    log = logs.get_or_create(partition(0), TOPIC, NOW_MS)
    for _ in range(5):
        append(log, batch())
    log.flush()
    for _ in range(2):
        (job,) = logs.upkeep.checkpoint_jobs()
        job.run()
        logs.upkeep.checkpointed(job)
        logs.truncate(log, 2, NOW_MS)
        for _ in range(5):
            append(log, batch())
        log.flush()
    (job,) = logs.upkeep.checkpoint_jobs()
    job.run()  # and the node is killed before it removes the file
    assert read_cut(disk, log.dir) == CutMark(2, 2, 0)
    disk.flip(log.active.path(".log"), log.active.size - 2, 1)
    disk.boots += 1
    again = manager(disk.kill(), "/a").get(partition(0))
    assert again is not None
    assert (again.log_end_offset, [each.first_offset for each in again.active.rotten]) == (7, [6])


def checkpoint(logs: LogManager) -> None:
    (job,) = logs.upkeep.checkpoint_jobs()
    job.run()
    logs.upkeep.checkpointed(job)


def test_a_noted_cut_is_removed_after_a_later_checkpoint_and_at_a_clean_stop() -> None:
    disk = SimDisk()
    logs = manager(disk, "/a")
    log = logs.get_or_create(partition(0), TOPIC, NOW_MS)
    for stop in (False, True):
        for _ in range(3):
            append(log, batch())
        log.flush()
        checkpoint(logs)
        logs.truncate(log, 2, NOW_MS)
        assert disk.exists(f"{log.dir}/tidelog-cut")
        if stop:
            logs.close()
        else:
            checkpoint(logs)
        assert not disk.exists(f"{log.dir}/tidelog-cut")


def test_a_cut_after_the_start_of_a_checkpoint_outlives_it() -> None:
    disk = SimDisk()
    logs = manager(disk, "/a")
    log = logs.get_or_create(partition(0), TOPIC, NOW_MS)
    for _ in range(5):
        append(log, batch())
    log.flush()
    (job,) = logs.upkeep.checkpoint_jobs()
    logs.truncate(log, 2, NOW_MS)
    job.run()
    logs.upkeep.checkpointed(job)
    assert read_cut(disk, log.dir) == CutMark(1, 2, 0)


def test_an_old_cut_is_not_believed_once_checkpoints_follow_a_damaged_one() -> None:
    disk = SimDisk()
    logs = manager(disk, "/a")
    log = logs.get_or_create(partition(0), TOPIC, NOW_MS)
    for _ in range(3):
        append(log, batch())
    log.flush()
    for _ in range(4):
        checkpoint(logs)
    logs.truncate(log, 2, NOW_MS)
    killed = disk.kill()
    killed.flip("/a/tidelog-flushed-checkpoint", 0, 0)
    again = manager(killed, "/a")
    found = again.get(partition(0))
    assert found is not None
    for _ in range(5):
        append(found, batch())
    found.flush()
    (job,) = again.upkeep.checkpoint_jobs()
    job.run()  # and the node is killed before it removes the file of the cut
    killed.flip(found.active.path(".log"), found.active.size - 2, 1)
    killed.boots += 1
    last = manager(killed.kill(), "/a").get(partition(0))
    assert last is not None
    assert (last.log_end_offset, [each.first_offset for each in last.active.rotten]) == (7, [6])


def test_what_was_not_flushed_before_a_second_cut_is_a_torn_tail() -> None:
    disk = SimDisk()
    logs = manager(disk, "/a")
    log = logs.get_or_create(partition(0), TOPIC, NOW_MS)
    for _ in range(8):
        append(log, batch())
    log.flush()
    checkpoint(logs)
    logs.truncate(log, 2, NOW_MS)
    for _ in range(6):
        append(log, batch())
    logs.truncate(log, 6, NOW_MS)
    assert read_cut(disk, log.dir) == CutMark(1, 2, 0)


@pytest.mark.parametrize("clean", [True, False])
def test_a_single_record_at_the_flushed_end_is_not_cut_and_its_offset_not_used_again(clean: bool) -> None:
    disk = SimDisk()
    logs = manager(disk, "/a")
    log = logs.get_or_create(partition(0), TOPIC, NOW_MS)
    for _ in range(5):
        append(log, batch())
    log.flush()
    (job,) = logs.upkeep.checkpoint_jobs()
    job.run()
    logs.upkeep.checkpointed(job)
    if clean:
        logs.close()
    assert recovery_points(disk) == {partition(0): 5 if clean else 4}
    disk.flip(log.active.path(".log"), log.active.size - 2, 1)
    disk.boots += 1  # the machine was restarted: nothing above the flushed end is believed
    again = manager(disk.kill(), "/a").get(partition(0))
    assert again is not None
    assert append(again, batch()).first_offset == 5
    if not clean:
        assert [(each.first_offset, each.next_offset) for each in again.active.rotten] == [(4, 5)]


def recovery_points(disk: SimDisk) -> dict[TopicPartition, int]:
    return checkpoints.read_offsets(disk, "/a/recovery-point-offset-checkpoint")


@pytest.mark.parametrize("pending", [False, True])
def test_a_topic_that_is_created_again_does_not_get_the_recovery_point_of_the_old_one(pending: bool) -> None:
    """A tail that a power loss tore would lie below it, and be taken for rot of records that were flushed."""
    disk = SimDisk()
    logs = manager(disk, "/a")
    log = logs.get_or_create(partition(0), TOPIC, NOW_MS)
    append(log, batch(10))
    log.flush()
    log.update_high_watermark(5)
    log.delete_records_before(5)
    (job,) = logs.upkeep.checkpoint_jobs()
    if not pending:
        job.run()
        assert recovery_points(disk) == {partition(0): 9}
    logs.delete_async(partition(0), NOW_MS)
    log = logs.get_or_create(partition(0), b"\6" * 16, NOW_MS)
    if pending:
        job.run()
    append(log, batch(2))
    disk.sync_dir("/a")
    disk.sync_dir(log.dir)
    log.active.file.sync()
    log.active.file.write(log.active.size, bytes(300))
    again = manager(disk.kill(), "/a").get(partition(0))
    assert again is not None
    assert (again.log_start_offset, again.log_end_offset, again.active.rotten) == (0, 2, ())


@pytest.mark.parametrize("pending", [False, True])
def test_a_cut_in_the_active_segment_counts_before_the_next_append(pending: bool) -> None:
    disk = SimDisk()
    logs = manager(disk, "/a")
    log = logs.get_or_create(partition(0), TOPIC, NOW_MS)
    for _ in range(10):
        append(log, batch())
    log.flush()
    (job,) = logs.upkeep.checkpoint_jobs()
    if not pending:
        job.run()
    deferred: Deferred = []
    logs.truncate(log, 4, NOW_MS, deferred)
    for sync in deferred:
        sync()
    if pending:
        job.run()
    append(log, batch(2))
    log.active.file.write(log.active.size, bytes(300))
    again = manager(disk.kill(), "/a").get(partition(0))
    assert again is not None
    assert (again.log_end_offset, again.active.rotten) == (6, ())
