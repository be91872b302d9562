"""Streams groups as a kind of group: what requests of other protocols mean in one, its offsets and its end."""

from __future__ import annotations

from tidelog.coordinator.group.classic import rebalance
from tidelog.coordinator.group.classic.classic_kind import ClassicKind
from tidelog.coordinator.group.classic.joining import Join
from tidelog.coordinator.group.effects import Effects
from tidelog.coordinator.group.group_registry import Coordination
from tidelog.coordinator.group.offsets.committed_offsets import OffsetsView, Topic, is_too_long
from tidelog.coordinator.group.offsets.transactional_offsets import names_nobody
from tidelog.coordinator.group.records import GroupRecord
from tidelog.coordinator.group.streams import streams_commit_check, streams_leaving
from tidelog.coordinator.group.streams.streams_group import StreamsGroup
from tidelog.coordinator.group.streams.streams_records import (
    StreamsRecordKey,
    group_tombstones,
    read_streams_key,
    replay_tombstone,
    replay_value,
)
from tidelog.model.errors import ErrorCode
from tidelog.model.machine import Token
from tidelog.protocol.messages.heartbeat import HeartbeatRequest
from tidelog.protocol.messages.leave_group import LeaveGroupRequest, MemberResponse
from tidelog.protocol.messages.offset_commit import OffsetCommitRequest
from tidelog.protocol.messages.sync_group import SyncGroupRequest
from tidelog.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest


class StreamsKind:
    name = "streams"

    def __init__(self, coordination: Coordination, classic: ClassicKind) -> None:
        """``classic`` takes over an empty group when its next member speaks the classic protocol."""
        self._c = coordination
        self._classic = classic

    def protocol_type(self, group: StreamsGroup) -> str:
        return "streams"

    def state_name(self, group: StreamsGroup) -> str:
        return group.state.value

    # members

    def join(self, group: StreamsGroup, join: Join, effects: Effects, now_ms: int) -> None:
        if group.members:
            effects.reply(join.token, rebalance.join_error(join.version, "", ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
        else:
            self._classic.join(None, join, effects, now_ms, former=tuple(group_tombstones(group)))

    def sync(self, group: StreamsGroup, token: Token, request: SyncGroupRequest, effects: Effects, now_ms: int) -> None:
        effects.reply(token, rebalance.sync_error(ErrorCode.UNKNOWN_MEMBER_ID))

    def heartbeat(self, group: StreamsGroup, request: HeartbeatRequest, now_ms: int) -> ErrorCode:
        return ErrorCode.UNKNOWN_MEMBER_ID

    def leave(self, group: StreamsGroup, request: LeaveGroupRequest, effects: Effects, now_ms: int) -> list[MemberResponse]:
        return [MemberResponse(each.member_id, each.group_instance_id, ErrorCode.UNKNOWN_MEMBER_ID) for each in request.members]

    def remove(self, group: StreamsGroup, member_id: str, effects: Effects, now_ms: int) -> None:
        streams_leaving.remove(group, member_id, effects)

    # time and the world

    def next_deadline(self, group: StreamsGroup) -> int | None:
        return group.deadlines.soonest_ms()

    def expire(self, group: StreamsGroup, effects: Effects, now_ms: int) -> None:
        streams_leaving.expire(self._c, group, effects, now_ms)

    def loaded(self, group: StreamsGroup, now_ms: int) -> None:
        streams_leaving.begin_deadlines(self._c, group, now_ms)

    def topics_changed(self, group: StreamsGroup) -> None:
        """Makes the group check its topics with the next heartbeat."""
        group.metadata_checked = False

    # offsets

    def commit_error(self, group: StreamsGroup, request: OffsetCommitRequest, version: int, now_ms: int) -> ErrorCode | None:
        partitions = (
            (topic.name, partition.partition_index)
            for topic in request.topics
            for partition in topic.partitions
            if not self._too_long(partition.committed_metadata)
        )
        epoch = request.generation_id_or_member_epoch
        return streams_commit_check.commit_error(group, request.member_id, epoch, version, partitions)

    def transactional_commit_error(self, group: StreamsGroup, request: TxnOffsetCommitRequest) -> ErrorCode | None:
        if names_nobody(request):
            return None
        partitions = (
            (topic.name, partition.partition_index)
            for topic in request.topics
            for partition in topic.partitions
            if not self._too_long(partition.committed_metadata)
        )
        epoch = request.generation_id_or_member_epoch
        return streams_commit_check.commit_error(group, request.member_id, epoch, None, partitions)

    def _too_long(self, metadata: str | None) -> bool:
        return is_too_long(metadata or "", self._c.settings.offset_metadata_max_bytes)

    def fetch_error(self, group: StreamsGroup, member_id: str | None, epoch: int) -> ErrorCode | None:
        return streams_commit_check.fetch_error(group, member_id, epoch)

    def delete_offsets_error(self, group: StreamsGroup) -> ErrorCode | None:
        return None

    def reads(self, group: StreamsGroup, topic: str) -> bool:
        return streams_commit_check.reads(group, topic)

    def expired_offsets(self, group: StreamsGroup, offsets: OffsetsView, now_ms: int) -> list[Topic]:
        retention_ms = self._c.settings.offsets_retention_ms
        return streams_commit_check.expired(group, offsets.of(group.group_id), now_ms, retention_ms)

    # the end of a group

    def may_be_deleted(self, group: StreamsGroup) -> bool:
        return not group.members

    def is_idle(self, group: StreamsGroup) -> bool:
        return not group.members

    def tombstones(self, group: StreamsGroup) -> list[GroupRecord]:
        return group_tombstones(group)

    # the log

    def replay_record(self, record_type: int, body: bytes, value: bytes | None, *, loading: bool) -> None:
        """``replay``, for a key that is not read yet, without its type; one of no streams group is ignored."""
        key = read_streams_key(record_type, body)
        if key is not None:
            self.replay(key, value, loading=loading)

    def replay(self, key: StreamsRecordKey, value: bytes | None, *, loading: bool) -> None:
        """Replays a record of a streams group."""
        group = self._c.of_class(key.group_id, StreamsGroup)
        if value is not None:
            if group is None:
                group = StreamsGroup(key.group_id)
                self._c.put(group)
            replay_value(group, key, value)
        elif group is not None and replay_tombstone(group, key):
            self._c.drop(key.group_id)
