"""What a coordinator answers about the offsets of its groups, whichever protocol they use: commits, deletions, expiry.

The part of ``GroupCoordinator`` that stores and takes back. Who may commit is decided in ``offsets`` (classic groups),
``consumer_offsets`` and ``transactional_offsets``; deleting a group is here, as its offsets go with it.
"""

from __future__ import annotations

from collections.abc import Callable

from tidelog.coordinator.group.classic import membership
from tidelog.coordinator.group.classic.classic_group import GroupState
from tidelog.coordinator.group.consumer.consumer_group import ConsumerGroup, ConsumerGroupState
from tidelog.coordinator.group.consumer.consumer_records import group_tombstones
from tidelog.coordinator.group.coordination import Coordination, Group
from tidelog.coordinator.group.effects import Effects
from tidelog.coordinator.group.offsets import consumer_offsets, transactional_offsets
from tidelog.coordinator.group.offsets.committed_offsets import Offsets, commit_error, is_too_long, reads, take_commit
from tidelog.coordinator.group.records import (
    CommittedOffset,
    GroupRecord,
    OffsetKey,
    group_tombstone,
    offset_record,
)
from tidelog.coordinator.group.settings import GroupSettings
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import ZERO_UUID
from tidelog.model.machine import Outcome, Token
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
from tidelog.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest


class OffsetService:
    """Offsets of all groups of one partition."""

    __slots__ = ("_settings", "coordination", "groups", "offsets")

    def __init__(self, settings: GroupSettings, coordination: Coordination) -> None:
        self._settings = settings
        self.coordination = coordination
        self.groups: dict[str, Group] = coordination.groups
        self.offsets = Offsets()

    def commit(self, token: Token, request: OffsetCommitRequest, version: int, now_ms: int) -> Outcome:
        """OffsetCommit for partitions that exist: the handler has answered for the others. The empty group id is one like any
        other here, for the sake of clients that store offsets without a group."""
        effects = Effects()
        error = self._commit_error(request, version, now_ms)
        limit = self._settings.offset_metadata_max_bytes
        topics = []
        for topic in request.topics:
            answers = []
            for partition in topic.partitions:
                metadata = partition.committed_metadata or ""
                committed = CommittedOffset(
                    partition.committed_offset, partition.committed_leader_epoch, metadata, now_ms, topic.topic_id
                )
                key = OffsetKey(request.group_id, topic.name, partition.partition_index)
                own = take_commit(effects, key, committed, refusal=error, metadata_max_bytes=limit)
                answers.append(OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=own))
            topics.append(OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=answers))
        effects.reply(token, OffsetCommitResponse(topics=topics))
        return effects.outcome()

    def _commit_error(self, request: OffsetCommitRequest, version: int, now_ms: int) -> ErrorCode | None:
        group = self.groups.get(request.group_id)
        epoch = request.generation_id_or_member_epoch
        if isinstance(group, ConsumerGroup):
            partitions = (
                (topic.topic_id, partition.partition_index)
                for topic in request.topics
                for partition in topic.partitions
                if not is_too_long(partition.committed_metadata or "", self._settings.offset_metadata_max_bytes)
            )
            return consumer_offsets.commit_error(group, request.member_id, epoch, version, partitions)
        error = commit_error(group, request.member_id, request.group_instance_id, epoch, version)
        if error is None and group is not None and request.member_id in group.members:
            membership.touch(group.members[request.member_id], now_ms)
        return error

    def commit_transactional(self, token: Token, request: TxnOffsetCommitRequest, now_ms: int) -> Outcome:
        """TxnOffsetCommit for partitions that exist. Its records belong into a batch of the producer's transaction."""
        error = self._transactional_error(request)
        limit = self._settings.offset_metadata_max_bytes
        return transactional_offsets.commit(token, request, error, metadata_max_bytes=limit, now_ms=now_ms)

    def _transactional_error(self, request: TxnOffsetCommitRequest) -> ErrorCode | None:
        group = self.groups.get(request.group_id)
        if not isinstance(group, ConsumerGroup):
            return transactional_offsets.commit_error(group, request)
        if transactional_offsets.names_nobody(request):
            return None
        partitions = (
            (self.coordination.topics.id_of(topic.name) or ZERO_UUID, partition.partition_index)
            for topic in request.topics
            for partition in topic.partitions
            if not is_too_long(partition.committed_metadata or "", self._settings.offset_metadata_max_bytes)
        )
        error = consumer_offsets.commit_error(group, request.member_id, request.generation_id, None, partitions)
        # Producers know generations only.
        return ErrorCode.ILLEGAL_GENERATION if error is ErrorCode.STALE_MEMBER_EPOCH else error

    def delete_offsets(self, token: Token, request: OffsetDeleteRequest) -> Outcome:
        """OffsetDelete: not for topics that a live member reads, nor while members of another protocol type are there."""
        effects = Effects()
        group = self.groups.get(request.group_id)
        error = self._delete_offsets_error(request.group_id, group)
        if error is not None:
            effects.reply(token, OffsetDeleteResponse(error_code=error))
            return effects.outcome()
        places = frozenset(self.offsets.places(request.group_id))
        topics = []
        for topic in request.topics:
            in_use = group is not None and self._reads(group, topic.name)
            answers = []
            for partition in topic.partitions:
                index = partition.partition_index
                answer = OffsetDeleteResponsePartition(partition_index=index)
                if in_use:
                    answer.error_code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
                elif (topic.name, index) in places:
                    effects.records.append(offset_record(OffsetKey(request.group_id, topic.name, index), None))
                answers.append(answer)
            topics.append(OffsetDeleteResponseTopic(name=topic.name, partitions=answers))
        effects.reply(token, OffsetDeleteResponse(topics=topics))
        return effects.outcome()

    @staticmethod
    def _reads(group: Group, topic: str) -> bool:
        return topic in group.subscribed_topics() if isinstance(group, ConsumerGroup) else reads(group, topic)

    def _delete_offsets_error(self, group_id: str, group: Group | None) -> ErrorCode | None:
        if group is None:
            return None if self.offsets.exist(group_id) else ErrorCode.GROUP_ID_NOT_FOUND
        if isinstance(group, ConsumerGroup):
            return None
        if group.state is GroupState.DEAD:
            return ErrorCode.GROUP_ID_NOT_FOUND
        if group.state is not GroupState.EMPTY and group.protocol_type != "consumer":
            return ErrorCode.NON_EMPTY_GROUP
        return None

    def delete_group(self, token: Token, group_id: str, respond: Callable[[ErrorCode], object]) -> Outcome:
        """DeleteGroups, one group: only without members; its offsets go with it."""
        effects = Effects()
        group = self.groups.get(group_id)
        if group is None and not self.offsets.exist(group_id):
            effects.reply(token, respond(ErrorCode.GROUP_ID_NOT_FOUND))
        elif group is not None and group.state not in {GroupState.EMPTY, ConsumerGroupState.EMPTY}:
            effects.reply(token, respond(ErrorCode.NON_EMPTY_GROUP))
        else:
            effects.records += [*self.offsets.tombstones(group_id), *self._tombstones(group_id, group)]
            effects.reply(token, respond(ErrorCode.NONE))
        return effects.outcome()

    @staticmethod
    def _tombstones(group_id: str, group: Group | None) -> list[GroupRecord]:
        return group_tombstones(group) if isinstance(group, ConsumerGroup) else [group_tombstone(group_id)]

    def forget_topics(self, names: frozenset[str]) -> Outcome:
        """Topics are gone: so are the offsets in them."""
        effects = Effects()
        self.coordination.topics.forget(names)
        for group_id in self.offsets.group_ids():
            for topic, partition in self.offsets.places(group_id):
                if topic in names:
                    effects.records.append(offset_record(OffsetKey(group_id, topic, partition), None))
        return effects.outcome()

    def expire_offsets(self, effects: Effects, now_ms: int) -> None:
        """Takes back commits that have outlived their use, and groups that have nothing else."""
        retention = self._settings.offsets_retention_ms
        for group_id in {**dict.fromkeys(self.offsets.group_ids()), **dict.fromkeys(self.groups)}:
            group = self.groups.get(group_id)
            if isinstance(group, ConsumerGroup):
                gone = consumer_offsets.expired(group, self.offsets.of(group_id), now_ms, retention)
                idle = not group.members
            else:
                gone = self.offsets.expired(group_id, group, now_ms, retention)
                idle = group is not None and group.state is GroupState.EMPTY and not group.pending
            effects.records += [offset_record(OffsetKey(group_id, topic, partition), None) for topic, partition in gone]
            waiting = self.offsets.pending.is_open(group_id)
            if idle and not waiting and len(gone) == len(self.offsets.of(group_id)):
                effects.records += self._tombstones(group_id, group)
