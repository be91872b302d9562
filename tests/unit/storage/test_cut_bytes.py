"""What is kept of what recovery cuts."""

import errno

import pytest

from tidelog.storage import cut_bytes
from tidelog.storage.cut_bytes import keep_bytes, keep_file
from tidelog.testing.simulation.disk import SimDisk

PATH = "/data/t-0/00000000000000000000.log"


def disk_with(content: bytes) -> SimDisk:
    disk = SimDisk()
    disk.make_dirs("/data/t-0")
    disk.open(PATH, create=True).write(0, content)
    return disk


def names(disk: SimDisk) -> list[str]:
    return [name for name in disk.listdir("/data/t-0") if name.endswith(".cut")]


def test_bytes_are_copied_under_a_name_of_their_own_each_time() -> None:
    disk = disk_with(b"0123456789")
    assert keep_bytes(disk, disk.open(PATH), PATH, 4, 10) == f"{PATH}.4-1.cut"
    assert keep_bytes(disk, disk.open(PATH), PATH, 4, 9) == f"{PATH}.4-2.cut"
    assert disk.open(f"{PATH}.4-1.cut").read(0, 99) == b"456789"
    disk.sync_dir("/data")
    disk.sync_dir("/")
    assert disk.crash(3).open(f"{PATH}.4-2.cut").read(0, 99) == b"45678"


def test_zeroes_are_not_kept() -> None:
    disk = disk_with(b"ab" + bytes(100))
    assert keep_bytes(disk, disk.open(PATH), PATH, 2, 102) is None
    assert names(disk) == []


def test_the_newest_copy_stays_and_the_oldest_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cut_bytes, "MOST_FILES", 3)
    monkeypatch.setattr(cut_bytes, "MOST_BYTES", 25)
    disk = disk_with(b"x" * 40)
    for number in range(5):
        disk.now_ms = number
        keep_bytes(disk, disk.open(PATH), PATH, number, number + 2)
    assert [name.split(".")[2] for name in names(disk)] == ["2-3", "3-4", "4-5"]
    disk.now_ms = 9
    keep_bytes(disk, disk.open(PATH), PATH, 9, 40)
    assert [name.split(".")[2] for name in names(disk)] == ["9-6"]


def test_on_a_full_disk_nothing_is_kept() -> None:
    disk = disk_with(b"0123456789")
    disk.fill("/data", 2)
    assert keep_bytes(disk, disk.open(PATH), PATH, 0, 10) is None
    assert names(disk) == []


def test_copies_of_one_occasion_do_not_push_each_other_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cut_bytes, "MOST_FILES", 3)
    disk = disk_with(b"x" * 40)
    for number in range(3):
        keep_bytes(disk, disk.open(PATH), PATH, number, number + 2)
    made: list[str] = []
    for number in range(5):
        keep_bytes(disk, disk.open(PATH), PATH, number, number + 2, made=made)
    assert (len(made), {f"/data/t-0/{name}" for name in names(disk)}) == (5, {*made})


def test_a_segment_with_an_old_date_is_new_among_the_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cut_bytes, "MOST_FILES", 2)
    disk = disk_with(b"x" * 40)  # written at 0 ms
    disk.open("/data/t-0/other.log", create=True).write(0, b"y")
    disk.now_ms = 5
    for number in range(3):
        keep_bytes(disk, disk.open("/data/t-0/other.log"), "/data/t-0/other.log", 0, 1)
        if number == 1:
            kept = keep_file(disk, PATH)
    assert kept is not None
    assert disk.exists(kept)


@pytest.mark.parametrize("code", [errno.EDQUOT, errno.EFBIG, errno.ENOSPC])
@pytest.mark.parametrize("kind", ["create", "write", "sync"])
def test_no_room_by_quota_or_size_is_no_room(code: int, kind: str) -> None:
    disk = disk_with(b"0123456789")
    disk.fail(kind, 1, code, path_part=".cut")
    assert keep_bytes(disk, disk.open(PATH), PATH, 0, 10) is None
    assert names(disk) == []


def test_any_other_failure_is_the_callers() -> None:
    disk = disk_with(b"0123456789")
    disk.fail("sync", 1, errno.EIO)
    with pytest.raises(OSError, match="Input/output"):
        keep_bytes(disk, disk.open(PATH), PATH, 0, 10)


def test_a_whole_file_keeps_its_bytes_and_an_empty_one_goes() -> None:
    disk = disk_with(b"0123456789")
    assert keep_file(disk, PATH) == f"{PATH}.0-1.cut"
    assert not disk.exists(PATH)
    disk.open(PATH, create=True)
    assert keep_file(disk, PATH) is None
    assert not disk.exists(PATH)
