from __future__ import annotations

import random

import pytest

from tests.unit.broker.allowing import Allowing, Permission
from tests.unit.broker.node_world import NodeWorld, run
from tidelog.broker.apis.topics import permitted
from tidelog.broker.apis.topics.partitions import create_partitions
from tidelog.broker.apis.topics.topics import create_topics, delete_topics
from tidelog.controller.quorum_controller import QuorumController
from tidelog.model.acl import CLUSTER_NAME, ResourceType
from tidelog.model.acl import AclOperation as Op
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ids import METADATA_TOPIC, ZERO_UUID, random_uuid
from tidelog.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from tidelog.protocol.messages.create_topics import CreatableTopic, CreatableTopicResult, CreateTopicsRequest
from tidelog.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState

DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


def topic(operation: Op, *names: str) -> set[Permission]:
    return {(operation, ResourceType.TOPIC, name) for name in names}


def cluster(operation: Op) -> set[Permission]:
    return {(operation, ResourceType.CLUSTER, CLUSTER_NAME)}


def world_of(*permissions: set[Permission], topics: str = "") -> NodeWorld:
    """A node with these topics, whose client may do this and nothing else."""
    world = NodeWorld()
    for name in topics.split():
        world.create(name)
    world.broker.access = Allowing(set().union(*permissions))
    return world


def asked_loudly(world: NodeWorld) -> set[tuple[Op, str]]:
    assert isinstance(world.broker.access, Allowing)
    return {(operation, name) for operation, _, name in world.broker.access.loud}


def create(world: NodeWorld, *names: str, version: int = 7) -> dict[str | None, CreatableTopicResult]:
    request = CreateTopicsRequest(topics=[CreatableTopic(name=name, num_partitions=2, replication_factor=1) for name in names])
    response = run(create_topics(world.context(version), request))
    return {each.name: each for each in type(response).decode(response.encode(version), version).topics}


def delete(world: NodeWorld, *states: DeleteTopicState) -> list[tuple[str | None, bytes, int]]:
    response = run(delete_topics(world.context(6), DeleteTopicsRequest(topics=list(states))))
    decoded = type(response).decode(response.encode(6), 6)
    return sorted(
        ((each.name, bytes(each.topic_id), each.error_code) for each in decoded.responses),
        key=lambda each: (each[0] or "", each[1]),
    )


def by_name(name: str) -> DeleteTopicState:
    return DeleteTopicState(name=name)


def by_id(topic_id: bytes) -> DeleteTopicState:
    return DeleteTopicState(name=None, topic_id=topic_id)


def test_without_an_authorizer_the_controller_gets_the_whole_request() -> None:
    ctx = NodeWorld().context()
    assert permitted.creations(ctx) is QuorumController.create_topics
    assert permitted.deletions(ctx) is QuorumController.delete_topics
    assert permitted.partition_counts(ctx) is QuorumController.create_partitions


@pytest.mark.parametrize("version", [2, 4, 5, 7])
def test_a_topic_is_created_with_create_on_it_and_refused_without_whether_it_exists_or_not(version: int) -> None:
    world = world_of(topic(Op.CREATE, "mine"), topics="there")
    answers = create(world, "mine", "other", "there", version=version)
    assert {name: each.error_code for name, each in answers.items()} == {"mine": 0, "other": DENIED, "there": DENIED}
    assert set(world.broker.image.topics.by_name) == {"mine", "there"}
    assert (Op.CREATE, CLUSTER_NAME) not in asked_loudly(world)


def test_create_on_the_cluster_is_enough_for_every_topic() -> None:
    world = world_of(cluster(Op.CREATE), topics="there")
    assert {name: each.error_code for name, each in create(world, "a", "b", "there").items()} == {
        "a": 0,
        "b": 0,
        "there": ErrorCode.TOPIC_ALREADY_EXISTS,
    }
    assert not asked_loudly(world)


def test_a_created_topic_is_described_only_with_describe_configs_on_it() -> None:
    world = world_of(topic(Op.CREATE, "a", "b"), topic(Op.DESCRIBE_CONFIGS, "b"))
    answers = create(world, "a", "b")
    hidden, shown = answers["a"], answers["b"]
    assert (hidden.error_code, hidden.topic_config_error_code) == (0, DENIED)
    assert (hidden.num_partitions, hidden.replication_factor, hidden.configs) == (-1, -1, [])
    assert hidden.topic_id == world.broker.image.topics.by_name["a"].id
    assert (shown.error_code, shown.topic_config_error_code, shown.num_partitions, shown.replication_factor) == (0, 0, 2, 1)
    assert shown.configs
    assert Op.DESCRIBE_CONFIGS not in {operation for operation, _ in asked_loudly(world)}


def test_what_is_wrong_with_the_request_itself_is_told_without_permissions() -> None:
    answers = create(world_of(), "twice", "twice", METADATA_TOPIC, "x")
    assert {name: each.error_code for name, each in answers.items()} == {
        "twice": ErrorCode.INVALID_REQUEST,
        METADATA_TOPIC: ErrorCode.INVALID_REQUEST,
        "x": DENIED,
    }


def test_a_refused_topic_does_not_count_against_the_limit_of_a_request() -> None:
    world = world_of(topic(Op.CREATE, "small"))
    request = CreateTopicsRequest(
        topics=[
            CreatableTopic(name="small", num_partitions=1, replication_factor=1),
            CreatableTopic(name="huge", num_partitions=20_000, replication_factor=1),
        ]
    )
    response = run(create_topics(world.context(7), request))
    assert {each.name: each.error_code for each in response.topics} == {"small": 0, "huge": DENIED}


def test_a_deletion_by_name_tells_without_describe_the_same_of_every_topic() -> None:
    world = world_of(topic(Op.DELETE, "c"), topics="a c")
    assert delete(world, by_name("a"), by_name("missing"), by_name("c")) == [
        ("a", ZERO_UUID, DENIED),
        ("c", ZERO_UUID, DENIED),
        ("missing", ZERO_UUID, DENIED),
    ]
    assert set(world.broker.image.topics.by_name) == {"a", "c"}


def test_with_describe_a_deletion_by_name_tells_what_is_missing() -> None:
    world = world_of(topic(Op.DESCRIBE, "a", "missing", "c"), topic(Op.DELETE, "c"), topics="a c")
    deleted = world.broker.image.topics.by_name["c"].id
    assert delete(world, by_name("a"), by_name("missing"), by_name("c")) == [
        ("a", ZERO_UUID, DENIED),
        ("c", deleted, 0),
        ("missing", ZERO_UUID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert set(world.broker.image.topics.by_name) == {"a"}


def test_a_deletion_by_id_names_the_topic_only_with_describe() -> None:
    world = world_of(topic(Op.DESCRIBE, "seen"), topic(Op.DELETE, "mine"), topics="seen unseen mine")
    ids = {name: each.id for name, each in world.broker.image.topics.by_name.items()}
    unknown = random_uuid(random.Random(7))
    answers = delete(world, by_id(ids["seen"]), by_id(ids["unseen"]), by_id(ids["mine"]), by_id(unknown))
    assert {topic_id: (name, code) for name, topic_id, code in answers} == {
        ids["seen"]: ("seen", DENIED),
        ids["unseen"]: (None, DENIED),
        ids["mine"]: ("mine", 0),
        unknown: (None, ErrorCode.UNKNOWN_TOPIC_ID),
    }
    assert set(world.broker.image.topics.by_name) == {"seen", "unseen"}


def test_delete_on_the_cluster_is_enough_for_every_topic() -> None:
    world = world_of(cluster(Op.DELETE), topics="a")
    answers = delete(world, by_name("a"), by_name("missing"))
    assert [(name, code) for name, _, code in answers] == [("a", 0), ("missing", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
    assert not asked_loudly(world)


def test_a_topic_that_is_named_twice_by_name_and_id_is_refused_only_to_clients_that_may_delete_it() -> None:
    world = world_of(topics="a")
    topic_id = world.broker.image.topics.by_name["a"].id
    assert delete(world, by_name("a"), by_id(topic_id)) == [(None, topic_id, DENIED), ("a", ZERO_UUID, DENIED)]
    world = world_of(topic(Op.DESCRIBE, "a"), topic(Op.DELETE, "a"), topics="a")
    topic_id = world.broker.image.topics.by_name["a"].id
    assert {code for _, _, code in delete(world, by_name("a"), by_id(topic_id))} == {ErrorCode.INVALID_REQUEST}
    assert "a" in world.broker.image.topics.by_name


def test_entries_that_are_wrong_in_themselves_are_answered_without_permissions() -> None:
    world = world_of(topics="a")
    both = DeleteTopicState(name="a", topic_id=world.broker.image.topics.by_name["a"].id)
    neither = DeleteTopicState(name=None)
    answers = delete(world, both, neither, by_name("b"), by_name("b"))
    assert {code for _, _, code in answers} == {ErrorCode.INVALID_REQUEST}


def test_the_positions_of_deletions_tell_nothing() -> None:
    names = [f"t{number}" for number in range(30)]
    world = world_of()
    request = DeleteTopicsRequest(topics=[by_name(name) for name in names])
    orders = {tuple(each.name for each in run(delete_topics(world.context(6), request)).responses) for _ in range(5)}
    assert len(orders) == 5
    assert {frozenset(order) for order in orders} == {frozenset(names)}


def test_that_topics_are_never_deleted_here_is_told_to_every_client() -> None:
    world = world_of()
    world.controller.settings = type(world.controller.settings)(delete_topic_enable=False)
    world.controller.take_over(world.broker.image)
    with pytest.raises(KafkaError) as refused:
        delete(world, by_name("a"))
    assert refused.value.code is ErrorCode.TOPIC_DELETION_DISABLED


def test_partitions_are_added_with_alter_on_the_topic() -> None:
    world = world_of(topic(Op.ALTER, "mine", "gone"), topics="mine other")
    wanted = [
        CreatePartitionsTopic(name=name, count=3, assignments=None) for name in ("mine", "other", "gone", "hidden", "x", "x")
    ]
    response = run(create_partitions(world.context(3), CreatePartitionsRequest(topics=wanted)))
    assert {each.name: each.error_code for each in response.results} == {
        "mine": 0,
        "gone": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "other": DENIED,
        "hidden": DENIED,
        "x": ErrorCode.INVALID_REQUEST,
    }
    partitions = {name: len(each.partitions) for name, each in world.broker.image.topics.by_name.items()}
    assert partitions == {"mine": 3, "other": 1}
