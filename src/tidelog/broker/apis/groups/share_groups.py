"""Share groups: membership, descriptions, and the offsets of their partitions (KIP-932).

Served if the cluster's share.version is at least 1; otherwise the answer is UNSUPPORTED_VERSION, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any

from tidelog.broker.answer_types import Answer as Answered
from tidelog.broker.apis.groups.groups import ask, may
from tidelog.broker.apis.groups.share_deletion import ask_shares, delete_states
from tidelog.broker.apis.groups.share_lag import latest_offset
from tidelog.broker.authorization import allowed, authorized_operations
from tidelog.broker.node import BrokerContext
from tidelog.broker.operations import NOT_ASKED
from tidelog.config.options import LONG_MAX
from tidelog.coordinator.group.coordinator import GroupCoordinator
from tidelog.coordinator.group.share.share_heartbeat import ShareBeat, check_request
from tidelog.coordinator.group.share.share_records import raises_epoch
from tidelog.coordinator.group.share.share_service import Ordered
from tidelog.coordinator.share.records import ShareKey
from tidelog.metadata.supported_features import SHARE_VERSION
from tidelog.model.acl import AclOperation, ResourceType
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ids import ZERO_UUID
from tidelog.model.machine import Outcome, Reply, Token
from tidelog.protocol.messages import alter_share_group_offsets as altering
from tidelog.protocol.messages import delete_share_group_offsets as deleting
from tidelog.protocol.messages import describe_share_group_offsets as describing
from tidelog.protocol.messages.share_group_describe import (
    DescribedGroup,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from tidelog.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

_NONE, _TOPIC = ErrorCode.NONE, ResourceType.TOPIC
LONGEST_MEMBER_ID = 36
UNSET = -1
_HIDDEN = "A member of the group has a topic that this client may not describe."


def _is_served(ctx: BrokerContext) -> bool:
    return ctx.image.features.get(SHARE_VERSION, 0) >= 1


def share_group_heartbeat(ctx: BrokerContext, request: ShareGroupHeartbeatRequest) -> Answered | Coroutine[Any, Any, Answered]:
    """ShareGroupHeartbeat: share consumers. Epoch 0 joins, -1 leaves. Errors: 14, 15, 16, 25, 29, 30, 35, 42, 69, 81, 110."""

    def refuse(error: ErrorCode, message: str | None = None) -> ShareGroupHeartbeatResponse:
        return ShareGroupHeartbeatResponse(error_code=error, error_message=message)

    if not _is_served(ctx):
        return refuse(ErrorCode.UNSUPPORTED_VERSION)
    if not may(ctx, AclOperation.READ, request.group_id):
        return refuse(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not request.member_id or len(request.member_id) > LONGEST_MEMBER_ID:
        return refuse(ErrorCode.INVALID_REQUEST, f"A member id has 1 to {LONGEST_MEMBER_ID} characters.")
    topics = request.subscribed_topic_names or ()
    if len(allowed(ctx, AclOperation.DESCRIBE, _TOPIC, topics)) != len(set(topics)):
        return refuse(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    try:
        check_request(request)
    except KafkaError as refused:
        return refuse(refused.code, refused.detail)
    client_id, client_host = ctx.client_id or "", f"/{ctx.peer_host}"

    def call(machine: GroupCoordinator, token: Token, now_ms: int) -> Outcome:
        outcome = machine.shares.heartbeat(ShareBeat(token, client_id, client_host, request), now_ms)
        ctx.node.share_partitions.counts.rebalances += raises_epoch(outcome.records)
        return outcome

    return ask(ctx, request.group_id, call, refuse)


async def share_group_describe(ctx: BrokerContext, request: ShareGroupDescribeRequest) -> ShareGroupDescribeResponse:
    """ShareGroupDescribe: administrators. Errors by group: 14, 15, 16, 24, 30, 35, 69, and 29 for a group with an assigned topic
    that the client may not describe."""

    def without(group_id: str, error: ErrorCode, message: str | None = None) -> DescribedGroup:
        return DescribedGroup(error_code=error, error_message=message, group_id=group_id, authorized_operations=NOT_ASKED)

    if not _is_served(ctx):
        return ShareGroupDescribeResponse(groups=[without(each, ErrorCode.UNSUPPORTED_VERSION) for each in request.group_ids])
    visible = allowed(ctx, AclOperation.DESCRIBE, ResourceType.GROUP, request.group_ids)
    groups = [without(each, ErrorCode.GROUP_AUTHORIZATION_FAILED) for each in request.group_ids if each not in visible]
    for group_id in request.group_ids:
        if group_id not in visible:
            continue
        if not group_id:
            groups.append(without(group_id, ErrorCode.INVALID_GROUP_ID))
            continue
        group = await _looked_up(
            ctx,
            group_id,
            lambda machine, group_id=group_id: machine.shares.describe(group_id),  # type: ignore[misc]
            lambda error, group_id=group_id: without(group_id, error),  # type: ignore[misc]
        )
        names = {each.topic_name for member in group.members for each in member.assignment.topic_partitions}
        if len(allowed(ctx, AclOperation.DESCRIBE, _TOPIC, names)) != len(names):
            group = without(group_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED, _HIDDEN)
        elif request.include_authorized_operations and not group.error_code:
            group.authorized_operations = authorized_operations(ctx, ResourceType.GROUP, group_id)
        groups.append(group)
    return ShareGroupDescribeResponse(groups=groups)


async def _looked_up(
    ctx: BrokerContext, group_id: str, look: Callable[[GroupCoordinator], Any], refuse: Callable[[ErrorCode], Any]
) -> Any:
    def call(machine: GroupCoordinator, token: Token, now_ms: int) -> Outcome:
        return Outcome(replies=(Reply(token, look(machine)),))

    answer = ask(ctx, group_id, call, refuse, writes=False)
    return await answer if isinstance(answer, Coroutine) else answer


# -- offsets -----------------------------------------------------------------------------------------------------------------


async def describe_share_group_offsets(
    ctx: BrokerContext, request: describing.DescribeShareGroupOffsetsRequest
) -> describing.DescribeShareGroupOffsetsResponse:
    """DescribeShareGroupOffsets: administrators. v1 added the lag. Errors by group: 14, 15, 16, 24, 30, 35; by partition: 29, and
    those of the share coordinator."""
    return describing.DescribeShareGroupOffsetsResponse(groups=[await _describe_offsets(ctx, each) for each in request.groups])


async def _describe_offsets(
    ctx: BrokerContext, group: describing.DescribeShareGroupOffsetsRequestGroup
) -> describing.DescribeShareGroupOffsetsResponseGroup:
    told = describing.DescribeShareGroupOffsetsResponseGroup(group_id=group.group_id)
    if not _is_served(ctx):
        told.error_code = ErrorCode.UNSUPPORTED_VERSION
    elif not may(ctx, AclOperation.DESCRIBE, group.group_id):
        told.error_code = ErrorCode.GROUP_AUTHORIZATION_FAILED
    elif not group.group_id and group.topics is not None:
        told.error_code = ErrorCode.INVALID_GROUP_ID
    if told.error_code:
        return told
    known = await _looked_up(ctx, group.group_id, lambda machine: machine.shares.initialized(group.group_id), lambda error: error)
    if known is ErrorCode.GROUP_ID_NOT_FOUND:
        known = Ordered(0, {}, {})
    if isinstance(known, ErrorCode):
        told.error_code, told.error_message = known, f"Group {group.group_id}: {known.text}"
        return told
    assert isinstance(known, Ordered)
    if group.topics is None:
        visible = allowed(ctx, AclOperation.DESCRIBE, _TOPIC, known.names.values(), quiet=True)
        named = [(name, sorted(known.partitions[each])) for each, name in known.names.items() if name in visible]
    else:
        named = [(topic.topic_name, list(topic.partitions)) for topic in group.topics]
        visible = allowed(ctx, AclOperation.DESCRIBE, _TOPIC, [name for name, _ in named])
    for name, partitions in named:
        topic = ctx.image.topics.by_name.get(name)
        topic_id = ZERO_UUID if topic is None else topic.id
        answers: dict[int, describing.DescribeShareGroupOffsetsResponsePartition] = {}
        for index in dict.fromkeys(partitions):
            answer = answers[index] = describing.DescribeShareGroupOffsetsResponsePartition(index, start_offset=UNSET)
            if name not in visible:
                answer.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                answer.error_message = ErrorCode.TOPIC_AUTHORIZATION_FAILED.text
            elif index in known.partitions.get(topic_id, ()):
                await _describe_partition(ctx, ShareKey(group.group_id, topic_id, index), name, answer)
        shown = topic_id if name in visible else ZERO_UUID
        named_again = [answers[index] for index in partitions]
        told.topics.append(describing.DescribeShareGroupOffsetsResponseTopic(name, shown, named_again))
    return told


async def _describe_partition(
    ctx: BrokerContext, key: ShareKey, topic: str, told: describing.DescribeShareGroupOffsetsResponsePartition
) -> None:
    answer = await ctx.node.share_partitions.store.summary(key)
    if answer.error is not _NONE:
        told.error_code, told.error_message = answer.error, answer.message
        return
    stored = answer.stored
    if stored is None or stored.start_offset == UNSET:
        return
    told.start_offset, told.leader_epoch = stored.start_offset, stored.leader_epoch
    latest = await latest_offset(ctx, topic, key.partition)
    if latest is not None and stored.complete_count != UNSET:
        # The start offset is what a share partition's leader once said: it may be anything.
        told.lag = min(max(0, latest - stored.start_offset - stored.complete_count), LONG_MAX)


async def alter_share_group_offsets(
    ctx: BrokerContext, request: altering.AlterShareGroupOffsetsRequest
) -> altering.AlterShareGroupOffsetsResponse:
    """AlterShareGroupOffsets: administrators; the group has no members, or is made. Errors: 14, 15, 16, 24, 30, 35, 68, 69; by
    partition: 3, 29, and those of the share coordinator."""
    error = _refusal(ctx, AclOperation.READ, request.group_id)
    if error is not _NONE:
        return altering.AlterShareGroupOffsetsResponse(error_code=error, error_message=error.text)
    visible = allowed(ctx, AclOperation.READ, _TOPIC, [topic.topic_name for topic in request.topics])
    names: dict[bytes, str] = {}
    starts: dict[ShareKey, int] = {}
    responses = []
    for each in request.topics:
        topic = ctx.image.topics.by_name.get(each.topic_name) if each.topic_name in visible else None
        topic_id = ZERO_UUID if topic is None else topic.id
        told = altering.AlterShareGroupOffsetsResponseTopic(each.topic_name, topic_id)
        responses.append(told)
        missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if each.topic_name in visible else ErrorCode.TOPIC_AUTHORIZATION_FAILED
        for one in each.partitions:
            if topic is None or not 0 <= one.partition_index < len(topic.partitions):
                told.partitions.append(_altered(one.partition_index, missing))
                continue
            told.partitions.append(_altered(one.partition_index, _NONE))
            starts[ShareKey(request.group_id, topic_id, one.partition_index)] = one.start_offset
            names[topic_id] = each.topic_name
    wanted = _by_topic(starts, names)
    answer = await ask_shares(
        ctx,
        request.group_id,
        lambda machine, token: machine.shares.begin_reset(token, request.group_id, wanted, ctx.node.runtime.even_ms()),
    )
    if isinstance(answer, ErrorCode):
        return altering.AlterShareGroupOffsetsResponse(error_code=answer, error_message=answer.text)
    errors = await initialize(ctx, request.group_id, answer, starts)
    for told in responses:
        for part in told.partitions:
            refused = errors.get(ShareKey(request.group_id, told.topic_id, part.partition_index), _NONE)
            if refused is not _NONE:
                part.error_code, part.error_message = refused, refused.text
    return altering.AlterShareGroupOffsetsResponse(responses=responses)


def _by_topic(keys: Iterable[ShareKey], names: Mapping[bytes, str]) -> dict[bytes, tuple[str, frozenset[int]]]:
    """Name and partitions of each topic."""
    found: dict[bytes, set[int]] = {}
    for key in keys:
        found.setdefault(key.topic_id, set()).add(key.partition)
    return {topic_id: (names[topic_id], frozenset(partitions)) for topic_id, partitions in found.items()}


def _altered(index: int, error: ErrorCode) -> altering.AlterShareGroupOffsetsResponsePartition:
    return altering.AlterShareGroupOffsetsResponsePartition(index, error, None if error is _NONE else error.text)


def _refusal(ctx: BrokerContext, operation: AclOperation, group_id: str) -> ErrorCode:
    if not _is_served(ctx):
        return ErrorCode.UNSUPPORTED_VERSION
    if not may(ctx, operation, group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    return _NONE if group_id else ErrorCode.INVALID_GROUP_ID


async def initialize(
    ctx: BrokerContext, group_id: str, ordered: Ordered, starts: Mapping[ShareKey, int]
) -> dict[ShareKey, ErrorCode]:
    """Asks the share coordinator for these states, and reports the outcome to the group; the error of each."""
    errors, done, failed = {}, dict[bytes, set[int]](), dict[bytes, set[int]]()
    for topic_id, partitions in ordered.partitions.items():
        for partition in sorted(partitions):
            key = ShareKey(group_id, topic_id, partition)
            answer = await ctx.node.share_partitions.store.initialize(key, ordered.state_epoch, starts.get(key, UNSET))
            errors[key] = answer.error
            (done if answer.error is _NONE else failed).setdefault(topic_id, set()).add(partition)

    def settle(machine: GroupCoordinator, token: Token) -> Outcome:
        outcome = machine.shares.settle(
            group_id,
            {each: frozenset(found) for each, found in done.items()},
            {each: frozenset(found) for each, found in failed.items()},
        )
        return outcome._replace(replies=(Reply(token, None),))

    answer = await ask_shares(ctx, group_id, settle)
    if isinstance(answer, ErrorCode):
        # The next member would have the partitions initialized again, and undo the reset.
        return dict.fromkeys(errors, answer)
    return errors


async def delete_share_group_offsets(
    ctx: BrokerContext, request: deleting.DeleteShareGroupOffsetsRequest
) -> deleting.DeleteShareGroupOffsetsResponse:
    """DeleteShareGroupOffsets: administrators; the group has no members. Errors: 14, 15, 16, 24, 30, 35, 68, 69; by topic: 3, 29,
    and those of the share coordinator."""
    error = _refusal(ctx, AclOperation.DELETE, request.group_id)
    if error is not _NONE:
        return deleting.DeleteShareGroupOffsetsResponse(error_code=error, error_message=error.text)
    names = [topic.topic_name for topic in request.topics]
    visible = allowed(ctx, AclOperation.READ, _TOPIC, names)
    ids = {name: ctx.image.topics.by_name[name].id for name in names if name in visible and name in ctx.image.topics.by_name}
    errors = await delete_states(ctx, request.group_id, frozenset(ids.values()))
    if isinstance(errors, ErrorCode):
        return deleting.DeleteShareGroupOffsetsResponse(error_code=errors, error_message=errors.text)
    responses = []
    for name in names:
        told = deleting.DeleteShareGroupOffsetsResponseTopic(topic_name=name)
        if name not in visible:
            told.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        else:
            topic_id = ids.get(name, ZERO_UUID)
            told.error_code = errors.get(topic_id, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            told.topic_id = topic_id if topic_id in errors else ZERO_UUID
        if told.error_code:
            told.error_message = ErrorCode(told.error_code).text
        responses.append(told)
    return deleting.DeleteShareGroupOffsetsResponse(responses=responses)
