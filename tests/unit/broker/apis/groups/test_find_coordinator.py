from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.unit.broker.apis.live import Talk
from tests.unit.broker.apis.transactional import find
from tests.unit.broker.node_world import NodeWorld
from tidelog.broker.apis.groups.find_coordinator import find_coordinator
from tidelog.model.errors import ErrorCode as E
from tidelog.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from tidelog.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest
from tidelog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tidelog.testing import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(config={"offsets.topic.num.partitions": 3, "offsets.topic.replication.factor": 3}) as running:
        yield running


@pytest.fixture
def talk(broker: Broker) -> Iterator[Talk]:
    talk = Talk(broker.port)
    yield talk
    talk.close()


def test_the_first_question_creates_the_offsets_topic_with_one_replica_in_a_cluster_that_stays_one_node(talk: Talk) -> None:
    talk.find("g")
    topics = [MetadataRequestTopic(name="__consumer_offsets")]
    topic = talk.ask(MetadataRequest(topics=topics, allow_auto_topic_creation=False), 12).topics[0]
    assert topic.is_internal and len(topic.partitions) == 3
    assert {tuple(partition.replica_nodes) for partition in topic.partitions} == {(1,)}


@pytest.mark.parametrize("version", range(7))
def test_a_group_has_its_coordinator_at_every_version(broker: Broker, talk: Talk, version: int) -> None:
    talk.find("g")
    request = FindCoordinatorRequest(key="g") if version < 4 else FindCoordinatorRequest(coordinator_keys=["g", "h"])
    answer = talk.ask(request, version)
    found = [answer] if version < 4 else answer.coordinators
    assert [(one.error_code, one.host, one.port) for one in found] == [(0, "127.0.0.1", broker.port)] * len(found)
    if version >= 4:
        assert [one.key for one in found] == ["g", "h"]


@pytest.mark.parametrize(("kind", "version", "error"), [(9, 6, E.UNSUPPORTED_VERSION), (2, 5, E.INVALID_REQUEST)])
def test_kinds_that_are_not_served_say_so(talk: Talk, kind: int, version: int, error: E) -> None:
    answer = talk.ask(FindCoordinatorRequest(key_type=kind, coordinator_keys=["x"]), version).coordinators[0]
    assert answer.error_code == error and "since version 6 share partitions" in answer.error_message


def test_a_transactional_id_has_a_coordinator_and_its_topic_is_made_for_losing_nothing(broker: Broker, talk: Talk) -> None:
    find(talk, "x")
    answer = talk.ask(FindCoordinatorRequest(key_type=1, key="x"), 1)
    assert (answer.error_code, answer.host, answer.port) == (0, "127.0.0.1", broker.port)
    resource = DescribeConfigsResource(resource_type=2, resource_name="__transaction_state")
    (described,) = talk.ask(DescribeConfigsRequest(resources=[resource]), 4).results
    own = {config.name: config.value for config in described.configs if config.config_source == 1}
    assert own == {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "segment.bytes": "104857600",
        "unclean.leader.election.enable": "false",
        "min.insync.replicas": "1",
    }


def test_the_empty_name_has_a_coordinator_like_any_other(talk: Talk) -> None:
    """As Apache Kafka 4.3.1 answers; offsets may be stored under it, and a join gets the error that a group needs a name."""
    talk.find("g")
    assert talk.ask(FindCoordinatorRequest(key=""), 3).error_code == 0


# A cluster of several

SEVERAL = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.bootstrap.servers": "localhost:9093",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "controller.listener.names": "CONTROLLER",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
}


def several(brokers: int, **settings: str) -> NodeWorld:
    world = NodeWorld({**SEVERAL, **settings})
    for node_id in range(2, brokers + 1):
        world.add_broker(node_id)
    return world


def found(world: NodeWorld, kind: int = 0) -> Coordinator:
    return find_coordinator(world.context(6), FindCoordinatorRequest(key_type=kind, coordinator_keys=["x"])).coordinators[0]


def test_before_there_are_enough_brokers_there_is_no_coordinator_and_the_client_hears_why(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = several(2)
    for _ in range(3):
        answer = found(world)
        world.runtime.run_spawned()
        assert answer.error_code == E.COORDINATOR_NOT_AVAILABLE
    assert "__consumer_offsets" not in world.broker.image.topics.by_name
    assert "INVALID_REPLICATION_FACTOR" in (answer.error_message or "")
    assert len([record for record in caplog.records if "cannot be created" in record.message]) == 1
    world.add_broker(3)
    found(world)
    world.runtime.run_spawned()
    assert found(world).error_code == 0


def test_a_broker_that_may_have_been_replaced_sends_nobody_to_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    world = several(3)
    found(world)
    world.runtime.run_spawned()
    world.broker.node_id = found(world).node_id
    monkeypatch.setattr(world.broker.groups, "doubts", lambda key: True)
    answer = found(world)
    assert (answer.error_code, answer.node_id) == (E.COORDINATOR_NOT_AVAILABLE, -1)


def test_a_coordinator_whose_broker_is_gone_is_none() -> None:
    world = several(3)
    found(world)
    world.runtime.run_spawned()
    leader = found(world).node_id
    image = world.broker.image
    fenced = {**image.brokers, leader: image.brokers[leader]._replace(fenced=True)}
    world.broker.image = replace(image, brokers=fenced)
    assert found(world).error_code == E.COORDINATOR_NOT_AVAILABLE
