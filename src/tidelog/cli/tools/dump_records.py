"""Decodes records for ``tidelog dump-log``: as text, or as the messages of Kafka's internal topics.

A decoder takes key and value and returns two texts, None for a missing one. A malformed record is described in the text: dumps
are for inspecting broken data.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping

from tidelog.cli.tools.message_json import as_json, message_json
from tidelog.metadata.records import MetadataLogError, decode_record
from tidelog.model.errors import ProtocolViolation
from tidelog.protocol.messages.group_metadata_value import GroupMetadataValue
from tidelog.protocol.record_types import GROUP_RECORD_TYPES, SHARE_RECORD_TYPES, TRANSACTION_RECORD_TYPES
from tidelog.protocol.registry import data_class
from tidelog.protocol.structure import Message
from tidelog.records.control import ControlType, control_type, parse_end_txn_marker
from tidelog.records.record import Record

Decoder = Callable[[bytes | None, bytes | None], tuple[str | None, str | None]]

_CONTROL_MESSAGES = {
    ControlType.LEADER_CHANGE: ("LeaderChange:", "LeaderChangeMessage"),
    ControlType.SNAPSHOT_HEADER: ("SnapshotHeader", "SnapshotHeaderRecord"),
    ControlType.SNAPSHOT_FOOTER: ("SnapshotFooter", "SnapshotFooterRecord"),
    ControlType.KRAFT_VERSION: ("KRaftVersion", "KRaftVersionRecord"),
    ControlType.KRAFT_VOTERS: ("KRaftVoters", "VotersRecord"),
}


def utf8(data: bytes) -> str:
    """As UTF-8 with replacement of invalid bytes."""
    return data.decode("utf-8", "replace")


def _integer(size: int) -> Callable[[bytes], str]:
    """A big-endian number in the first ``size`` bytes."""

    def decode(data: bytes) -> str:
        if len(data) < size:
            return f"(not {size} bytes: {data.hex()})"
        return str(int.from_bytes(data[:size], "big", signed=True))

    return decode


DECODER_PACKAGE = "org.apache.kafka.tools.api."
DECODER_CLASSES: Mapping[str, Callable[[bytes], str]] = {
    "StringDecoder": utf8,
    "IntegerDecoder": _integer(4),
    "LongDecoder": _integer(8),
    "DefaultDecoder": bytes.hex,
}
"""How bytes are shown, by the names of Kafka's classes. Where Kafka prints the identity of an array, they are shown in hex."""


def by_class(key_as: Callable[[bytes], str], value_as: Callable[[bytes], str]) -> Decoder:
    """Records of topics with bytes of any kind."""

    def decode(key: bytes | None, value: bytes | None) -> tuple[str | None, str | None]:
        return None if key is None else key_as(key), None if value is None else value_as(value)

    return decode


def cluster_metadata(key: bytes | None, value: bytes | None) -> tuple[str | None, str | None]:
    """Records of ``__cluster_metadata``: Kafka's tool shows no keys here."""
    if value is None:
        return None, "Error at 0, skipping. no value"
    try:
        record = decode_record(value)
    except MetadataLogError as error:
        return None, f"Error at 0, skipping. {error}"
    version = _frame_version(value)
    assert isinstance(record, Message)
    name = record.NAME
    data = {"type": _upper_snake(name), "version": version, "data": as_json(record, name, version)}
    return None, _line(data)


def _frame_version(value: bytes) -> int:
    """The third number of the frame; current types and versions are below 128, one byte each."""
    return value[2]


def _upper_snake(name: str) -> str:
    return "".join(f"_{letter}" if letter.isupper() and index else letter.upper() for index, letter in enumerate(name))


def by_key(types: Mapping[int, tuple[str, str]]) -> Decoder:
    """Records whose key begins with a type: those of the coordinators."""

    def decode(key: bytes | None, value: bytes | None) -> tuple[str | None, str | None]:
        if key is None or len(key) < 2:
            return "unknown", "unknown"
        kind = int.from_bytes(key[:2], "big")
        names = types.get(kind)
        if names is None:
            return f"unknown::{kind}", "unknown"
        try:
            # A coordinator's key always has version 0; the number before it is its type.
            decoded = as_json(data_class(names[0]).decode(key[2:], 0), names[0], 0)
            return _line({"type": str(kind), "data": decoded}), _coordinator_value(names[1], value)
        except ProtocolViolation as error:
            return f"unreadable: {error}", "unreadable"

    return decode


def _coordinator_value(name: str, value: bytes | None) -> str:
    if value is None:
        return "<DELETE>"
    version = int.from_bytes(value[:2], "big")
    decoded = data_class(name).decode(value[2:], version)
    data = as_json(decoded, name, version)
    if isinstance(decoded, GroupMetadataValue) and decoded.protocol_type == "consumer":
        for shown, member in zip(data["members"], decoded.members, strict=True):
            shown["subscription"] = _embedded(member.subscription, "ConsumerProtocolSubscription")
            shown["assignment"] = _embedded(member.assignment, "ConsumerProtocolAssignment")
    return _line({"version": str(version), "data": data})


def _embedded(content: bytes, name: str) -> object:
    """The consumer's message in a classic group's metadata: a version, then a message; other bytes stay base64."""
    version = int.from_bytes(content[:2], "big")
    try:
        # Fields that a newer consumer adds after those of our version are ignored.
        decoded, _ = data_class(name).decode_from(content, 2, version)
    except ProtocolViolation:
        return base64.b64encode(content).decode("ascii")
    return as_json(decoded, name, version)


def _line(data: object) -> str:
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False)


OFFSETS = by_key(GROUP_RECORD_TYPES)
TRANSACTIONS = by_key(TRANSACTION_RECORD_TYPES)
SHARE_STATE = by_key(SHARE_RECORD_TYPES)


def control(record: Record) -> str:
    """A control record in the format of Kafka's tool."""
    try:
        marker = parse_end_txn_marker(record.key, record.value)
        if marker is not None:
            return f"endTxnMarker: {'COMMIT' if marker.commit else 'ABORT'} coordinatorEpoch: {marker.coordinator_epoch}"
        kind = ControlType(control_type(record.key))
        label, name = _CONTROL_MESSAGES[kind]
        value = record.value or b""
        version = int.from_bytes(value[:2], "big")
        return f"{label} {message_json(data_class(name).decode(value, version), name, version)}"
    except (ValueError, KeyError, ProtocolViolation) as error:
        return f"controlType: UNKNOWN ({error})"
