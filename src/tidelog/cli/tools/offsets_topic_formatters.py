"""Records of ``__consumer_offsets`` and ``__share_group_state`` as JSON, in the format of Kafka's formatters of these names."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from tidelog.cli.tools.consumed_record import Consumed
from tidelog.model.errors import ProtocolViolation
from tidelog.protocol import registry
from tidelog.protocol.structure import Structure

OFFSET_COMMITS = {0: "OffsetCommit", 1: "OffsetCommit"}
GROUP_METADATA = {2: "GroupMetadata"}
SHARE_GROUPS = {
    10: "ShareGroupMemberMetadata",
    11: "ShareGroupMetadata",
    12: "ShareGroupTargetAssignmentMetadata",
    13: "ShareGroupTargetAssignmentMember",
    14: "ShareGroupCurrentMemberAssignment",
    15: "ShareGroupStatePartitionMetadata",
}
SHARE_GROUP_STATES = {0: "ShareSnapshot", 1: "ShareUpdate"}
"""Names of messages by type of record; their keys and values end in Key and Value."""
TAGGED = {"assignment_timestamp": 0, "delivery_complete_count": -1}
"""Optional fields with the values at which they are left out."""
UUIDS = frozenset({"topic_id"})
FIELD_VERSIONS = {
    "expire_timestamp": range(1, 2),
    "leader_epoch": range(3, 100),
    "topic_id": range(4, 100),
    "current_state_timestamp": range(2, 100),
    "rebalance_timeout": range(1, 100),
    "group_instance_id": range(3, 100),
}
"""Fields of commits and classic groups that not all versions of a value have; in other versions they are not printed."""
ANY = range(100)
_VERSION_BYTES = 2


def offsets_formatter(record: Consumed) -> bytes:
    """Committed offsets; other records print nothing."""
    return _json(record, OFFSET_COMMITS)


def group_metadata_formatter(record: Consumed) -> bytes:
    """Classic groups; other records print nothing."""
    return _json(record, GROUP_METADATA)


def share_group_formatter(record: Consumed) -> bytes:
    """Share groups in ``__consumer_offsets``; other records print nothing."""
    return _json(record, SHARE_GROUPS)


def share_group_state_formatter(record: Consumed) -> bytes:
    """Records of ``__share_group_state``."""
    return _json(record, SHARE_GROUP_STATES)


def _json(record: Consumed, kinds: Mapping[int, str]) -> bytes:
    if record.key is None or len(record.key) < _VERSION_BYTES:
        return b""
    kind = int.from_bytes(record.key[:_VERSION_BYTES], "big")
    if kind not in kinds:
        return b""
    name = kinds[kind]
    try:
        key = registry.data_class(f"{name}Key").decode(record.key[_VERSION_BYTES:], 0)
        value = None
        if record.value is not None:
            version = int.from_bytes(record.value[:_VERSION_BYTES], "big")
            decoded = registry.data_class(f"{name}Value").decode(record.value[_VERSION_BYTES:], version)
            value = {"version": version, "data": _plain(decoded, version, kinds in (OFFSET_COMMITS, GROUP_METADATA))}
    except (ProtocolViolation, ValueError) as error:
        raise ValueError(
            f"{name}Key at offset {record.offset} of partition {record.partition} cannot be read: {error}"
        ) from error
    return (
        json.dumps({"key": {"type": kind, "data": _plain(key, 0, False)}, "value": value}, separators=(",", ":")).encode() + b"\n"
    )


def _field(name: str, value: Any, version: int, grown: bool) -> Any:
    if name in UUIDS:
        return base64.urlsafe_b64encode(value).decode().rstrip("=")
    return _plain(value, version, grown)


def _plain(value: Any, version: int, grown: bool) -> Any:
    """A message as JSON values: Kafka's field names, bytes in base64. ``grown``: its fields depend on its version."""
    if isinstance(value, Structure):
        present = [name for name in value.__slots__ if not grown or version in FIELD_VERSIONS.get(name, ANY)]
        shown = [name for name in present if name not in TAGGED or getattr(value, name) != TAGGED[name]]
        return {_camel(name): _field(name, getattr(value, name), version, grown) for name in shown}
    if isinstance(value, (list, tuple)):
        return [_plain(item, version, grown) for item in value]
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode()
    return value


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)
