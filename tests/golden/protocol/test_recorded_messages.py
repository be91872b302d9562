"""Every record that an Apache node wrote decodes, and encodes again to exactly its bytes."""

from __future__ import annotations

import json
import struct
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tidelog.protocol import registry
from tidelog.protocol.messages.end_txn_marker import EndTxnMarker
from tidelog.protocol.messages.leader_change_message import LeaderChangeMessage
from tidelog.protocol.messages.producer_snapshot import ProducerSnapshot
from tidelog.protocol.messages.quorum_state_data import QuorumStateData
from tidelog.protocol.messages.topic_record import TopicRecord
from tidelog.protocol.primitives import read_uvarint, write_uvarint

HERE = Path(__file__).parent
CONTROL = {
    2: "LeaderChangeMessage",
    3: "SnapshotHeaderRecord",
    4: "SnapshotFooterRecord",
    5: "KRaftVersionRecord",
    6: "VotersRecord",
}


def varint(buf: bytes, pos: int) -> tuple[int, int]:
    """Zig-zag, as records have it."""
    value, pos = read_uvarint(buf, pos)
    return (value >> 1) ^ -(value & 1), pos


def records(name: str) -> Iterator[tuple[bool, bytes | None, bytes | None]]:
    """(control, key, value) of each record in the whole batches of a file; none of the files is compressed."""
    data = (HERE / name).read_bytes()
    at = 0
    while at + 61 <= len(data):
        (length,) = struct.unpack_from(">i", data, at + 8)
        (attributes,) = struct.unpack_from(">h", data, at + 21)
        (count,) = struct.unpack_from(">i", data, at + 57)
        if at + 12 + length > len(data):
            return
        assert attributes & 7 == 0
        pos = at + 61
        for _ in range(count):
            size, pos = varint(data, pos)
            end = pos + size
            pos += 1
            while data[pos] & 0x80:  # the timestamp's delta
                pos += 1
            _, pos = varint(data, pos + 1)
            fields: list[bytes | None] = []
            for _ in range(2):
                length_of, pos = varint(data, pos)
                fields.append(None if length_of < 0 else data[pos : pos + length_of])
                pos += max(length_of, 0)
            yield bool(attributes & 0x20), fields[0], fields[1]
            pos = end
        at += 12 + length


def round_trip(name: str, data: bytes, version: int) -> Any:
    """The message, after it was seen to encode to the same bytes."""
    message = registry.data_class(name).decode(data, version)
    assert message.encode(version) == data
    return message


@pytest.mark.parametrize("name", ["metadata.log", "metadata-0.checkpoint", "metadata-3599.checkpoint"])
def test_metadata_records_keep_their_bytes(name: str) -> None:
    seen: Counter[str] = Counter()
    for control, key, value in records(name):
        assert value is not None
        if control:
            assert key is not None
            kind = CONTROL[struct.unpack(">hh", key)[1]]
            message = round_trip(kind, value, struct.unpack_from(">h", value)[0])
        else:
            frame_version, pos = read_uvarint(value, 0)
            record_type, pos = read_uvarint(value, pos)
            version, pos = read_uvarint(value, pos)
            assert frame_version == 1
            kind = registry.METADATA_RECORD_TYPES[record_type]
            message = round_trip(kind, value[pos:], version)
            prefix = bytearray()
            for number in (1, message.TYPE, version):
                write_uvarint(prefix, number)
            assert bytes(prefix) == value[:pos]
        seen[kind] += 1
    assert sum(seen.values()) >= 4
    expected = {
        "metadata.log": {"LeaderChangeMessage", "NoOpRecord", "RegisterBrokerRecord"},
        "metadata-0.checkpoint": {"SnapshotHeaderRecord", "SnapshotFooterRecord", "KRaftVersionRecord", "VotersRecord"},
        "metadata-3599.checkpoint": {"SnapshotHeaderRecord", "SnapshotFooterRecord", "TopicRecord", "PartitionRecord"},
    }
    assert expected[name] <= set(seen)


@pytest.mark.parametrize(
    ("name", "types"),
    [
        ("groups-0.log", registry.GROUP_RECORD_TYPES),
        ("groups-1.log", registry.GROUP_RECORD_TYPES),
        ("share.log", registry.SHARE_RECORD_TYPES),
        ("transactions.log", registry.TRANSACTION_RECORD_TYPES),
    ],
)
def test_coordinator_records_keep_their_bytes(name: str, types: dict[int, tuple[str, str]]) -> None:
    count = 0
    for control, key, value in records(name):
        assert key is not None
        assert not control
        (record_type,) = struct.unpack_from(">h", key)
        key_name, value_name = types[record_type]
        assert record_type == round_trip(key_name, key[2:], 0).TYPE
        if value is not None:
            round_trip(value_name, value[2:], struct.unpack_from(">h", value)[0])
        count += 1
    assert count >= 1


def test_a_commit_marker_keeps_its_bytes() -> None:
    ((control, key, value),) = records("commit-marker.log")
    assert control and value is not None
    assert key == struct.pack(">hh", 0, 1), "version 0, COMMIT"
    marker = round_trip("EndTxnMarker", value[2:], struct.unpack_from(">h", value)[0])
    assert marker == EndTxnMarker(coordinator_epoch=0)


def test_the_first_leader_of_the_quorum_is_read_from_its_record() -> None:
    control, _, value = next(records("metadata.log"))
    assert control and value is not None
    message = LeaderChangeMessage.decode(value, struct.unpack_from(">h", value)[0])
    assert message.leader_id in [voter.voter_id for voter in message.voters]


def test_topics_of_a_snapshot_have_names_and_ids() -> None:
    topics = []
    for control, _, value in records("metadata-3599.checkpoint"):
        if not control and value is not None and value[1] == TopicRecord.TYPE:
            topics.append(TopicRecord.decode(value[3:], value[2]))
    assert topics
    assert all(topic.name and len(topic.topic_id) == 16 and any(topic.topic_id) for topic in topics)


def test_the_producer_snapshot_keeps_its_bytes() -> None:
    data = (HERE / "producers-1759.snapshot").read_bytes()
    (version,) = struct.unpack_from(">h", data)
    snapshot = ProducerSnapshot.decode(data[2:], version)
    assert snapshot.encode(version) == data[2:]
    assert len(snapshot.producer_entries) == 1
    assert snapshot.crc != zlib.crc32(data[6:]), "it is CRC-32C, not zlib's CRC-32"


@pytest.mark.parametrize("name", ["static", "dynamic", "observer"])
def test_quorum_state_has_the_fields_of_its_definition(name: str) -> None:
    state = json.loads((HERE / f"quorum-state.{name}").read_text())
    version = state.pop("data_version")
    fields = {slot.replace("_", "") for slot in QuorumStateData.__slots__}
    assert {key.lower() for key in state} <= fields
    assert QuorumStateData.MIN_VERSION <= version <= QuorumStateData.MAX_VERSION
