"""Metadata: topics, the leaders of their partitions, and the brokers' addresses.

Every client asks again and again, mostly with the same request, so encoded answers are cached until the image changes. An answer
that reports a missing topic to a client that allows auto-creation starts the creation and is not cached.

With an authorizer only an answer that is the same for every client is cached: it hides no topic and reports no permissions.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any

from tidelog.broker.answer_types import Encoded
from tidelog.broker.apis.topics.metadata_bytes import CLUSTER_OPERATIONS_IN, ERROR_FROM, AnswerKey, Described, put_together
from tidelog.broker.authorization import allowed, allowed_by_cluster, allows, authorized_operations, cluster_operations
from tidelog.broker.auto_creation import create_for, was_refused
from tidelog.broker.node import BrokerContext
from tidelog.broker.request_entries import bounded, decoded
from tidelog.controller.topic_names import name_problem
from tidelog.metadata.image import ClusterImage, Endpoint, PartitionImage, TopicImage
from tidelog.model.acl import AclOperation, ResourceType
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ids import INTERNAL_TOPICS, LOST_DIR, NO_BROKER, RESERVED_UUIDS, ZERO_UUID, Uuid
from tidelog.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

_NULL_NAME_FROM = 12
_READ = bounded(MetadataRequest.read)
_NOTHING: frozenset[str] = frozenset()
_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_NOT_THERE = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION)
MAX_KEPT_REQUEST_BYTES = 4096
PARTITIONS_AT_ONCE = 2000
"""Partitions described per turn of the loop: about ten milliseconds."""
MAX_BEING_CREATED = 1000
"""Auto-created topics in progress at one time; others wait for the client's next request."""


class Question:
    """A Metadata request, decoded only if its answer is not cached."""

    __slots__ = ("body", "version")

    def __init__(self, body: memoryview, version: int) -> None:
        self.body = body
        self.version = version

    def read(self) -> MetadataRequest:
        """The decoded request; ProtocolViolation if it is invalid or names too many topics."""
        return decoded(_READ, self.body, 0, self.version)


def read(frame: memoryview, position: int, version: int) -> Question:
    """Keep the body; it is decoded later, if at all."""
    return Question(frame[position:], version)


def metadata(ctx: BrokerContext, question: Question) -> Encoded | Coroutine[Any, Any, Encoded]:
    """Sent by every client. v0 asks for all topics with an empty list, later versions with null.

    v1 added controller and rack, v4 the auto-creation flag, v5 offline replicas, v7 leader epochs, v8 to v10 the cluster's
    authorized operations, v10 topic ids, v12 requests by id, v13 an error for the whole answer. Errors per topic:
    UNKNOWN_TOPIC_OR_PARTITION (also after its creation was refused), UNKNOWN_TOPIC_ID, INVALID_TOPIC_EXCEPTION,
    LEADER_NOT_AVAILABLE while it is being created, INVALID_REQUEST for ids in a version without them,
    TOPIC_AUTHORIZATION_FAILED without DESCRIBE (whether the topic exists or not), or without CREATE for a topic that the request
    would create. Where all topics are asked for, those without DESCRIBE are left out. Per partition: LEADER_NOT_AVAILABLE,
    LISTENER_NOT_FOUND.
    """
    if ctx.node.access is not None:
        request = question.read()
        hidden = _hidden(ctx, request)
        if not _is_for_every_client(request, hidden):
            return _described(ctx, question, None, hidden)
    key = None
    if len(question.body) <= MAX_KEPT_REQUEST_BYTES:
        key = (question.version, ctx.listener, bytes(question.body))
        known = ctx.node.metadata_answers.get(ctx.image, key)
        if known is not None:
            return Encoded((known,), len(known))
    return _described(ctx, question, key, _NOTHING)


def _described(
    ctx: BrokerContext, question: Question, key: AnswerKey | None, hidden: frozenset[str]
) -> Encoded | Coroutine[Any, Any, Encoded]:
    """An answer that is not cached; it is kept under ``key``."""
    request = question.read()
    if _asks_for_all(request, question.version) and sum(map(_size, ctx.image.topics.by_id.values())) > PARTITIONS_AT_ONCE:
        return _all_topics(ctx, request, key, hidden)
    response, creating = _answer(ctx, request, hidden)
    body = response.encode(question.version)
    if key is not None and not creating:
        ctx.node.metadata_answers.keep(key, body)
    return Encoded((body,), len(body))


def refuse(ctx: BrokerContext, question: Question, error: KafkaError) -> MetadataResponse:
    """The error for each requested topic, or for every topic if all were requested. The brokers are listed all the same, so
    that the client knows where to retry. A client that has not authenticated gets only what it said itself."""
    request, version, image = question.read(), ctx.api_version, ctx.image
    if error.code is ErrorCode.ILLEGAL_SASL_STATE:
        return _nothing(request, version, error.code)
    asked: Iterable[TopicImage | MetadataRequestTopic] = request.topics or ()
    if _asks_for_all(request, version):
        hidden = _hidden_if_known(ctx, request)
        asked = [topic for topic in image.topics.by_name.values() if topic.name not in hidden]
    topics = [
        MetadataResponseTopic(
            error_code=error.code,
            name=(topic.name or "") if version < _NULL_NAME_FROM else topic.name,
            topic_id=topic.id if isinstance(topic, TopicImage) else topic.topic_id,
        )
        for topic in asked
    ]
    response = _response(ctx, request, version, image, _endpoints(ctx, image), topics)
    if version >= ERROR_FROM and not topics:
        response.error_code = error.code
    return response


def _nothing(request: MetadataRequest, version: int, code: ErrorCode) -> MetadataResponse:
    """The error without anything about the cluster, as Apache Kafka answers in the middle of a login."""
    response = MetadataResponse(
        topics=[
            MetadataResponseTopic(
                error_code=code, name=each.name or ("" if version < _NULL_NAME_FROM else None), topic_id=each.topic_id
            )
            for each in request.topics or ()
        ]
    )
    if version >= ERROR_FROM:
        response.error_code = code
    return response


def _hidden(ctx: BrokerContext, request: MetadataRequest) -> frozenset[str]:
    """The topics of the request, or of all topics, that the client may not see. They need not exist."""
    topics = ctx.image.topics
    if _asks_for_all(request, ctx.api_version):
        every = frozenset(topics.by_name)
        return every - allowed(ctx, AclOperation.DESCRIBE, ResourceType.TOPIC, every, quiet=True)
    names = set()
    for asked in request.topics or ():
        found = topics.by_id.get(Uuid(asked.topic_id)) if asked.topic_id != ZERO_UUID else None
        if found is not None or asked.name is not None:
            names.add(asked.name or "" if found is None else found.name)
    return frozenset(names) - allowed(ctx, AclOperation.DESCRIBE, ResourceType.TOPIC, names)


def _hidden_if_known(ctx: BrokerContext, request: MetadataRequest) -> frozenset[str]:
    """``_hidden``, but all topics while the access control itself fails: a refusal must not name them."""
    try:
        return _hidden(ctx, request)
    except KafkaError:
        return frozenset(ctx.image.topics.by_name)


def _is_for_every_client(request: MetadataRequest, hidden: frozenset[str]) -> bool:
    return not (hidden or request.include_topic_authorized_operations or request.include_cluster_authorized_operations)


def _answer(ctx: BrokerContext, request: MetadataRequest, hidden: frozenset[str]) -> tuple[MetadataResponse, bool]:
    """The response, and whether it depends on a topic that the request creates or may not create."""
    version = ctx.api_version
    image = ctx.image
    endpoints = _endpoints(ctx, image)
    describe = _describer(ctx, image, endpoints, request.include_topic_authorized_operations)
    creating = False
    if _asks_for_all(request, version):
        topics = [describe(topic) for topic in image.topics.by_name.values() if topic.name not in hidden]
    else:
        topics = []
        missing: list[str] = []
        for topic in _once(request.topics or ()):
            found = _find(image, topic, version, hidden)
            if isinstance(found, TopicImage):
                topics.append(describe(found))
                continue
            if _would_create(ctx, request, found):
                _create_or_deny(ctx, found, missing)
                creating = creating or bool(missing) or ctx.node.access is not None
            if request.include_topic_authorized_operations and found.error_code in _NOT_THERE and found.name is not None:
                found.topic_authorized_operations = authorized_operations(ctx, ResourceType.TOPIC, found.name)
            topics.append(found)
        if missing:
            create_for(ctx.node, ctx.asker, missing)
    return _response(ctx, request, version, image, endpoints, topics), creating


def _would_create(ctx: BrokerContext, request: MetadataRequest, found: MetadataResponseTopic) -> bool:
    """Whether the topic would be created, if its name, the client's permissions and the topics in progress allow it."""
    possible = request.allow_auto_topic_creation and ctx.config.auto_create_topics_enable
    return possible and found.error_code in _NOT_THERE and found.name is not None


def _create_or_deny(ctx: BrokerContext, found: MetadataResponseTopic, missing: list[str]) -> None:
    """Changes the answer about a topic that does not exist, and adds it to ``missing`` if it is to be created."""
    name = found.name
    assert name is not None
    if not (
        allowed_by_cluster(ctx, AclOperation.CREATE, ResourceType.TOPIC, (name,))
        or allows(ctx, AclOperation.CREATE, ResourceType.TOPIC, name)
    ):
        found.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    elif (
        found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        and name not in INTERNAL_TOPICS
        and len(ctx.node.topics_being_created) < MAX_BEING_CREATED
    ):
        if not was_refused(ctx.node, name):
            found.error_code = ErrorCode.LEADER_NOT_AVAILABLE
        missing.append(name)


def _asks_for_all(request: MetadataRequest, version: int) -> bool:
    return request.topics is None or (version == 0 and not request.topics)


def _size(topic: TopicImage) -> int:
    return len(topic.partitions)


async def _all_topics(ctx: BrokerContext, request: MetadataRequest, key: AnswerKey | None, hidden: frozenset[str]) -> Encoded:
    """All topics of a large cluster, from one image. Other requests get their turn meanwhile."""
    image, answers, version = ctx.image, ctx.node.metadata_answers, ctx.api_version
    endpoints = _endpoints(ctx, image)
    with_operations = request.include_topic_authorized_operations
    describe = _describer(ctx, image, endpoints, with_operations)
    described: Described = {}
    if ctx.node.access is None or not with_operations:
        described = answers.topics.of((version, ctx.listener, with_operations), image.brokers, image.topics.by_id)
    parts: list[bytes] = []
    room = PARTITIONS_AT_ONCE
    for topic in image.topics.by_name.values():
        if topic.name in hidden:
            continue
        known = described.get(topic.id)
        if known is None or known[0] is not topic:
            if room <= 0:
                room = PARTITIONS_AT_ONCE
                await ctx.node.runtime.sleep(0)
            room -= len(topic.partitions)
            out = bytearray()
            describe(topic).encode_into(out, version)
            known = described[topic.id] = topic, bytes(out)
        parts.append(known[1])
    body = put_together(_response(ctx, request, version, image, endpoints, []), parts, version)
    if key is not None and ctx.image is image and answers.get(image, key) is None:
        answers.keep(key, body)
    return Encoded((body,), len(body))


def _endpoints(ctx: BrokerContext, image: ClusterImage) -> dict[int, Endpoint]:
    """The addresses of unfenced brokers on the client's listener."""
    return {
        broker.id: endpoint
        for broker in image.brokers.values()
        if not broker.fenced and (endpoint := broker.endpoints.get(ctx.listener)) is not None
    }


def _response(
    ctx: BrokerContext,
    request: MetadataRequest,
    version: int,
    image: ClusterImage,
    endpoints: Mapping[int, Endpoint],
    topics: list[MetadataResponseTopic],
) -> MetadataResponse:
    response = MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=id, host=endpoint.host, port=endpoint.port, rack=image.brokers[id].rack)
            for id, endpoint in endpoints.items()
        ],
        cluster_id=ctx.node.cluster_id,
        controller_id=ctx.node.node_id if ctx.node.node_id in endpoints else next(iter(endpoints), NO_BROKER),
        topics=topics,
    )
    if version in CLUSTER_OPERATIONS_IN and request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = cluster_operations(ctx)
    return response


def _once(asked: Iterable[MetadataRequestTopic]) -> Iterable[MetadataRequestTopic]:
    """The topics of a request in order, without duplicates."""
    return {(topic.topic_id, topic.name): topic for topic in asked}.values()


def _find(
    image: ClusterImage, asked: MetadataRequestTopic, version: int, hidden: frozenset[str]
) -> TopicImage | MetadataResponseTopic:
    by_id = asked.topic_id != ZERO_UUID
    if version < 12 and (by_id or asked.name is None):
        # The fields exist since version 10 but have a meaning only since version 12.
        return MetadataResponseTopic(error_code=ErrorCode.INVALID_REQUEST, name=asked.name or "", topic_id=asked.topic_id)
    if by_id or asked.name is None:
        found = image.topics.by_id.get(Uuid(asked.topic_id))
        if found is not None and found.name in hidden:
            return MetadataResponseTopic(error_code=_DENIED, name=None, topic_id=asked.topic_id)
        return found or MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=asked.topic_id)
    if asked.name in hidden:
        return MetadataResponseTopic(error_code=_DENIED, name=asked.name)
    found = image.topics.by_name.get(asked.name)
    if found is not None:
        return found
    internal = asked.name in INTERNAL_TOPICS
    if name_problem(asked.name) is not None:
        return MetadataResponseTopic(error_code=ErrorCode.INVALID_TOPIC_EXCEPTION, name=asked.name, is_internal=internal)
    return MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name=asked.name, is_internal=internal)


def _describer(
    ctx: BrokerContext, image: ClusterImage, endpoints: dict[int, Endpoint], with_operations: bool
) -> Callable[[TopicImage], MetadataResponseTopic]:
    # Before version 6 clients do not know LISTENER_NOT_FOUND.
    no_listener = ErrorCode.LISTENER_NOT_FOUND if ctx.api_version >= 6 else ErrorCode.LEADER_NOT_AVAILABLE

    def offline(replica: int, of: PartitionImage) -> bool:
        if replica not in endpoints:
            return True
        online = image.brokers[replica].directories
        if not of.directories or not online:
            return False
        directory = of.directory(replica)
        return directory == LOST_DIR or (directory not in RESERVED_UUIDS and directory not in online)

    def partition(index: int, of: PartitionImage) -> MetadataResponsePartition:
        leader, error = of.leader, ErrorCode.NONE
        if leader not in endpoints:
            registered = image.brokers.get(leader)
            error = no_listener if registered is not None and not registered.fenced else ErrorCode.LEADER_NOT_AVAILABLE
            leader = NO_BROKER
        return MetadataResponsePartition(
            error_code=error,
            partition_index=index,
            leader_id=leader,
            leader_epoch=of.leader_epoch,
            replica_nodes=list(of.replicas),
            isr_nodes=list(of.isr),
            offline_replicas=[replica for replica in of.replicas if offline(replica, of)],
        )

    def describe(topic: TopicImage) -> MetadataResponseTopic:
        described = MetadataResponseTopic(
            name=topic.name,
            topic_id=topic.id,
            is_internal=topic.name in INTERNAL_TOPICS,
            partitions=[partition(index, of) for index, of in enumerate(topic.partitions)],
        )
        if with_operations:
            described.topic_authorized_operations = authorized_operations(ctx, ResourceType.TOPIC, topic.name)
        return described

    return describe
