"""The coordinator of the groups on one partition of ``__consumer_offsets``: routes requests and keeps time.

A record machine (``model.machine``): handlers return Outcomes, ``replay`` is the only place where committed offsets and groups of
the consumer protocol change, and the runner drops and reloads the machine when an append fails. A live classic group is ahead of
its records, as in Kafka: a JoinGroup changes it, and its GroupMetadata record follows when a generation is complete. A failed
append drops the machine and so that state as well.

A group's kind (``kinds``) handles its requests: ``classic`` (joining, the phases of a rebalance, sessions), ``consumer``
(KIP-848), and ``migration`` between them. ``offsets`` decides what is stored, ``describing`` what administrators see.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, TypeAlias

from tidelog.coordinator.group.classic import rebalance
from tidelog.coordinator.group.classic.classic_group import ClassicGroup
from tidelog.coordinator.group.classic.joining import Join
from tidelog.coordinator.group.consumer import consumer_describing, consumer_heartbeat, consumer_leaving
from tidelog.coordinator.group.consumer.consumer_group import LEAVE_EPOCH, STATIC_LEAVE_EPOCH
from tidelog.coordinator.group.consumer.consumer_heartbeat import Beat
from tidelog.coordinator.group.consumer.regex_refresh import refresh_records
from tidelog.coordinator.group.effects import Effects
from tidelog.coordinator.group.group_kind import Group, GroupKind
from tidelog.coordinator.group.group_registry import Coordination
from tidelog.coordinator.group.kinds import Kinds
from tidelog.coordinator.group.offsets.offset_service import OffsetService
from tidelog.coordinator.group.records import GroupRecord, OffsetKey, read_key, read_offset
from tidelog.coordinator.group.settings import GroupSettings
from tidelog.coordinator.group.topic_metadata import TopicMetadata
from tidelog.metadata.image import EMPTY_IMAGE, ClusterImage
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.first_use import FirstUse
from tidelog.model.machine import NOTHING, Outcome, Token
from tidelog.model.ports import Rng
from tidelog.protocol.messages.consumer_group_describe import DescribedGroup
from tidelog.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from tidelog.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from tidelog.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse
from tidelog.protocol.messages.sync_group import SyncGroupRequest
from tidelog.records.builder import RecordData
from tidelog.records.record import Record

if TYPE_CHECKING:
    from tidelog.coordinator.group.share.share_service import ShareService
    from tidelog.coordinator.group.streams.streams_service import StreamsService

Schedule: TypeAlias = Callable[[str], None]
"""Gets the id of a group whose deadlines may have changed."""
BATCHED_LEAVE_FROM = 3


def _share_service(coordination: Coordination, schedule: Schedule, has_offsets: Callable[[str], bool]) -> ShareService:
    from tidelog.coordinator.group.share.share_service import ShareService

    return ShareService(coordination, schedule, has_offsets)


def _streams_service(coordination: Coordination, schedule: Schedule) -> StreamsService:
    from tidelog.coordinator.group.streams.streams_service import StreamsService

    return StreamsService(coordination, schedule)


class GroupCoordinator:
    """All groups of one partition. Tokens name waiting requests; the runner creates them and sends the responses."""

    __slots__ = (
        "_c",
        "_kinds",
        "_loading",
        "_next_offset_check_ms",
        "_scheduled",
        "_settings",
        "_shares",
        "_streams",
        "_timers",
        "offsets",
    )

    shares: FirstUse[ShareService] = FirstUse("_shares")
    """What only share groups have."""
    streams: FirstUse[StreamsService] = FirstUse("_streams")
    """What only streams groups have."""

    def __init__(
        self, settings: GroupSettings, rng: Rng, now_ms: int, image: Callable[[], ClusterImage] = lambda: EMPTY_IMAGE
    ) -> None:
        """``image`` returns the current cluster image; ``topics_changed`` reports that topics changed."""
        self._settings = settings
        self._c = Coordination(settings, TopicMetadata(image), rng, image().offset)
        self._kinds = Kinds(self._c)
        self.offsets = OffsetService(self._c, self._kinds)
        """Offset commits and committed offsets."""
        self._shares: Any = partial(_share_service, self._c, self._schedule, self.offsets.stored.exist)
        self._streams: Any = partial(_streams_service, self._c, self._schedule)
        self._next_offset_check_ms = now_ms + settings.offsets_retention_check_interval_ms
        self._timers: list[tuple[int, str]] = []
        self._scheduled: dict[str, int] = {}
        self._loading = True

    @property
    def groups(self) -> Mapping[str, Group]:
        """Groups by id."""
        return self._c.groups

    def classic_group(self, group_id: str) -> ClassicGroup | None:
        """The group, if it is of the classic protocol."""
        return self._c.classic(group_id)

    def kind_of(self, group: Group) -> GroupKind[Any]:
        """The rules for the group."""
        return self._kinds.of(group)

    # -- membership ----------------------------------------------------------------------------------------------------------

    def join(self, join: Join, now_ms: int) -> Outcome:
        """JoinGroup."""
        effects = Effects()
        group = self._c.groups.get(join.request.group_id)
        if group is None:
            self._kinds.classic.join(None, join, effects, now_ms)
        else:
            self._kinds.of(group).join(group, join, effects, now_ms)
        self._schedule(join.request.group_id)
        return effects.outcome()

    def sync(self, token: Token, request: SyncGroupRequest, now_ms: int) -> Outcome:
        """SyncGroup."""
        effects = Effects()
        group = self._c.groups.get(request.group_id)
        if not request.group_id:
            effects.reply(token, rebalance.sync_error(ErrorCode.INVALID_GROUP_ID))
        elif group is None:
            effects.reply(token, rebalance.sync_error(ErrorCode.UNKNOWN_MEMBER_ID))
        else:
            self._kinds.of(group).sync(group, token, request, effects, now_ms)
            self._schedule(request.group_id)
        return effects.outcome()

    def heartbeat(self, token: Token, request: HeartbeatRequest, now_ms: int) -> Outcome:
        """Heartbeat."""
        effects = Effects()
        group = self._c.groups.get(request.group_id)
        if not request.group_id:
            error = ErrorCode.INVALID_GROUP_ID
        elif group is None:
            error = ErrorCode.UNKNOWN_MEMBER_ID
        else:
            error = self._kinds.of(group).heartbeat(group, request, now_ms)
            self._schedule(request.group_id)
        effects.reply(token, HeartbeatResponse(error_code=error))
        return effects.outcome()

    def leave(self, token: Token, request: LeaveGroupRequest, version: int, now_ms: int) -> Outcome:
        """LeaveGroup: one member before v3; since then several, each with its error."""
        effects = Effects()
        group = self._c.groups.get(request.group_id)
        if not request.group_id:
            effects.reply(token, LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID))
            return effects.outcome()
        if group is None:
            effects.reply(token, self._leave_unknown(request, version))
            return effects.outcome()
        if version < BATCHED_LEAVE_FROM:
            request = LeaveGroupRequest(group_id=request.group_id, members=[MemberIdentity(member_id=request.member_id)])
        answers = self._kinds.of(group).leave(group, request, effects, now_ms)
        if version < BATCHED_LEAVE_FROM:
            effects.reply(token, LeaveGroupResponse(error_code=answers[0].error_code))
        else:
            effects.reply(token, LeaveGroupResponse(members=answers))
        self._schedule(request.group_id)
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
        """ConsumerGroupHeartbeat; ``heartbeat_validation.check_request`` has checked it."""
        effects = Effects()
        request = beat.request
        try:
            if request.member_epoch in {LEAVE_EPOCH, STATIC_LEAVE_EPOCH}:
                consumer_leaving.leave(self._c, beat, effects, now_ms)
            else:
                consumer_heartbeat.heartbeat(self._c, beat, effects, now_ms)
        except KafkaError as refused:
            known = self._c.consumer(request.group_id)
            if known is not None:
                known.metadata_checked = False
            effects = Effects()
            effects.reply(beat.token, ConsumerGroupHeartbeatResponse(error_code=refused.code, error_message=refused.detail))
        self._schedule(request.group_id)
        return effects.outcome()

    def describe_consumer_group(self, group_id: str) -> DescribedGroup:
        """ConsumerGroupDescribe, one group."""
        return consumer_describing.describe_consumer_group(self._c, group_id)

    def topics_changed(self, *, created: bool) -> Outcome:
        """Topics changed: consumer groups check theirs with the next heartbeat, and patterns may match new topics."""
        if created:
            self._c.topics_created()
        for group in self._c.groups.values():
            self._kinds.of(group).topics_changed(group)
        return NOTHING

    # -- time ----------------------------------------------------------------------------------------------------------------

    def next_deadline(self) -> int:
        """When ``expire`` may have something to do; at or before the earliest deadline."""
        if self._c.resolves_soon():
            return 0
        return min(self._timers[0][0], self._next_offset_check_ms) if self._timers else self._next_offset_check_ms

    def _schedule(self, group_id: str) -> None:
        """Only an earlier deadline is scheduled; later ones are found when it is handled."""
        group = self._c.groups.get(group_id)
        due = None if group is None else self._kinds.of(group).next_deadline(group)
        if due is not None and due < self._scheduled.get(group_id, due + 1):
            self._scheduled[group_id] = due
            heappush(self._timers, (due, group_id))

    def expire(self, now_ms: int) -> Outcome:
        """Ends sessions and phases that are due, and deletes expired offsets. Patterns are resolved first, in a separate
        outcome: what follows depends on its records."""
        effects = Effects()
        if self._c.resolves_soon():
            subscribed, describable = self._c.take_regex_job()
            if subscribed is not None:
                effects.records += refresh_records(self._c, subscribed, now_ms, describable)
            return effects.outcome()
        due_groups = []
        while self._timers and self._timers[0][0] <= now_ms:
            due, group_id = heappop(self._timers)
            if self._scheduled.get(group_id) == due:
                del self._scheduled[group_id]
                due_groups.append(group_id)
        # Each group once: its next step depends on the records of this one.
        for group_id in due_groups:
            group = self._c.groups.get(group_id)
            if group is not None:
                self._kinds.of(group).expire(group, effects, now_ms)
                self._schedule(group_id)
        if now_ms >= self._next_offset_check_ms:
            self._next_offset_check_ms = now_ms + self._settings.offsets_retention_check_interval_ms
            self.offsets.expire(effects, now_ms)
        return effects.outcome()

    def member_ids(self, group_id: str) -> list[str]:
        """Member ids of a group in join order; empty for an unknown group."""
        group = self._c.groups.get(group_id)
        return [] if group is None else list(group.members)

    def end_session(self, group_id: str, member_id: str, now_ms: int) -> Outcome:
        """Removes a member as if its session had expired; used by tests."""
        effects = Effects()
        group = self._c.groups.get(group_id)
        if group is not None and member_id in group.members:
            self._kinds.of(group).remove(group, member_id, effects, now_ms)
            self._schedule(group_id)
        return effects.outcome()

    # -- the log -------------------------------------------------------------------------------------------------------------

    def replay(self, record: GroupRecord, now_ms: int) -> None:
        """Replays a record, at load and after each append."""
        key = read_key(record.key)
        if isinstance(key, OffsetKey):
            self.offsets.replay(key, None if record.value is None else read_offset(record.value))
        else:
            self._kinds.replay(key, record, now_ms, loading=self._loading)

    def replay_pending(self, record: GroupRecord, producer_id: int, now_ms: int) -> None:
        """Replays a record of a producer's transaction; only offsets can be committed in one."""
        key = read_key(record.key)
        if isinstance(key, OffsetKey):
            self.offsets.replay(key, None if record.value is None else read_offset(record.value), producer_id)

    def replay_stored_pending(self, record: Record, producer_id: int, now_ms: int) -> None:
        """Replays a stored record of a producer's transaction."""
        if record.key is not None:
            value = None if record.value is None else bytes(record.value)
            self.replay_pending(GroupRecord(bytes(record.key), value), producer_id, now_ms)

    def replay_marker(self, producer_id: int, *, committed: bool) -> None:
        """Replays the end of a producer's transaction."""
        self.offsets.replay_marker(producer_id, committed=committed)

    def replay_stored(self, record: Record, now_ms: int) -> None:
        """Replays a stored record; records without a key are ignored."""
        if record.key is not None:
            value = None if record.value is None else bytes(record.value)
            self.replay(GroupRecord(bytes(record.key), value), now_ms)

    def to_record(self, record: GroupRecord, now_ms: int) -> RecordData:
        """The log record for a record of an Outcome."""
        return RecordData(record.key, record.value, now_ms)

    def loaded(self, now_ms: int) -> None:
        """The log has been read to its end: every member gets a full session."""
        self._loading = False
        self._c.topics_created()
        for group_id, group in self._c.groups.items():
            self._kinds.of(group).loaded(group, now_ms)
            self._schedule(group_id)

    def check(self) -> None:
        """Asserts the invariants of all groups."""
        for group in self._c.groups.values():
            group.check()
