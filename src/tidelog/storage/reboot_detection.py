"""Detects whether the machine has rebooted since a directory was last written. Without a reboot no write is lost, synced or
not.

The kernel gets a new boot id with each boot. A directory stores the id of the boot that took its writes. It is written once
everything in the directory has been recovered (if a start is killed before that, the next start must not trust writes from an
earlier boot) and before anything is appended: a node that is killed early has lost no write, and must not
take damage for loss.
"""

from __future__ import annotations

from tidelog.model.ports import FileSystem
from tidelog.storage.checkpoints import read_file, replace_file

BOOT_FILE = ".tidelog_boot"


def kernel_survived(fs: FileSystem, directory: str) -> bool:
    """Whether the running kernel took all writes to the directory. Raises OSError."""
    boot_id = fs.boot_id()
    return bool(boot_id) and read_file(fs, f"{directory}/{BOOT_FILE}") == boot_id.encode("ascii")


def note_kernel(fs: FileSystem, directory: str) -> None:
    """Stores the boot id once the directory is recovered; writes from now on belong to this kernel. Blocks; raises OSError."""
    boot_id = fs.boot_id()
    if boot_id and not kernel_survived(fs, directory):
        replace_file(fs, f"{directory}/{BOOT_FILE}", boot_id.encode("ascii"))
