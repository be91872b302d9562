from __future__ import annotations

import pytest

from tests.unit.broker.node_world import NodeWorld, refused, run
from tidelog.broker.apis.topics.topics import create_topics, delete_topics
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tidelog.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState

DISABLED = KafkaError(ErrorCode.TOPIC_DELETION_DISABLED, "delete.topic.enable is false")


@pytest.mark.parametrize("version", range(2, 8))
def test_a_topic_is_there_when_its_creation_is_answered(version: int) -> None:
    world = NodeWorld()
    request = CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=3, replication_factor=1)])
    response = run(create_topics(world.context(version), request))
    (result,) = response.topics
    assert result.error_code == 0
    assert len(world.broker.image.topics.by_name["t"].partitions) == 3
    assert type(response).decode(response.encode(version), version).topics[0].name == "t"


def test_a_topic_is_gone_when_its_deletion_is_answered_by_name_or_by_id() -> None:
    world = NodeWorld()
    world.create("a")
    topic_id = world.create("b")
    run(delete_topics(world.context(5), DeleteTopicsRequest(topic_names=["a"])))
    run(delete_topics(world.context(6), DeleteTopicsRequest(topics=[DeleteTopicState(name=None, topic_id=topic_id)])))
    assert world.broker.image.topics.by_name == {}


def test_a_refusal_of_all_is_told_for_each_topic() -> None:
    both = CreateTopicsRequest(topics=[CreatableTopic(name="a"), CreatableTopic(name="b")])
    created = refused(NodeWorld().context(7), ApiKey.CREATE_TOPICS, both, DISABLED)
    assert [(each.name, each.error_code, each.error_message) for each in created.topics] == [
        ("a", 73, DISABLED.detail),
        ("b", 73, DISABLED.detail),
    ]
    either = DeleteTopicsRequest(topic_names=["a"], topics=[DeleteTopicState(name="b")])
    deleted = refused(NodeWorld().context(6), ApiKey.DELETE_TOPICS, either, DISABLED)
    assert sorted((each.name, each.error_code) for each in deleted.responses) == [("a", 73), ("b", 73)]
