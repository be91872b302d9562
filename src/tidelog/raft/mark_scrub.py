"""The scrub of the small files beside a running replica's metadata log: ``quorum-state`` and the two notes of ``mark_files``.

A start would refuse a damaged vote or ``tidelog-lost-end``, and believe less without ``tidelog-flushed``. What they say is in
memory, so they are written again.
"""

from __future__ import annotations

import logging

from tidelog.metadata.records import MetadataLogError
from tidelog.model.ports import FileSystem
from tidelog.raft import quorum_state
from tidelog.raft.log_shape import LogEnd
from tidelog.raft.mark_files import FLUSHED, LOST_END, flushed_is_damaged, read_lost_end, write_lost_end

_logger = logging.getLogger(__name__)


def check_marks(fs: FileSystem, directory: str, lost_end: LogEnd) -> list[str]:
    """Names of the damaged files. ``tidelog-lost-end`` is written again with ``lost_end``, since only a start writes it
    otherwise; ``quorum-state`` and ``tidelog-flushed`` are left to those that replace them while the node runs. A file without
    a checksum, as Apache Kafka writes it, counts as sound while it reads. Blocks; raises OSError."""
    found = []
    try:
        quorum_state.load(fs, directory)
    except MetadataLogError:
        found.append(quorum_state.FILE_NAME)
    if flushed_is_damaged(fs, directory):
        found.append(FLUSHED)
    try:
        read_lost_end(fs, directory)
    except MetadataLogError:
        write_lost_end(fs, directory, lost_end)
        found.append(LOST_END)
    for name in found:
        _logger.error("%s/%s: the scrub found it damaged: it is written again", directory, name)
    return found
