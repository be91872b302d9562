"""The coordinator of the groups that live on one partition of ``__consumer_offsets``: routes requests, keeps time.

A record machine (``model.machine``): handlers return Outcomes, ``replay`` is the only place where committed offsets change, and
the runner drops and reloads the machine when an append fails. What a group's members own becomes a GroupMetadata record, or
those of the consumer protocol; who waits for what is soft. Decisions are elsewhere: ``joining`` who may join, ``rebalance`` when
a join phase ends, ``membership`` who stays, ``offsets`` what is stored, ``describing`` what administrators see; of the consumer
protocol ``consumer_heartbeat``, ``consumer_leaving``, ``classic_members`` and ``migration``.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush

from tidelog.coordinator.group.classic import membership, rebalance
from tidelog.coordinator.group.classic.classic_group import ClassicGroup, GroupState
from tidelog.coordinator.group.classic.joining import Join, Joiner
from tidelog.coordinator.group.consumer import consumer_heartbeat, consumer_leaving
from tidelog.coordinator.group.consumer.consumer_group import (
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    ConsumerGroup,
)
from tidelog.coordinator.group.consumer.consumer_heartbeat import Beat
from tidelog.coordinator.group.consumer.consumer_records import (
    ConsumerKey,
    group_tombstones,
    read_consumer_key,
    replay_tombstone,
    replay_value,
)
from tidelog.coordinator.group.consumer.regex_refresh import refresh_records
from tidelog.coordinator.group.coordination import Coordination, Group
from tidelog.coordinator.group.effects import Effects
from tidelog.coordinator.group.migration import classic_members
from tidelog.coordinator.group.offsets.offset_service import OffsetService
from tidelog.coordinator.group.records import (
    GroupRecord,
    OffsetKey,
    UnknownKey,
    group_record,
    read_group,
    read_key,
    read_offset,
)
from tidelog.coordinator.group.settings import GroupSettings
from tidelog.coordinator.group.topic_metadata import TopicMetadata
from tidelog.metadata.image import EMPTY_IMAGE, ClusterImage
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.machine import NOTHING, Outcome, Token
from tidelog.model.ports import Rng
from tidelog.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from tidelog.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from tidelog.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse
from tidelog.protocol.messages.sync_group import SyncGroupRequest
from tidelog.records.builder import RecordData
from tidelog.records.record import Record

BATCHED_LEAVE_FROM = 3


class GroupCoordinator(OffsetService):
    """All groups of one partition. Tokens name waiting requests; the runner makes them and answers by them."""

    __slots__ = (
        "_joiner",
        "_next_offset_check_ms",
        "_scheduled",
        "_timers",
        "loading",
    )

    def __init__(
        self, settings: GroupSettings, rng: Rng, now_ms: int, image: Callable[[], ClusterImage] = lambda: EMPTY_IMAGE
    ) -> None:
        """``image`` gives the cluster as it is when it is asked; ``topics_changed`` says that topics are not what they were."""
        super().__init__(settings, Coordination(settings, TopicMetadata(image), rng, image().offset))
        self._joiner = Joiner(settings, rng)
        self._next_offset_check_ms = now_ms + settings.offsets_retention_check_interval_ms
        self._timers: list[tuple[int, str]] = []
        self._scheduled: dict[str, int] = {}
        self.loading = True

    # -- membership ----------------------------------------------------------------------------------------------------------

    def join(self, join: Join, now_ms: int) -> Outcome:
        """JoinGroup. The group comes into being with its first member, not with a member that claims to be one already."""
        effects = Effects()
        request = join.request
        group = self.groups.get(request.group_id)
        if isinstance(group, ConsumerGroup) and group.members:
            return self._join_consumer_group(group, join, now_ms)
        former, group = (group, None) if isinstance(group, ConsumerGroup) else (None, group)
        error = self._join_error(join, group)
        if error is not None:
            effects.reply(join.token, rebalance.join_error(join.version, request.member_id, error))
            return effects.outcome()
        created = group is None
        if group is None:
            group = self.groups[request.group_id] = ClassicGroup(request.group_id, now_ms)
            if former is not None:
                effects.records += [*group_tombstones(former), group_record(group)]
        self._joiner.join(group, join, effects, now_ms)
        if created and not effects.records:
            # As Kafka does: who was given a member id finds the group again where its coordinator has moved to.
            effects.records.append(group_record(ClassicGroup(request.group_id, now_ms)))
        self._schedule(group)
        return effects.outcome()

    def _join_consumer_group(self, group: ConsumerGroup, join: Join, now_ms: int) -> Outcome:
        effects = Effects()
        try:
            error = self._session_error(join)
            if error is not None:
                raise KafkaError(error)
            classic_members.join(self.coordination, group, join, effects, now_ms)
        except KafkaError as refused:
            group.metadata_checked = False
            effects = Effects()
            effects.reply(join.token, rebalance.join_error(join.version, "", refused.code))
        self._schedule(self.groups[group.group_id])
        return effects.outcome()

    def _session_error(self, join: Join) -> ErrorCode | None:
        settings = self._settings
        if settings.min_session_timeout_ms <= join.request.session_timeout_ms <= settings.max_session_timeout_ms:
            return None
        return ErrorCode.INVALID_SESSION_TIMEOUT

    def _join_error(self, join: Join, group: ClassicGroup | None) -> ErrorCode | None:
        request = join.request
        if not request.group_id:
            return ErrorCode.INVALID_GROUP_ID
        error = self._session_error(join)
        if error is not None:
            return error
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
        elif isinstance(group, ConsumerGroup):
            try:
                classic_members.sync(self.coordination, group, token, request, effects, now_ms)
            except KafkaError as refused:
                effects.reply(token, rebalance.sync_error(refused.code))
            self._schedule(group)
        else:
            membership.sync(group, token, request, effects, self._settings, now_ms)
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
        elif isinstance(group, ConsumerGroup):
            try:
                error = classic_members.heartbeat(group, request, now_ms)
            except KafkaError as refused:
                error = refused.code
            self._schedule(group)
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
        if isinstance(group, ConsumerGroup):
            return self._leave_consumer_group(group, token, request, version, now_ms)
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

    def _leave_consumer_group(
        self, group: ConsumerGroup, token: Token, request: LeaveGroupRequest, version: int, now_ms: int
    ) -> Outcome:
        effects = Effects()
        if version < BATCHED_LEAVE_FROM:
            request = LeaveGroupRequest(group_id=request.group_id, members=[MemberIdentity(member_id=request.member_id)])
        answers = classic_members.leave(self.coordination, group, request, effects, now_ms)
        if version < BATCHED_LEAVE_FROM:
            effects.reply(token, LeaveGroupResponse(error_code=answers[0].error_code))
        else:
            effects.reply(token, LeaveGroupResponse(members=answers))
        self._schedule(self.groups[group.group_id])
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

    def consumer_heartbeat(self, beat: Beat, now_ms: int) -> Outcome:
        """ConsumerGroupHeartbeat, checked by ``heartbeat_validation.check_request`` before."""
        effects = Effects()
        request = beat.request
        try:
            if request.member_epoch in {LEAVE_EPOCH, STATIC_LEAVE_EPOCH}:
                consumer_leaving.leave(self.coordination, beat, effects, now_ms)
            else:
                consumer_heartbeat.heartbeat(self.coordination, beat, effects, now_ms)
        except KafkaError as refused:
            known = self.coordination.consumer(request.group_id)
            if known is not None:
                known.metadata_checked = False
            effects = Effects()
            effects.reply(beat.token, ConsumerGroupHeartbeatResponse(error_code=refused.code, error_message=refused.detail))
        group = self.groups.get(request.group_id)
        if group is not None:
            self._schedule(group)
        return effects.outcome()

    def topics_changed(self, *, created: bool) -> Outcome:
        """Topics are not what they were: consumer groups look at theirs with their next heartbeat; new ones may match."""
        if created:
            self.coordination.new_topics_version = self.coordination.topics.version
        for group in self.groups.values():
            if isinstance(group, ConsumerGroup):
                group.metadata_checked = False
        return NOTHING

    # -- time ----------------------------------------------------------------------------------------------------------------

    def next_deadline(self) -> int:
        """When ``expire`` may have something to do; never later than when it has."""
        if self.coordination.regex_jobs:
            return 0
        return min(self._timers[0][0], self._next_offset_check_ms) if self._timers else self._next_offset_check_ms

    def _schedule(self, group: Group) -> None:
        """Only an earlier deadline is news: later ones are found when the earlier one is looked at."""
        due = group.timers.soonest_ms if isinstance(group, ConsumerGroup) else membership.next_deadline(group)
        if due is not None and due < self._scheduled.get(group.group_id, due + 1):
            self._scheduled[group.group_id] = due
            heappush(self._timers, (due, group.group_id))

    def expire(self, now_ms: int) -> Outcome:
        """Ends sessions and phases that are due, and takes back offsets that nobody needs any more. Patterns are looked up first,
        by themselves: what follows goes by their records."""
        effects = Effects()
        if self.coordination.regex_jobs:
            group_id = next(iter(self.coordination.regex_jobs))
            del self.coordination.regex_jobs[group_id]
            subscribed = self.coordination.consumer(group_id)
            if subscribed is not None:
                effects.records += refresh_records(self.coordination, subscribed, now_ms)
            return effects.outcome()
        due_groups = []
        while self._timers and self._timers[0][0] <= now_ms:
            due, group_id = heappop(self._timers)
            if self._scheduled.get(group_id) == due:
                del self._scheduled[group_id]
                due_groups.append(group_id)
        # Each once: what a group has to do next goes by the records of this.
        for group_id in due_groups:
            group = self.groups.get(group_id)
            if isinstance(group, ConsumerGroup):
                consumer_leaving.expire(self.coordination, group, effects, now_ms)
            elif group is not None:
                membership.expire(group, effects, self._settings, now_ms)
            if group is not None:
                self._schedule(self.groups[group_id])
        if now_ms >= self._next_offset_check_ms:
            self._next_offset_check_ms = now_ms + self._settings.offsets_retention_check_interval_ms
            self.expire_offsets(effects, now_ms)
        return effects.outcome()

    def member_ids(self, group_id: str) -> list[str]:
        """Who belongs to a group, in the order of their coming; nobody where there is none."""
        group = self.groups.get(group_id)
        return [] if group is None else list(group.members)

    def end_session(self, group_id: str, member_id: str, now_ms: int) -> Outcome:
        """A member goes as if it had been silent for a whole session; a test asks for this."""
        effects = Effects()
        group = self.groups.get(group_id)
        if group is not None and member_id in group.members:
            if isinstance(group, ConsumerGroup):
                consumer_leaving.remove(self.coordination, group, [member_id], effects, now_ms)
            else:
                membership.remove(group, member_id, effects, self._settings, now_ms, "was put out")
            self._schedule(self.groups[group_id])
        return effects.outcome()

    # -- the log -------------------------------------------------------------------------------------------------------------

    def replay(self, record: GroupRecord, now_ms: int) -> None:
        """A record as the log has it, at load and after each append of our own. Once loaded, a live group is ahead of its
        records, which were made from it: only a tombstone changes it then."""
        key = read_key(record.key)
        if isinstance(key, OffsetKey):
            self.offsets.replay(key, None if record.value is None else read_offset(record.value))
        elif isinstance(key, str):
            self._replay_group(key, record.value, now_ms)
        elif isinstance(key, UnknownKey):
            of_consumers = read_consumer_key(key.type, record.key[2:])
            if of_consumers is not None:
                self._replay_consumer_group(of_consumers, record.value)

    def replay_pending(self, record: GroupRecord, producer_id: int, now_ms: int) -> None:
        """The same for a record of a producer's transaction; only offsets are committed within one."""
        key = read_key(record.key)
        if isinstance(key, OffsetKey):
            self.offsets.replay_pending(producer_id, key, None if record.value is None else read_offset(record.value))

    def replay_stored_pending(self, record: Record, producer_id: int, now_ms: int) -> None:
        """A record of a producer's transaction as it lies in the log."""
        if record.key is not None:
            value = None if record.value is None else bytes(record.value)
            self.replay_pending(GroupRecord(bytes(record.key), value), producer_id, now_ms)

    def replay_marker(self, producer_id: int, *, committed: bool) -> None:
        """A producer's transaction is over."""
        self.offsets.end_transaction(producer_id, committed=committed)

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
        elif isinstance(group, ConsumerGroup):
            return
        elif group is not None and self.loading:
            del self.groups[group_id]
        elif group is not None and group.state is GroupState.EMPTY and not group.pending:
            group.move(GroupState.DEAD, now_ms, "taken back")
            del self.groups[group_id]

    def _replay_consumer_group(self, key: ConsumerKey, value: bytes | None) -> None:
        group = self.groups.get(key.group_id)
        if value is not None:
            if isinstance(group, ClassicGroup) and not self.loading:
                # It has just turned back: the records tell how, the group is there already.
                return
            if not isinstance(group, ConsumerGroup):
                group = self.groups[key.group_id] = ConsumerGroup(key.group_id)
            replay_value(group, key, value)
        elif isinstance(group, ConsumerGroup) and replay_tombstone(group, key):
            del self.groups[key.group_id]

    def loaded(self, now_ms: int) -> None:
        """The log is read to its end: members have a whole session to show themselves."""
        self.loading = False
        self.coordination.new_topics_version = self.coordination.topics.version
        for group in self.groups.values():
            if isinstance(group, ConsumerGroup):
                consumer_leaving.begin_timers(self.coordination, group, now_ms)
            else:
                for member in group.members.values():
                    membership.touch(member, now_ms)
            self._schedule(group)

    def check(self) -> None:
        """Invariants of all groups."""
        for group in self.groups.values():
            group.check()
