"""Records of ``__consumer_offsets`` as JSON, in the format of Kafka's formatters of these names."""

from __future__ import annotations

import json
from typing import Any

from tidelog.cli.tools.consumed_record import Consumed
from tidelog.model.errors import ProtocolViolation
from tidelog.protocol import registry
from tidelog.protocol.structure import Structure

OFFSET_COMMIT_TYPES = (0, 1)
GROUP_METADATA_TYPE = 2
FIELD_VERSIONS = {
    "expire_timestamp": range(1, 2),
    "leader_epoch": range(3, 100),
    "topic_id": range(4, 100),
    "current_state_timestamp": range(2, 100),
    "rebalance_timeout": range(1, 100),
    "group_instance_id": range(3, 100),
}
"""The versions of fields that not all versions of a value have; in other versions they are not printed."""
ANY = range(100)
_VERSION_BYTES = 2


def offsets_formatter(record: Consumed) -> bytes:
    """Committed offsets; other records print nothing."""
    return _json(record, OFFSET_COMMIT_TYPES, "OffsetCommitKey", "OffsetCommitValue")


def group_metadata_formatter(record: Consumed) -> bytes:
    """Classic groups; other records print nothing."""
    return _json(record, (GROUP_METADATA_TYPE,), "GroupMetadataKey", "GroupMetadataValue")


def _json(record: Consumed, types: tuple[int, ...], key_name: str, value_name: str) -> bytes:
    if record.key is None or len(record.key) < _VERSION_BYTES:
        return b""
    kind = int.from_bytes(record.key[:_VERSION_BYTES], "big")
    if kind not in types:
        return b""
    try:
        key = registry.data_class(key_name).decode(record.key[_VERSION_BYTES:], 0)
        value = None
        if record.value is not None:
            version = int.from_bytes(record.value[:_VERSION_BYTES], "big")
            decoded = registry.data_class(value_name).decode(record.value[_VERSION_BYTES:], version)
            value = {"version": version, "data": _plain(decoded, version)}
    except (ProtocolViolation, ValueError) as error:
        raise ValueError(
            f"{key_name} at offset {record.offset} of partition {record.partition} cannot be read: {error}"
        ) from error
    return json.dumps({"key": {"type": kind, "data": _plain(key, 0)}, "value": value}, separators=(",", ":")).encode() + b"\n"


def _plain(value: Any, version: int) -> Any:
    """A message as JSON values: Kafka's field names, bytes in base64."""
    if isinstance(value, Structure):
        present = [name for name in value.__slots__ if version in FIELD_VERSIONS.get(name, ANY)]
        return {_camel(name): _plain(getattr(value, name), version) for name in present}
    if isinstance(value, (list, tuple)):
        return [_plain(item, version) for item in value]
    if isinstance(value, (bytes, bytearray, memoryview)):
        import base64

        return base64.b64encode(value).decode()
    return value


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)
