"""Copies of logs in other dirs: dropped, put in place, and what a failing dir does to them."""

import errno

import pytest

from sim.workload import NOW_MS, append, batch
from tests.unit.storage.managed_logs import TOPIC, manager, partition
from tidelog.model.errors import StorageFailure
from tidelog.testing.simulation.disk import SimDisk


def test_a_dropped_copy_leaves_the_log_where_it_is() -> None:
    disk = SimDisk()
    logs = manager(disk, "/a", "/b")
    log = logs.get_or_create(partition(0), TOPIC, NOW_MS)
    copy = logs.future.create(log, logs.dirs[1], 0, NOW_MS)
    assert copy.dir.startswith("/b/orders-0.") and copy.dir.endswith("-future")
    assert logs.get(partition(0)) is log
    logs.future.drop(partition(0), NOW_MS)
    logs.future.drop(partition(0), NOW_MS)
    (job,) = logs.upkeep.removals_due(NOW_MS)
    job.run()
    assert (logs.future.copies, logs.get(partition(0))) == ({}, log)
    assert not any(name.startswith("orders") for name in disk.listdir("/b"))


def test_a_copy_in_its_place_is_the_log_and_the_old_one_is_deleted_after_its_delay() -> None:
    disk = SimDisk()
    logs = manager(disk, "/a", "/b")
    old = logs.get_or_create(partition(0), TOPIC, NOW_MS)
    append(old, batch(2))
    copy = logs.future.create(old, logs.dirs[1], 0, NOW_MS)
    append(copy, batch(2))
    logs.future.put_in_place(partition(0), NOW_MS)
    assert (logs.get(partition(0)), logs.dir_of(partition(0)), copy.dir) == (copy, logs.dirs[1], "/b/orders-0")
    assert [tuple(each.logs) for each in logs.dirs] == [(), (partition(0),)]
    (left,) = [name for name in disk.listdir("/a") if name.startswith("orders")]
    assert left.endswith("-delete")
    assert logs.upkeep.removals_due(NOW_MS + 59_999) == []
    assert len(logs.upkeep.removals_due(NOW_MS + 60_000)) == 1


@pytest.mark.parametrize("kind", ["mkdir", "rename"])
def test_a_target_that_fails_goes_offline_and_the_log_stays(kind: str) -> None:
    disk = SimDisk()
    logs = manager(disk, "/a", "/b")
    log = logs.get_or_create(partition(0), TOPIC, NOW_MS)
    disk.fail(kind, 1, errno.EIO, path_part="/b/")
    with pytest.raises(StorageFailure, match="/b"):
        logs.future.create(log, logs.dirs[1], 0, NOW_MS)
        logs.future.put_in_place(partition(0), NOW_MS)
    assert ([each.online for each in logs.dirs], logs.get(partition(0))) == ([True, False], log)
