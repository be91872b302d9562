"""TxnOffsetCommit: a group's offsets, committed as part of a producer's transaction."""

from __future__ import annotations

from tidelog.broker.apis.transactions.transactions import may_write
from tidelog.broker.authorization import allowed, allows
from tidelog.broker.node import BrokerContext
from tidelog.broker.transaction_verification import Operation, operation_of_offset_commit, verify_or_add
from tidelog.coordinator.group.coordinator import GroupCoordinator
from tidelog.coordinator.group.offsets.transactional_offsets import answer
from tidelog.coordinator.shard import Shard, WithinTransaction
from tidelog.model.acl import AclOperation, ResourceType
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Uuid
from tidelog.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from tidelog.replication.partition_verification import begin_verification, refuse_verification
from tidelog.storage.verification_guard import NOT_REQUIRED, Verification

KNOWS_LOADING_FROM = 2
BY_ID_FROM = 6
_TOLD_AS = {
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""Errors of the group's partition, mapped to errors that clients of a coordinator know."""


async def txn_offset_commit(ctx: BrokerContext, request: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse:
    """Sent by transactional producers to the coordinator of the group. v2 added leader epochs, v3 the member and its
    generation (KIP-447), v4 may answer TRANSACTION_ABORTABLE, v5 adds the group's partition to the transaction implicitly
    (KIP-890), v6 names topics by id and knows member epochs (KIP-1319).

    Errors: 3, 12, 14, 15, 16, 22, 24, 25, 29, 30, 47, 48, 49, 51, 53, 69, 82, 100, 113, 120.
    """
    if not may_write(ctx, request.transactional_id):
        return answer(request, lambda name, index: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not allows(ctx, AclOperation.READ, ResourceType.GROUP, request.group_id):
        return answer(request, lambda name, index: ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if ctx.api_version >= BY_ID_FROM:
        for topic in request.topics:
            named = ctx.image.topics.by_id.get(Uuid(topic.topic_id))
            topic.name = "" if named is None else named.name
    readable = allowed(ctx, AclOperation.READ, ResourceType.TOPIC, {topic.name for topic in request.topics if topic.name})
    known = _existing(ctx, request, readable)
    response = await _commit(ctx, known) if known.topics else TxnOffsetCommitResponse()
    told = {(topic.name, each.partition_index): each.error_code for topic in response.topics for each in topic.partitions}

    def error_of(name: str, index: int) -> ErrorCode:
        if not name and ctx.api_version >= BY_ID_FROM:
            return ErrorCode.UNKNOWN_TOPIC_ID
        if name not in readable:
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return ErrorCode(told.get((name, index), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))

    return answer(request, error_of)


def _existing(ctx: BrokerContext, request: TxnOffsetCommitRequest, readable: frozenset[str]) -> TxnOffsetCommitRequest:
    """The request, reduced to the readable partitions that exist."""
    topics = []
    for topic in request.topics:
        partitions = [
            each
            for each in topic.partitions
            if topic.name in readable and ctx.image.topics.partition(topic.name, each.partition_index) is not None
        ]
        if partitions:
            topics.append(TxnOffsetCommitRequestTopic(name=topic.name, topic_id=topic.topic_id, partitions=partitions))
    return TxnOffsetCommitRequest(
        transactional_id=request.transactional_id,
        group_id=request.group_id,
        producer_id=request.producer_id,
        producer_epoch=request.producer_epoch,
        generation_id_or_member_epoch=request.generation_id_or_member_epoch,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        topics=topics,
    )


async def _commit(ctx: BrokerContext, request: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse:
    if not request.group_id:
        return _refused(ctx, request, ErrorCode.INVALID_GROUP_ID)
    shards = ctx.node.groups
    shard = shards.find(request.group_id)
    if isinstance(shard, ErrorCode):
        return _refused(ctx, request, shard)
    proof = await _proof(ctx, request, shard)
    if isinstance(proof, ErrorCode):
        return _refused(ctx, request, proof)
    if shards.find(request.group_id) is not shard:
        return _refused(ctx, request, ErrorCode.NOT_COORDINATOR)
    transaction = WithinTransaction(request.producer_id, request.producer_epoch, proof)
    version = ctx.api_version
    token, waiting = shards.ask_within(
        shard, transaction, lambda machine, token, now_ms: machine.offsets.commit_transactional(token, request, now_ms, version)
    )
    if not waiting.done:
        try:
            await ctx.wait(waiting)
        finally:
            shard.abandon(token)
    if waiting.error:
        return _refused(ctx, request, waiting.error)
    response: TxnOffsetCommitResponse = waiting.response
    return response


async def _proof(
    ctx: BrokerContext, request: TxnOffsetCommitRequest, shard: Shard[GroupCoordinator]
) -> Verification | ErrorCode | None:
    """A proof that the transaction coordinator knows the group's partition; None if the transaction is already open there."""
    operation = operation_of_offset_commit(ctx.api_version)
    proof = begin_verification(
        shard.partition,
        request.producer_id,
        request.producer_epoch,
        -1,
        starts_at_zero=operation is Operation.ADD,
        transactional_id=request.transactional_id,
        now_ms=ctx.now_ms(),
    )
    if proof is None:
        return None
    if operation is not Operation.ADD and not ctx.config.transaction_partition_verification_enable:
        return NOT_REQUIRED
    where = shard.partition.topic_partition
    try:
        errors = await verify_or_add(
            ctx, request.transactional_id, request.producer_id, request.producer_epoch, [where], operation
        )
    except BaseException:  # the client has disconnected
        proof.served()
        raise
    error = errors[where]
    if error is not ErrorCode.NONE:
        refuse_verification(shard.partition, request.producer_id, proof, error, 0)
        return error
    proof.served()
    return proof


def _refused(ctx: BrokerContext, request: TxnOffsetCommitRequest, error: ErrorCode) -> TxnOffsetCommitResponse:
    told = _TOLD_AS.get(error, error)
    if told is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and ctx.api_version < KNOWS_LOADING_FROM:
        told = ErrorCode.COORDINATOR_NOT_AVAILABLE
    return answer(request, lambda name, index: told)
