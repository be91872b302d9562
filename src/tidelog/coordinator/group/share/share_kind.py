"""Share groups as a kind of group: what requests of other protocols mean in one, and its end."""

from __future__ import annotations

from tidelog.coordinator.group.classic import rebalance
from tidelog.coordinator.group.classic.joining import Join
from tidelog.coordinator.group.effects import Effects
from tidelog.coordinator.group.group_registry import Coordination
from tidelog.coordinator.group.offsets.committed_offsets import OffsetsView, Topic
from tidelog.coordinator.group.records import GroupRecord
from tidelog.coordinator.group.share.share_group import ShareGroup
from tidelog.coordinator.group.share.share_heartbeat import remove
from tidelog.coordinator.group.share.share_records import (
    ShareRecordKey,
    group_tombstones,
    read_share_key,
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

_NOT_FOUND = ErrorCode.GROUP_ID_NOT_FOUND


class ShareKind:
    name = "share"

    def __init__(self, coordination: Coordination) -> None:
        self._c = coordination

    def protocol_type(self, group: ShareGroup) -> str:
        return "share"

    def state_name(self, group: ShareGroup) -> str:
        return group.state.value

    # members

    def join(self, group: ShareGroup, join: Join, effects: Effects, now_ms: int) -> None:
        effects.reply(join.token, rebalance.join_error(join.version, "", ErrorCode.INCONSISTENT_GROUP_PROTOCOL))

    def sync(self, group: ShareGroup, token: Token, request: SyncGroupRequest, effects: Effects, now_ms: int) -> None:
        effects.reply(token, rebalance.sync_error(ErrorCode.UNKNOWN_MEMBER_ID))

    def heartbeat(self, group: ShareGroup, request: HeartbeatRequest, now_ms: int) -> ErrorCode:
        return ErrorCode.UNKNOWN_MEMBER_ID

    def leave(self, group: ShareGroup, request: LeaveGroupRequest, effects: Effects, now_ms: int) -> list[MemberResponse]:
        return [MemberResponse(each.member_id, each.group_instance_id, ErrorCode.UNKNOWN_MEMBER_ID) for each in request.members]

    def remove(self, group: ShareGroup, member_id: str, effects: Effects, now_ms: int) -> None:
        remove(self._c, group, [member_id], effects)

    # time and the world

    def next_deadline(self, group: ShareGroup) -> int | None:
        return min(group.sessions.values(), default=None)

    def expire(self, group: ShareGroup, effects: Effects, now_ms: int) -> None:
        expired = [member_id for member_id, deadline_ms in group.sessions.items() if deadline_ms <= now_ms]
        for member_id in expired:
            del group.sessions[member_id]
        gone = [member_id for member_id in expired if member_id in group.members]
        if gone:
            remove(self._c, group, gone, effects)

    def loaded(self, group: ShareGroup, now_ms: int) -> None:
        """Every member gets a full session; what was being initialized is ordered again."""
        timeout_ms = self._c.share_setting(group.group_id, self._c.settings.share_session_timeout)
        group.sessions = dict.fromkeys(group.members, now_ms + timeout_ms)

    def topics_changed(self, group: ShareGroup) -> None:
        group.metadata_checked = False

    # offsets: a share group has none of the kind that members commit

    def commit_error(self, group: ShareGroup, request: OffsetCommitRequest, version: int, now_ms: int) -> ErrorCode | None:
        return _NOT_FOUND

    def transactional_commit_error(self, group: ShareGroup, request: TxnOffsetCommitRequest) -> ErrorCode | None:
        return _NOT_FOUND

    def fetch_error(self, group: ShareGroup, member_id: str | None, epoch: int) -> ErrorCode | None:
        """None: as for a group that does not exist, no offset is found."""
        return None

    def delete_offsets_error(self, group: ShareGroup) -> ErrorCode | None:
        return _NOT_FOUND

    def reads(self, group: ShareGroup, topic: str) -> bool:
        return topic in group.topics()

    def expired_offsets(self, group: ShareGroup, offsets: OffsetsView, now_ms: int) -> list[Topic]:
        return []

    # the end of a group

    def may_be_deleted(self, group: ShareGroup) -> bool:
        return not group.members

    def is_idle(self, group: ShareGroup) -> bool:
        """Never: a share group lives until it is deleted."""
        return False

    def tombstones(self, group: ShareGroup) -> list[GroupRecord]:
        return group_tombstones(group)

    # the log

    def replay_record(self, record_type: int, body: bytes, value: bytes | None) -> None:
        """``replay``, for a key that is not read yet, without its type; one of no share group is ignored."""
        key = read_share_key(record_type, body)
        if key is not None:
            self.replay(key, value)

    def replay(self, key: ShareRecordKey, value: bytes | None) -> None:
        """Replays a record of a share group."""
        group = self._c.of_class(key.group_id, ShareGroup)
        if value is not None:
            if group is None:
                group = ShareGroup(key.group_id)
                self._c.put(group)
            replay_value(group, key, value)
        elif group is not None and replay_tombstone(group, key):
            self._c.drop(key.group_id)
