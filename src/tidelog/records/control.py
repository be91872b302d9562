"""Control records: transaction markers, and what KRaft writes beside metadata.

A control batch has the control bit set and is never compressed. Its records have a key of version i16 (0) and type i16. Values:
a transaction marker is version i16 (0) and coordinator epoch i32; the KRaft ones (LeaderChange, SnapshotHeader, SnapshotFooter,
KRaftVersion, Voters: KIP-595, KIP-630, KIP-853) are flexible structs that begin with their own version i16.

Makers give the batch, ready to append; parsers take the value of a record whose type ``control_type`` told. Anything that cannot
be read raises ``CorruptBatch``.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from struct import Struct
from typing import NamedTuple

from tidelog.records.batch import CorruptBatch
from tidelog.records.builder import RecordData, build_batch

_KEY = Struct(">hh")
_END_TXN = Struct(">hi")
_VERSION = Struct(">h")
_I32 = Struct(">i")
_I64 = Struct(">q")
_PORT = Struct(">H")
_RANGE = Struct(">hh")
_NO_TAGS = b"\x00"
_ID_SIZE = 16


class ControlType(IntEnum):
    """The type in a control record's key."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


class EndTxnMarker(NamedTuple):
    """A transaction ended in this partition: committed or aborted, by which coordinator epoch."""

    commit: bool
    coordinator_epoch: int


class ChangeVoter(NamedTuple):
    """A voter in a LeaderChange record; directory ids are written from version 1 (kraft.version 1)."""

    voter_id: int
    directory_id: bytes = bytes(_ID_SIZE)


class LeaderChange(NamedTuple):
    """The first record of a leader's epoch: who leads, who votes, who voted for it."""

    leader_id: int
    voters: tuple[ChangeVoter, ...]
    granting_voters: tuple[ChangeVoter, ...]
    version: int = 0


class Endpoint(NamedTuple):
    """One of a voter's listeners."""

    name: str
    host: str
    port: int


class Voter(NamedTuple):
    """A member of the voter set: identity, listeners, and the kraft.version levels it can do."""

    voter_id: int
    directory_id: bytes
    endpoints: tuple[Endpoint, ...]
    min_kraft_version: int = 0
    max_kraft_version: int = 1


def control_key(control_type: ControlType) -> bytes:
    return _KEY.pack(0, control_type)


def control_type(key: bytes | None) -> int:
    """The type in a control record's key; numbers that ``ControlType`` does not know are for the caller to skip."""
    if key is None or len(key) < _KEY.size:
        raise CorruptBatch(f"control record with a key of {0 if key is None else len(key)} bytes: it takes {_KEY.size}")
    version, number = _KEY.unpack_from(key)
    if version < 0:
        raise CorruptBatch(f"control record key of version {version}")
    return int(number)


def end_txn_marker_batch(
    marker: EndTxnMarker,
    *,
    producer_id: int,
    producer_epoch: int,
    timestamp_ms: int,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytearray:
    """The 78 bytes that end a producer's transaction in one partition."""
    record = RecordData(
        control_key(ControlType.COMMIT if marker.commit else ControlType.ABORT),
        _END_TXN.pack(0, marker.coordinator_epoch),
        timestamp_ms,
    )
    return build_batch(
        [record],
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
    )


def parse_end_txn_marker(key: bytes | None, value: bytes | None) -> EndTxnMarker | None:
    """The marker that a control record is; None when it is another kind of control record."""
    number = control_type(key)
    if number not in (ControlType.ABORT, ControlType.COMMIT):
        return None
    if value is None or len(value) < _END_TXN.size:
        raise CorruptBatch("transaction marker without a coordinator epoch")
    version, epoch = _END_TXN.unpack_from(value)
    if version < 0:
        raise CorruptBatch(f"transaction marker of version {version}")
    return EndTxnMarker(number == ControlType.COMMIT, epoch)


def control_batch(
    records: Sequence[tuple[ControlType, bytes]], *, timestamp_ms: int, base_offset: int = 0, leader_epoch: int = -1
) -> bytearray:
    """KRaft's control records (type, value) in one batch."""
    return build_batch(
        [RecordData(control_key(kind), value, timestamp_ms) for kind, value in records],
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        control=True,
    )


def leader_change_value(change: LeaderChange) -> bytes:
    def voters(members: tuple[ChangeVoter, ...]) -> bytes:
        ids = (_I32.pack(m.voter_id) + (m.directory_id if change.version >= 1 else b"") + _NO_TAGS for m in members)
        return _unsigned(len(members) + 1) + b"".join(ids)

    return (
        _VERSION.pack(change.version)
        + _I32.pack(change.leader_id)
        + voters(change.voters)
        + voters(change.granting_voters)
        + _NO_TAGS
    )


def snapshot_header_value(last_contained_log_timestamp_ms: int) -> bytes:
    return _VERSION.pack(0) + _I64.pack(last_contained_log_timestamp_ms) + _NO_TAGS


def snapshot_footer_value() -> bytes:
    return _VERSION.pack(0) + _NO_TAGS


def kraft_version_value(level: int) -> bytes:
    return _VERSION.pack(0) + _VERSION.pack(level) + _NO_TAGS


def voters_value(voters: Sequence[Voter]) -> bytes:
    parts = [_VERSION.pack(0), _unsigned(len(voters) + 1)]
    for voter in voters:
        parts += (_I32.pack(voter.voter_id), voter.directory_id, _unsigned(len(voter.endpoints) + 1))
        parts += (_text(e.name) + _text(e.host) + _PORT.pack(e.port) + _NO_TAGS for e in voter.endpoints)
        parts += (_RANGE.pack(voter.min_kraft_version, voter.max_kraft_version), _NO_TAGS, _NO_TAGS)
    return b"".join((*parts, _NO_TAGS))


def parse_leader_change(value: bytes | None) -> LeaderChange:
    reader = _Reader(value)
    version, leader_id = reader.version(1), reader.i32()

    def voter() -> ChangeVoter:
        found = ChangeVoter(reader.i32(), reader.take(_ID_SIZE) if version >= 1 else bytes(_ID_SIZE))
        reader.tags()
        return found

    voters = tuple(voter() for _ in range(reader.count(5)))
    granting = tuple(voter() for _ in range(reader.count(5)))
    reader.finish()
    return LeaderChange(leader_id, voters, granting, version)


def parse_snapshot_header(value: bytes | None) -> int:
    """The time in ms of the last record that the snapshot contains."""
    reader = _Reader(value)
    reader.version(0)
    (timestamp_ms,) = _I64.unpack(reader.take(8))
    reader.finish()
    return int(timestamp_ms)


def parse_kraft_version(value: bytes | None) -> int:
    reader = _Reader(value)
    reader.version(0)
    level = reader.i16()
    reader.finish()
    return level


def parse_voters(value: bytes | None) -> tuple[Voter, ...]:
    reader = _Reader(value)
    reader.version(0)

    def endpoint() -> Endpoint:
        found = Endpoint(reader.text(), reader.text(), _PORT.unpack(reader.take(2))[0])
        reader.tags()
        return found

    def voter() -> Voter:
        voter_id, directory_id = reader.i32(), reader.take(_ID_SIZE)
        endpoints = tuple(endpoint() for _ in range(reader.count(5)))
        lowest, highest = reader.i16(), reader.i16()
        reader.tags()
        reader.tags()
        return Voter(voter_id, directory_id, endpoints, lowest, highest)

    voters = tuple(voter() for _ in range(reader.count(26)))
    reader.finish()
    return voters


def _unsigned(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _text(value: str) -> bytes:
    raw = value.encode()
    return _unsigned(len(raw) + 1) + raw


class _Reader:
    """Reads one flexible struct; whatever does not fit raises CorruptBatch."""

    __slots__ = ("_data", "_pos")

    def __init__(self, value: bytes | None) -> None:
        if value is None:
            raise CorruptBatch("control record without a value")
        self._data = value
        self._pos = 0

    def take(self, size: int) -> bytes:
        end = self._pos + size
        if end > len(self._data):
            raise CorruptBatch(f"control record ends at byte {len(self._data)}: {end} are needed")
        taken = self._data[self._pos : end]
        self._pos = end
        return taken

    def i16(self) -> int:
        return int.from_bytes(self.take(2), "big", signed=True)

    def i32(self) -> int:
        return int.from_bytes(self.take(4), "big", signed=True)

    def version(self, highest: int) -> int:
        found = self.i16()
        if not 0 <= found <= highest:
            raise CorruptBatch(f"control record of version {found}: 0 to {highest} are readable")
        return found

    def unsigned(self) -> int:
        value = shift = 0
        while shift < 35:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
        raise CorruptBatch("varint of more than 5 bytes in a control record")

    def count(self, smallest: int) -> int:
        """The length of a compact array whose elements take at least ``smallest`` bytes."""
        found = self.unsigned() - 1
        if not 0 <= found * smallest <= len(self._data) - self._pos:
            raise CorruptBatch(f"array of {found} in a control record with {len(self._data) - self._pos} bytes left")
        return found

    def text(self) -> str:
        return self.take(self.count(1)).decode("utf-8", "surrogateescape")

    def tags(self) -> None:
        for _ in range(self.unsigned()):
            self.unsigned()
            self.take(self.unsigned())

    def finish(self) -> None:
        self.tags()
        if self._pos != len(self._data):
            raise CorruptBatch(f"{len(self._data) - self._pos} bytes after a control record's value")
