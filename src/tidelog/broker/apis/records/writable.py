"""May a client write the batches of its Produce?

It needs WRITE on each topic, and WRITE on the transactional id if any batch is transactional; without the latter, or without an
id, the whole request is refused. Plain batches of an idempotent producer need nothing more (KIP-679). An unknown topic id has no
name to ask for, and is left to the caller; a name is asked for whether the topic exists or not.
"""

from __future__ import annotations

from tidelog.broker.authorization import allowed, allows
from tidelog.broker.node import BrokerContext
from tidelog.model.acl import AclOperation, ResourceType
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Uuid
from tidelog.protocol.fastpath import ProduceView
from tidelog.records.batch import FLAGS_POSITION, TRANSACTIONAL_BIT, read_producer


def _is_transactional(records: memoryview) -> bool:
    return len(records) > FLAGS_POSITION and bool(records[FLAGS_POSITION] & TRANSACTIONAL_BIT)


def _may_use(ctx: BrokerContext, transactional_id: str | None) -> bool:
    """Whether the client may write transactional batches under this id."""
    return transactional_id is not None and allows(ctx, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id)


def denial(ctx: BrokerContext, request: ProduceView, topic: str, records: memoryview | None) -> ErrorCode:
    """Why the client may not write the only batch of its request; NONE if it may."""
    if records is not None and _is_transactional(records) and not _may_use(ctx, request.transactional_id):
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    return ErrorCode.NONE if allows(ctx, AclOperation.WRITE, ResourceType.TOPIC, topic) else ErrorCode.TOPIC_AUTHORIZATION_FAILED


def _name_of(ctx: BrokerContext, name: str | None, topic_id: Uuid) -> str | None:
    """The topic's name; None for an unknown id."""
    if name is not None:
        return name
    image = ctx.image.topics.by_id.get(topic_id)
    return None if image is None else image.name


def refusals(ctx: BrokerContext, request: ProduceView) -> tuple[ErrorCode, list[ErrorCode]]:
    """The error of the whole request, and of each of its topics; NONE where there is none.

    Batches of one request that may be written must have the same producer and epoch if they are transactional: the coordinator is
    asked about one producer at one epoch, and a batch at another epoch would never be completed.
    """
    topics = request.topics
    producers = [
        {read_producer(records)[:2] for _, records in wanted if records is not None and _is_transactional(records)}
        for _, _, wanted in topics
    ]
    if any(producers) and not _may_use(ctx, request.transactional_id):
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, []
    errors = [ErrorCode.NONE] * len(topics)
    if ctx.node.access is not None:
        names = [_name_of(ctx, name, topic_id) for name, topic_id, _ in topics]
        writable = allowed(ctx, AclOperation.WRITE, ResourceType.TOPIC, (name for name in names if name is not None))
        errors = [ErrorCode.NONE if name is None or name in writable else ErrorCode.TOPIC_AUTHORIZATION_FAILED for name in names]
    different = {each for error, of_topic in zip(errors, producers, strict=True) if not error for each in of_topic}
    if len(different) > 1:
        errors = [error or ErrorCode.INVALID_PRODUCER_ID_MAPPING for error in errors]
    return ErrorCode.NONE, errors
