"""Streams groups: membership and description (KIP-1071).

Served if ``group.coordinator.rebalance.protocols`` has ``streams`` and the cluster's streams.version is 1. Otherwise the answer
is UNSUPPORTED_VERSION, as in Kafka, and existing groups are left unchanged.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Mapping
from typing import Any

from tidelog.broker import coordinator_calls
from tidelog.broker.answer_types import Answer
from tidelog.broker.apis.groups.groups import ask, may
from tidelog.broker.authorization import allowed, allows_on_cluster, authorized_operations
from tidelog.broker.node import BrokerContext
from tidelog.broker.operations import NOT_ASKED
from tidelog.controller.topic_names import name_problem
from tidelog.coordinator.group.coordinator import GroupCoordinator
from tidelog.coordinator.group.streams.streams_answer import Answered, StatusCode, shortened, status
from tidelog.coordinator.group.streams.streams_heartbeat import StreamsBeat
from tidelog.coordinator.group.streams.streams_validation import check_request
from tidelog.coordinator.group.streams.topology import InternalTopic
from tidelog.metadata.supported_features import STREAMS_VERSION
from tidelog.model.acl import AclOperation, ResourceType
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ids import INTERNAL_TOPICS
from tidelog.model.machine import Outcome, Reply, Token
from tidelog.protocol.messages.streams_group_describe import (
    DescribedGroup,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)
from tidelog.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    Topology,
)

_TOPIC, _GROUP = ResourceType.TOPIC, ResourceType.GROUP
_HIDDEN = "The group's topology has a topic that this client may not describe."
SHOWN = 3
"""Topics whose failed creation a status names."""
REMEMBERED_HEARTBEATS = 2


def _is_served(ctx: BrokerContext) -> bool:
    protocols = ctx.config.group_coordinator_rebalance_protocols
    return "streams" in protocols and ctx.image.features.get(STREAMS_VERSION, 0) >= 1


def _refused(error: ErrorCode, message: str | None = None) -> StreamsGroupHeartbeatResponse:
    return StreamsGroupHeartbeatResponse(error_code=error, error_message=None if message is None else shortened(message))


def streams_group_heartbeat(ctx: BrokerContext, request: StreamsGroupHeartbeatRequest) -> Answer | Coroutine[Any, Any, Answer]:
    """StreamsGroupHeartbeat: Kafka Streams with ``group.protocol=streams``. Epoch 0 joins, -1 leaves. Missing internal topics are
    created for the client in the background. Errors: 14, 15, 16, 25, 29, 30, 35, 42, 69, 81, 110, 130."""
    if not _is_served(ctx):
        return _refused(ErrorCode.UNSUPPORTED_VERSION)
    if not may(ctx, AclOperation.READ, request.group_id):
        return _refused(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    try:
        if request.topology is not None:
            _check_topics(ctx, request.topology)
        check_request(request)
    except KafkaError as refused:
        return _refused(refused.code, refused.detail)
    client_id, client_host = ctx.client_id or "", f"/{ctx.peer_host}"

    def call(machine: GroupCoordinator, token: Token, now_ms: int) -> Outcome:
        return machine.streams.heartbeat(StreamsBeat(token, client_id, client_host, request), now_ms)

    def respond(answered: Answered) -> StreamsGroupHeartbeatResponse:
        ctx.node.streams_rebalances += answered.rebalances
        if answered.missing_topics:
            _create(ctx, answered.response, answered.missing_topics)
        return answered.response

    return coordinator_calls.ask(ctx, ctx.node.groups, request.group_id, call, respond, _refused)


def _check_topics(ctx: BrokerContext, topology: Topology) -> None:
    """KafkaError STREAMS_INVALID_TOPOLOGY for a topic that no application may have, TOPIC_AUTHORIZATION_FAILED for one that the
    client may not describe."""
    named = {
        topic
        for each in topology.subtopologies
        for topic in (
            *each.source_topics,
            *each.repartition_sink_topics,
            *(info.name for info in each.repartition_source_topics),
            *(info.name for info in each.state_changelog_topics),
        )
    }
    internal = sorted(named & INTERNAL_TOPICS)
    if internal:
        text = f"A topology cannot have Kafka's internal topics: {', '.join(internal)}."
        raise KafkaError(ErrorCode.STREAMS_INVALID_TOPOLOGY, text)
    illegal = sorted(name for name in named if name_problem(name) is not None)
    if illegal:
        raise KafkaError(ErrorCode.STREAMS_INVALID_TOPOLOGY, f"These are no names of topics: {', '.join(illegal)}.")
    if len(allowed(ctx, AclOperation.DESCRIBE, _TOPIC, named)) != len(named):
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def _create(ctx: BrokerContext, response: StreamsGroupHeartbeatResponse, topics: Mapping[str, InternalTopic]) -> None:
    """Has the topics created, and tells the member what keeps them from being there."""
    if not allows_on_cluster(ctx, AclOperation.CREATE, quiet=True):
        denied = sorted(topics.keys() - allowed(ctx, AclOperation.CREATE, _TOPIC, topics))
        if denied:
            _explain(response, f"Unauthorized to CREATE on topics {', '.join(denied)}.")
            return
    creations = ctx.node.streams_topics
    creations.create(ctx.node, ctx.asker, topics, REMEMBERED_HEARTBEATS * response.heartbeat_interval_ms)
    refused = creations.refused(topics, ctx.node.runtime.even_ms())
    if refused:
        _explain(response, f"Creation failed: {_summary(refused)}.")


def _summary(refused: Mapping[str, str]) -> str:
    shown = ", ".join(f"{name} ({refused[name]})" for name in sorted(refused)[:SHOWN])
    return shown if len(refused) <= SHOWN else f"{shown} and {len(refused) - SHOWN} more"


def _explain(response: StreamsGroupHeartbeatResponse, detail: str) -> None:
    """Adds to the status that says that internal topics are missing."""
    statuses = response.status = response.status or []
    for entry in statuses:
        if entry.status_code == StatusCode.MISSING_INTERNAL_TOPICS:
            entry.status_detail = shortened(f"{entry.status_detail}; {detail}")
            return
    statuses.append(status(StatusCode.MISSING_INTERNAL_TOPICS, detail))


async def streams_group_describe(ctx: BrokerContext, request: StreamsGroupDescribeRequest) -> StreamsGroupDescribeResponse:
    """StreamsGroupDescribe: administrators. Errors by group: 14, 15, 16, 24, 30, 35, 69, and 29 for a group whose topology has a
    topic that the client may not describe. Groups refused with 30 come first."""
    if not _is_served(ctx):
        return StreamsGroupDescribeResponse(groups=[_without(each, ErrorCode.UNSUPPORTED_VERSION) for each in request.group_ids])
    visible = allowed(ctx, AclOperation.DESCRIBE, _GROUP, request.group_ids)
    groups = [_without(each, ErrorCode.GROUP_AUTHORIZATION_FAILED) for each in request.group_ids if each not in visible]
    for group_id in request.group_ids:
        if group_id in visible:
            group = await _describe(ctx, group_id)
            topics = frozenset(_topics_of(group))
            if len(allowed(ctx, AclOperation.DESCRIBE, _TOPIC, topics)) != len(topics):
                group = _without(group_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED, _HIDDEN)
            elif request.include_authorized_operations and not group.error_code:
                group.authorized_operations = authorized_operations(ctx, _GROUP, group_id)
            groups.append(group)
    return StreamsGroupDescribeResponse(groups=groups)


def _without(group_id: str, error: ErrorCode, message: str | None = None) -> DescribedGroup:
    return DescribedGroup(
        error_code=error, error_message=message, group_id=group_id, topology=None, authorized_operations=NOT_ASKED
    )


async def _describe(ctx: BrokerContext, group_id: str) -> DescribedGroup:
    def call(machine: GroupCoordinator, token: Token, now_ms: int) -> Outcome:
        return Outcome(replies=(Reply(token, machine.streams.describe(group_id)),))

    if not group_id:
        return _without(group_id, ErrorCode.INVALID_GROUP_ID)
    answer = ask(ctx, group_id, call, lambda error: _without(group_id, error), writes=False)
    described = await answer if isinstance(answer, Coroutine) else answer
    assert isinstance(described, DescribedGroup)
    return described


def _topics_of(group: DescribedGroup) -> Iterable[str]:
    if group.topology is None:
        return
    for each in group.topology.subtopologies or ():
        yield from each.source_topics
        yield from each.repartition_sink_topics
        for info in (*each.repartition_source_topics, *each.state_changelog_topics):
            yield info.name
