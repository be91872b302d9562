"""Which log dirs can be used, and which one takes a new partition."""

import errno
import random

import pytest

from tidelog.model.errors import ConfigError, StorageFailure
from tidelog.storage import checkpoints
from tidelog.storage.checkpoints import MetaProperties
from tidelog.storage.log_dirs import LogDirs
from tidelog.testing.simulation.disk import SimDisk

IDS = {"/a": b"\1" * 16, "/b": b"\2" * 16}


def formatted(disk: SimDisk) -> SimDisk:
    for path, directory_id in IDS.items():
        disk.make_dirs(path)
        checkpoints.replace_file(disk, f"{path}/meta.properties", MetaProperties("c1", 1, directory_id).encode())
    return disk


def opened(disk: SimDisk) -> LogDirs:
    dirs = LogDirs(disk, ["/a", "/b/"])
    assert dirs.open(1, None, random.Random(1)) == "c1"
    return dirs


def test_all_dirs_are_opened_and_known_by_their_path() -> None:
    dirs = opened(formatted(SimDisk()))
    assert [each.path for each in dirs.online()] == ["/a", "/b"]
    assert dirs.at("/b").directory_id == IDS["/b"]
    with pytest.raises(ValueError, match="/c is none"):
        dirs.at("/c")


def test_a_dir_that_fails_is_offline_and_the_others_are_used() -> None:
    disk = formatted(SimDisk())
    disk.fail("lock", 1, errno.EIO, path_part="/a/")
    dirs = opened(disk)
    assert [each.path for each in dirs.online()] == ["/b"]


def test_without_any_dir_nothing_starts() -> None:
    disk = formatted(SimDisk())
    disk.fail("lock", 1, errno.EIO, times=2)
    with pytest.raises(StorageFailure, match="/a"):
        LogDirs(disk, ["/a", "/b"]).open(1, None, random.Random(1))


def test_a_dir_of_another_cluster_is_refused() -> None:
    with pytest.raises(ConfigError, match="c1"):
        LogDirs(formatted(SimDisk()), ["/a", "/b"]).open(1, "c2", random.Random(1))


def test_a_partition_goes_into_the_dir_with_its_id_or_the_emptiest() -> None:
    dirs = opened(formatted(SimDisk()))
    assert dirs.choose(IDS["/b"]).path == "/b"
    assert dirs.choose(None).path == "/a"


def test_no_partition_begins_elsewhere_while_it_may_lie_in_a_dir_that_is_offline() -> None:
    dirs = opened(formatted(SimDisk()))
    dirs.at("/a").fail(StorageFailure("/a", "gone"))
    assert dirs.choose(None).path == "/b"
    with pytest.raises(StorageFailure, match="offline"):
        dirs.choose(IDS["/a"])
    dirs.at("/b").fail(StorageFailure("/b", "gone"))
    with pytest.raises(StorageFailure, match="no log dir is online"):
        dirs.choose(None)


def test_an_unfinished_copy_goes_only_where_its_partition_is_left() -> None:
    disk = formatted(SimDisk())
    for name in ("/a/t-0", "/b/t-0.11-future", "/b/t-1.22-future"):
        disk.make_dirs(name)
    opened(disk).discard_unfinished_copies()
    assert [name for name in disk.listdir("/b") if name.startswith("t-")] == ["t-0.11-delete", "t-1.22-future"]
