"""DescribeQuorum: the state of the metadata quorum."""

from __future__ import annotations

from tidelog.broker.context import Context
from tidelog.model.errors import ErrorCode
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
from tidelog.raft.description import QuorumDescription


def describe_quorum(ctx: Context, request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    """Sent by kafka-metadata-quorum and admin clients, for partition 0 of ``__cluster_metadata`` and nothing else.

    v1 added when a replica last fetched, v2 directory ids, messages and the controllers' endpoints. Error per partition:
    UNKNOWN_TOPIC_OR_PARTITION for any other one.
    """
    asked = [(topic.topic_name, [each.partition_index for each in topic.partitions]) for topic in request.topics]
    if asked != [(METADATA_TOPIC, [0])]:
        return DescribeQuorumResponse(topics=[_unknown(name, indexes) for name, indexes in asked])
    quorum = ctx.broker.controller.describe_quorum()
    partition = ResponsePartitionData(
        leader_id=quorum.leader_id,
        leader_epoch=quorum.leader_epoch,
        high_watermark=quorum.high_watermark,
        current_voters=_voters(quorum, ctx.now_ms(), with_directories=ctx.api_version >= 2),
    )
    response = DescribeQuorumResponse(topics=[ResponseTopicData(topic_name=METADATA_TOPIC, partitions=[partition])])
    if ctx.api_version >= 2:
        response.nodes = [
            Node(node_id=each.id, listeners=[Listener(name=at.name, host=at.host, port=at.port) for at in each.endpoints])
            for each in quorum.voters
        ]
    return response


def _voters(quorum: QuorumDescription, now_ms: int, *, with_directories: bool) -> list[ReplicaState]:
    """The leader needs not fetch: it is always as far as it can be."""
    return [
        ReplicaState(
            replica_id=each.id,
            replica_directory_id=each.directory_id if with_directories else ZERO_UUID,
            log_end_offset=each.log_end_offset,
            last_fetch_timestamp=now_ms if each.id == quorum.leader_id else -1,
            last_caught_up_timestamp=now_ms if each.id == quorum.leader_id else -1,
        )
        for each in quorum.voters
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
