"""The simulated disk: it must lose what real disks lose, or what it proves is worth nothing."""

import errno

import pytest

from tidelog.testing.simulation.disk import PowerLoss, SimDisk
from tidelog.testing.simulation.tree import SECTOR


def contents(disk: SimDisk, path: str) -> bytes | None:
    if not disk.exists(path):
        return None
    file = disk.open(path)
    return file.read(0, file.size())


def with_file(content: bytes = b"") -> SimDisk:
    """/d/f, safe with this content."""
    disk = SimDisk()
    disk.make_dirs("/d")
    file = disk.open("/d/f", create=True)
    if content:
        file.write(0, content)
    file.sync()
    disk.sync_dir("/d")
    disk.sync_dir("/")
    return disk


def test_what_was_synced_is_there_after_every_power_loss() -> None:
    disk = with_file(b"safe")
    assert {contents(disk.crash(seed), "/d/f") for seed in range(50)} == {b"safe"}


def test_data_that_was_not_synced_may_be_there_or_not() -> None:
    disk = with_file(b"safe")
    disk.open("/d/f").write(4, b"more")
    assert {contents(disk.crash(seed), "/d/f") for seed in range(50)} >= {b"safe", b"safemore"}
    assert contents(disk, "/d/f") == b"safemore"


def test_a_name_that_was_not_synced_may_be_gone_with_its_synced_content() -> None:
    disk = with_file()
    file = disk.open("/d/new", create=True)
    file.write(0, b"x")
    file.sync()
    assert {contents(disk.crash(seed), "/d/new") for seed in range(50)} == {None, b"x"}


def test_writes_are_torn_at_sectors_and_lost_parts_are_zeroes() -> None:
    disk = with_file()
    disk.open("/d/f").write(0, b"x" * (4 * SECTOR))
    found = {contents(disk.crash(seed), "/d/f") for seed in range(300)}
    assert any(raw and b"\0" in raw for raw in found)
    for raw in found:
        assert raw is not None
        sectors = [raw[at : at + SECTOR] for at in range(0, len(raw), SECTOR)]
        assert all(sector in {b"x" * SECTOR, bytes(SECTOR)} for sector in sectors)


def test_writes_reach_the_disk_in_no_order() -> None:
    disk = with_file(b"..")
    disk.open("/d/f").write(0, b"1")
    disk.open("/d/f").write(1, b"2")
    assert {contents(disk.crash(seed), "/d/f") for seed in range(100)} == {b"..", b"1.", b".2", b"12"}


def test_names_change_in_order_and_a_rename_is_whole() -> None:
    disk = with_file(b"old")
    other = disk.open("/d/f.tmp", create=True)
    other.write(0, b"new")
    other.sync()
    disk.rename("/d/f.tmp", "/d/f")
    found = {(contents(image, "/d/f"), contents(image, "/d/f.tmp")) for image in (disk.crash(seed) for seed in range(50))}
    assert found == {(b"old", None), (b"old", b"new"), (b"new", None)}


def test_a_removed_file_may_come_back_until_the_directory_is_synced() -> None:
    disk = with_file(b"safe")
    disk.remove("/d/f")
    assert {contents(disk.crash(seed), "/d/f") for seed in range(50)} == {None, b"safe"}
    disk.sync_dir("/d")
    assert {contents(disk.crash(seed), "/d/f") for seed in range(50)} == {None}


def test_a_truncation_may_be_lost_too() -> None:
    disk = with_file(b"abcdef")
    disk.open("/d/f").truncate(2)
    assert {contents(disk.crash(seed), "/d/f") for seed in range(50)} == {b"abcdef", b"ab"}


def test_a_killed_process_loses_nothing_but_makes_nothing_safe() -> None:
    disk = with_file(b"safe")
    disk.open("/d/f").write(4, b"more")
    after = disk.kill()
    assert contents(after, "/d/f") == b"safemore"
    assert {contents(after.crash(seed), "/d/f") for seed in range(50)} >= {b"safe", b"safemore"}


def test_the_same_seed_gives_the_same_disk() -> None:
    disk = with_file()
    for number in range(20):
        disk.open("/d/f").write(number * 700, bytes([number]) * 900)
    assert contents(disk.crash(7), "/d/f") == contents(disk.crash(7), "/d/f")


def test_a_sync_that_fails_loses_the_writes_although_the_next_one_succeeds() -> None:
    disk = with_file(b"safe")
    file = disk.open("/d/f")
    file.write(4, b"more")
    disk.fail("sync", 1, errno.EIO)
    with pytest.raises(OSError, match="Input/output"):
        file.sync()
    file.sync()
    assert contents(disk, "/d/f") == b"safemore"
    assert {contents(disk.crash(seed), "/d/f") for seed in range(50)} == {b"safe"}


def test_the_nth_operation_of_a_kind_fails_where_it_should() -> None:
    disk = with_file()
    disk.open("/d/other", create=True)
    disk.fail("write", 2, errno.ESTALE, path_part="/d/f", times=2)
    file, other = disk.open("/d/f"), disk.open("/d/other")
    file.write(0, b"1")
    other.write(0, b"1")
    for _ in range(2):
        with pytest.raises(OSError) as failure:
            file.write(0, b"2")
        assert failure.value.errno == errno.ESTALE
    file.write(0, b"3")
    disk.fail("write", 1, errno.EIO)
    disk.heal()
    file.write(0, b"4")


def test_a_full_disk_takes_what_fits_and_then_refuses() -> None:
    disk = SimDisk(capacity=10)
    disk.make_dirs("/d")
    file = disk.open("/d/f", create=True)
    file.write(0, b"12345678")
    with pytest.raises(OSError, match="space") as failure:
        file.write(8, b"abcd")
    assert failure.value.errno == errno.ENOSPC
    assert contents(disk, "/d/f") == b"12345678ab"
    assert disk.usage("/d") == (10, 0)
    file.write(0, b"overwritten"[:10])


def test_every_change_is_counted_and_announced_before_it_happens() -> None:
    disk = with_file()
    seen: list[tuple[int, str, str, bytes | None]] = []
    disk.operations = 0
    disk.on_operation = lambda number, kind, path: seen.append((number, kind, path, contents(disk, "/d/f")))
    file = disk.open("/d/f")
    file.write(0, b"x")
    file.sync()
    assert seen == [(1, "write", "/d/f", b""), (2, "sync", "/d/f", b"x")]


def test_nothing_works_once_the_power_is_gone() -> None:
    disk = with_file()
    file = disk.open("/d/f")
    disk.off = True
    for use in (lambda: file.write(0, b"x"), lambda: file.read(0, 1), lambda: disk.listdir("/d"), lambda: disk.sync_dir("/d")):
        with pytest.raises(PowerLoss):
            use()


def test_an_open_file_follows_its_name_and_outlives_it() -> None:
    disk = with_file(b"content")
    file = disk.open("/d/f")
    disk.rename("/d/f", "/d/g")
    disk.rename("/d", "/e")
    assert file.path == "/e/g"
    disk.remove("/e/g")
    assert file.read(0, 10) == b"content"


def test_a_network_disk_keeps_open_files_under_another_name() -> None:
    disk = SimDisk(network=True)
    disk.make_dirs("/d")
    disk.open("/d/closed", create=True).close()
    held = disk.open("/d/held", create=True)
    disk.remove("/d/closed")
    disk.remove("/d/held")
    assert disk.listdir("/d") == [".nfs00000001"]
    held.write(0, b"x")
    disk.remove_tree("/d")
    assert disk.exists("/d")


def test_errors_are_those_of_a_real_file_system() -> None:
    disk = with_file()
    for error, use in (
        (FileNotFoundError, lambda: disk.open("/d/none")),
        (FileNotFoundError, lambda: disk.open("/none/f", create=True)),
        (FileNotFoundError, lambda: disk.stat("/d/none")),
        (FileNotFoundError, lambda: disk.remove("/d/none")),
        (FileNotFoundError, lambda: disk.rename("/d/none", "/d/x")),
        (FileNotFoundError, lambda: disk.listdir("/none")),
        (NotADirectoryError, lambda: disk.listdir("/d/f")),
        (IsADirectoryError, lambda: disk.open("/d")),
        (IsADirectoryError, lambda: disk.remove("/d")),
        (FileExistsError, lambda: disk.make_dirs("/d/f")),
    ):
        with pytest.raises(error):
            use()


def test_a_lock_is_held_by_one_and_not_across_a_stop() -> None:
    disk = with_file()
    lock = disk.lock("/d/.lock")
    with pytest.raises(BlockingIOError):
        disk.lock("/d/.lock")
    disk.kill().lock("/d/.lock")
    lock.release()
    disk.lock("/d/.lock")
