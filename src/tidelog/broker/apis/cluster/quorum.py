"""DescribeQuorum: the state of the metadata quorum."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from tidelog.broker.node import BrokerContext, ControllerContext
from tidelog.broker.request import Context
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ids import METADATA_TOPIC, ZERO_UUID
from tidelog.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    Node,
    ReplicaState,
    ResponsePartitionData,
    ResponseTopicData,
)
from tidelog.raft.description import QuorumDescription, ReplicaDescription


def describe_quorum(
    ctx: BrokerContext, request: DescribeQuorumRequest
) -> DescribeQuorumResponse | Coroutine[Any, Any, DescribeQuorumResponse]:
    """Sent by kafka-metadata-quorum and admin clients, for partition 0 of ``__cluster_metadata`` only.

    v1 added the last fetch time of a replica, v2 directory ids, messages and the controllers' endpoints. Error per partition:
    UNKNOWN_TOPIC_OR_PARTITION for any other one. If another controller leads, the broker forwards its answer (REQUEST_TIMED_OUT
    while no controller leads).
    """
    if (refused := _of_others(request)) is not None:
        return refused
    quorum = ctx.node.controller.describe_quorum()
    return _forwarded(ctx, request) if quorum is None else _answer(ctx, quorum)


def describe_quorum_here(ctx: ControllerContext, request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    """Sent by kafka-metadata-quorum and by brokers; a controller that does not lead answers NOT_LEADER_OR_FOLLOWER.

    Otherwise as on a broker.
    """
    if (refused := _of_others(request)) is not None:
        return refused
    quorum = ctx.node.controller.describe_quorum()
    if quorum is not None:
        return _answer(ctx, quorum)
    not_leader = ResponsePartitionData(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, error_message=None, leader_id=-1)
    return DescribeQuorumResponse(topics=[ResponseTopicData(topic_name=METADATA_TOPIC, partitions=[not_leader])])


def _of_others(request: DescribeQuorumRequest) -> DescribeQuorumResponse | None:
    """The response to a request for any partition but the one of the metadata log; None for that one."""
    asked = [(topic.topic_name, [each.partition_index for each in topic.partitions]) for topic in request.topics]
    if asked == [(METADATA_TOPIC, [0])]:
        return None
    return DescribeQuorumResponse(topics=[_unknown(name, indexes) for name, indexes in asked])


def _answer(ctx: Context, quorum: QuorumDescription) -> DescribeQuorumResponse:
    partition = ResponsePartitionData(
        leader_id=quorum.leader_id,
        leader_epoch=quorum.leader_epoch,
        high_watermark=quorum.high_watermark,
        current_voters=_replicas(quorum.voters, quorum.leader_id, ctx.now_ms(), with_directories=ctx.api_version >= 2),
        observers=_replicas(quorum.observers, quorum.leader_id, ctx.now_ms(), with_directories=ctx.api_version >= 2),
    )
    response = DescribeQuorumResponse(topics=[ResponseTopicData(topic_name=METADATA_TOPIC, partitions=[partition])])
    if ctx.api_version >= 2:
        response.nodes = [
            Node(node_id=each.id, listeners=[Listener(name=at.name, host=at.host, port=at.port) for at in each.endpoints])
            for each in quorum.voters
        ]
    return response


async def _forwarded(ctx: BrokerContext, request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    try:
        response: DescribeQuorumResponse = await ctx.node.controller.forward(
            ctx.api_key, ctx.api_version, request, ctx.forwarded_for
        )
    except KafkaError as error:
        # This node may have been elected meanwhile.
        quorum = ctx.node.controller.describe_quorum()
        if quorum is not None:
            return _answer(ctx, quorum)
        return DescribeQuorumResponse(error_code=error.code, error_message=error.detail or None)
    return response


def _replicas(
    replicas: tuple[ReplicaDescription, ...], leader_id: int, now_ms: int, *, with_directories: bool
) -> list[ReplicaState]:
    """The leader does not fetch: its times are always the current time."""
    return [
        ReplicaState(
            replica_id=each.id,
            replica_directory_id=each.directory_id if with_directories else ZERO_UUID,
            log_end_offset=each.log_end_offset,
            last_fetch_timestamp=now_ms if each.id == leader_id else each.last_fetch_ms,
            last_caught_up_timestamp=now_ms if each.id == leader_id else each.last_caught_up_ms,
        )
        for each in replicas
    ]


def _unknown(name: str, indexes: list[int]) -> ResponseTopicData:
    message = "This server does not host this topic-partition."
    return ResponseTopicData(
        topic_name=name,
        partitions=[
            ResponsePartitionData(partition_index=index, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, error_message=message)
            for index in indexes
        ],
    )
