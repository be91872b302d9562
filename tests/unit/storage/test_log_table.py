"""Which log is in which dir: deleting, setting aside, and what a failing dir takes."""

import errno

import pytest

from sim.workload import NOW_MS, append, batch
from tests.unit.storage.managed_logs import TOPIC, manager, partition
from tidelog.model.errors import StorageFailure
from tidelog.model.ids import TopicPartition
from tidelog.storage import reading
from tidelog.testing.simulation.disk import SimDisk


def test_a_deleted_partition_is_renamed_now_and_removed_later() -> None:
    disk = SimDisk()
    logs = manager(disk, "/a")
    log = logs.get_or_create(partition(0), TOPIC, NOW_MS)
    append(log, batch())
    found = reading.read(log, 0, 100, upto=1, min_one=True)
    logs.delete_async(partition(0), NOW_MS)
    assert logs.get(partition(0)) is None
    (name,) = [name for name in disk.listdir("/a") if name.startswith("orders-0.")]
    assert name.endswith("-delete")
    assert found.slice is not None
    assert len(found.slice.read()) == found.slice.length
    assert logs.upkeep.removals_due(NOW_MS + 59_999) == []
    (job,) = logs.upkeep.removals_due(NOW_MS + 60_000)
    job.run()
    logs.upkeep.removed(job)
    assert not disk.exists(f"/a/{name}")
    assert logs.get_or_create(partition(0), TOPIC, NOW_MS).log_end_offset == 0


def test_a_failing_dir_takes_its_own_logs_and_no_others() -> None:
    disk = SimDisk()
    logs = manager(disk, "/a", "/b")
    for number in range(4):
        logs.get_or_create(partition(number), TOPIC, NOW_MS)
    lost = logs.fail_dir("/a", "smoke")
    assert len(lost) == 2
    assert [log_dir.path for log_dir in logs.online_dirs()] == ["/b"]
    assert sorted(log.topic_partition for log in logs.logs()) == sorted(logs.dirs[1].logs)
    for number in (10, 11):
        assert logs.get_or_create(partition(number), TOPIC, NOW_MS).log_dir == "/b"
    logs.close(3)
    assert not disk.exists("/a/.kafka_cleanshutdown")
    assert disk.exists("/b/.kafka_cleanshutdown")


def test_leftovers_of_a_network_file_system_do_not_hurt() -> None:
    disk = SimDisk(network=True)
    logs = manager(disk, "/a")
    log = logs.get_or_create(partition(0), TOPIC, NOW_MS)
    append(log, batch(2))
    held = disk.open("/a/orders-0/00000000000000000000.log")
    logs.delete_async(partition(0), NOW_MS)
    for job in logs.upkeep.removals_due(NOW_MS + 60_000):
        job.run()
        logs.upkeep.removed(job)
    held.close()
    assert logs.dirs[0].online
    append(logs.get_or_create(partition(0), TOPIC, NOW_MS), batch())
    logs.close()
    assert len(manager(disk, "/a")) == 1


def test_a_stale_handle_takes_the_dir_offline_with_a_clear_reason() -> None:
    disk = SimDisk(network=True)
    logs = manager(disk, "/a", "/b")
    for number in range(2):
        append(logs.get_or_create(partition(number), TOPIC, NOW_MS), batch())
    log = logs.get(partition(0))
    assert log is not None
    disk.fail("write", 1, errno.ESTALE, path_part=log.dir)
    with pytest.raises(StorageFailure, match=r"(?i)stale") as failure:
        append(log, batch())
    logs.fail_dir(failure.value.log_dir, failure.value.detail)
    assert [log.topic_partition for log in logs.logs()] == [partition(1)]


def test_a_flush_that_outlives_its_topic_leaves_the_next_topic_of_that_name_alone() -> None:
    disk = SimDisk()
    logs = manager(disk, "/a")
    log = logs.get_or_create(partition(0), TOPIC, NOW_MS)
    append(log, batch(3))
    log.roll(NOW_MS)
    job = log.flush_job()
    logs.delete_async(partition(0), NOW_MS)
    anew = logs.get_or_create(partition(0), b"\6" * 16, NOW_MS)
    append(anew, batch(1))
    names = disk.listdir(anew.dir)
    job.run()
    assert disk.listdir(anew.dir) == names
    logs.close()
    again = manager(disk, "/a").get(partition(0))
    assert again is not None and again.topic_id == b"\6" * 16


def test_a_log_is_called_for_its_rolls_whether_it_was_there_before_or_comes_later() -> None:
    logs = manager(SimDisk(), "/a")
    rolled: list[TopicPartition] = []
    before = logs.get_or_create(partition(0), TOPIC, NOW_MS)
    logs.call_on_roll(lambda log: rolled.append(log.topic_partition))
    for log in (before, logs.get_or_create(partition(1), TOPIC, NOW_MS)):
        append(log, batch())
        log.roll(NOW_MS)
    assert rolled == [partition(0), partition(1)]
