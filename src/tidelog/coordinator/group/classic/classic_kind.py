"""The classic protocol as a kind of group: JoinGroup, SyncGroup, Heartbeat and LeaveGroup, and the rules for its offsets.

``join`` also creates groups; then ``group`` is None.
"""

from __future__ import annotations

from tidelog.coordinator.group.classic import membership, rebalance
from tidelog.coordinator.group.classic.classic_group import ClassicGroup, GroupState
from tidelog.coordinator.group.classic.joining import Join, Joiner
from tidelog.coordinator.group.effects import Effects
from tidelog.coordinator.group.group_registry import Coordination
from tidelog.coordinator.group.offsets import committed_offsets, transactional_offsets
from tidelog.coordinator.group.offsets.committed_offsets import OffsetsView, Topic
from tidelog.coordinator.group.records import GroupRecord, group_record, group_tombstone, read_group
from tidelog.model.errors import ErrorCode
from tidelog.model.machine import Token
from tidelog.protocol.messages.heartbeat import HeartbeatRequest
from tidelog.protocol.messages.leave_group import LeaveGroupRequest, MemberResponse
from tidelog.protocol.messages.offset_commit import OffsetCommitRequest
from tidelog.protocol.messages.sync_group import SyncGroupRequest
from tidelog.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest


class ClassicKind:
    name = "classic"

    def __init__(self, coordination: Coordination) -> None:
        self._c = coordination
        self._settings = coordination.settings
        self._joiner = Joiner(coordination.settings, coordination.rng)

    def protocol_type(self, group: ClassicGroup) -> str:
        return group.protocol_type or ""

    def state_name(self, group: ClassicGroup) -> str:
        return group.state.value

    # members

    def join(
        self, group: ClassicGroup | None, join: Join, effects: Effects, now_ms: int, former: tuple[GroupRecord, ...] = ()
    ) -> None:
        """Only a new member may create the group, not one that claims to be in it already. ``former``: records that delete the
        empty group of another protocol that this one replaces."""
        request = join.request
        error = self._join_error(join, group)
        if error is not None:
            effects.reply(join.token, rebalance.join_error(join.version, request.member_id, error))
            return
        created = group is None
        if group is None:
            group = ClassicGroup(request.group_id, now_ms)
            self._c.put(group)
            if former:
                effects.records += [*former, group_record(group)]
        self._joiner.join(group, join, effects, now_ms)
        if created and not effects.records:
            # As Kafka does: a client that was given a member id can use it after the group's coordinator has moved.
            effects.records.append(group_record(ClassicGroup(request.group_id, now_ms)))

    def _join_error(self, join: Join, group: ClassicGroup | None) -> ErrorCode | None:
        request = join.request
        if not request.group_id:
            return ErrorCode.INVALID_GROUP_ID
        if not self._settings.takes_session_timeout(request.session_timeout_ms):
            return ErrorCode.INVALID_SESSION_TIMEOUT
        if group is None and request.member_id != "":
            return ErrorCode.UNKNOWN_MEMBER_ID
        if group is None and not (request.protocol_type and request.protocols):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return None

    def sync(self, group: ClassicGroup, token: Token, request: SyncGroupRequest, effects: Effects, now_ms: int) -> None:
        membership.sync(group, token, request, effects, self._settings, now_ms)

    def heartbeat(self, group: ClassicGroup, request: HeartbeatRequest, now_ms: int) -> ErrorCode:
        return membership.heartbeat(group, request.member_id, request.group_instance_id, request.generation_id, now_ms)

    def leave(self, group: ClassicGroup, request: LeaveGroupRequest, effects: Effects, now_ms: int) -> list[MemberResponse]:
        answers = []
        for member in request.members:
            error = membership.leave(group, member.member_id, member.group_instance_id, effects, self._settings, now_ms)
            answers.append(
                MemberResponse(member_id=member.member_id, group_instance_id=member.group_instance_id, error_code=error)
            )
        return answers

    def remove(self, group: ClassicGroup, member_id: str, effects: Effects, now_ms: int) -> None:
        membership.remove(group, member_id, effects, self._settings, now_ms, "was put out")

    # time and the world

    def next_deadline(self, group: ClassicGroup) -> int | None:
        return membership.next_deadline(group)

    def expire(self, group: ClassicGroup, effects: Effects, now_ms: int) -> None:
        membership.expire(group, effects, self._settings, now_ms)

    def loaded(self, group: ClassicGroup, now_ms: int) -> None:
        for member in group.members.values():
            membership.touch(member, now_ms)

    def topics_changed(self, group: ClassicGroup) -> None:
        """Nothing to do: classic clients watch topics themselves."""

    # offsets

    def commit_error(self, group: ClassicGroup, request: OffsetCommitRequest, version: int, now_ms: int) -> ErrorCode | None:
        member_id, generation = request.member_id, request.generation_id_or_member_epoch
        error = committed_offsets.commit_error(group, member_id, request.group_instance_id, generation, version)
        if error is None and member_id in group.members:
            membership.touch(group.members[member_id], now_ms)
        return error

    def transactional_commit_error(self, group: ClassicGroup, request: TxnOffsetCommitRequest) -> ErrorCode | None:
        return transactional_offsets.commit_error(group, request)

    def fetch_error(self, group: ClassicGroup, member_id: str | None, epoch: int) -> ErrorCode | None:
        """Any client may read the offsets."""
        return None

    def delete_offsets_error(self, group: ClassicGroup) -> ErrorCode | None:
        if group.state is GroupState.DEAD:
            return ErrorCode.GROUP_ID_NOT_FOUND
        if group.state is not GroupState.EMPTY and group.protocol_type != "consumer":
            return ErrorCode.NON_EMPTY_GROUP
        return None

    def reads(self, group: ClassicGroup, topic: str) -> bool:
        return committed_offsets.reads(group, topic)

    def expired_offsets(self, group: ClassicGroup, offsets: OffsetsView, now_ms: int) -> list[Topic]:
        return committed_offsets.expired(offsets, group.group_id, group, now_ms, self._settings.offsets_retention_ms)

    # the end of a group

    def may_be_deleted(self, group: ClassicGroup) -> bool:
        return group.state is GroupState.EMPTY

    def is_idle(self, group: ClassicGroup) -> bool:
        return group.state is GroupState.EMPTY and not group.pending

    def tombstones(self, group: ClassicGroup) -> list[GroupRecord]:
        return [group_tombstone(group.group_id)]

    # the log

    def replay(self, group_id: str, value: bytes | None, now_ms: int, *, loading: bool) -> None:
        """Replays a GroupMetadata record. After loading, a live group is ahead of its records, which were made from it; then
        only a tombstone changes it."""
        known, group = self._c.groups.get(group_id), self._c.classic(group_id)
        if value is not None:
            if known is None or loading:
                self._c.put(read_group(group_id, value, now_ms))
        elif group is not None and loading:
            self._c.drop(group_id)
        elif group is not None and self.is_idle(group):
            group.move(GroupState.DEAD, now_ms, "taken back")
            self._c.drop(group_id)
