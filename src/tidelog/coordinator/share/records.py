"""The records of ``__share_group_state``: a snapshot of a share partition's state, updates since, a tombstone.

Key and value begin with an int16 version; that of the key is the record's type. Both types have the same key, so the topic must
not be compacted. Source: Kafka's ShareSnapshotKey/Value and ShareUpdateKey/Value.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeAlias

from tidelog.model.ids import uuid_to_text
from tidelog.protocol.messages.share_snapshot_key import ShareSnapshotKey
from tidelog.protocol.messages.share_snapshot_value import ShareSnapshotValue
from tidelog.protocol.messages.share_snapshot_value import StateBatch as SnapshotBatch
from tidelog.protocol.messages.share_update_key import ShareUpdateKey
from tidelog.protocol.messages.share_update_value import ShareUpdateValue
from tidelog.protocol.messages.share_update_value import StateBatch as UpdateBatch
from tidelog.replication.share.record_state import RecordState, StateBatch

SNAPSHOT, UPDATE = 0, 1
UNCHANGED = -1
"""In an update: the start offset, or the count of finished records, is that of before."""
_INT16 = struct.Struct(">h")
_VERSION = _INT16.pack(0)


class ShareKey(NamedTuple):
    """A partition of a topic in a share group."""

    group_id: str
    topic_id: bytes
    partition: int

    @property
    def text(self) -> str:
        """What is hashed to find the coordinator's partition."""
        return f"{self.group_id}:{uuid_to_text(self.topic_id)}:{self.partition}"


class Snapshot(NamedTuple):
    """The whole state. ``create_ms`` is when the state was written first, ``write_ms`` when this snapshot was."""

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    complete_count: int
    create_ms: int
    write_ms: int
    batches: tuple[StateBatch, ...] = ()


class Update(NamedTuple):
    """What changed since the snapshot with the same epoch."""

    snapshot_epoch: int
    leader_epoch: int
    start_offset: int
    complete_count: int
    batches: tuple[StateBatch, ...] = ()


Change: TypeAlias = Snapshot | Update | None


class ShareRecord(NamedTuple):
    """One record; ``change`` None forgets the key."""

    key: ShareKey
    change: Change


def encode(record: ShareRecord) -> tuple[bytes, bytes | None]:
    """Key and value as bytes."""
    group_id, topic_id, partition = record.key
    change = record.change
    if isinstance(change, Update):
        key = ShareUpdateKey(group_id=group_id, topic_id=topic_id, partition=partition).encode(0)
        return _INT16.pack(UPDATE) + key, _VERSION + _update(change).encode(0)
    key = ShareSnapshotKey(group_id=group_id, topic_id=topic_id, partition=partition).encode(0)
    return _INT16.pack(SNAPSHOT) + key, None if change is None else _VERSION + _snapshot(change).encode(0)


def _snapshot(change: Snapshot) -> ShareSnapshotValue:
    return ShareSnapshotValue(
        snapshot_epoch=change.snapshot_epoch,
        state_epoch=change.state_epoch,
        leader_epoch=change.leader_epoch,
        start_offset=change.start_offset,
        delivery_complete_count=change.complete_count,
        create_timestamp=change.create_ms,
        write_timestamp=change.write_ms,
        state_batches=[SnapshotBatch(*batch) for batch in change.batches],
    )


def _update(change: Update) -> ShareUpdateValue:
    return ShareUpdateValue(
        snapshot_epoch=change.snapshot_epoch,
        leader_epoch=change.leader_epoch,
        start_offset=change.start_offset,
        delivery_complete_count=change.complete_count,
        state_batches=[UpdateBatch(*batch) for batch in change.batches],
    )


def decode(key: bytes, value: bytes | None) -> ShareRecord | None:
    """A record; None for one of an unknown type. ProtocolViolation or ValueError when it cannot be read."""
    if len(key) < _INT16.size:
        return None
    (kind,) = _INT16.unpack_from(key)
    if kind not in {SNAPSHOT, UPDATE}:
        return None
    read = ShareSnapshotKey.decode(key[2:], 0)
    where = ShareKey(read.group_id, read.topic_id, read.partition)
    if value is None:
        return ShareRecord(where, None)
    if len(value) < _INT16.size or _INT16.unpack_from(value)[0] != 0:
        raise ValueError(f"the state of {where.text} has a version that is not known: {value[:2].hex()}")
    if kind == UPDATE:
        update = ShareUpdateValue.decode(value[2:], 0)
        change: Change = Update(
            update.snapshot_epoch,
            update.leader_epoch,
            update.start_offset,
            update.delivery_complete_count,
            read_batches(update.state_batches),
        )
    else:
        snapshot = ShareSnapshotValue.decode(value[2:], 0)
        change = Snapshot(
            snapshot.snapshot_epoch,
            snapshot.state_epoch,
            snapshot.leader_epoch,
            snapshot.start_offset,
            snapshot.delivery_complete_count,
            snapshot.create_timestamp,
            snapshot.write_timestamp,
            read_batches(snapshot.state_batches),
        )
    return ShareRecord(where, change)


def read_state(number: int) -> RecordState:
    """A persisted state. ValueError for one that is never persisted, or not known."""
    state = RecordState(number)
    if state is RecordState.ACQUIRED:
        raise ValueError("a record is stored as acquired")
    return state


class _Batch(Protocol):
    """A state batch of any message."""

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


def read_batches(batches: Sequence[_Batch]) -> tuple[StateBatch, ...]:
    """State batches of a record, or of a request."""
    return tuple(
        StateBatch(batch.first_offset, batch.last_offset, read_state(batch.delivery_state), batch.delivery_count)
        for batch in batches
    )
