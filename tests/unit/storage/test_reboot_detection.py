"""Whether the kernel that took the writes still runs."""

from tidelog.storage.reboot_detection import kernel_survived, note_kernel
from tidelog.testing.memory_disk import MemoryDisk
from tidelog.testing.simulation.disk import SimDisk


def test_a_kill_leaves_the_kernel_and_a_power_loss_does_not() -> None:
    disk = SimDisk()
    disk.make_dirs("/data")
    disk.sync_dir("/")
    assert not kernel_survived(disk, "/data")
    note_kernel(disk, "/data")
    assert kernel_survived(disk, "/data")
    assert kernel_survived(disk.kill(), "/data")
    after = disk.crash(1)
    assert not kernel_survived(after, "/data")
    note_kernel(after, "/data")
    assert kernel_survived(after, "/data")


def test_it_is_written_once() -> None:
    disk = SimDisk()
    disk.make_dirs("/data")
    note_kernel(disk, "/data")
    before = disk.operations
    note_kernel(disk, "/data")
    assert disk.operations == before


def test_a_system_that_does_not_name_its_boots_is_not_believed() -> None:
    disk = MemoryDisk()
    disk.make_dirs("/data")
    note_kernel(disk, "/data")
    assert not kernel_survived(disk, "/data")
