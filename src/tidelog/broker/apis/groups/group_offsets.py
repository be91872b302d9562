"""Committed offsets of groups: OffsetCommit, OffsetFetch, OffsetDelete.

Topics are addressed by name up to v9 and by id since v10. A commit for an unknown partition fails for that partition alone; a
partition without a committed offset is answered -1, not an error. Permissions are asked for before anything is looked up, but an
unknown topic id has no name to ask for and is UNKNOWN_TOPIC_ID.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from tidelog.broker.answer_types import Answer
from tidelog.broker.apis.groups.groups import ask, may
from tidelog.broker.authorization import allowed
from tidelog.broker.node import BrokerContext
from tidelog.coordinator.group.coordinator import GroupCoordinator
from tidelog.coordinator.group.records import CommittedOffset, OffsetKey
from tidelog.model.acl import AclOperation, ResourceType
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_EPOCH, NO_OFFSET, ZERO_UUID, Uuid
from tidelog.model.machine import Outcome, Reply, Token
from tidelog.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from tidelog.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from tidelog.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

TOPIC_IDS_FROM = 10
GROUPS_FROM = 8


# -- commit --------------------------------------------------------------------------------------------------------------


def offset_commit(ctx: BrokerContext, request: OffsetCommitRequest) -> Answer | Coroutine[Any, Any, Answer]:
    """OffsetCommit: consumers, administrators. v6 leader epochs, v7 static members, v9 member epochs, v10 topic ids. Errors:
    3, 12, 14, 16, 22, 25, 27, 29, 30, 69, 82, 100."""
    if not may(ctx, AclOperation.READ, request.group_id):
        return commit_refused(request, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    resolved = [_resolve(ctx, topic) for topic in request.topics]
    readable = allowed(ctx, AclOperation.READ, ResourceType.TOPIC, (topic.name for topic in request.topics if topic.name))
    refused: dict[tuple[int, int], ErrorCode] = {}
    known: list[OffsetCommitRequestTopic] = []
    for place, (topic, (error, count)) in enumerate(zip(request.topics, resolved, strict=True)):
        if topic.name not in readable and error is not ErrorCode.UNKNOWN_TOPIC_ID:
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        partitions = []
        for partition in topic.partitions:
            if error is None and 0 <= partition.partition_index < count:
                partitions.append(partition)
            else:
                refused[place, partition.partition_index] = error or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if partitions:
            known.append(OffsetCommitRequestTopic(name=topic.name, topic_id=topic.topic_id, partitions=partitions))
    if not known:
        return _merge(request, refused, None)
    inner = OffsetCommitRequest(
        group_id=request.group_id,
        generation_id_or_member_epoch=request.generation_id_or_member_epoch,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        topics=known,
    )
    answer = ask(
        ctx,
        request.group_id,
        lambda machine, token, now: machine.offsets.commit(token, inner, ctx.api_version, now),
        lambda error: commit_refused(inner, error),
    )
    if isinstance(answer, Coroutine):
        return _merge_later(request, refused, answer)
    return _merge(request, refused, answer)


def _resolve(ctx: BrokerContext, topic: OffsetCommitRequestTopic) -> tuple[ErrorCode | None, int]:
    """Fill in the topic's name or id; returns an error, or the partition count."""
    topics = ctx.image.topics
    if ctx.api_version >= TOPIC_IDS_FROM:
        image = topics.by_id.get(Uuid(topic.topic_id))
        if image is None:
            return ErrorCode.UNKNOWN_TOPIC_ID, 0
        topic.name = image.name
    else:
        image = topics.by_name.get(topic.name)
        if image is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0
        topic.topic_id = image.id
    return None, len(image.partitions)


def commit_refused(request: OffsetCommitRequest, error: ErrorCode) -> OffsetCommitResponse:
    """The response with this error for every partition."""
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=error)
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


async def _merge_later(
    request: OffsetCommitRequest, refused: dict[tuple[int, int], ErrorCode], answer: Coroutine[Any, Any, OffsetCommitResponse]
) -> OffsetCommitResponse:
    return _merge(request, refused, await answer)


def _merge(
    request: OffsetCommitRequest, refused: dict[tuple[int, int], ErrorCode], answer: OffsetCommitResponse | None
) -> OffsetCommitResponse:
    """Combine the coordinator's answer for existing partitions with ``refused`` for the others, in the order of the request."""
    if not refused and answer is not None:
        return answer
    answered = {
        (topic.name, partition.partition_index): partition.error_code
        for topic in (answer.topics if answer is not None else [])
        for partition in topic.partitions
    }
    response = commit_refused(request, ErrorCode.NONE)
    for place, topic in enumerate(response.topics):
        for partition in topic.partitions:
            error = refused.get((place, partition.partition_index))
            partition.error_code = answered[topic.name, partition.partition_index] if error is None else error
    return response


# -- fetch ---------------------------------------------------------------------------------------------------------------


async def offset_fetch(ctx: BrokerContext, request: OffsetFetchRequest) -> OffsetFetchResponse:
    """OffsetFetch: one group up to v7, several since v8; v2: a null list of topics means all; v7 require_stable: an error for
    an offset that an open transaction may change; v9 member epochs; v10 topic ids. Errors: 14, 16, 22, 25, 29, 30, 88, 100,
    113."""
    if ctx.api_version >= GROUPS_FROM:
        return OffsetFetchResponse(groups=[await _fetch_group(ctx, group, request.require_stable) for group in request.groups])
    topics = request.topics
    group = OffsetFetchRequestGroup(
        group_id=request.group_id,
        topics=None
        if topics is None
        else [OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes) for topic in topics],
    )
    found = await _fetch_group(ctx, group, request.require_stable)
    if found.error_code and ctx.api_version < 2:
        found.topics = _all_refused(group, ErrorCode(found.error_code))
    return OffsetFetchResponse(
        error_code=found.error_code if ctx.api_version >= 2 else 0,
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=partition.partition_index,
                        committed_offset=partition.committed_offset,
                        committed_leader_epoch=partition.committed_leader_epoch,
                        metadata=partition.metadata,
                        error_code=partition.error_code,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in found.topics
        ],
    )


async def _fetch_group(ctx: BrokerContext, group: OffsetFetchRequestGroup, require_stable: bool) -> OffsetFetchResponseGroup:
    """The answer waits for earlier commits that are not safe yet, so that it never contains an offset that may be lost."""

    def read(machine: GroupCoordinator, token: Token, now_ms: int) -> Outcome:
        return Outcome(replies=(Reply(token, _found(ctx, machine, asked, require_stable)),))

    def refuse(error: ErrorCode) -> OffsetFetchResponseGroup:
        return OffsetFetchResponseGroup(group_id=group.group_id, error_code=error)

    if not may(ctx, AclOperation.DESCRIBE, group.group_id):
        return refuse(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    asked, denied = _split_by_permission(ctx, group)
    answer = ask(ctx, group.group_id, read, refuse, writes=False)
    found = await answer if isinstance(answer, Coroutine) else answer
    assert isinstance(found, OffsetFetchResponseGroup)
    if found.error_code:
        return found
    if group.topics is None:
        visible = allowed(ctx, AclOperation.DESCRIBE, ResourceType.TOPIC, [topic.name for topic in found.topics], quiet=True)
        found.topics = [topic for topic in found.topics if topic.name in visible]
    found.topics += denied
    # As in Kafka, unknown topic ids come last.
    found.topics.sort(key=_is_unknown)
    return found


def _split_by_permission(
    ctx: BrokerContext, group: OffsetFetchRequestGroup
) -> tuple[OffsetFetchRequestGroup, list[OffsetFetchResponseTopics]]:
    """The request for the topics that the client may describe, and the errors for the others. A null list stays."""
    if group.topics is None or ctx.node.access is None:
        return group, []
    named = [(topic, _name_of(ctx, topic)) for topic in group.topics]
    visible = allowed(ctx, AclOperation.DESCRIBE, ResourceType.TOPIC, (name for _, name in named if name is not None))
    asked = group.replace(topics=[topic for topic, name in named if name is None or name in visible])
    hidden = [topic for topic, name in named if name is not None and name not in visible]
    return asked, [_topic_refused(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED) for topic in hidden]


def _name_of(ctx: BrokerContext, topic: OffsetFetchRequestTopics) -> str | None:
    """The topic's name; None for an unknown id."""
    if ctx.api_version < TOPIC_IDS_FROM:
        return topic.name
    image = ctx.image.topics.by_id.get(Uuid(topic.topic_id))
    return None if image is None else image.name


def _found(
    ctx: BrokerContext, machine: GroupCoordinator, group: OffsetFetchRequestGroup, require_stable: bool
) -> OffsetFetchResponseGroup:
    error = _member_error(machine, group)
    if error is not None:
        return OffsetFetchResponseGroup(group_id=group.group_id, error_code=error)
    if group.topics is None:
        topics = _all_topics(ctx, machine, group.group_id)
    else:
        topics = [_fetch_topic(ctx, machine, group.group_id, topic) for topic in group.topics]
    if require_stable and machine.offsets.stored.in_transaction(group.group_id):
        for topic in topics:
            topic.partitions = [_stable(machine, group.group_id, topic.name, each) for each in topic.partitions]
    return OffsetFetchResponseGroup(group_id=group.group_id, topics=topics)


def _member_error(machine: GroupCoordinator, group: OffsetFetchRequestGroup) -> ErrorCode | None:
    """The error for a member of the consumer protocol, which sends its id and epoch since v9: for example, that it is fenced."""
    return machine.offsets.fetch_error(group.group_id, group.member_id, group.member_epoch)


def _stable(
    machine: GroupCoordinator, group_id: str, name: str, partition: OffsetFetchResponsePartitions
) -> OffsetFetchResponsePartitions:
    index = partition.partition_index
    if partition.error_code or not machine.offsets.stored.holds_back(OffsetKey(group_id, name, index)):
        return partition
    return _partition(index, None, ErrorCode.UNSTABLE_OFFSET_COMMIT)


def _fetch_topic(
    ctx: BrokerContext, machine: GroupCoordinator, group_id: str, topic: OffsetFetchRequestTopics
) -> OffsetFetchResponseTopics:
    name = _name_of(ctx, topic)
    if name is None:
        return _topic_refused(topic, ErrorCode.UNKNOWN_TOPIC_ID)
    partitions = [
        _partition(index, machine.offsets.stored.get(group_id, name, index), ErrorCode.NONE) for index in topic.partition_indexes
    ]
    return OffsetFetchResponseTopics(name=name, topic_id=topic.topic_id, partitions=partitions)


def _topic_refused(topic: OffsetFetchRequestTopics, error: ErrorCode) -> OffsetFetchResponseTopics:
    partitions = [_partition(index, None, error) for index in topic.partition_indexes]
    return OffsetFetchResponseTopics(name=topic.name, topic_id=topic.topic_id, partitions=partitions)


def _is_unknown(topic: OffsetFetchResponseTopics) -> bool:
    return any(partition.error_code == ErrorCode.UNKNOWN_TOPIC_ID for partition in topic.partitions)


def _all_topics(ctx: BrokerContext, machine: GroupCoordinator, group_id: str) -> list[OffsetFetchResponseTopics]:
    topics: dict[str, OffsetFetchResponseTopics] = {}
    for (name, index), committed in machine.offsets.stored.of(group_id).items():
        entry = topics.get(name)
        if entry is None:
            image = ctx.image.topics.by_name.get(name)
            if image is None and ctx.api_version >= TOPIC_IDS_FROM:
                # A deleted topic has no id to name it by.
                continue
            entry = topics[name] = OffsetFetchResponseTopics(name=name, topic_id=ZERO_UUID if image is None else image.id)
        entry.partitions.append(_partition(index, committed, ErrorCode.NONE))
    return list(topics.values())


def _partition(index: int, committed: CommittedOffset | None, error: ErrorCode) -> OffsetFetchResponsePartitions:
    if committed is None:
        return OffsetFetchResponsePartitions(
            partition_index=index, committed_offset=NO_OFFSET, committed_leader_epoch=NO_EPOCH, metadata="", error_code=error
        )
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
    )


def _all_refused(group: OffsetFetchRequestGroup, error: ErrorCode) -> list[OffsetFetchResponseTopics]:
    return [_topic_refused(topic, error) for topic in group.topics or []]


# -- delete --------------------------------------------------------------------------------------------------------------


def offset_delete(ctx: BrokerContext, request: OffsetDeleteRequest) -> Answer | Coroutine[Any, Any, Answer]:
    """OffsetDelete: administrators. Errors: 14, 16, 24, 30, 68, 69; by partition 3, 29 and 86 (a member reads the
    topic)."""
    if not may(ctx, AclOperation.DELETE, request.group_id):
        return OffsetDeleteResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not request.group_id:
        return OffsetDeleteResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    known, missing = _split_by_permission_and_existence(ctx, request)
    answer = ask(
        ctx,
        request.group_id,
        lambda machine, token, _: machine.offsets.delete_offsets(token, known),
        lambda error: OffsetDeleteResponse(error_code=error),
    )
    return _add_missing_later(answer, missing) if isinstance(answer, Coroutine) else _add_missing(answer, missing)


def _split_by_permission_and_existence(
    ctx: BrokerContext, request: OffsetDeleteRequest
) -> tuple[OffsetDeleteRequest, list[OffsetDeleteResponseTopic]]:
    """The request for the readable partitions that exist, and the errors for the others."""
    readable = allowed(ctx, AclOperation.READ, ResourceType.TOPIC, (topic.name for topic in request.topics))
    known = OffsetDeleteRequest(group_id=request.group_id)
    missing = []
    for topic in request.topics:
        image = ctx.image.topics.by_name.get(topic.name)
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if topic.name in readable else ErrorCode.TOPIC_AUTHORIZATION_FAILED
        count = 0 if image is None or topic.name not in readable else len(image.partitions)
        there = [partition for partition in topic.partitions if 0 <= partition.partition_index < count]
        if there:
            known.topics.append(OffsetDeleteRequestTopic(name=topic.name, partitions=there))
        gone = [
            OffsetDeleteResponsePartition(partition_index=partition.partition_index, error_code=error)
            for partition in topic.partitions
            if not 0 <= partition.partition_index < count
        ]
        if gone:
            missing.append(OffsetDeleteResponseTopic(name=topic.name, partitions=gone))
    return known, missing


async def _add_missing_later(
    answer: Coroutine[Any, Any, OffsetDeleteResponse], missing: list[OffsetDeleteResponseTopic]
) -> OffsetDeleteResponse:
    return _add_missing(await answer, missing)


def _add_missing(answer: OffsetDeleteResponse, missing: list[OffsetDeleteResponseTopic]) -> OffsetDeleteResponse:
    """An error for the group stands alone; otherwise each topic appears once, with all of its partitions."""
    if answer.error_code == ErrorCode.NONE:
        answered = {topic.name: topic for topic in answer.topics}
        for topic in missing:
            if topic.name in answered:
                answered[topic.name].partitions += topic.partitions
            else:
                answer.topics.append(topic)
    return answer
