"""The durable state of share partitions: requests of other brokers to this share coordinator (KIP-932).

All need CLUSTER_ACTION on the cluster, by their rows. Errors by partition: 3 for a partition that does not exist, 14, 15 and 16
as any coordinator, 42 for a key that is impossible or not initialized, 74 for a leader that another one has replaced, 124 for
one that loaded the state before it was reset.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from tidelog.broker.node import BrokerContext
from tidelog.broker.shares.state_store import Call, decide
from tidelog.coordinator.share.coordinator import Answer, Written
from tidelog.coordinator.share.records import ShareKey, read_batches
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages import delete_share_group_state as deleting
from tidelog.protocol.messages import initialize_share_group_state as initializing
from tidelog.protocol.messages import read_share_group_state as reading
from tidelog.protocol.messages import read_share_group_state_summary as summing
from tidelog.protocol.messages import write_share_group_state as writing

UNSET = -1


async def _each(
    ctx: BrokerContext,
    request: Any,
    call: Callable[[ShareKey, Any], Call | Answer],
    result: Callable[[Any, Answer], Any],
    *,
    writes: bool = True,
) -> list[tuple[bytes, list[Any]]]:
    """By topic: the result for each partition of ``request``, none without a group. All reach the coordinator before one is
    waited for, so that they share the wait."""
    asked: list[tuple[bytes, list[tuple[Any, Answer | Coroutine[Any, Any, Answer]]]]] = []
    for topic in request.topics if request.group_id else ():
        of_topic: list[tuple[Any, Answer | Coroutine[Any, Any, Answer]]] = []
        asked.append((topic.topic_id, of_topic))
        for each in topic.partitions:
            key = ShareKey(request.group_id, topic.topic_id, each.partition)
            made = call(key, each)
            node = ctx.node
            answer = made if isinstance(made, Answer) else decide(node.shares, node.runtime, key, made, writes=writes)
            of_topic.append((each, answer))
    return [
        (topic_id, [result(each, answer if isinstance(answer, Answer) else await answer) for each, answer in of_topic])
        for topic_id, of_topic in asked
    ]


async def initialize_share_group_state(
    ctx: BrokerContext, request: initializing.InitializeShareGroupStateRequest
) -> initializing.InitializeShareGroupStateResponse:
    """Sent by group coordinators when a member subscribes, and when an administrator resets offsets."""

    def call(key: ShareKey, each: initializing.PartitionData) -> Call:
        return lambda machine, token, now: machine.initialize(token, key, each.state_epoch, each.start_offset, now)

    def result(each: initializing.PartitionData, answer: Answer) -> initializing.PartitionResult:
        return initializing.PartitionResult(each.partition, answer.error, answer.message)

    topics = await _each(ctx, request, call, result)
    return initializing.InitializeShareGroupStateResponse([initializing.InitializeStateResult(*each) for each in topics])


async def read_share_group_state(
    ctx: BrokerContext, request: reading.ReadShareGroupStateRequest
) -> reading.ReadShareGroupStateResponse:
    """Sent by a new leader of a partition; its epoch fences the leaders before it."""

    def call(key: ShareKey, each: reading.PartitionData) -> Call:
        return lambda machine, token, now: machine.read(token, key, each.leader_epoch, now)

    def result(each: reading.PartitionData, answer: Answer) -> reading.PartitionResult:
        told = reading.PartitionResult(each.partition, answer.error, answer.message)
        if answer.stored is not None:
            told.state_epoch, told.start_offset = answer.stored.state_epoch, answer.stored.start_offset
            told.state_batches = [reading.StateBatch(*batch) for batch in answer.stored.batches]
        return told

    topics = await _each(ctx, request, call, result)
    return reading.ReadShareGroupStateResponse([reading.ReadStateResult(*each) for each in topics])


async def write_share_group_state(
    ctx: BrokerContext, request: writing.WriteShareGroupStateRequest
) -> writing.WriteShareGroupStateResponse:
    """Sent by the leader of a partition after acknowledgements. v1 added the number of finished records."""

    def call(key: ShareKey, each: writing.PartitionData) -> Call | Answer:
        refusal = _impossible(each.state_batches)
        if refusal is not None:
            return Answer(ErrorCode.INVALID_REQUEST, refusal)
        batches = read_batches(each.state_batches)
        written = Written(each.state_epoch, each.leader_epoch, each.start_offset, each.delivery_complete_count, batches)
        return lambda machine, token, now: machine.write(token, key, written, now)

    def result(each: writing.PartitionData, answer: Answer) -> writing.PartitionResult:
        return writing.PartitionResult(each.partition, answer.error, answer.message)

    topics = await _each(ctx, request, call, result)
    return writing.WriteShareGroupStateResponse([writing.WriteStateResult(*each) for each in topics])


def _impossible(batches: Sequence[writing.StateBatch]) -> str | None:
    """Why these batches cannot be stored."""
    for batch in batches:
        if not 0 <= batch.first_offset <= batch.last_offset or batch.delivery_count < 0:
            return f"The batch from offset {batch.first_offset} to {batch.last_offset} cannot be."
    try:
        read_batches(batches)
    except ValueError as error:
        return str(error)
    return None


async def delete_share_group_state(
    ctx: BrokerContext, request: deleting.DeleteShareGroupStateRequest
) -> deleting.DeleteShareGroupStateResponse:
    """Sent by group coordinators when a group or its offsets are deleted."""

    def call(key: ShareKey, each: deleting.PartitionData) -> Call:
        return lambda machine, token, now: machine.delete(token, key, now)

    def result(each: deleting.PartitionData, answer: Answer) -> deleting.PartitionResult:
        return deleting.PartitionResult(each.partition, answer.error, answer.message)

    topics = await _each(ctx, request, call, result)
    return deleting.DeleteShareGroupStateResponse([deleting.DeleteStateResult(*each) for each in topics])


async def read_share_group_state_summary(
    ctx: BrokerContext, request: summing.ReadShareGroupStateSummaryRequest
) -> summing.ReadShareGroupStateSummaryResponse:
    """Sent by group coordinators for administrators. v1 added the number of finished records. A state that does not exist has
    start offset -1."""

    def call(key: ShareKey, each: summing.PartitionData) -> Call:
        return lambda machine, token, now: machine.summary(token, key, now)

    def result(each: summing.PartitionData, answer: Answer) -> summing.PartitionResult:
        told = summing.PartitionResult(each.partition, answer.error, answer.message)
        if answer.stored is not None:
            told.state_epoch, told.leader_epoch = answer.stored.state_epoch, answer.stored.leader_epoch
            told.start_offset, told.delivery_complete_count = answer.stored.start_offset, answer.stored.complete_count
        elif not answer.error:
            told.start_offset = UNSET
        return told

    topics = await _each(ctx, request, call, result, writes=False)
    return summing.ReadShareGroupStateSummaryResponse([summing.ReadStateSummaryResult(*each) for each in topics])
