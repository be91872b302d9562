"""Records of ``__consumer_offsets``: what Apache Kafka 4.3.1 wrote is read, and written again byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidelog.coordinator.group.classic.classic_group import GroupState
from tidelog.coordinator.group.records import (
    CommittedOffset,
    OffsetKey,
    UnknownKey,
    group_record,
    group_tombstone,
    offset_record,
    read_group,
    read_key,
    read_offset,
)
from tidelog.records.batch import iter_headers
from tidelog.records.record import iter_records

GOLDEN = Path(__file__).parents[3] / "golden" / "groups"


def kafkas_records() -> list[tuple[bytes, bytes | None]]:
    """Key and value of every record in the log that Kafka wrote for a classic and a KIP-848 group."""
    data = (GOLDEN / "__consumer_offsets-1.log").read_bytes()
    return [
        (bytes(record.key or b""), None if record.value is None else bytes(record.value))
        for header in iter_headers(data)
        for record in iter_records(data, header)
    ]


def test_kafkas_offsets_are_written_again_as_kafka_wrote_them() -> None:
    found = [(key, value) for key, value in kafkas_records() if isinstance(read_key(key), OffsetKey)]
    assert len(found) == 4
    for key, value in found:
        parsed = read_key(key)
        assert isinstance(parsed, OffsetKey) and value is not None
        again = offset_record(parsed, read_offset(value))
        assert (again.key, again.value) == (key, value)


def test_kafkas_classic_group_is_written_again_as_kafka_wrote_it() -> None:
    found = [(key, value) for key, value in kafkas_records() if read_key(key) == "gclassic"]
    states = []
    for key, value in found:
        assert value is not None
        group = read_group("gclassic", value, 0)
        states.append((group.state, group.generation))
        again = group_record(group)
        assert (again.key, again.value) == (key, value)
    assert states == [(GroupState.EMPTY, 0), (GroupState.STABLE, 1), (GroupState.EMPTY, 2)]


def test_records_of_the_consumer_protocol_are_known_to_be_others() -> None:
    kinds = {key.type for key in (read_key(raw) for raw, _ in kafkas_records()) if isinstance(key, UnknownKey)}
    assert kinds == {3, 5, 6, 7, 8}


@pytest.mark.parametrize("raw", [b"", b"\0"])
def test_a_key_without_a_type_is_unknown(raw: bytes) -> None:
    assert read_key(raw) == UnknownKey(-1)


def test_tombstones_have_the_key_of_what_they_take_back() -> None:
    key = OffsetKey("g", "t", 3)
    assert offset_record(key, None).key == offset_record(key, CommittedOffset(1, -1, "", 0)).key
    assert offset_record(key, None).value is None
    assert read_key(group_tombstone("g").key) == "g" and group_tombstone("g").value is None
