"""FindCoordinator: which broker answers for a group.

A group lives on the partition of ``__consumer_offsets`` that its name hashes to; that partition's leader is its coordinator. The
first question creates the topic; until it has leaders the answer is COORDINATOR_NOT_AVAILABLE, and clients ask again.
"""

from __future__ import annotations

from tidelog.broker.context import Broker, Context
from tidelog.controller.quorum_controller import QuorumController
from tidelog.coordinator.placement import partition_of
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ids import OFFSETS_TOPIC
from tidelog.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from tidelog.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

GROUP_KEY = 0
BATCHED_FROM = 4
CREATE_TIMEOUT_MS = 30_000
NOT_SERVED = "This version of tidelog serves neither transactions nor share groups; only groups (key type 0) have a coordinator."


def find_coordinator(ctx: Context, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    """Sent by consumers and administrators. v1 key types, v3 and later by tags, v4 several keys at once.

    Errors: 15 while the topic is being created or has no leader, 24 for an empty group, 35 for kinds that are not served.
    """
    if ctx.api_version >= BATCHED_FROM:
        return FindCoordinatorResponse(coordinators=[_find(ctx, request.key_type, key) for key in request.coordinator_keys])
    found = _find(ctx, request.key_type, request.key)
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_message,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def _find(ctx: Context, key_type: int, key: str) -> Coordinator:
    if key_type != GROUP_KEY:
        return _none(key, ErrorCode.UNSUPPORTED_VERSION, NOT_SERVED)
    if not key:
        return _none(key, ErrorCode.INVALID_GROUP_ID, "The group id is empty; give the group a name.")
    topic = ctx.image.topics.by_name.get(OFFSETS_TOPIC)
    if topic is None:
        _create(ctx.broker)
        return _none(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{OFFSETS_TOPIC} is being created; ask again.")
    leader = topic.partitions[partition_of(key, len(topic.partitions))].leader
    broker = ctx.image.brokers.get(leader)
    endpoint = None if broker is None or broker.fenced else broker.endpoints.get(ctx.listener)
    if endpoint is None:
        return _none(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, f"The partition of {OFFSETS_TOPIC} has no leader; ask again.")
    return Coordinator(key=key, node_id=leader, host=endpoint.host, port=endpoint.port, error_message=None)


def _none(key: str, error: ErrorCode, message: str) -> Coordinator:
    return Coordinator(key=key, node_id=-1, host="", port=-1, error_code=error, error_message=message)


def _create(broker: Broker) -> None:
    if OFFSETS_TOPIC not in broker.topics_being_created:
        broker.topics_being_created[OFFSETS_TOPIC] = None
        broker.runtime.spawn(_created(broker), f"creating {OFFSETS_TOPIC}")


async def _created(broker: Broker) -> None:
    config = broker.config
    alive = sum(not registered.fenced for registered in broker.image.brokers.values())
    request = CreateTopicsRequest(
        topics=[
            CreatableTopic(
                name=OFFSETS_TOPIC,
                num_partitions=config.offsets_topic_num_partitions,
                # One node cannot hold three replicas, and a group that never starts helps nobody.
                replication_factor=max(1, min(config.offsets_topic_replication_factor, alive)),
                configs=[
                    CreatableTopicConfig(name="cleanup.policy", value="compact"),
                    CreatableTopicConfig(name="compression.type", value="producer"),
                    CreatableTopicConfig(name="segment.bytes", value=str(config.offsets_topic_segment_bytes)),
                ],
            )
        ],
        timeout_ms=CREATE_TIMEOUT_MS,
    )
    try:
        await broker.controller.submit(QuorumController.create_topics, request)
    except KafkaError:
        # The client asks again, and so do we then.
        return
    finally:
        broker.topics_being_created.pop(OFFSETS_TOPIC, None)
