from collections.abc import Callable
from typing import Any

import pytest

from tidelog.controller.quorum_controller import QuorumController
from tidelog.metadata.image import PartitionImage
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
)
from tidelog.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState


def create(cluster: Any, *topics: CreatableTopic, validate_only: bool = False) -> dict[str, CreatableTopicResult]:
    request = CreateTopicsRequest(topics=list(topics), validate_only=validate_only)
    response = cluster.ask(QuorumController.create_topics, request)
    return {topic.name: topic for topic in response.topics}


def topic(name: str, partitions: int = 1, replicas: int = 1, **configs: str | None) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        configs=[CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()],
    )


def manual(name: str, assignments: dict[int, list[int]], partitions: int = -1, replicas: int = -1) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        assignments=[CreatableReplicaAssignment(partition_index=n, broker_ids=ids) for n, ids in assignments.items()],
    )


def test_a_topic_is_its_record_then_its_settings_then_its_partitions(cluster: Any) -> None:
    result = create(cluster, topic("t", 2, 1, retention_ms="5", cleanup_policy="compact"))["t"]
    assert [record.NAME for record in cluster.records] == [
        "TopicRecord", "ConfigRecord", "ConfigRecord", "PartitionRecord", "PartitionRecord",
    ]  # fmt: skip
    assert (result.error_code, result.error_message, result.num_partitions, result.replication_factor) == (0, None, 2, 1)
    image = cluster.image.topics.by_name["t"]
    assert image.id == result.topic_id
    directory = cluster.image.brokers[1].directories[0]
    assert image.partitions == (PartitionImage((1,), (1,), 1, 0, 0, directories=(directory,)),) * 2
    assert cluster.settings_of("t") == {"retention.ms": "5", "cleanup.policy": "compact"}
    assert [(row.name, row.value) for row in result.configs or []] == [("retention.ms", "5"), ("cleanup.policy", "compact")]


def test_minus_one_takes_the_brokers_defaults(make_cluster: Callable[..., Any]) -> None:
    cluster = make_cluster(1, 2, num_partitions=3, default_replication_factor=2)
    result = create(cluster, topic("t", -1, -1))["t"]
    assert (result.num_partitions, result.replication_factor) == (3, 2)


@pytest.mark.parametrize(
    ("asked", "code", "says"),
    [
        (topic(""), ErrorCode.INVALID_TOPIC_EXCEPTION, "it is empty"),
        (topic("."), ErrorCode.INVALID_TOPIC_EXCEPTION, "'.' is not allowed"),
        (topic(".."), ErrorCode.INVALID_TOPIC_EXCEPTION, "'..' is not allowed"),
        (topic("x" * 250), ErrorCode.INVALID_TOPIC_EXCEPTION, "longer than the max allowed length 249"),
        (topic("a b"), ErrorCode.INVALID_TOPIC_EXCEPTION, "may only have ASCII letters and digits"),
        (topic("naïve"), ErrorCode.INVALID_TOPIC_EXCEPTION, "may only have ASCII letters and digits"),
        (topic("__cluster_metadata"), ErrorCode.INVALID_REQUEST, "Creation of internal topic __cluster_metadata"),
        (topic("there.is"), ErrorCode.INVALID_TOPIC_EXCEPTION, "collides with existing topic: there_is"),
        (topic("there_is"), ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'there_is' already exists."),
        (topic("t", 0), ErrorCode.INVALID_PARTITIONS, "non-positive"),
        (topic("t", -2), ErrorCode.INVALID_PARTITIONS, "non-positive"),
        (topic("t", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR, "larger than 0"),
        (topic("t", 1, -2), ErrorCode.INVALID_REPLICATION_FACTOR, "larger than 0"),
        (topic("t", 1, 2), ErrorCode.INVALID_REPLICATION_FACTOR, "cannot be reached because only 1 broker"),
        (topic("t", retention_ms="bad"), ErrorCode.INVALID_CONFIG, "retention.ms is bad"),
        (topic("t", retention_ms=None), ErrorCode.INVALID_CONFIG, "Null value not supported for topic configs: retention.ms"),
        (manual("t", {0: [1]}, partitions=1), ErrorCode.INVALID_REQUEST, "numPartitions was not set to -1"),
        (manual("t", {0: [1]}, replicas=1), ErrorCode.INVALID_REQUEST, "replication factor was not set to -1"),
        (manual("t", {0: []}), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "has no replicas"),
        (manual("t", {0: [1, 1]}), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "broker 1 more than once"),
        (manual("t", {0: [5]}), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "broker 5, but no such broker is registered"),
        (manual("t", {0: [1], 2: [1]}), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "consecutive 0-based"),
    ],
)
def test_what_cannot_be_created_is_refused_by_itself(cluster: Any, asked: CreatableTopic, code: ErrorCode, says: str) -> None:
    create(cluster, topic("there_is"))
    results = create(cluster, asked, topic("good"))
    refused = results[asked.name]
    assert (refused.error_code, refused.num_partitions, refused.replication_factor) == (code, -1, -1)
    assert says in (refused.error_message or "")
    assert results["good"].error_code == ErrorCode.NONE
    assert sorted(cluster.image.topics.by_name) == ["good", "there_is"]


def test_settings_that_defeat_themselves_are_created_and_told_in_the_log(cluster: Any, caplog: pytest.LogCaptureFixture) -> None:
    strange = topic("strange", min_insync_replicas="2")
    create(cluster, strange, validate_only=True)
    assert not caplog.records
    assert create(cluster, strange, topic("plain"))["strange"].error_code == 0
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == ["topic strange"]
    assert "min.insync.replicas is 2, and a partition has 1 replica(s)" in caplog.text


def test_a_topic_named_twice_is_refused_once_and_not_created(cluster: Any) -> None:
    request = CreateTopicsRequest(topics=[topic("t"), topic("u"), topic("t")])
    response = cluster.ask(QuorumController.create_topics, request)
    assert [(each.name, each.error_code) for each in response.topics] == [("t", 42), ("u", 0)]
    assert list(cluster.image.topics.by_name) == ["u"]


def test_topics_of_one_request_collide_with_each_other_too(cluster: Any) -> None:
    results = create(cluster, topic("a.b"), topic("a_b"))
    assert (results["a.b"].error_code, results["a_b"].error_code) == (0, ErrorCode.INVALID_TOPIC_EXCEPTION)


def test_a_request_for_too_many_partitions_or_records_is_refused_as_a_whole(cluster: Any) -> None:
    for asked, says in (
        ([topic("a", 9_000), topic("b", 1_001)], "Excessively large number of partitions per request."),
        ([topic("a", 9_000), topic("b", 1_000)], "The request would write more than 10000 metadata records: split it."),
    ):
        results = create(cluster, *asked)
        assert [(each.error_code, each.error_message) for each in results.values()] == [(ErrorCode.POLICY_VIOLATION, says)] * 2
    assert cluster.image.topics.by_name == {}
    assert create(cluster, topic("a", 9_000), topic("b", 998))["b"].error_code == 0


def test_validate_only_answers_and_writes_nothing(cluster: Any) -> None:
    results = create(cluster, topic("t", 3), topic("a b"), validate_only=True)
    assert (results["t"].error_code, results["t"].num_partitions) == (0, 3)
    assert results["a b"].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert cluster.records == []


def test_a_manual_assignment_is_taken_as_it_is(make_cluster: Callable[..., Any]) -> None:
    cluster = make_cluster(1, 2, 3)
    result = create(cluster, manual("t", {1: [3, 1], 0: [2, 3]}))["t"]
    assert (result.num_partitions, result.replication_factor) == (2, 2)
    assert [each.replicas for each in cluster.image.topics.by_name["t"].partitions] == [(2, 3), (3, 1)]
    assert cluster.leaders("t") == [(2, 0), (3, 0)]


def test_partitions_of_a_manual_assignment_have_as_many_replicas_each(make_cluster: Callable[..., Any]) -> None:
    result = create(make_cluster(1, 2), manual("t", {0: [1], 1: [1, 2]}))["t"]
    assert result.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert "a partition with 2 replica(s), but this is not consistent" in (result.error_message or "")


def test_fenced_brokers_hold_replicas_but_are_not_in_sync(make_cluster: Callable[..., Any]) -> None:
    cluster = make_cluster(1)
    cluster.register(2)
    result = create(cluster, manual("t", {0: [2, 1]}), manual("u", {0: [2]}))
    partition = cluster.image.topics.by_name["t"].partitions[0]
    assert (partition.isr, partition.leader) == ((1,), 1)
    assert result["u"].error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert "fenced or shutting down" in (result["u"].error_message or "")


def test_without_a_broker_in_service_nothing_can_be_placed(make_cluster: Callable[..., Any]) -> None:
    cluster = make_cluster()
    cluster.register(1)
    result = create(cluster, topic("t"))["t"]
    assert result.error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    assert "All brokers are currently fenced." in (result.error_message or "")


def test_a_broker_with_two_directories_chooses_itself(make_cluster: Callable[..., Any]) -> None:
    cluster = make_cluster()
    cluster.register(1, directories=2)
    cluster.heartbeat(1)
    create(cluster, topic("t"))
    assert cluster.image.topics.by_name["t"].partitions[0].directories == (bytes(15) + b"\1",)


def test_an_old_metadata_version_knows_no_directories(make_cluster: Callable[..., Any]) -> None:
    cluster = make_cluster(1, metadata_version=16)
    create(cluster, topic("t"))
    assert cluster.records[-1].directories == []


def delete(cluster: Any, *topics: DeleteTopicState, names: list[str] | None = None) -> list[Any]:
    request = DeleteTopicsRequest(topics=list(topics), topic_names=names or [])
    return list(cluster.ask(QuorumController.delete_topics, request).responses)


def test_topics_are_deleted_by_name_by_id_and_by_the_old_list_of_names(cluster: Any) -> None:
    created = create(cluster, topic("a", retention_ms="1"), topic("b"), topic("c"), topic("d"))
    results = delete(
        cluster, DeleteTopicState(name="a"), DeleteTopicState(name=None, topic_id=created["b"].topic_id), names=["c"]
    )
    assert [(each.name, each.topic_id, each.error_code, each.error_message) for each in results] == [
        (name, created[name].topic_id, 0, None) for name in "abc"
    ]
    assert list(cluster.image.topics.by_name) == ["d"]
    assert cluster.settings_of("a") == {}


def test_what_cannot_be_deleted_is_refused_by_itself(cluster: Any) -> None:
    created = create(cluster, topic("a"), topic("b"))
    results = delete(
        cluster,
        DeleteTopicState(name="x"),
        DeleteTopicState(name=None, topic_id=b"u" * 16),
        DeleteTopicState(name="a", topic_id=created["a"].topic_id),
        DeleteTopicState(name=None),
        DeleteTopicState(name="b"),
    )
    assert [(each.name, each.error_code) for each in results] == [
        ("x", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (None, ErrorCode.UNKNOWN_TOPIC_ID),
        ("a", ErrorCode.INVALID_REQUEST),
        (None, ErrorCode.INVALID_REQUEST),
        ("b", ErrorCode.NONE),
    ]
    assert results[1].topic_id == b"u" * 16
    assert list(cluster.image.topics.by_name) == ["a"]


def test_a_topic_asked_for_twice_is_answered_once_and_stays(cluster: Any) -> None:
    ids = {name: each.topic_id for name, each in create(cluster, *(topic(name) for name in "abcd")).items()}
    by_id = {name: DeleteTopicState(name=None, topic_id=topic_id) for name, topic_id in ids.items()}
    by_name = {name: DeleteTopicState(name=name) for name in ids}
    asked = [by_name["a"], by_id["a"], by_id["b"], by_id["b"], by_id["c"], by_name["c"], by_name["d"]]
    results = delete(cluster, *asked, names=["d"])
    assert [(each.name, each.topic_id, each.error_code, each.error_message) for each in results] == [
        ("a", ids["a"], 42, "The request names this topic twice, by name and by id: keep one."),
        (None, ids["b"], 42, "Duplicate topic id."),
        ("c", ids["c"], 42, "The request names this topic twice, by name and by id: keep one."),
        ("d", bytes(16), 42, "Duplicate topic name."),
    ]
    assert cluster.records == []


def test_deletion_can_be_switched_off(make_cluster: Callable[..., Any]) -> None:
    cluster = make_cluster(1, delete_topic_enable=False)
    with pytest.raises(KafkaError) as caught:
        delete(cluster, DeleteTopicState(name="a"))
    assert caught.value.code == ErrorCode.TOPIC_DELETION_DISABLED
