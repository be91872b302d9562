from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.broker.apis.live import Talk
from tests.unit.broker.apis.transactional import find
from tidelog.model.errors import ErrorCode as E
from tidelog.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from tidelog.protocol.messages.find_coordinator import FindCoordinatorRequest
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


def test_the_first_question_creates_the_offsets_topic_with_as_many_replicas_as_there_are_brokers(talk: Talk) -> None:
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


@pytest.mark.parametrize("kind", [2, 9])
def test_kinds_that_are_not_served_say_so(talk: Talk, kind: int) -> None:
    answer = talk.ask(FindCoordinatorRequest(key_type=kind, coordinator_keys=["x"]), 6).coordinators[0]
    assert answer.error_code == E.UNSUPPORTED_VERSION and "does not serve share groups" in answer.error_message


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
    """As Apache Kafka 4.3.1 answers; offsets may be stored under it, and who joins is told that a group needs a name."""
    talk.find("g")
    assert talk.ask(FindCoordinatorRequest(key=""), 3).error_code == 0
