"""CreatePartitions, ElectLeaders and DescribeTopicPartitions."""

from __future__ import annotations

from tidelog.broker.apis.topics import permitted
from tidelog.broker.authorization import allowed, authorized_operations
from tidelog.broker.node import BrokerContext
from tidelog.broker.quotas.mutations import submit_mutation
from tidelog.controller.quorum_controller import QuorumController
from tidelog.controller.topic_names import name_problem
from tidelog.metadata.image import ClusterImage, PartitionImage
from tidelog.metadata.topic_pages import Cursor, Page, page_of
from tidelog.model.acl import AclOperation, ResourceType
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import INTERNAL_TOPICS, NO_BROKER
from tidelog.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
)
from tidelog.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    ResponseCursor,
)
from tidelog.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
)

_CREATE_STRICT_FROM = 3


async def create_partitions(ctx: BrokerContext, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    """Sent by admin clients; answered when the partitions are committed and this broker leads its own.

    v2 is flexible, v3 may answer THROTTLING_QUOTA_EXCEEDED. Errors per topic: TOPIC_AUTHORIZATION_FAILED; see
    ``controller.create_partitions``.
    """
    response: CreatePartitionsResponse = await submit_mutation(ctx, permitted.partition_counts(ctx), request, _CREATE_STRICT_FROM)
    return response


async def elect_leaders(ctx: BrokerContext, request: ElectLeadersRequest) -> ElectLeadersResponse:
    """Sent by admin clients and kafka-leader-election; null means all partitions and returns only those that changed.

    v1 added the type (0 preferred, 1 unclean) and an error for the whole answer. Errors per partition: see
    ``controller.elect_leaders``.
    """
    response: ElectLeadersResponse = await ctx.submit(QuorumController.elect_leaders, request)
    return response


def describe_topic_partitions(ctx: BrokerContext, request: DescribeTopicPartitionsRequest) -> DescribeTopicPartitionsResponse:
    """Sent by Java's admin client (KIP-966); topics are sorted by name, and a page has a limited number of partitions.

    The cursor in an answer is the start of the next page. Errors per topic: UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION,
    TOPIC_AUTHORIZATION_FAILED (for a topic that the request names; otherwise it is left out); INVALID_REQUEST for all of them
    when the cursor names a topic that was not requested, or a negative partition.
    """
    names = [topic.name for topic in request.topics]
    limit = max(1, min(ctx.config.max_request_partition_size_limit, request.response_partition_limit))
    cursor = Cursor(request.cursor.topic_name, request.cursor.partition_index) if request.cursor is not None else None
    if cursor is not None and (cursor.partition < 0 or (names and cursor.topic not in names)):
        refused = [DescribeTopicPartitionsResponseTopic(error_code=ErrorCode.INVALID_REQUEST, name=name) for name in names]
        return DescribeTopicPartitionsResponse(topics=refused)
    page, denied = _visible_page(ctx, names, cursor, limit)
    following = ResponseCursor(page.following.topic, page.following.partition) if page.following is not None else None
    refused = [
        DescribeTopicPartitionsResponseTopic(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name) for name in denied
    ]
    return DescribeTopicPartitionsResponse(topics=[*_described(ctx, page), *refused], next_cursor=following)


def _visible_page(ctx: BrokerContext, names: list[str], cursor: Cursor | None, limit: int) -> tuple[Page, list[str]]:
    """The page without topics that the client may not see, and those of them that the request names."""
    topics = ctx.image.topics
    if ctx.node.access is None:
        return page_of(topics, names, cursor, limit), []
    asked = [name for name in names or topics.by_name if cursor is None or name >= cursor.topic]
    seen = allowed(ctx, AclOperation.DESCRIBE, ResourceType.TOPIC, asked, quiet=not names)
    denied = sorted(set(asked) - seen) if names else []
    return page_of(topics, sorted(seen), cursor, limit) if seen else Page(()), denied


def _described(ctx: BrokerContext, page: Page) -> list[DescribeTopicPartitionsResponseTopic]:
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    for name, topic, numbers in page.parts:
        answer = DescribeTopicPartitionsResponseTopic(
            name=name,
            is_internal=name in INTERNAL_TOPICS,
            topic_authorized_operations=authorized_operations(ctx, ResourceType.TOPIC, name),
        )
        if topic is None:
            wrong = name_problem(name) is not None
            answer.error_code = ErrorCode.INVALID_TOPIC_EXCEPTION if wrong else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        else:
            answer.topic_id = topic.id
            answer.partitions = [_partition(ctx.image, ctx.listener, number, topic.partitions[number]) for number in numbers]
        topics.append(answer)
    return topics


def _partition(image: ClusterImage, listener: str, number: int, of: PartitionImage) -> DescribeTopicPartitionsResponsePartition:
    def reachable(broker_id: int) -> bool:
        broker = image.brokers.get(broker_id)
        return broker is not None and not broker.fenced and listener in broker.endpoints

    leader, error = of.leader, ErrorCode.NONE
    if not reachable(leader):
        registered = image.brokers.get(leader)
        unfenced = registered is not None and not registered.fenced
        leader, error = NO_BROKER, ErrorCode.LISTENER_NOT_FOUND if unfenced else ErrorCode.LEADER_NOT_AVAILABLE
    return DescribeTopicPartitionsResponsePartition(
        error_code=error,
        partition_index=number,
        leader_id=leader,
        leader_epoch=of.leader_epoch,
        replica_nodes=list(of.replicas),
        isr_nodes=list(of.isr),
        eligible_leader_replicas=list(of.elr),
        last_known_elr=list(of.last_known_elr),
        offline_replicas=[replica for replica in of.replicas if not reachable(replica)],
    )
