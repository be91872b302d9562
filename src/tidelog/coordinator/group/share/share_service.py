"""Requests about share groups, beside heartbeats: descriptions, and the states of their partitions at the share coordinator.

An offset is reset, or deleted, in steps: first what is about to happen is recorded here, then the share coordinator is asked,
then the outcome is recorded (``settle``, ``forget``). A crash between them leaves partitions that are initializing or deleting;
the next heartbeat, or the next request, repeats the step.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from tidelog.coordinator.group.effects import Effects
from tidelog.coordinator.group.group_registry import Coordination
from tidelog.coordinator.group.share import share_heartbeat
from tidelog.coordinator.group.share.share_group import LEAVE_EPOCH, Partitions, ShareGroup, ShareMember
from tidelog.coordinator.group.share.share_heartbeat import ShareBeat
from tidelog.coordinator.group.share.share_records import epoch_record, state_partitions_record
from tidelog.coordinator.partition_for_key import table_order
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.machine import NOTHING, Outcome, Token
from tidelog.protocol.messages.share_group_describe import Assignment, DescribedGroup, Member, TopicPartitions
from tidelog.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatResponse

ASSIGNOR = "simple"


class Ordered(NamedTuple):
    """What the share coordinator is to be asked for: ``state_epoch`` for states to initialize, the partitions by topic id, and
    the names of the topics."""

    state_epoch: int
    partitions: Partitions
    names: Mapping[bytes, str]


class ShareService:
    """The share groups of one coordinator."""

    __slots__ = ("_c", "_has_offsets", "_schedule")

    def __init__(
        self, coordination: Coordination, schedule: Callable[[str], None], has_offsets: Callable[[str], bool] = lambda _: False
    ) -> None:
        """``schedule(group_id)``: the group's deadlines may have changed. ``has_offsets(group_id)``: whether offsets are
        committed under that name, which makes it a classic group."""
        self._c = coordination
        self._has_offsets = has_offsets
        self._schedule = schedule

    def heartbeat(self, beat: ShareBeat, now_ms: int) -> Outcome:
        """ShareGroupHeartbeat; ``share_heartbeat.check_request`` has checked it."""
        effects = Effects()
        try:
            if self._c.of_class(beat.request.group_id, ShareGroup) is None and self._has_offsets(beat.request.group_id):
                raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {beat.request.group_id} is of another protocol.")
            if beat.request.member_epoch == LEAVE_EPOCH:
                share_heartbeat.leave(self._c, beat, effects)
            else:
                share_heartbeat.heartbeat(self._c, beat, effects, now_ms)
        except KafkaError as refused:
            effects = Effects()
            answer = ShareGroupHeartbeatResponse(error_code=refused.code, error_message=refused.detail)
            effects.reply(beat.token, answer)
        self._schedule(beat.request.group_id)
        return effects.outcome()

    def settle(self, group_id: str, done: Partitions, failed: Partitions) -> Outcome:
        """The states of ``done`` are initialized; those of ``failed`` are not, and may be tried again."""
        group = self._c.of_class(group_id, ShareGroup)
        if group is None:
            return NOTHING
        for topic_id in failed:
            group.initializing_since.pop(topic_id, None)
        return Outcome(records=tuple(share_heartbeat.settle(group, done, failed)))

    def describe(self, group_id: str) -> DescribedGroup:
        """ShareGroupDescribe, one group. GROUP_ID_NOT_FOUND for an unknown group and for one of another protocol."""
        group = self._c.of_class(group_id, ShareGroup)
        if group is None:
            text = (
                f"Group {group_id} not found." if group_id not in self._c.groups else f"Group {group_id} is of another protocol."
            )
            return DescribedGroup(error_code=ErrorCode.GROUP_ID_NOT_FOUND, error_message=text, group_id=group_id)
        return DescribedGroup(
            group_id=group_id,
            group_state=group.state.value,
            group_epoch=group.epoch,
            assignment_epoch=group.assignment_epoch,
            assignor_name=ASSIGNOR,
            members=[self._member(group.members[member_id]) for member_id in table_order(group.members)],
        )

    def _member(self, member: ShareMember) -> Member:
        assigned = []
        for topic_id, partitions in member.assigned.items():
            name = self._c.topics.name_of(topic_id)
            if name is not None:
                assigned.append(TopicPartitions(topic_id, name, sorted(partitions)))
        return Member(
            member_id=member.member_id,
            rack_id=member.rack_id,
            member_epoch=member.epoch,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=list(member.topics),
            assignment=Assignment(topic_partitions=assigned),
        )

    # -- states at the share coordinator -------------------------------------------------------------------------------------

    def initialized(self, group_id: str) -> Ordered | ErrorCode:
        """The partitions with a state; GROUP_ID_NOT_FOUND without such a group."""
        group = self._c.of_class(group_id, ShareGroup)
        if group is None:
            return ErrorCode.GROUP_ID_NOT_FOUND
        known = group.state_partitions.initialized
        partitions = {topic_id: found for topic_id, (_, found) in known.items()}
        return Ordered(group.epoch, partitions, {topic_id: name for topic_id, (name, _) in known.items()})

    def begin_reset(
        self, token: Token, group_id: str, topics: Mapping[bytes, tuple[str, frozenset[int]]], now_ms: int
    ) -> Outcome:
        """The reply is an ``Ordered`` of what to initialize, or the error: NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND for a group of
        another protocol. A group that does not exist is created. The epoch rises, so that leaders with the former state are
        fenced. For a while members that join do not order these partitions to be initialized."""
        effects = Effects()
        group = self._c.of_class(group_id, ShareGroup)
        if group is None and (group_id in self._c.groups or self._has_offsets(group_id)):
            effects.reply(token, ErrorCode.GROUP_ID_NOT_FOUND)
            return effects.outcome()
        group = group or ShareGroup(group_id)
        if group.members:
            effects.reply(token, ErrorCode.NON_EMPTY_GROUP)
            return effects.outcome()
        if not topics:
            effects.reply(token, Ordered(group.epoch, {}, {}))
            return effects.outcome()
        self._c.put(group)
        group.initializing_since.update(dict.fromkeys(topics, now_ms))
        effects.records.append(epoch_record(group_id, group.epoch + 1, group.metadata_hash))
        effects.records.append(state_partitions_record(group_id, group.state_partitions.begin(topics)))
        partitions = {topic_id: found for topic_id, (_, found) in topics.items()}
        effects.reply(token, Ordered(group.epoch + 1, partitions, {topic_id: name for topic_id, (name, _) in topics.items()}))
        return effects.outcome()

    def begin_deletion(self, token: Token, group_id: str, topic_ids: Collection[bytes] | None) -> Outcome:
        """The reply is an ``Ordered`` of states to delete, of these topics or of all (None), or the error: GROUP_ID_NOT_FOUND,
        NON_EMPTY_GROUP."""
        effects = Effects()
        group = self._c.of_class(group_id, ShareGroup)
        if group is None or group.members:
            effects.reply(token, ErrorCode.GROUP_ID_NOT_FOUND if group is None else ErrorCode.NON_EMPTY_GROUP)
            return effects.outcome()
        known = group.state_partitions
        chosen = [*known.known(), *known.deleting] if topic_ids is None else topic_ids
        deleting = known.delete(chosen)
        if deleting != known:
            effects.records.append(state_partitions_record(group_id, deleting))
        names = {topic_id: name for topic_id, name in deleting.deleting.items() if topic_id in chosen}
        partitions = {}
        for topic_id in names:
            # After a crash the partitions are not in the record any more.
            count = self._c.topics.spec_of(topic_id).partitions if self._c.topics.name_of(topic_id) is not None else 0
            partitions[topic_id] = known.known().get(topic_id) or frozenset(range(count))
        effects.reply(token, Ordered(group.epoch, partitions, names))
        return effects.outcome()

    def forget(self, token: Token, group_id: str, topic_ids: Collection[bytes]) -> Outcome:
        """The states of these topics are deleted."""
        effects = Effects()
        group = self._c.of_class(group_id, ShareGroup)
        if group is not None:
            left = group.state_partitions.without(topic_ids)
            if left != group.state_partitions:
                effects.records.append(state_partitions_record(group_id, left))
        effects.reply(token, ErrorCode.NONE)
        return effects.outcome()

    def forget_topics(self, topic_ids: Collection[bytes]) -> Outcome:
        """The topics were deleted."""
        records = []
        for group in self._c.groups.values():
            if isinstance(group, ShareGroup):
                left = group.state_partitions.without(topic_ids)
                if left != group.state_partitions:
                    records.append(state_partitions_record(group.group_id, left))
        return Outcome(records=tuple(records))
