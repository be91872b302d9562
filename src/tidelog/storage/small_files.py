"""The scrub of small files whose content a running node knows: they are compared, and written again if a bit has flipped.

``meta.properties`` and ``.tidelog_boot`` of a log dir, ``partition.metadata`` and ``tidelog-damaged`` of a partition: a start
would refuse them, or believe less. The checkpoints of a log dir are replaced every few seconds anyway, and ``tidelog-cut`` is
removed then.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

from tidelog.model.ports import FileSystem
from tidelog.storage.checkpoints import (
    META_PROPERTIES,
    PARTITION_METADATA,
    BadCheckpoint,
    MetaProperties,
    encode_partition_metadata,
    read_file,
    read_meta_properties,
    replace_file,
)
from tidelog.storage.known_damage import DAMAGED, read_damaged
from tidelog.storage.reboot_detection import BOOT_FILE, kernel_survived, note_kernel

SUFFIX = ".scrub.tmp"
_logger = logging.getLogger(__name__)


class PartitionFiles(NamedTuple):
    """A partition's directory as it was when the check began. ``topic_id``: None for a log without one."""

    fs: FileSystem
    directory: str
    topic_id: bytes | None

    def check(self) -> list[str]:
        """Names of the files that are damaged. ``partition.metadata`` is written again; the list of damaged segments is left to
        its writer. Blocks; raises OSError."""
        found = []
        path = f"{self.directory}/{PARTITION_METADATA}"
        stored = read_file(self.fs, path)
        if self.topic_id is not None and stored and stored.strip() != (right := encode_partition_metadata(self.topic_id)):
            _note(path)
            replace_file(self.fs, path, right, temporary=path + SUFFIX)
            found.append(PARTITION_METADATA)
        if read_damaged(self.fs, self.directory) is None:
            _note(f"{self.directory}/{DAMAGED}")
            found.append(DAMAGED)
        return found


def check_log_dir(fs: FileSystem, path: str, meta: MetaProperties, *, kernel_noted: bool) -> list[str]:
    """Names of the damaged files of a log dir in service, which are written again. Blocks; raises OSError."""
    found = []
    try:
        stored = read_meta_properties(fs, path)
    except BadCheckpoint:
        stored = None
    if stored != meta:
        _note(f"{path}/{META_PROPERTIES}")
        replace_file(fs, f"{path}/{META_PROPERTIES}", meta.encode(), temporary=f"{path}/{META_PROPERTIES}{SUFFIX}")
        found.append(META_PROPERTIES)
    if kernel_noted and fs.boot_id() and not kernel_survived(fs, path):
        _note(f"{path}/{BOOT_FILE}")
        note_kernel(fs, path)
        found.append(BOOT_FILE)
    return found


def _note(path: str) -> None:
    _logger.error("%s: the scrub found it damaged: it is written again", path)
