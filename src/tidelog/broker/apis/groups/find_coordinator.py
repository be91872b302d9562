"""FindCoordinator: the broker that coordinates a group or a transactional id.

A group or transactional id belongs to the partition of an internal topic that its name hashes to; the leader of that partition is
its coordinator. The first request creates the topic (``broker.internal_topics``). Until it has leaders the answer is
COORDINATOR_NOT_AVAILABLE, and clients retry.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidelog.broker import internal_topics
from tidelog.broker.authorization import DENIED, allows, require_on_cluster
from tidelog.broker.node import BrokerContext
from tidelog.coordinator.partition_for_key import partition_of
from tidelog.coordinator.shards import Shards
from tidelog.model.acl import AclOperation, ResourceType
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ids import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTION_STATE_TOPIC, uuid_from_text
from tidelog.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

GROUP_KEY = 0
TRANSACTION_KEY = 1
SHARE_KEY = 2
BATCHED_FROM = 4
SHARE_KEY_FROM = 6
NOT_SERVED = "Groups (key type 0) and transactional ids (1) have a coordinator, and since version 6 share partitions (2)."
_NAMES: Mapping[int, str] = {GROUP_KEY: OFFSETS_TOPIC, TRANSACTION_KEY: TRANSACTION_STATE_TOPIC, SHARE_KEY: SHARE_STATE_TOPIC}
_RESOURCES: Mapping[int, ResourceType] = {GROUP_KEY: ResourceType.GROUP, TRANSACTION_KEY: ResourceType.TRANSACTIONAL_ID}


def find_coordinator(ctx: BrokerContext, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    """Sent by consumers, transactional producers and administrators. v1 added key types, v3 tagged fields, v4 several keys per
    request.

    The topic gets the replicas that its settings demand (offsets.topic.replication.factor,
    transaction.state.log.replication.factor), so it cannot be created before that many brokers have registered. Errors: 15 while
    the topic is being created, while its partition has no leader, and when this broker is cut off and may have been replaced; 35
    for unknown key types; 30 and 53 without DESCRIBE on the group or the transactional id, 31 for a share group's key without
    CLUSTER_ACTION. The empty name has a coordinator like any other, as in Kafka.
    """
    if request.key_type == SHARE_KEY and ctx.api_version >= SHARE_KEY_FROM:
        require_on_cluster(ctx, AclOperation.CLUSTER_ACTION)
        if not all(map(_is_share_key, request.coordinator_keys)):
            raise KafkaError(ErrorCode.INVALID_REQUEST, "The key of a share partition is GROUP:TOPIC_ID:PARTITION.")
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


def _find(ctx: BrokerContext, key_type: int, key: str) -> Coordinator:
    name = _NAMES.get(key_type)
    if name is None:
        return _none(key, ErrorCode.UNSUPPORTED_VERSION, NOT_SERVED)
    if key_type == SHARE_KEY and ctx.api_version < SHARE_KEY_FROM:
        return _none(key, ErrorCode.INVALID_REQUEST, NOT_SERVED)
    if key_type != SHARE_KEY and not allows(ctx, AclOperation.DESCRIBE, _RESOURCES[key_type], key):
        denied = DENIED[_RESOURCES[key_type]]
        return _none(key, denied, denied.text)
    topic = ctx.image.topics.by_name.get(name)
    if topic is None:
        internal_topics.create_in_background(ctx.node, name)
        refused = ctx.node.creations_refused.get(name)
        message = f"{name} is being created; ask again." if refused is None else f"{name} cannot be created: {refused}"
        return _none(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, message)
    leader = topic.partitions[partition_of(key, len(topic.partitions))].leader
    node = ctx.node
    coordinators: Mapping[int, Shards[Any]] = {GROUP_KEY: node.groups, TRANSACTION_KEY: node.transactions, SHARE_KEY: node.shares}
    shards = coordinators[key_type]
    if leader == ctx.node.node_id and shards.doubts(key):
        return _none(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, "This broker is cut off from the others; ask another one.")
    broker = ctx.image.brokers.get(leader)
    endpoint = None if broker is None or broker.fenced else broker.endpoints.get(ctx.listener)
    if endpoint is None:
        return _none(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, f"The partition of {name} has no leader; ask again.")
    return Coordinator(key=key, node_id=leader, host=endpoint.host, port=endpoint.port, error_message=None)


def _is_share_key(key: str) -> bool:
    """Whether the key is GROUP:TOPIC_ID:PARTITION; a group's id may have colons."""
    group_id, _, rest = key.rpartition(":")
    group_id, _, topic_id = group_id.rpartition(":")
    try:
        uuid_from_text(topic_id)
    except ValueError:
        return False
    return bool(group_id) and rest.isascii() and rest.isdigit()


def _none(key: str, error: ErrorCode, message: str) -> Coordinator:
    return Coordinator(key=key, node_id=-1, host="", port=-1, error_code=error, error_message=message)
