"""The coordinator of the groups that live on one partition of ``__consumer_offsets``: routes requests, keeps time.

A record machine (``model.machine``): handlers return Outcomes, ``replay`` is the only place where committed offsets change, and
the runner drops and reloads the machine when an append fails. What a group's members own becomes a GroupMetadata record; who
waits for what is soft. Decisions are elsewhere: ``joining`` who may join, ``rebalance`` when a join phase ends, ``membership``
who stays, ``offsets`` what is stored, ``describing`` what administrators see.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush

from tidelog.coordinator.group import membership, rebalance
from tidelog.coordinator.group.classic_group import ClassicGroup, GroupState
from tidelog.coordinator.group.effects import Effects
from tidelog.coordinator.group.joining import Join, Joiner
from tidelog.coordinator.group.offsets import Offsets, commit_error, reads
from tidelog.coordinator.group.records import (
    CommittedOffset,
    GroupRecord,
    OffsetKey,
    group_tombstone,
    offset_record,
    read_group,
    read_key,
    read_offset,
)
from tidelog.coordinator.group.settings import GroupSettings
from tidelog.model.errors import ErrorCode
from tidelog.model.machine import Outcome, Token
from tidelog.model.ports import Rng
from tidelog.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from tidelog.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse
from tidelog.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from tidelog.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from tidelog.protocol.messages.sync_group import SyncGroupRequest
from tidelog.records.builder import RecordData
from tidelog.records.record import Record

BATCHED_LEAVE_FROM = 3


class GroupCoordinator:
    """All groups of one partition. Tokens name waiting requests; the runner makes them and answers by them."""

    __slots__ = ("_joiner", "_next_offset_check_ms", "_scheduled", "_settings", "_timers", "groups", "loading", "offsets")

    def __init__(self, settings: GroupSettings, rng: Rng, now_ms: int) -> None:
        self._settings = settings
        self._joiner = Joiner(settings, rng)
        self._next_offset_check_ms = now_ms + settings.offsets_retention_check_interval_ms
        self._timers: list[tuple[int, str]] = []
        self._scheduled: dict[str, int] = {}
        self.groups: dict[str, ClassicGroup] = {}
        self.offsets = Offsets()
        self.loading = True

    # -- membership ----------------------------------------------------------------------------------------------------------

    def join(self, join: Join, now_ms: int) -> Outcome:
        """JoinGroup. The group comes into being with its first member, not with a member that claims to be one already."""
        effects = Effects()
        request = join.request
        group = self.groups.get(request.group_id)
        error = self._join_error(join, group)
        if error is not None:
            effects.reply(join.token, rebalance.join_error(join.version, request.member_id, error))
            return effects.outcome()
        if group is None:
            group = self.groups[request.group_id] = ClassicGroup(request.group_id, now_ms)
        self._joiner.join(group, join, effects, now_ms)
        self._schedule(group)
        return effects.outcome()

    def _join_error(self, join: Join, group: ClassicGroup | None) -> ErrorCode | None:
        request, settings = join.request, self._settings
        if not request.group_id:
            return ErrorCode.INVALID_GROUP_ID
        if not settings.min_session_timeout_ms <= request.session_timeout_ms <= settings.max_session_timeout_ms:
            return ErrorCode.INVALID_SESSION_TIMEOUT
        if group is None and request.member_id != "":
            return ErrorCode.UNKNOWN_MEMBER_ID
        if group is None and not (request.protocol_type and request.protocols):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return None

    def sync(self, token: Token, request: SyncGroupRequest, now_ms: int) -> Outcome:
        """SyncGroup."""
        effects = Effects()
        group = self.groups.get(request.group_id)
        if not request.group_id:
            effects.reply(token, rebalance.sync_error(ErrorCode.INVALID_GROUP_ID))
        elif group is None:
            effects.reply(token, rebalance.sync_error(ErrorCode.UNKNOWN_MEMBER_ID))
        else:
            membership.sync(group, token, request, effects, now_ms)
            self._schedule(group)
        return effects.outcome()

    def heartbeat(self, token: Token, request: HeartbeatRequest, now_ms: int) -> Outcome:
        """Heartbeat."""
        effects = Effects()
        group = self.groups.get(request.group_id)
        if not request.group_id:
            error = ErrorCode.INVALID_GROUP_ID
        elif group is None:
            error = ErrorCode.UNKNOWN_MEMBER_ID
        else:
            error = membership.heartbeat(group, request.member_id, request.group_instance_id, request.generation_id, now_ms)
        effects.reply(token, HeartbeatResponse(error_code=error))
        return effects.outcome()

    def leave(self, token: Token, request: LeaveGroupRequest, version: int, now_ms: int) -> Outcome:
        """LeaveGroup: one member before v3, several with an error each since."""
        effects = Effects()
        group = self.groups.get(request.group_id)
        if not request.group_id:
            effects.reply(token, LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID))
            return effects.outcome()
        if group is None:
            effects.reply(token, self._leave_unknown(request, version))
            return effects.outcome()
        if version < BATCHED_LEAVE_FROM:
            error = membership.leave(group, request.member_id, None, effects, self._settings, now_ms)
            effects.reply(token, LeaveGroupResponse(error_code=error))
        else:
            answers = []
            for member in request.members:
                error = membership.leave(group, member.member_id, member.group_instance_id, effects, self._settings, now_ms)
                answers.append(
                    MemberResponse(member_id=member.member_id, group_instance_id=member.group_instance_id, error_code=error)
                )
            effects.reply(token, LeaveGroupResponse(members=answers))
        self._schedule(group)
        return effects.outcome()

    @staticmethod
    def _leave_unknown(request: LeaveGroupRequest, version: int) -> LeaveGroupResponse:
        if version < BATCHED_LEAVE_FROM:
            return LeaveGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
        return LeaveGroupResponse(
            members=[
                MemberResponse(
                    member_id=member.member_id,
                    group_instance_id=member.group_instance_id,
                    error_code=ErrorCode.UNKNOWN_MEMBER_ID,
                )
                for member in request.members
            ]
        )

    # -- offsets -------------------------------------------------------------------------------------------------------------

    def commit(self, token: Token, request: OffsetCommitRequest, version: int, now_ms: int) -> Outcome:
        """OffsetCommit for partitions that exist: the handler has answered for the others. The empty group id is one like any
        other here, for the sake of clients that store offsets without a group."""
        effects = Effects()
        group = self.groups.get(request.group_id)
        generation = request.generation_id_or_member_epoch
        error = commit_error(group, request.member_id, request.group_instance_id, generation, version)
        if error is None and group is not None and request.member_id in group.members:
            membership.touch(group.members[request.member_id], now_ms)
        topics = []
        for topic in request.topics:
            answers = []
            for partition in topic.partitions:
                metadata = partition.committed_metadata or ""
                own = error
                if own is None and len(metadata.encode()) > self._settings.offset_metadata_max_bytes:
                    own = ErrorCode.OFFSET_METADATA_TOO_LARGE
                if own is None:
                    committed = CommittedOffset(
                        partition.committed_offset, partition.committed_leader_epoch, metadata, now_ms, topic.topic_id
                    )
                    key = OffsetKey(request.group_id, topic.name, partition.partition_index)
                    effects.records.append(offset_record(key, committed))
                answers.append(
                    OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=own or ErrorCode.NONE)
                )
            topics.append(OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=answers))
        effects.reply(token, OffsetCommitResponse(topics=topics))
        return effects.outcome()

    def delete_offsets(self, token: Token, request: OffsetDeleteRequest) -> Outcome:
        """OffsetDelete: not for topics that a live member reads, nor while members of another protocol type are there."""
        effects = Effects()
        group = self.groups.get(request.group_id)
        error = self._delete_offsets_error(request.group_id, group)
        if error is not None:
            effects.reply(token, OffsetDeleteResponse(error_code=error))
            return effects.outcome()
        topics = []
        for topic in request.topics:
            in_use = group is not None and reads(group, topic.name)
            answers = []
            for partition in topic.partitions:
                index = partition.partition_index
                answer = OffsetDeleteResponsePartition(partition_index=index)
                if in_use:
                    answer.error_code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
                elif self.offsets.get(request.group_id, topic.name, index) is not None:
                    effects.records.append(offset_record(OffsetKey(request.group_id, topic.name, index), None))
                answers.append(answer)
            topics.append(OffsetDeleteResponseTopic(name=topic.name, partitions=answers))
        effects.reply(token, OffsetDeleteResponse(topics=topics))
        return effects.outcome()

    def _delete_offsets_error(self, group_id: str, group: ClassicGroup | None) -> ErrorCode | None:
        if group is None:
            return None if self.offsets.of(group_id) else ErrorCode.GROUP_ID_NOT_FOUND
        if group.state is GroupState.DEAD:
            return ErrorCode.GROUP_ID_NOT_FOUND
        if group.state is not GroupState.EMPTY and group.protocol_type != "consumer":
            return ErrorCode.NON_EMPTY_GROUP
        return None

    def delete_group(self, token: Token, group_id: str, respond: Callable[[ErrorCode], object]) -> Outcome:
        """DeleteGroups, one group: only without members; its offsets go with it."""
        effects = Effects()
        group = self.groups.get(group_id)
        if group is None and not self.offsets.of(group_id):
            effects.reply(token, respond(ErrorCode.GROUP_ID_NOT_FOUND))
        elif group is not None and group.state is not GroupState.EMPTY:
            effects.reply(token, respond(ErrorCode.NON_EMPTY_GROUP))
        else:
            effects.records += [*self.offsets.tombstones(group_id), group_tombstone(group_id)]
            effects.reply(token, respond(ErrorCode.NONE))
        return effects.outcome()

    def forget_topics(self, names: frozenset[str]) -> Outcome:
        """Topics are gone: so are the offsets in them."""
        effects = Effects()
        for group_id in self.offsets.group_ids():
            for topic, partition in self.offsets.of(group_id):
                if topic in names:
                    effects.records.append(offset_record(OffsetKey(group_id, topic, partition), None))
        return effects.outcome()

    # -- time ----------------------------------------------------------------------------------------------------------------

    def next_deadline(self) -> int:
        """When ``expire`` may have something to do; never later than when it has."""
        return min(self._timers[0][0], self._next_offset_check_ms) if self._timers else self._next_offset_check_ms

    def _schedule(self, group: ClassicGroup) -> None:
        """Only an earlier deadline is news: later ones are found when the earlier one is looked at."""
        due = membership.next_deadline(group)
        if due is not None and due < self._scheduled.get(group.group_id, due + 1):
            self._scheduled[group.group_id] = due
            heappush(self._timers, (due, group.group_id))

    def expire(self, now_ms: int) -> Outcome:
        """Ends sessions and phases that are due, and takes back offsets that nobody needs any more."""
        effects = Effects()
        while self._timers and self._timers[0][0] <= now_ms:
            due, group_id = heappop(self._timers)
            if self._scheduled.get(group_id) != due:
                continue
            del self._scheduled[group_id]
            group = self.groups.get(group_id)
            if group is not None:
                membership.expire(group, effects, self._settings, now_ms)
                self._schedule(group)
        if now_ms >= self._next_offset_check_ms:
            self._next_offset_check_ms = now_ms + self._settings.offsets_retention_check_interval_ms
            self._expire_offsets(effects, now_ms)
        return effects.outcome()

    def _expire_offsets(self, effects: Effects, now_ms: int) -> None:
        retention = self._settings.offsets_retention_ms
        for group_id in {**dict.fromkeys(self.offsets.group_ids()), **dict.fromkeys(self.groups)}:
            group = self.groups.get(group_id)
            gone = self.offsets.expired(group_id, group, now_ms, retention)
            effects.records += [offset_record(OffsetKey(group_id, topic, partition), None) for topic, partition in gone]
            idle = group is not None and group.state is GroupState.EMPTY and not group.pending
            if idle and len(gone) == len(self.offsets.of(group_id)):
                effects.records.append(group_tombstone(group_id))

    # -- the log -------------------------------------------------------------------------------------------------------------

    def replay(self, record: GroupRecord, now_ms: int) -> None:
        """A record as the log has it, at load and after each append of our own. Once loaded, a live group is ahead of its
        records, which were made from it: only a tombstone changes it then."""
        key = read_key(record.key)
        if isinstance(key, OffsetKey):
            self.offsets.replay(key, None if record.value is None else read_offset(record.value))
        elif isinstance(key, str):
            self._replay_group(key, record.value, now_ms)

    def replay_stored(self, record: Record, now_ms: int) -> None:
        """A record as it lies in the log; one without a key is not ours."""
        if record.key is not None:
            value = None if record.value is None else bytes(record.value)
            self.replay(GroupRecord(bytes(record.key), value), now_ms)

    def to_record(self, record: GroupRecord, now_ms: int) -> RecordData:
        """What is appended for a record of an Outcome."""
        return RecordData(record.key, record.value, now_ms)

    def _replay_group(self, group_id: str, value: bytes | None, now_ms: int) -> None:
        group = self.groups.get(group_id)
        if value is not None:
            if group is None or self.loading:
                self.groups[group_id] = read_group(group_id, value, now_ms)
        elif group is not None and self.loading:
            del self.groups[group_id]
        elif group is not None and group.state is GroupState.EMPTY and not group.pending:
            group.move(GroupState.DEAD, now_ms, "taken back")
            del self.groups[group_id]

    def loaded(self, now_ms: int) -> None:
        """The log is read to its end: members have a whole session to show themselves."""
        self.loading = False
        for group in self.groups.values():
            for member in group.members.values():
                membership.touch(member, now_ms)
            self._schedule(group)

    def check(self) -> None:
        """Invariants of all groups."""
        for group in self.groups.values():
            group.check()
