"""CreateTopics and DeleteTopics: the controller decides, on the topics that the client may create or delete."""

from __future__ import annotations

from tidelog.broker.apis.topics import permitted
from tidelog.broker.quotas.mutations import submit_mutation
from tidelog.broker.request import Context
from tidelog.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from tidelog.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse

_CREATE_STRICT_FROM = 6
_DELETE_STRICT_FROM = 5


async def create_topics(ctx: Context, request: CreateTopicsRequest) -> CreateTopicsResponse:
    """Sent by admin clients, Streams and Connect; answered when the topics are committed and this broker leads its partitions.

    v4 allows -1 for partitions and replication factor (the broker's defaults), v5 added the counts and all configs to the answer,
    v6 may answer THROTTLING_QUOTA_EXCEEDED, v7 added topic ids. Errors per topic: TOPIC_AUTHORIZATION_FAILED;
    see ``controller.topics``.
    """
    response: CreateTopicsResponse = await submit_mutation(ctx, permitted.creations(ctx), request, _CREATE_STRICT_FROM)
    return response


async def delete_topics(ctx: Context, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    """Sent by admin clients and Streams; answered when the deletion is committed; the files are deleted later.

    v5 added error messages and THROTTLING_QUOTA_EXCEEDED, v6 topic ids. Errors per topic:
    TOPIC_AUTHORIZATION_FAILED; see ``controller.topics``. TOPIC_DELETION_DISABLED for all.
    """
    response: DeleteTopicsResponse = await submit_mutation(ctx, permitted.deletions(ctx), request, _DELETE_STRICT_FROM)
    return response
