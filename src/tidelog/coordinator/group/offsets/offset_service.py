"""Offset commits, deletion and expiry for the groups of one coordinator, whatever their protocol.

The group's kind decides which members may commit or read (``committed_offsets`` for classic groups and where there is no group,
``consumer_commit_check``, ``transactional_offsets``). Deleting a group is here because its offsets are deleted with it. Nothing
is stored before the records of an Outcome are replayed.
"""

from __future__ import annotations

from collections.abc import Callable

from tidelog.coordinator.group.effects import Effects
from tidelog.coordinator.group.group_kind import Group
from tidelog.coordinator.group.group_registry import Coordination
from tidelog.coordinator.group.kinds import Kinds
from tidelog.coordinator.group.offsets import transactional_offsets
from tidelog.coordinator.group.offsets.committed_offsets import Offsets, OffsetsView, commit_error, expired, take_commit
from tidelog.coordinator.group.records import (
    CommittedOffset,
    GroupRecord,
    OffsetKey,
    group_tombstone,
    offset_record,
)
from tidelog.model.errors import ErrorCode
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

KNOWS_EPOCHS_FROM = 6
"""The version of TxnOffsetCommit from which producers know member epochs, and groups that do not exist (KIP-1319)."""


class OffsetService:
    """Offsets of all groups of one partition."""

    __slots__ = ("_c", "_kinds", "_settings", "_stored")

    def __init__(self, coordination: Coordination, kinds: Kinds) -> None:
        self._c = coordination
        self._kinds = kinds
        self._settings = coordination.settings
        self._stored = Offsets()

    @property
    def stored(self) -> OffsetsView:
        """The committed offsets."""
        return self._stored

    def commit(self, token: Token, request: OffsetCommitRequest, version: int, now_ms: int) -> Outcome:
        """OffsetCommit for existing partitions; the handler has answered for the others. The empty group id is a valid group
        here, for clients that store offsets without a group."""
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
        group = self._c.groups.get(request.group_id)
        if group is None:
            epoch = request.generation_id_or_member_epoch
            return commit_error(None, request.member_id, request.group_instance_id, epoch, version)
        return self._kinds.of(group).commit_error(group, request, version, now_ms)

    def commit_transactional(self, token: Token, request: TxnOffsetCommitRequest, now_ms: int, version: int) -> Outcome:
        """TxnOffsetCommit for existing partitions. Its records belong in a batch of the producer's transaction."""
        error = self._transactional_error(request, version)
        limit = self._settings.offset_metadata_max_bytes
        return transactional_offsets.commit(token, request, error, metadata_max_bytes=limit, now_ms=now_ms)

    def _transactional_error(self, request: TxnOffsetCommitRequest, version: int) -> ErrorCode | None:
        group = self._c.groups.get(request.group_id)
        if group is None:
            error = transactional_offsets.commit_error(None, request)
            return error if error is None or version < KNOWS_EPOCHS_FROM else ErrorCode.GROUP_ID_NOT_FOUND
        error = self._kinds.of(group).transactional_commit_error(group, request)
        return ErrorCode.ILLEGAL_GENERATION if error is ErrorCode.STALE_MEMBER_EPOCH and version < KNOWS_EPOCHS_FROM else error

    def fetch_error(self, group_id: str, member_id: str | None, epoch: int) -> ErrorCode | None:
        """The error that refuses OffsetFetch to a member (KIP-848: a fenced member must not read)."""
        group = self._c.groups.get(group_id)
        return None if group is None else self._kinds.of(group).fetch_error(group, member_id, epoch)

    def delete_offsets(self, token: Token, request: OffsetDeleteRequest) -> Outcome:
        """OffsetDelete: refused for topics that a current member reads, and for groups with members of another protocol type."""
        effects = Effects()
        group = self._c.groups.get(request.group_id)
        error = self._delete_offsets_error(request.group_id, group)
        if error is not None:
            effects.reply(token, OffsetDeleteResponse(error_code=error))
            return effects.outcome()
        places = frozenset(self._stored.places(request.group_id))
        topics = []
        for topic in request.topics:
            in_use = group is not None and self._kinds.of(group).reads(group, topic.name)
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

    def _delete_offsets_error(self, group_id: str, group: Group | None) -> ErrorCode | None:
        if group is None:
            return None if self._stored.exist(group_id) else ErrorCode.GROUP_ID_NOT_FOUND
        return self._kinds.of(group).delete_offsets_error(group)

    def delete_group(self, token: Token, group_id: str, respond: Callable[[ErrorCode], object]) -> Outcome:
        """DeleteGroups, one group: it must have no members; its offsets are deleted with it."""
        effects = Effects()
        group = self._c.groups.get(group_id)
        if group is None and not self._stored.exist(group_id):
            effects.reply(token, respond(ErrorCode.GROUP_ID_NOT_FOUND))
        elif group is not None and not self._kinds.of(group).may_be_deleted(group):
            effects.reply(token, respond(ErrorCode.NON_EMPTY_GROUP))
        else:
            effects.records += [*self._stored.tombstones(group_id), *self._tombstones(group_id, group)]
            effects.reply(token, respond(ErrorCode.NONE))
        return effects.outcome()

    def _tombstones(self, group_id: str, group: Group | None) -> list[GroupRecord]:
        return [group_tombstone(group_id)] if group is None else self._kinds.of(group).tombstones(group)

    def forget_topics(self, names: frozenset[str]) -> Outcome:
        """Deletes the offsets of deleted topics."""
        effects = Effects()
        self._c.topics.forget(names)
        for group_id in self._stored.group_ids():
            for topic, partition in self._stored.places(group_id):
                if topic in names:
                    effects.records.append(offset_record(OffsetKey(group_id, topic, partition), None))
        return effects.outcome()

    def expire(self, effects: Effects, now_ms: int) -> None:
        """Deletes expired commits, and groups that have nothing else."""
        stored, retention_ms = self._stored, self._settings.offsets_retention_ms
        for group_id in {**dict.fromkeys(stored.group_ids()), **dict.fromkeys(self._c.groups)}:
            group = self._c.groups.get(group_id)
            if group is None:
                gone, idle = expired(stored, group_id, None, now_ms, retention_ms), False
            else:
                kind = self._kinds.of(group)
                gone, idle = kind.expired_offsets(group, stored, now_ms), kind.is_idle(group)
            effects.records += [offset_record(OffsetKey(group_id, topic, partition), None) for topic, partition in gone]
            if idle and not stored.in_transaction(group_id) and len(gone) == len(stored.of(group_id)):
                effects.records += self._tombstones(group_id, group)

    # the log

    def replay(self, key: OffsetKey, committed: CommittedOffset | None, producer_id: int | None = None) -> None:
        """Replays a commit or its tombstone, or one of a producer's transaction when ``producer_id`` is given."""
        if producer_id is None:
            self._stored.replay(key, committed)
        else:
            self._stored.replay_pending(producer_id, key, committed)

    def replay_marker(self, producer_id: int, *, committed: bool) -> None:
        """Replays the end of a producer's transaction."""
        self._stored.end_transaction(producer_id, committed=committed)
