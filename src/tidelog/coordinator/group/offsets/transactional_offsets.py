"""TxnOffsetCommit: offsets that a producer commits for a group within its transaction (KIP-98, KIP-447).

This module decides which producers may commit. A producer that names a member of the group must match its generation or member
epoch, so that one whose partitions were reassigned can no longer commit for them. A producer that names no member (before version
3) is trusted. The partition and the transaction coordinator check that the transaction is open; ``pending_offsets`` applies the
offsets.
"""

from __future__ import annotations

from collections.abc import Callable

from tidelog.coordinator.group.classic import membership
from tidelog.coordinator.group.classic.classic_group import ClassicGroup, GroupState
from tidelog.coordinator.group.effects import Effects
from tidelog.coordinator.group.offsets.committed_offsets import take_commit
from tidelog.coordinator.group.records import CommittedOffset, OffsetKey
from tidelog.model.errors import ErrorCode
from tidelog.model.machine import Outcome, Token
from tidelog.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

NO_GENERATION = -1


def names_nobody(request: TxnOffsetCommitRequest) -> bool:
    """Whether the producer names no member of the group, as before version 3."""
    return request.generation_id_or_member_epoch == NO_GENERATION and not request.member_id and request.group_instance_id is None


def commit_error(group: ClassicGroup | None, request: TxnOffsetCommitRequest) -> ErrorCode | None:
    """The error that refuses the whole commit in a classic group, or when there is no group yet."""
    generation = request.generation_id_or_member_epoch
    if group is None:
        return None if generation < 0 else ErrorCode.ILLEGAL_GENERATION
    if group.state is GroupState.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if names_nobody(request) or (generation < 0 and group.state is GroupState.EMPTY):
        return None
    return membership.generation_error(group, request.member_id, request.group_instance_id, generation)


def commit(
    token: Token, request: TxnOffsetCommitRequest, error: ErrorCode | None, *, metadata_max_bytes: int, now_ms: int
) -> Outcome:
    """The records of a commit, to be appended as a batch of the producer's transaction; its partitions exist. ``error``: why
    the group refuses the whole commit."""
    effects = Effects()
    topics = []
    for topic in request.topics:
        answers = []
        for partition in topic.partitions:
            metadata = partition.committed_metadata or ""
            committed = CommittedOffset(
                partition.committed_offset, partition.committed_leader_epoch, metadata, now_ms, topic.topic_id
            )
            key = OffsetKey(request.group_id, topic.name, partition.partition_index)
            own = take_commit(effects, key, committed, refusal=error, metadata_max_bytes=metadata_max_bytes)
            answers.append(TxnOffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=own))
        topics.append(TxnOffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=answers))
    effects.reply(token, TxnOffsetCommitResponse(topics=topics))
    return effects.outcome()


def answer(request: TxnOffsetCommitRequest, error_of: Callable[[str, int], ErrorCode]) -> TxnOffsetCommitResponse:
    """A response for every partition of the request."""
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    TxnOffsetCommitResponsePartition(
                        partition_index=partition.partition_index, error_code=error_of(topic.name, partition.partition_index)
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
