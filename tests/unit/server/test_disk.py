"""The real disk: bounded descriptors, whole writes, final sync failures, locks that exclude a JVM."""

import errno
import gc
import os
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import pytest

from tidelog.server import disk as disk_module
from tidelog.server.disk import DiskFileSystem


def test_files_are_read_and_written_by_position(tmp_path: Path) -> None:
    file = DiskFileSystem().open(f"{tmp_path}/a", create=True)
    assert file.write(3, b"abc") == 3
    assert file.write(6, [b"de", bytearray(b"f"), memoryview(b"gh")]) == 5
    assert file.read(0, 100) == b"\0\0\0abcdefgh"
    assert (file.read(4, 2), file.read(11, 5), file.size()) == (b"bc", b"", 11)
    file.truncate(4)
    assert file.read(0, 100) == b"\0\0\0a"
    file.sync()


def test_many_buffers_are_written_as_one(tmp_path: Path) -> None:
    file = DiskFileSystem().open(f"{tmp_path}/a", create=True)
    buffers = [bytes([n % 256]) * (n % 7) for n in range(5000)]
    assert file.write(10, buffers) == sum(map(len, buffers))
    assert file.read(10, 1 << 20) == b"".join(buffers)


def test_a_partial_write_is_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = DiskFileSystem().open(f"{tmp_path}/a", create=True)
    real = os.pwrite
    monkeypatch.setattr(disk_module, "write_at", lambda fd, data, position: real(fd, memoryview(data)[:3], position))
    monkeypatch.setattr(os, "pwritev", lambda fd, data, position: real(fd, b"".join(data)[:2], position), raising=False)
    assert file.write(0, b"0123456789") == 10
    assert file.write(10, [b"abc", b"def"]) == 6
    assert file.read(0, 100) == b"0123456789abcdef"


def test_a_write_that_makes_no_progress_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = DiskFileSystem().open(f"{tmp_path}/a", create=True)
    monkeypatch.setattr(disk_module, "write_at", lambda fd, data, position: 0)
    with pytest.raises(OSError, match="none"):
        file.write(0, b"abc")


def test_a_short_read_is_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = DiskFileSystem().open(f"{tmp_path}/a", create=True)
    file.write(0, b"0123456789")
    real = os.pread
    monkeypatch.setattr(disk_module, "read_at", lambda fd, length, position: real(fd, min(length, 3), position))
    assert file.read(1, 8) == b"12345678"


def test_a_file_that_is_not_there_is_not_made_without_asking(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        DiskFileSystem().open(f"{tmp_path}/a")


def test_descriptors_stay_within_the_limit_and_every_file_works(tmp_path: Path) -> None:
    disk = DiskFileSystem(descriptor_limit=10)
    files = [disk.open(f"{tmp_path}/{n}", create=True) for n in range(100)]
    for round_number in range(3):
        for number, file in enumerate(files):
            file.write(round_number, bytes([number]))
    assert disk.pool.open_count() <= 11
    assert [file.read(0, 3) for file in files] == [bytes([n]) * 3 for n in range(100)]


def test_a_descriptor_in_use_outlives_its_place_in_the_pool(tmp_path: Path) -> None:
    disk = DiskFileSystem(descriptor_limit=2)
    file = disk.open(f"{tmp_path}/held", create=True)
    file.write(0, b"held")
    held = file.descriptor()
    _others = [disk.open(f"{tmp_path}/{n}", create=True) for n in range(50)]
    assert os.pread(held.fd, 10, 0) == b"held"
    alive = weakref.ref(held)
    del held
    assert alive() is None
    assert file.read(0, 10) == b"held"


def test_threads_share_files_under_a_tight_limit(tmp_path: Path) -> None:
    disk = DiskFileSystem(descriptor_limit=3)
    files = [disk.open(f"{tmp_path}/{n}", create=True) for n in range(12)]
    for number, file in enumerate(files):
        file.write(0, bytes([number]) * 64)
    wrong: list[int] = []

    def read_all() -> None:
        for _ in range(200):
            wrong.extend(number for number, file in enumerate(files) if file.read(0, 64) != bytes([number]) * 64)

    threads = [threading.Thread(target=read_all) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_open_files_follow_a_renamed_file_and_directory(tmp_path: Path) -> None:
    disk = DiskFileSystem()
    disk.make_dirs(f"{tmp_path}/d/deep")
    file = disk.open(f"{tmp_path}/d/deep/a", create=True)
    file.write(0, b"content")
    disk.rename(f"{tmp_path}/d/deep/a", f"{tmp_path}/d/deep/b")
    disk.rename(f"{tmp_path}/d", f"{tmp_path}/e")
    file.close()
    assert (file.path, file.read(0, 10)) == (f"{tmp_path}/e/deep/b", b"content")


def test_a_sync_that_failed_once_fails_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(fd: int, *, data_only: bool) -> None:
        raise OSError(errno.EIO, "lost write")

    file = DiskFileSystem().open(f"{tmp_path}/a", create=True)
    with monkeypatch.context() as broken:
        broken.setattr(disk_module, "_sync", lost)
        with pytest.raises(OSError, match="lost write"):
            file.sync()
    file.close()
    with pytest.raises(OSError, match="lost write"):
        file.sync()


def test_a_lock_excludes_this_and_other_processes_until_released(tmp_path: Path) -> None:
    disk = DiskFileSystem()
    path = f"{tmp_path}/.lock"
    program = f"import fcntl; fcntl.lockf(open({path!r}, 'a'), fcntl.LOCK_EX | fcntl.LOCK_NB)"

    def another_process_gets_it() -> bool:
        return subprocess.run([sys.executable, "-c", program], capture_output=True, check=False).returncode == 0

    lock = disk.lock(path)
    with pytest.raises(BlockingIOError):
        DiskFileSystem().lock(path)
    assert not another_process_gets_it()
    lock.release()
    lock.release()
    assert another_process_gets_it()
    disk.lock(path).release()


def test_a_lock_of_another_process_is_respected(tmp_path: Path) -> None:
    path = f"{tmp_path}/.lock"
    program = f"import fcntl; f = open({path!r}, 'a'); fcntl.lockf(f, fcntl.LOCK_EX); print('held', flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(BlockingIOError):
            DiskFileSystem().lock(path)
        other.communicate(b"\n")
    DiskFileSystem().lock(path).release()


def test_listings_are_sorted_and_hide_what_a_network_file_system_keeps(tmp_path: Path) -> None:
    for name in ("b", "a", ".nfs00000001", ".lock"):
        (tmp_path / name).touch()
    assert DiskFileSystem().listdir(str(tmp_path)) == [".lock", "a", "b"]


def test_a_tree_goes_with_all_that_is_in_it_and_its_absence_is_no_error(tmp_path: Path) -> None:
    disk = DiskFileSystem()
    disk.make_dirs(f"{tmp_path}/d/e")
    disk.open(f"{tmp_path}/d/e/f", create=True)
    disk.remove_tree(f"{tmp_path}/d")
    disk.remove_tree(f"{tmp_path}/d")
    assert not disk.exists(f"{tmp_path}/d")


def test_a_tree_may_stay_for_files_that_a_network_file_system_still_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def held(path: str) -> None:
        raise OSError(errno.ENOTEMPTY, "directory not empty", path)

    monkeypatch.setattr("shutil.rmtree", held)
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / ".nfs0001").touch()
    DiskFileSystem().remove_tree(f"{tmp_path}/d")
    (tmp_path / "d" / "real").touch()
    with pytest.raises(OSError, match="not empty"):
        DiskFileSystem().remove_tree(f"{tmp_path}/d")


def test_stat_tells_size_time_and_kind(tmp_path: Path) -> None:
    disk = DiskFileSystem()
    disk.open(f"{tmp_path}/a", create=True).write(0, b"12345")
    os.utime(f"{tmp_path}/a", ns=(0, 1_700_000_000_123_000_000))
    found = disk.stat(f"{tmp_path}/a")
    assert (found.size, found.modified_ms, found.is_dir) == (5, 1_700_000_000_123, False)
    assert disk.stat(str(tmp_path)).is_dir
    assert disk.exists(f"{tmp_path}/a")
    assert not disk.exists(f"{tmp_path}/a/b")
    disk.remove(f"{tmp_path}/a")
    with pytest.raises(FileNotFoundError):
        disk.remove(f"{tmp_path}/a")


def test_directories_sync_and_volumes_have_room(tmp_path: Path) -> None:
    disk = DiskFileSystem()
    disk.sync_dir(str(tmp_path))
    total, usable = disk.usage(str(tmp_path))
    assert total >= usable > 0
    with pytest.raises(FileNotFoundError):
        disk.sync_dir(f"{tmp_path}/none")


def test_forgotten_files_leave_nothing_behind(tmp_path: Path) -> None:
    disk = DiskFileSystem(descriptor_limit=50)
    for number in range(3000):
        disk.open(f"{tmp_path}/{number % 5}", create=True)
    gc.collect()
    assert disk.pool.open_count() == 0


def test_an_open_that_finds_no_descriptor_left_takes_one_from_the_log_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = DiskFileSystem(descriptor_limit=100)
    files = [disk.open(f"{tmp_path}/{n}", create=True) for n in range(5)]
    real = os.open

    def full(path: str, flags: int, mode: int = 0o777) -> int:
        if disk.pool.open_count() >= 5:
            raise OSError(errno.EMFILE, "Too many open files")
        return real(path, flags, mode)

    monkeypatch.setattr(os, "open", full)
    one_more = disk.open(f"{tmp_path}/more", create=True)
    one_more.write(0, b"there")
    assert one_more.read(0, 5) == b"there"
    for file in files:
        file.write(0, b"still")
        assert file.read(0, 5) == b"still"
    disk.sync_dir(str(tmp_path))


def test_without_any_descriptor_to_give_up_the_error_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    disk = DiskFileSystem(descriptor_limit=100)
    monkeypatch.setattr(os, "open", full)
    with pytest.raises(OSError, match="Too many"):
        disk.open(f"{tmp_path}/a", create=True)


def test_a_file_that_is_renamed_while_another_thread_opens_it_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = DiskFileSystem()
    file = disk.open(f"{tmp_path}/a", create=True)
    file.write(0, b"abc")
    file.close()
    read: list[bytes] = []
    real = os.rename

    def rename(source: str, target: str) -> None:
        real(source, target)
        # The name on the disk is the new one, the file does not know it yet.
        reader = threading.Thread(target=lambda: read.append(file.read(0, 3)))
        readers.append(reader)
        reader.start()
        reader.join(0.2)

    readers: list[threading.Thread] = []
    monkeypatch.setattr(os, "rename", rename)
    disk.rename(f"{tmp_path}/a", f"{tmp_path}/b")
    readers[0].join(10)
    assert read == [b"abc"]


def test_as_many_descriptors_as_the_system_grants_are_claimed() -> None:
    script = (
        "from resource import *; setrlimit(RLIMIT_NOFILE, (256, getrlimit(RLIMIT_NOFILE)[1]))\n"
        "from tidelog.server.disk import DiskFileSystem; print(DiskFileSystem().pool.limit, *getrlimit(RLIMIT_NOFILE))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    limit, soft, hard = map(int, done.stdout.split())
    assert hard == 256 or soft > 256
    assert limit == max(soft // 2, 64)
