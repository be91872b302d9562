"""What is known to be flushed after an unclean stop: more than Apache Kafka's recovery point says, and never more than is true.

Apache Kafka's checkpoint holds an offset to recover from, which may be the last flushed record's own. Two files of tidelog's say
the rest; both have a checksum, and without them a start believes the checkpoint.

``tidelog-flushed-checkpoint`` in a log dir, written right after the recovery points: for each partition its topic id, its
recovery point and the end of what was flushed. Another topic id means that the offsets are those of an older topic of that name.
Another recovery point means that the files are of two moments (a crash in between, or Apache Kafka used the dir): the lower one
counts.

``tidelog-cut`` in a partition's directory: where the log was cut after the checkpoint with a number was made. Until a later one
is written, what the checkpoint says of offsets behind the cut was true of other records. Then the file is removed; as long as
it is there, later checkpoints have higher numbers.
"""

from __future__ import annotations

import binascii
import logging
from collections.abc import Mapping
from typing import NamedTuple, Protocol

from tidelog.model.ids import TopicPartition
from tidelog.model.ports import FileSystem
from tidelog.storage.checkpoints import is_one_character_off, read_file, replace_file

FLUSHED_CHECKPOINT = "tidelog-flushed-checkpoint"
CUT = "tidelog-cut"
_NO_ID = "-"
_logger = logging.getLogger(__name__)


class FlushedMark(NamedTuple):
    """One partition at a checkpoint. ``recovery_point``: as written for Apache Kafka. ``flushed``: what lies below was synced."""

    topic_id: bytes | None
    recovery_point: int
    flushed: int


class CutMark(NamedTuple):
    """``number``: of the newest checkpoint that was made before the cut. ``end``: what lies below was flushed, and stayed."""

    number: int
    end: int
    log_start_offset: int


class Believed(NamedTuple):
    """``flushed``: bad bytes below it are rot; ``exact``: it is the end of what was flushed. Recovery reads from
    ``recovery_point`` on."""

    recovery_point: int
    flushed: int
    exact: bool
    log_start_offset: int


def believed(
    recovery_point: int, log_start_offset: int, mark: FlushedMark | None, number: int, cut: CutMark | None, topic_id: bytes | None
) -> Believed:
    """What to believe of a partition: ``recovery_point`` and ``log_start_offset`` from Kafka's checkpoints, ``mark`` and
    ``number`` from ours, ``cut`` and ``topic_id`` from the partition's directory."""
    flushed, exact = recovery_point, False
    if mark is not None:
        # The id is synced before anything is flushed: without it, nothing of this topic was.
        if mark.topic_id is not None and (topic_id is None or not is_one_character_off(mark.topic_id, topic_id)):
            return Believed(0, 0, False, 0)
        exact = mark.recovery_point == recovery_point
        flushed = mark.flushed if exact else min(recovery_point, mark.flushed)
    if cut is not None and cut.number >= number:
        flushed, log_start_offset = min(flushed, cut.end), min(log_start_offset, cut.log_start_offset)
    return Believed(min(recovery_point, flushed), flushed, exact, log_start_offset)


def _sealed(text: str) -> bytes:
    return f"{binascii.crc32(text.encode('utf-8')):08x}\n{text}".encode()


def _lines(fs: FileSystem, path: str) -> list[list[str]] | None:
    raw = read_file(fs, path)
    if raw is None:
        return None
    head, _, text = raw.partition(b"\n")
    if head != b"%08x" % binascii.crc32(text):
        _logger.warning("%s is damaged: it is not used", path)
        return None
    return [line.split() for line in text.decode("utf-8").splitlines()]


def encode_flushed(number: int, marks: Mapping[TopicPartition, FlushedMark]) -> bytes:
    """The content of a log dir's file; ``number``: of the checkpoint."""
    lines = [f"{number}\n"]
    for partition, mark in marks.items():
        topic_id = _NO_ID if mark.topic_id is None else mark.topic_id.hex()
        lines.append(f"{partition.topic} {partition.partition} {topic_id} {mark.recovery_point} {mark.flushed}\n")
    return _sealed("".join(lines))


def read_flushed_marks(fs: FileSystem, log_dir: str) -> tuple[int, dict[TopicPartition, FlushedMark]]:
    """(number, marks); (0, {}) when the file is missing or damaged. Raises OSError."""
    lines = _lines(fs, f"{log_dir}/{FLUSHED_CHECKPOINT}")
    if not lines:
        return 0, {}
    marks = {}
    for topic, partition, topic_id, recovery_point, flushed in lines[1:]:
        known = None if topic_id == _NO_ID else bytes.fromhex(topic_id)
        marks[TopicPartition(topic, int(partition))] = FlushedMark(known, int(recovery_point), int(flushed))
    return int(lines[0][0]), marks


class _Log(Protocol):
    """The directory of a log may change until a cut is noted."""

    @property
    def dir(self) -> str: ...


def note_cut(fs: FileSystem, log: _Log, cut: CutMark) -> None:
    """Writes the cut down. Blocks; raises OSError."""
    replace_file(fs, f"{log.dir}/{CUT}", _sealed(f"{cut.number} {cut.end} {cut.log_start_offset}\n"))


def read_cut(fs: FileSystem, directory: str) -> CutMark | None:
    """None without a cut, or when the file is damaged. Raises OSError."""
    lines = _lines(fs, f"{directory}/{CUT}")
    return None if not lines else CutMark(*map(int, lines[0]))
