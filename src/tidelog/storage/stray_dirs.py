"""Stray directories of a log dir: partitions that a start set aside because the metadata did not place them on the node.

No node reads them. Apache Kafka makes the same names, ``<topic>-<n>.<32 hex digits>-stray``; their reason is not stored, so it is
concluded from what else lies in the log dirs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tidelog.model.ids import TopicPartition
from tidelog.model.ports import FileSystem
from tidelog.storage.checkpoints import BadCheckpoint, read_partition_metadata
from tidelog.storage.log_dir import STRAY_SUFFIX
from tidelog.storage.segment import LOG_SUFFIX

_NAME = re.compile(r"(.+)-(\d+)\.[0-9a-f]{32}" + STRAY_SUFFIX)
_SEGMENT = re.compile(r"(\d{20})" + re.escape(LOG_SUFFIX))

NOT_PLACED = (
    "the metadata placed no such partition on this node when it started: the topic was deleted or the partition moved away while "
    "the node was down, or metadata was lost"
)
CREATED_AGAIN = "a topic of the same name was created again: {} has another topic id"
COPIED_AGAIN = "it was not placed on this node when the node started, and was later: {} has the same topic id"


class StrayDir(NamedTuple):
    """``partition``: as the name says it; a long topic name is cut in it. ``topic_id``: None where none can be read. ``bytes``:
    of the segments' ``.log`` files. ``first_offset``: base offset of the first segment, None without one. ``written_ms``: the
    last change of a segment, in ms since the epoch; 0 without one."""

    path: str
    partition: TopicPartition
    topic_id: bytes | None
    segments: int
    bytes: int
    first_offset: int | None
    written_ms: int
    why: str


def find_stray_dirs(fs: FileSystem, log_dirs: Iterable[str]) -> Iterator[StrayDir]:
    """The stray directories of these log dirs, which must exist, in their order. Blocks; raises OSError."""
    dirs = list(log_dirs)
    for log_dir in dirs:
        for name in fs.listdir(log_dir):
            match = _NAME.fullmatch(name)
            path = f"{log_dir}/{name}"
            if match is not None and fs.stat(path).is_dir:
                yield _described(fs, path, TopicPartition(match[1], int(match[2])), dirs)


def _described(fs: FileSystem, path: str, partition: TopicPartition, log_dirs: list[str]) -> StrayDir:
    segments = sorted(name for name in fs.listdir(path) if _SEGMENT.fullmatch(name))
    stats = [fs.stat(f"{path}/{name}") for name in segments]
    topic_id = _topic_id(fs, path)
    return StrayDir(
        path=path,
        partition=partition,
        topic_id=topic_id,
        segments=len(segments),
        bytes=sum(stat.size for stat in stats),
        first_offset=int(segments[0].removesuffix(LOG_SUFFIX)) if segments else None,
        written_ms=max((stat.modified_ms for stat in stats), default=0),
        why=_why(fs, partition, topic_id, log_dirs),
    )


def _topic_id(fs: FileSystem, path: str) -> bytes | None:
    try:
        return read_partition_metadata(fs, path)
    except BadCheckpoint:
        return None


def _why(fs: FileSystem, partition: TopicPartition, topic_id: bytes | None, log_dirs: list[str]) -> str:
    for log_dir in log_dirs:
        served = f"{log_dir}/{partition}"
        if fs.exists(served) and (its_id := _topic_id(fs, served)) is not None and topic_id is not None:
            return (COPIED_AGAIN if its_id == topic_id else CREATED_AGAIN).format(served)
    return NOT_PLACED
