from __future__ import annotations

from typing import Any

from tests.unit.broker.node_world import NodeWorld, run
from tidelog.broker.apis.topics.metadata import Question, metadata
from tidelog.broker.apis.topics.partitions import create_partitions
from tidelog.broker.apis.topics.topics import create_topics, delete_topics
from tidelog.broker.request import Context
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from tidelog.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from tidelog.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tidelog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

REFUSED, DONE = ErrorCode.THROTTLING_QUOTA_EXCEEDED, ErrorCode.NONE


def limited(version: int) -> tuple[NodeWorld, Context]:
    """One partition a second, eleven in all windows."""
    world = NodeWorld()
    world.broker.quotas.change({(("client-id", "c"),): {"controller_mutation_rate": 1.0}})
    ctx = world.context()
    ctx.client_id, ctx.api_version = "c", version
    return world, ctx


def create(ctx: Context, **counts: int) -> tuple[dict[str, int], int]:
    wanted = [CreatableTopic(name=name, num_partitions=count, replication_factor=1) for name, count in counts.items()]
    response: CreateTopicsResponse = run(create_topics(ctx, CreateTopicsRequest(topics=wanted, timeout_ms=1000)))
    return {topic.name: topic.error_code for topic in response.topics}, response.throttle_time_ms


def test_topics_beyond_the_quota_are_refused_each_by_itself() -> None:
    world, ctx = limited(7)
    # What is left after the first is less than nothing.
    assert create(ctx, a=12, b=1) == ({"a": DONE, "b": REFUSED}, 1000)
    assert set(world.broker.image.topics.by_name) == {"a"}
    ctx.client_id = "another"
    assert create(ctx, c=100) == ({"c": DONE}, 0)


def test_topics_that_cannot_be_made_cost_nothing() -> None:
    _, ctx = limited(7)
    assert create(ctx, **{"a": 11, "b/": 5})[0] == {"a": DONE, "b/": ErrorCode.INVALID_TOPIC_EXCEPTION}
    assert create(ctx, c=1) == ({"c": DONE}, 0)
    assert create(ctx, d=1) == ({"d": REFUSED}, 1000)


def test_old_versions_get_what_they_ask_for_and_wait() -> None:
    _, ctx = limited(5)
    assert create(ctx, a=12, b=3) == ({"a": DONE, "b": DONE}, 4000)


def test_partitions_that_are_added_and_deleted_count() -> None:
    world, ctx = limited(6)
    ctx.client_id = "another"
    create(ctx, a=3, b=10)
    ctx.client_id, ctx.api_version = "c", 3
    more: Any = CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="a", count=15, assignments=None)], timeout_ms=1000)
    response = run(create_partitions(ctx, more))
    assert [each.error_code for each in response.results] == [DONE] and response.throttle_time_ms == 0
    more.topics[0].count = 16
    response = run(create_partitions(ctx, more))
    assert [each.error_code for each in response.results] == [REFUSED] and response.throttle_time_ms == 1000
    ctx.api_version = 6
    gone = DeleteTopicsRequest(topics=[DeleteTopicState(name="b")], timeout_ms=1000)
    deleted = run(delete_topics(ctx, gone))
    assert [each.error_code for each in deleted.responses] == [REFUSED] and deleted.throttle_time_ms == 1000
    assert "b" in world.broker.image.topics.by_name
    ctx.api_version = 4
    deleted = run(delete_topics(ctx, DeleteTopicsRequest(topic_names=["b"], timeout_ms=1000)))
    assert [each.error_code for each in deleted.responses] == [DONE] and deleted.throttle_time_ms == 11_000


def test_topics_that_come_into_being_by_metadata_count_for_who_asked() -> None:
    world, ctx = limited(7)
    create(ctx, a=12)
    request = MetadataRequest(topics=[MetadataRequestTopic(name="auto")], allow_auto_topic_creation=True)
    out = bytearray()
    request.encode_into(out, 12)
    for client, made in (("c", False), ("another", True)):
        ctx.client_id, ctx.api_version = client, 12
        metadata(ctx, Question(memoryview(out), 12))
        world.runtime.run_spawned()
        assert ("auto" in world.broker.image.topics.by_name) is made
