"""CreateTopics and DeleteTopics: translated for the controller, which decides."""

from __future__ import annotations

from tidelog.broker.quotas.mutations import submit_mutation
from tidelog.broker.request import Context
from tidelog.controller.quorum_controller import QuorumController
from tidelog.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from tidelog.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse

_CREATE_STRICT_FROM = 6
_DELETE_STRICT_FROM = 5


async def create_topics(ctx: Context, request: CreateTopicsRequest) -> CreateTopicsResponse:
    """Sent by admin clients, Streams and Connect; answered when the topics are committed and this broker leads its partitions.

    v4 allows -1 for partitions and replication factor (the broker's defaults), v5 added the counts and all configs to the answer,
    v6 may answer THROTTLING_QUOTA_EXCEEDED, v7 added topic ids. Errors per topic: see ``controller.topics``.
    """
    response: CreateTopicsResponse = await submit_mutation(ctx, QuorumController.create_topics, request, _CREATE_STRICT_FROM)
    return response


async def delete_topics(ctx: Context, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    """Sent by admin clients and Streams; answered when the deletion is committed; the files are deleted later.

    v5 added error messages and THROTTLING_QUOTA_EXCEEDED, v6 topic ids. Errors per topic: see ``controller.topics``;
    TOPIC_DELETION_DISABLED for all.
    """
    response: DeleteTopicsResponse = await submit_mutation(ctx, QuorumController.delete_topics, request, _DELETE_STRICT_FROM)
    return response
