from __future__ import annotations

import errno

import pytest

from tidelog.testing.memory_disk import MemoryDisk


def disk_with(*dirs: str) -> MemoryDisk:
    disk = MemoryDisk()
    for path in dirs:
        disk.make_dirs(path)
    return disk


def test_bytes_are_where_they_were_written_and_gaps_are_zero() -> None:
    file = disk_with("/d").open("/d/f", create=True)
    assert file.write(3, [b"ab", memoryview(b"c")]) == 3
    assert (file.read(0, 100), file.size(), file.read(4, 1)) == (b"\0\0\0abc", 6, b"b")
    file.truncate(4)
    assert file.read(0, 10) == b"\0\0\0a"


def test_an_open_file_outlives_its_name() -> None:
    disk = disk_with("/d")
    file = disk.open("/d/f", create=True)
    file.write(0, b"x")
    disk.rename("/d/f", "/d/g")
    disk.remove("/d/g")
    assert file.read(0, 1) == b"x" and not disk.exists("/d/g")


def test_a_directory_is_renamed_with_all_below_it() -> None:
    disk = disk_with("/d/a/b")
    disk.open("/d/a/b/f", create=True)
    disk.rename("/d/a", "/d/z")
    assert (disk.listdir("/d"), disk.listdir("/d/z"), disk.exists("/d/z/b/f")) == (["z"], ["b"], True)
    disk.remove_tree("/d/z")
    assert disk.listdir("/d") == []


def test_what_is_not_there_is_said() -> None:
    disk = disk_with("/d")
    for call in (disk.open, disk.stat, disk.remove, disk.listdir):
        with pytest.raises(FileNotFoundError):
            call("/d/none")
    with pytest.raises(FileNotFoundError):
        disk.open("/none/f", create=True)
    with pytest.raises(FileNotFoundError):
        disk.rename("/d/none", "/d/other")
    disk.remove_tree("/d/none")


def test_a_lock_is_held_once() -> None:
    disk = disk_with("/d")
    lock = disk.lock("/d/.lock")
    with pytest.raises(BlockingIOError):
        disk.lock("/d/.lock")
    lock.release()
    disk.lock("/d/.lock")


def test_a_full_disk_takes_nothing_until_it_has_room_again() -> None:
    disk = disk_with("/d")
    file = disk.open("/d/f", create=True)
    disk.full = True
    with pytest.raises(OSError) as caught:
        file.write(0, b"x")
    assert caught.value.errno == errno.ENOSPC and disk.usage("/d")[1] == 0
    disk.full = False
    assert file.write(0, b"x") == 1
