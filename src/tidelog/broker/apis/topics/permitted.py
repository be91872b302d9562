"""CreateTopics, DeleteTopics and CreatePartitions with an authorizer: the controller decides on the permitted topics only.

The permissions are asked for when the controller decides, with its image, so that the ids in a request stand for the topics that
are changed. Without an authorizer the controller gets the whole request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from tidelog.broker.authorization import allowed, allowed_by_cluster
from tidelog.broker.quotas.mutations import MutationHandler
from tidelog.broker.request import Context
from tidelog.controller.quorum_controller import QuorumController
from tidelog.controller.result import NO_QUOTA, ControllerResult, Quota
from tidelog.model.acl import AclOperation, ResourceType
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import METADATA_TOPIC, ZERO_UUID, Uuid
from tidelog.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopicResult
from tidelog.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse
from tidelog.protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicState

_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_UNKNOWN = -1

Decide = Callable[[Context, QuorumController, Any, int, Quota], ControllerResult]


def creations(ctx: Context) -> MutationHandler:
    """Creates the topics for which the client has CREATE, on the cluster or on the topic. The answer describes a topic only with
    DESCRIBE_CONFIGS on it."""
    return QuorumController.create_topics if ctx.node.access is None else _for(ctx, _create)


def deletions(ctx: Context) -> MutationHandler:
    """Deletes the topics for which the client has DELETE, on the cluster or on the topic.

    Without DESCRIBE a name is answered alike whether its topic exists or not, and an id without its name. The results are in
    random order, because their positions would tell missing topics from hidden ones.
    """
    return QuorumController.delete_topics if ctx.node.access is None else _for(ctx, _delete)


def partition_counts(ctx: Context) -> MutationHandler:
    """Adds partitions to the topics for which the client has ALTER."""
    return QuorumController.create_partitions if ctx.node.access is None else _for(ctx, _add_partitions)


def _for(ctx: Context, decide: Decide) -> MutationHandler:
    def decide_for_client(controller: QuorumController, request: Any, now_ms: int, quota: Quota = NO_QUOTA) -> ControllerResult:
        return decide(ctx, controller, request, now_ms, quota)

    return decide_for_client


def _create(
    ctx: Context, controller: QuorumController, request: CreateTopicsRequest, now_ms: int, quota: Quota
) -> ControllerResult:
    # Topics that are named twice, and that of the metadata log, are refused to every client.
    named = Counter(topic.name for topic in request.topics)
    names = {name for name, times in named.items() if times == 1 and name != METADATA_TOPIC}
    if not allowed_by_cluster(ctx, AclOperation.CREATE, ResourceType.TOPIC, names):
        denied = names - allowed(ctx, AclOperation.CREATE, ResourceType.TOPIC, names)
    else:
        denied = set()
    permitted = CreateTopicsRequest(
        topics=[topic for topic in request.topics if topic.name not in denied],
        timeout_ms=request.timeout_ms,
        validate_only=request.validate_only,
    )
    result = controller.create_topics(permitted, now_ms, quota)
    _hide_descriptions(ctx, result.response)
    result.response.topics += [
        CreatableTopicResult(name=topic.name, error_code=_DENIED, error_message=None)
        for topic in request.topics
        if topic.name in denied
    ]
    return result


def _hide_descriptions(ctx: Context, response: CreateTopicsResponse) -> None:
    created = [topic for topic in response.topics if topic.error_code == ErrorCode.NONE]
    described = allowed(ctx, AclOperation.DESCRIBE_CONFIGS, ResourceType.TOPIC, [topic.name for topic in created], quiet=True)
    for topic in created:
        if topic.name not in described:
            topic.topic_config_error_code = _DENIED
            topic.num_partitions = topic.replication_factor = _UNKNOWN
            topic.configs = []


def _delete(
    ctx: Context, controller: QuorumController, request: DeleteTopicsRequest, now_ms: int, quota: Quota
) -> ControllerResult:
    asked = [*request.topics, *(DeleteTopicState(name=name) for name in request.topic_names)]
    named = _named(controller, asked)
    names = dict.fromkeys(name for _, name in named)
    all_allowed = allowed_by_cluster(ctx, AclOperation.DELETE, ResourceType.TOPIC, names)
    denied = [] if all_allowed else _denied_deletions(ctx, controller, named)
    refused = {id(state) for state, _ in denied}
    permitted = DeleteTopicsRequest(topics=[state for state in asked if id(state) not in refused], timeout_ms=request.timeout_ms)
    result = controller.delete_topics(permitted, now_ms, quota)
    result.response.responses += [answer for _, answer in denied]
    result.response.responses.sort(key=lambda _: ctx.node.rng.random())
    return result


def _named(controller: QuorumController, asked: list[DeleteTopicState]) -> list[tuple[DeleteTopicState, str]]:
    """The entries with the names of their topics. Entries that are invalid in themselves are left to the controller."""
    topics = controller.image.topics
    times = Counter((state.name, state.topic_id) for state in asked)
    named: list[tuple[DeleteTopicState, str]] = []
    for state in asked:
        by_id = state.topic_id != ZERO_UUID
        if times[state.name, state.topic_id] > 1 or by_id == (state.name is not None):
            continue
        topic = topics.by_id.get(Uuid(state.topic_id)) if by_id else None
        if topic is not None or state.name is not None:
            named.append((state, topic.name if topic is not None else state.name or ""))
    return named


def _denied_deletions(
    ctx: Context, controller: QuorumController, named: list[tuple[DeleteTopicState, str]]
) -> list[tuple[DeleteTopicState, DeletableTopicResult]]:
    """The entries that the client may not have decided, with their answers."""
    topics = controller.image.topics
    names = [name for _, name in named]
    visible = allowed(ctx, AclOperation.DESCRIBE, ResourceType.TOPIC, names)
    deletable = allowed(ctx, AclOperation.DELETE, ResourceType.TOPIC, names)
    denied = []
    for state, name in named:
        if state.name is None:
            if name not in deletable:
                shown = name if name in visible else None
                denied.append((state, DeletableTopicResult(name=shown, topic_id=state.topic_id, error_code=_DENIED)))
        elif name not in visible or (name in topics.by_name and name not in deletable):
            denied.append((state, DeletableTopicResult(name=name, error_code=_DENIED)))
    return denied


def _add_partitions(
    ctx: Context, controller: QuorumController, request: CreatePartitionsRequest, now_ms: int, quota: Quota
) -> ControllerResult:
    named = Counter(topic.name for topic in request.topics)
    names = {name for name, times in named.items() if times == 1}
    denied = names - allowed(ctx, AclOperation.ALTER, ResourceType.TOPIC, names)
    permitted = CreatePartitionsRequest(
        topics=[topic for topic in request.topics if topic.name not in denied],
        timeout_ms=request.timeout_ms,
        validate_only=request.validate_only,
    )
    result = controller.create_partitions(permitted, now_ms, quota)
    result.response.results += [
        CreatePartitionsTopicResult(name=topic.name, error_code=_DENIED, error_message=None)
        for topic in request.topics
        if topic.name in denied
    ]
    return result
