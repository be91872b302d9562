"""Whether the machine has been up since a directory was last written: then no write to it is lost, synced or not.

The kernel has another id after each boot. A directory holds the id of the boot that took its writes. The id is written once
everything in the directory is recovered: a start that is killed before that must not make the next one believe what an earlier
boot left.
"""

from __future__ import annotations

from tidelog.model.ports import FileSystem
from tidelog.storage.checkpoints import read_file, replace_file

BOOT_FILE = ".tidelog_boot"


def kernel_survived(fs: FileSystem, directory: str) -> bool:
    """Whether this kernel is the one that took all writes to the directory. OSError as it comes."""
    boot_id = fs.boot_id()
    return bool(boot_id) and read_file(fs, f"{directory}/{BOOT_FILE}") == boot_id.encode("ascii")


def note_kernel(fs: FileSystem, directory: str) -> None:
    """Everything in the directory is recovered, and writes from now on are this kernel's. Blocks; OSError as it comes."""
    boot_id = fs.boot_id()
    if boot_id and not kernel_survived(fs, directory):
        replace_file(fs, f"{directory}/{BOOT_FILE}", boot_id.encode("ascii"))
