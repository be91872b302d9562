"""Metadata records in the log: their framing, and the version at which each is written.

A record's value is: unsigned varint frame version (1), unsigned varint record type, unsigned varint record version, then the
flexible struct. The key is null. An unknown type or version means that newer software wrote the log: the node stops rather than
serve incomplete metadata.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, Self, cast

from tidelog.metadata.supported_features import CORDONED_DIRS_MV, DIRECTORIES_MV, ELR_MV, IN_CONTROLLED_SHUTDOWN_MV, MIGRATION_MV
from tidelog.model.errors import ProtocolViolation
from tidelog.protocol.primitives import read_uvarint, write_uvarint
from tidelog.protocol.registry import METADATA_RECORD_TYPES, data_class

FRAME_VERSION = 1
MAX_VARINT_BYTES = 5


class MetadataLogError(Exception):
    """The metadata log or a snapshot contains a record that cannot be applied. The node stops; the text says what and where."""


class MetadataRecord(Protocol):
    """A generated record class: one of Kafka's ``metadata`` schemas."""

    TYPE: ClassVar[int]
    NAME: ClassVar[str]
    MIN_VERSION: ClassVar[int]
    MAX_VERSION: ClassVar[int]

    @classmethod
    def decode(cls, buf: Any, version: int) -> Self: ...

    def encode(self, version: int) -> bytes: ...


_CLASSES: dict[int, type[MetadataRecord]] = {}


def record_class(record_type: int) -> type[MetadataRecord]:
    """The class for a type number. MetadataLogError for a type unknown to Kafka 4.4."""
    found = _CLASSES.get(record_type)
    if found is None:
        name = METADATA_RECORD_TYPES.get(record_type)
        if name is None:
            raise MetadataLogError(
                f"metadata record type {record_type} is not known here; the log was written by newer software, start that instead"
            )
        found = cast("type[MetadataRecord]", data_class(name))
        _CLASSES[record_type] = found
    return found


def _read_varint(buf: bytes, pos: int, what: str) -> tuple[int, int]:
    try:
        return read_uvarint(buf, pos)
    except IndexError:
        raise MetadataLogError(f"metadata record ends inside its {what}") from None
    except ProtocolViolation:
        raise MetadataLogError(f"metadata record has a {what} of more than {MAX_VARINT_BYTES} bytes") from None


def encode_record(record: MetadataRecord, metadata_version: int) -> bytes:
    """The framed value, at the version for ``metadata_version``."""
    version = record_version(record, metadata_version)
    out = bytearray()
    for number in (FRAME_VERSION, record.TYPE, version):
        write_uvarint(out, number)
    return bytes(out) + record.encode(version)


def decode_record(value: bytes | memoryview | None) -> MetadataRecord:
    """The record in a framed value. MetadataLogError when it cannot be read in full."""
    if value is None:
        raise MetadataLogError("metadata record has no value")
    data = bytes(value)
    frame, pos = _read_varint(data, 0, "frame version")
    if frame != FRAME_VERSION:
        raise MetadataLogError(f"metadata record has frame version {frame}; only {FRAME_VERSION} is known here")
    record_type, pos = _read_varint(data, pos, "type")
    version, pos = _read_varint(data, pos, "version")
    cls = record_class(record_type)
    if not cls.MIN_VERSION <= version <= cls.MAX_VERSION:
        raise MetadataLogError(
            f"{cls.NAME} version {version} is not known here (up to {cls.MAX_VERSION}); the log was written by newer software"
        )
    try:
        return cls.decode(data[pos:], version)
    except ProtocolViolation as error:
        raise MetadataLogError(f"{cls.NAME} version {version} cannot be read: {error}") from error


def record_version(record: Any, metadata_version: int) -> int:
    """The version at which Kafka writes this record while ``metadata_version`` is finalized."""
    chooser = _VERSIONS.get(record.NAME)
    return 0 if chooser is None else chooser(record, metadata_version)


def _register_broker_version(record: Any, metadata_version: int) -> int:
    if metadata_version >= CORDONED_DIRS_MV:
        return 4
    if metadata_version >= DIRECTORIES_MV:
        return 3
    if metadata_version >= MIGRATION_MV:
        return 2
    return 1 if metadata_version >= IN_CONTROLLED_SHUTDOWN_MV else 0


def _registration_change_version(record: Any, metadata_version: int) -> int:
    """The lowest version with the changed fields: each field came with another metadata.version."""
    if record.cordoned_log_dirs is not None:
        return 3
    if record.log_dirs:
        return 2
    return 1 if record.in_controlled_shutdown else 0


def _partition_version(record: Any, metadata_version: int) -> int:
    if metadata_version >= ELR_MV:
        return 2
    return 1 if metadata_version >= DIRECTORIES_MV else 0


_VERSIONS = {
    "RegisterBrokerRecord": _register_broker_version,
    "BrokerRegistrationChangeRecord": _registration_change_version,
    "PartitionRecord": _partition_version,
    "PartitionChangeRecord": _partition_version,
}
