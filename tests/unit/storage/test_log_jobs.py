"""Jobs keep the failure of the disk for their owner."""

import errno
import random

from sim.workload import DIRECTORY, NOW_MS, PARTITION, append, batch, new_log
from tidelog.model.errors import StorageFailure
from tidelog.storage.log_config import LogConfig
from tidelog.storage.log_dir import LogDir
from tidelog.storage.log_jobs import CheckpointJob, LoadJob, RemovalJob, tree_remover
from tidelog.storage.recovery import LoadRequest
from tidelog.testing.simulation.disk import SimDisk


def log_dir(disk: SimDisk) -> LogDir:
    disk.make_dirs("/data")
    return LogDir(disk, "/data")


def load_job(disk: SimDisk) -> LoadJob:
    return LoadJob(disk, log_dir(disk), LoadRequest(DIRECTORY, PARTITION, LogConfig(), False), random.Random(1))


def test_a_loaded_log_is_in_the_job() -> None:
    disk = SimDisk()
    append(new_log(disk), batch(3))
    job = load_job(disk)
    job.run(NOW_MS)
    assert job.failure is None
    assert job.log is not None
    assert job.log.log_end_offset == 3


def test_a_disk_that_fails_while_loading_is_in_the_job() -> None:
    disk = SimDisk()
    append(new_log(disk), batch(3))
    disk.fail("read", 1, errno.EIO)
    job = load_job(disk)
    job.run(NOW_MS)
    assert job.log is None
    assert job.failure is not None
    assert job.failure.log_dir == "/data"


def test_nothing_is_loaded_from_a_dir_that_went_offline() -> None:
    disk = SimDisk()
    append(new_log(disk), batch(3))
    job = load_job(disk)
    job.log_dir.fail(StorageFailure("/data", "smoke"))
    job.run(NOW_MS)
    assert (job.log, job.failure) == (None, None)


def test_checkpoints_are_what_they_were_when_the_job_was_made() -> None:
    disk = SimDisk()
    where = log_dir(disk)
    log = new_log(disk)
    where.logs[PARTITION] = log
    append(log, batch(2))
    job = CheckpointJob(where)
    append(log, batch(5))
    job.run()
    assert job.error is None
    file = disk.open("/data/replication-offset-checkpoint")
    assert file.read(0, 100) == b"0\n1\norders 0 2\n"


def test_a_checkpoint_that_fails_says_so() -> None:
    disk = SimDisk()
    job = CheckpointJob(log_dir(disk))
    disk.fail("sync", 1, errno.EIO)
    job.run()
    assert job.error is not None


def test_what_is_gone_already_is_removed() -> None:
    disk = SimDisk()
    where = log_dir(disk)

    def remove_nothing() -> None:
        raise FileNotFoundError(errno.ENOENT, "gone")

    for remove in (remove_nothing, tree_remover(disk, "/data/none")):
        job = RemovalJob(where, 0, "x", remove)
        job.run()
        assert job.error is None


def test_a_removal_that_fails_says_so() -> None:
    disk = SimDisk()
    where = log_dir(disk)
    disk.make_dirs("/data/x-0.1-delete")
    disk.fail("remove", 1, errno.EIO)
    job = RemovalJob(where, 0, "x", tree_remover(disk, "/data/x-0.1-delete"))
    job.run()
    assert job.error is not None
