"""A response that refuses a whole request with one error code, for each API that a test may want to see failing.

Most responses have an error code of their own. Those that do not say it for each topic, partition or resource of the request.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tidelog.broker.api import Api
from tidelog.broker.apis.group_offsets import commit_refused
from tidelog.broker.context import Context
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol import registry
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from tidelog.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from tidelog.protocol.messages.list_offsets import ListOffsetsPartitionResponse, ListOffsetsResponse, ListOffsetsTopicResponse
from tidelog.protocol.messages.metadata import MetadataResponse, MetadataResponseBroker, MetadataResponseTopic
from tidelog.protocol.messages.offset_commit import OffsetCommitResponse
from tidelog.protocol.messages.offset_fetch import OffsetFetchResponse, OffsetFetchResponseGroup
from tidelog.protocol.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse

Refuse = Callable[[Context, Any, ErrorCode], Any]


def refuse(row: Api, ctx: Context, request: Any, error: ErrorCode) -> Any:
    """The answer to ``request``. ValueError for an API that has no place for an error."""
    special = _SPECIAL.get(row.key)
    if special is not None:
        return special(ctx, request, error)
    response = registry.response_class(row.key)()
    if hasattr(response, "error_code"):
        response.error_code = error
        if _fits(response, ctx.api_version):
            return response
    if row.on_error is None:
        raise ValueError(f"{ApiKey(row.key).name} has no error of its own; drop the connection instead")
    return row.on_error(request, KafkaError(error, "asked for by the test"))


def _fits(response: Any, version: int) -> bool:
    """Whether the version has a place for the error."""
    try:
        response.encode(version)
    except ValueError:
        return False
    return True


def _produce(ctx: Context, request: Any, error: ErrorCode) -> ProduceResponse:
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=name or "",
                topic_id=topic_id,
                partition_responses=[
                    PartitionProduceResponse(index=index, error_code=error, base_offset=-1) for index, _ in partitions
                ],
            )
            for name, topic_id, partitions in request.topics
        ]
    )


def _fetch(ctx: Context, request: Any, error: ErrorCode) -> FetchResponse:
    """The partitions that the request names; in a session, those of the session's next answer stay as they are."""
    return FetchResponse(
        session_id=request.session_id,
        responses=[
            FetchableTopicResponse(
                topic=name or "",
                topic_id=topic_id,
                partitions=[
                    PartitionData(partition_index=partition[0], error_code=error, high_watermark=-1, records=None)
                    for partition in partitions
                ],
            )
            for name, topic_id, partitions in request.topics
        ],
    )


def _metadata(ctx: Context, request: Any, error: ErrorCode) -> MetadataResponse:
    asked = request.read().topics
    names = list(ctx.image.topics.by_name) if asked is None else [topic.name for topic in asked]
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=broker.id, host=endpoint.host, port=endpoint.port)
            for broker in ctx.image.brokers.values()
            if (endpoint := broker.endpoints.get(ctx.listener)) is not None
        ],
        cluster_id=ctx.broker.cluster_id,
        controller_id=ctx.broker.node_id,
        topics=[MetadataResponseTopic(error_code=error, name=name) for name in names],
    )


def _list_offsets(ctx: Context, request: Any, error: ErrorCode) -> ListOffsetsResponse:
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    ListOffsetsPartitionResponse(partition_index=partition.partition_index, error_code=error)
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _find_coordinator(ctx: Context, request: Any, error: ErrorCode) -> FindCoordinatorResponse:
    if ctx.api_version < 4:
        return FindCoordinatorResponse(error_code=error, node_id=-1, port=-1)
    return FindCoordinatorResponse(
        coordinators=[Coordinator(key=key, node_id=-1, port=-1, error_code=error) for key in request.coordinator_keys]
    )


def _offset_commit(ctx: Context, request: Any, error: ErrorCode) -> OffsetCommitResponse:
    return commit_refused(request, error)


def _offset_fetch(ctx: Context, request: Any, error: ErrorCode) -> OffsetFetchResponse:
    if ctx.api_version < 8:
        return OffsetFetchResponse(error_code=error if ctx.api_version >= 2 else 0)
    return OffsetFetchResponse(
        groups=[OffsetFetchResponseGroup(group_id=group.group_id, error_code=error) for group in request.groups]
    )


_SPECIAL: dict[int, Refuse] = {
    ApiKey.PRODUCE: _produce,
    ApiKey.FETCH: _fetch,
    ApiKey.METADATA: _metadata,
    ApiKey.LIST_OFFSETS: _list_offsets,
    ApiKey.FIND_COORDINATOR: _find_coordinator,
    ApiKey.OFFSET_COMMIT: _offset_commit,
    ApiKey.OFFSET_FETCH: _offset_fetch,
}
