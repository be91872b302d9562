"""Every bit of the small files that the scrub compares."""

from __future__ import annotations

from collections.abc import Callable

from sim.workload import DIRECTORY, TOPIC_ID, append, batch, new_log
from tidelog.storage import checkpoints
from tidelog.storage.checkpoints import META_PROPERTIES, PARTITION_METADATA, MetaProperties
from tidelog.storage.known_damage import DAMAGED, DamageJob
from tidelog.storage.reboot_detection import BOOT_FILE, note_kernel
from tidelog.storage.small_files import PartitionFiles, check_log_dir
from tidelog.testing.simulation.disk import SimDisk

META = MetaProperties("a-cluster", 7, bytes(range(16)))


def content(disk: SimDisk, path: str) -> bytes:
    return checkpoints.read_file(disk, path) or b""


def every_flip(
    disk: SimDisk,
    path: str,
    check: Callable[[], list[str]],
    *,
    mended: bool = True,
    harmless: Callable[[], bool] = lambda: False,
) -> None:
    right = content(disk, path)
    assert right and check() == []
    for position in range(len(right)):
        for bit in range(8):
            disk.flip(path, position, bit)
            if harmless():
                disk.flip(path, position, bit)
                continue
            assert check() == [path.rpartition("/")[2]], (position, bit)
            if mended:
                assert content(disk, path) == right, (position, bit)
                assert check() == []
            else:
                disk.flip(path, position, bit)


def log_dir() -> SimDisk:
    disk = SimDisk()
    disk.make_dirs("/data")
    checkpoints.replace_file(disk, f"/data/{META_PROPERTIES}", META.encode())
    note_kernel(disk, "/data")
    return disk


def test_every_bit_of_the_boot_file() -> None:
    disk = log_dir()
    every_flip(disk, f"/data/{BOOT_FILE}", lambda: check_log_dir(disk, "/data", META, kernel_noted=True))


def test_every_bit_of_meta_properties_but_those_that_change_a_comment_or_an_unused_bit() -> None:
    disk = log_dir()

    def reads_the_same() -> bool:
        try:
            return checkpoints.read_meta_properties(disk, "/data") == META
        except checkpoints.BadCheckpoint:
            return False

    every_flip(
        disk,
        f"/data/{META_PROPERTIES}",
        lambda: check_log_dir(disk, "/data", META, kernel_noted=True),
        harmless=reads_the_same,
    )


def test_a_boot_file_that_is_not_written_yet_is_no_damage() -> None:
    disk = log_dir()
    disk.remove(f"/data/{BOOT_FILE}")
    assert check_log_dir(disk, "/data", META, kernel_noted=False) == []


def test_a_meta_properties_of_kafka_without_a_checksum_is_sound() -> None:
    disk = log_dir()
    lines = META.encode().splitlines(keepends=True)
    checkpoints.replace_file(disk, f"/data/{META_PROPERTIES}", b"#a date\n" + b"".join(lines[:-1]))
    assert check_log_dir(disk, "/data", META, kernel_noted=True) == []


def test_every_bit_of_partition_metadata() -> None:
    disk = SimDisk()
    log = new_log(disk)
    append(log, batch(1))
    log.flush()
    files = PartitionFiles(disk, DIRECTORY, TOPIC_ID)
    every_flip(disk, f"{DIRECTORY}/{PARTITION_METADATA}", files.check)


def test_every_bit_of_the_list_of_damaged_segments() -> None:
    disk = SimDisk()
    log = new_log(disk)
    assert DamageJob(disk, log, frozenset({0, 17})).run()
    files = PartitionFiles(disk, DIRECTORY, None)
    every_flip(disk, f"{DIRECTORY}/{DAMAGED}", files.check, mended=False)
