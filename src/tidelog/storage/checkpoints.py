"""The small text files of a log dir and of a partition, and their atomic replacement.

This module defines their content and guarantees that a reader sees either the old or the new content, never part of it: the file
is written as ``.tmp``, synced and renamed, then the directory is synced. An empty file has zero entries. A malformed file raises
``BadCheckpoint`` with its name; the caller knows whether that is fatal (meta.properties) or only costs a scan (everything else).
"""

from __future__ import annotations

import binascii
import json
import logging
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tidelog.model.ids import TopicPartition, uuid_from_text, uuid_to_text
from tidelog.model.ports import FileSystem

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_START_OFFSETS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"
LEADER_EPOCHS = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"
META_PROPERTIES = "meta.properties"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
LOCK = ".lock"


_BITS_OF_A_CHARACTER = 6
"""Bits per base64 character."""
_logger = logging.getLogger(__name__)


class BadCheckpoint(Exception):
    """A malformed checkpoint file."""

    def __init__(self, path: str, detail: str) -> None:
        super().__init__(f"{path}: {detail}")
        self.path = path


def replace_file(fs: FileSystem, path: str, content: bytes, *, sync_names: bool = True, temporary: str = "") -> None:
    """Replaces the file at ``path`` with ``content``. It survives a power loss once the directory is synced: here, or with
    ``sync_names`` False by a caller that replaces several files. Blocks."""
    temporary = temporary or path + ".tmp"
    file = fs.open(temporary, create=True)
    try:
        file.truncate(0)
        file.write(0, content)
        file.sync()
    finally:
        file.close()
    fs.rename(temporary, path)
    if sync_names:
        fs.sync_dir(path.rpartition("/")[0])


def read_file(fs: FileSystem, path: str) -> bytes | None:
    """The whole file; None when it does not exist."""
    try:
        file = fs.open(path, write=False)
    except FileNotFoundError:
        return None
    try:
        return file.read(0, file.size())
    finally:
        file.close()


def _encode_lines(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in ["0", str(len(lines)), *lines]).encode("utf-8")


def _decode_lines(path: str, raw: bytes | None) -> list[list[str]]:
    """The fields of each entry; none when the file is missing or empty."""
    if not raw:
        return []
    try:
        lines = raw.decode("utf-8").splitlines()
    except UnicodeDecodeError as problem:
        raise BadCheckpoint(path, "is no text") from problem
    if lines[0].strip() != "0":
        raise BadCheckpoint(path, f"is of version {lines[0]!r}; only version 0 is readable")
    if len(lines) < 2 or not lines[1].strip().isdecimal():
        raise BadCheckpoint(path, "has no count of entries in its second line")
    entries = [line.split() for line in lines[2:] if line.strip()]
    if len(entries) != int(lines[1]):
        raise BadCheckpoint(path, f"promises {lines[1]} entries and has {len(entries)}")
    return entries


def encode_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    """``topic partition offset`` lines."""
    return _encode_lines([f"{partition.topic} {partition.partition} {offset}" for partition, offset in offsets.items()])


def read_offsets(fs: FileSystem, path: str) -> dict[TopicPartition, int]:
    """One of the four offset checkpoints of a log dir."""
    offsets: dict[TopicPartition, int] = {}
    for words in _decode_lines(path, read_file(fs, path)):
        try:
            topic, partition, offset = words
            offsets[TopicPartition(topic, int(partition))] = int(offset)
        except ValueError as problem:
            raise BadCheckpoint(path, f"has an entry that is no topic, partition and offset: {' '.join(words)!r}") from problem
    return offsets


def encode_epochs(entries: Iterable[tuple[int, int]]) -> bytes:
    """``epoch startOffset`` lines."""
    return _encode_lines([f"{epoch} {start_offset}" for epoch, start_offset in entries])


def read_epochs(fs: FileSystem, path: str) -> list[tuple[int, int]]:
    """(epoch, start offset) in file order."""
    entries: list[tuple[int, int]] = []
    for words in _decode_lines(path, read_file(fs, path)):
        try:
            epoch, start_offset = words
            entries.append((int(epoch), int(start_offset)))
        except ValueError as problem:
            raise BadCheckpoint(path, f"has an entry that is no epoch and offset: {' '.join(words)!r}") from problem
    return entries


def encode_partition_metadata(topic_id: bytes) -> bytes:
    """43 bytes, without a newline at the end, as Kafka writes it."""
    return f"version: 0\ntopic_id: {uuid_to_text(topic_id)}".encode("ascii")


def begins_partition_metadata(fs: FileSystem, directory: str) -> bool:
    """Whether the file is a proper prefix of a valid one."""
    raw = read_file(fs, f"{directory}/{PARTITION_METADATA}") or b""
    some = encode_partition_metadata(bytes(16))
    start = some[: -len(uuid_to_text(bytes(16)))]
    return len(raw) < len(some) and (start.startswith(raw) or raw.startswith(start))


def read_partition_metadata(fs: FileSystem, directory: str) -> bytes | None:
    """The topic id in a partition's directory; None when the file is missing or empty (a crash before the sync)."""
    path = f"{directory}/{PARTITION_METADATA}"
    raw = read_file(fs, path)
    if not raw or not raw.strip(b"\0"):
        return None
    fields = _fields(path, raw, ":")
    if fields.get("version") != "0":
        raise BadCheckpoint(path, f"is of version {fields.get('version')!r}; only version 0 is readable")
    try:
        return uuid_from_text(fields["topic_id"])
    except (KeyError, ValueError) as problem:
        raise BadCheckpoint(path, f"has no topic_id of 16 bytes: {raw!r}") from problem


def is_one_character_off(found: bytes, expected: bytes) -> bool:
    """Whether two topic ids are equal but for the bits of one character at most."""
    return (int.from_bytes(found, "big") ^ int.from_bytes(expected, "big")).bit_count() <= _BITS_OF_A_CHARACTER


def is_damaged_id(path: str, found: bytes, expected: bytes) -> bool:
    """Whether the topic id in ``partition.metadata`` differs from the expected one in a single character. Ids are random, so
    two topics never have such ids: a bit of the file has flipped. Logged at ERROR."""
    if not is_one_character_off(found, expected):
        return False
    _logger.error("%s: topic id %s is %s with damage: the file is written again", path, found.hex(), expected.hex())
    return True


def _fields(path: str, raw: bytes, separator: str) -> dict[str, str]:
    try:
        lines = raw.decode("utf-8").splitlines()
    except UnicodeDecodeError as problem:
        raise BadCheckpoint(path, "is no text") from problem
    fields: dict[str, str] = {}
    for line in lines:
        if line.strip() and not line.lstrip().startswith(("#", "!")):
            name, found, value = line.partition(separator)
            if not found:
                raise BadCheckpoint(path, f"has a line without {separator!r}: {line!r}")
            fields[name.strip()] = value.strip()
    return fields


_CHECKSUM = "#tidelog.crc32="


class MetaProperties(NamedTuple):
    """The identity of a log dir: ``meta.properties`` version 1. ``directory_id`` None: written before directories had ids."""

    cluster_id: str
    node_id: int
    directory_id: bytes | None

    def encode(self) -> bytes:
        """Java properties, version 1. Kafka adds a comment with the date, which no reader uses; tidelog one with a checksum."""
        lines = ["version=1", f"cluster.id={self.cluster_id}", f"node.id={self.node_id}"]
        if self.directory_id is not None:
            lines.append(f"directory.id={uuid_to_text(self.directory_id)}")
        fields = dict(line.split("=", 1) for line in lines)
        return "".join(f"{line}\n" for line in [*lines, _checksum_line(fields)]).encode("ascii")


def _checksum_line(fields: Mapping[str, str]) -> str:
    """A comment to Java: the checksum of the fields in the order of their names."""
    text = "\n".join(f"{name}={value}" for name, value in sorted(fields.items()))
    return f"{_CHECKSUM}{binascii.crc32(text.encode('utf-8')):08x}"


def read_meta_properties(fs: FileSystem, log_dir: str) -> MetaProperties | None:
    """The ``meta.properties`` of a log dir; None when it was never formatted."""
    path = f"{log_dir}/{META_PROPERTIES}"
    raw = read_file(fs, path)
    if raw is None:
        return None
    fields = _fields(path, raw, "=")
    noted = [line for line in raw.decode("utf-8").splitlines() if line.startswith(_CHECKSUM)]
    if noted and _checksum_line(fields) not in noted:
        raise BadCheckpoint(path, f"has a wrong checksum. Correct it; or, if its fields are right, remove the line {noted[0]!r}")
    if fields.get("version") != "1":
        raise BadCheckpoint(path, f"is of version {fields.get('version')!r}; only version 1 (KRaft) is readable")
    try:
        directory_id = fields.get("directory.id")
        return MetaProperties(
            fields["cluster.id"].replace("\\", ""),
            int(fields["node.id"]),
            uuid_from_text(directory_id) if directory_id is not None else None,
        )
    except (KeyError, ValueError) as problem:
        raise BadCheckpoint(path, f"lacks a usable cluster.id, node.id or directory.id: {problem}") from problem


def encode_clean_shutdown(broker_epoch: int) -> bytes:
    """The marker of a clean shutdown: everything was flushed, no recovery is needed."""
    return json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":")).encode("ascii")


def read_clean_shutdown(fs: FileSystem, log_dir: str) -> int | None:
    """The broker epoch of a clean shutdown, -1 when the marker does not contain it; None after an unclean shutdown."""
    raw = read_file(fs, f"{log_dir}/{CLEAN_SHUTDOWN}")
    if raw is None:
        return None
    try:
        return int(json.loads(raw)["brokerEpoch"])
    except (ValueError, KeyError, TypeError):
        return -1
