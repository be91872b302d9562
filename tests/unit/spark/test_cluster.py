"""A cluster as a reader sees it: a real node, with faults in front of it."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from tidelog.client.settings import ClientSettings, parse_settings
from tidelog.model.ids import TopicPartition
from tidelog.spark.cluster import Cluster, ClusterUnavailable, TopicMissing
from tidelog.testing import Broker

T0 = TopicPartition("t", 0)


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as found:
        found.create_topic("t", 2)
        found.produce("t", "a", "b", "c")
        yield found


def settings(broker: Broker, **given: str) -> ClientSettings:
    told = {"bootstrap.servers": broker.bootstrap_servers, "retry.backoff.ms": "1", "default.api.timeout.ms": "20000"}
    return parse_settings(told | {name.replace("_", "."): text for name, text in given.items()})


def test_topics_are_found_by_name_and_by_pattern_and_internal_ones_never(broker: Broker) -> None:
    cluster = Cluster(settings(broker))
    broker.create_topic("tt")
    broker.create_topic("u")
    assert list(cluster.topics(None, "t+")) == ["t", "tt"]
    assert list(cluster.topics(None, "x.*")) == []
    (topic,) = cluster.topics(("t",)).values()
    assert list(topic.leaders) == [0, 1]
    assert len(topic.topic_id) == 16
    cluster.close()


def test_a_topic_that_is_not_there_is_told(broker: Broker) -> None:
    with pytest.raises(TopicMissing, match="There is no topic 'nope' on this cluster"):
        Cluster(settings(broker)).topics(("nope",))
    assert broker.topics == ["t"]


def test_offsets_are_asked_of_the_leaders(broker: Broker) -> None:
    cluster = Cluster(settings(broker))
    assert cluster.offsets({T0: -1, TopicPartition("t", 1): -2}) == {T0: 3, TopicPartition("t", 1): 0}
    assert cluster.offsets({T0: 1 << 50}) == {T0: -1}
    assert cluster.offsets({}) == {}


def test_what_passes_is_asked_again(broker: Broker) -> None:
    cluster = Cluster(settings(broker))
    broker.faults.refuse("LIST_OFFSETS", "NOT_LEADER_OR_FOLLOWER", times=2)
    broker.faults.drop("LIST_OFFSETS")
    broker.faults.drop("METADATA")
    assert cluster.offsets({T0: -1}) == {T0: 3}
    assert broker.faults.pending == 0


def test_what_does_not_pass_is_told_with_the_last_problem(broker: Broker) -> None:
    cluster = Cluster(settings(broker, default_api_timeout_ms="30"))
    broker.faults.refuse("LIST_OFFSETS", "OFFSET_NOT_AVAILABLE", times=1000)
    with pytest.raises(ClusterUnavailable, match=r"within 30 ms \(kafka.default.api.timeout.ms\).*t-0: OFFSET_NOT_AVAILABLE"):
        cluster.offsets({T0: -1})


def test_what_is_refused_is_told_at_once(broker: Broker) -> None:
    cluster = Cluster(settings(broker))
    broker.faults.refuse("LIST_OFFSETS", "TOPIC_AUTHORIZATION_FAILED")
    with pytest.raises(TopicMissing, match="The offsets of t-0 are not available"):
        cluster.offsets({T0: -1})


def test_a_partition_that_is_not_there_is_told(broker: Broker) -> None:
    with pytest.raises(TopicMissing, match="has 2 partitions, and 7 is not among them"):
        Cluster(settings(broker)).leader_socket(TopicPartition("t", 7))


def test_a_leader_that_is_not_where_it_was_is_looked_for(broker: Broker) -> None:
    cluster = Cluster(settings(broker))
    cluster.topics(("t",))
    hint = cluster.hint(T0)
    assert hint is not None
    with socket.create_server(("127.0.0.1", 0)) as listener:
        closed = listener.getsockname()[1]
    connection, leader = cluster.leader_socket(T0, (hint[0], "127.0.0.1", closed))
    assert connection.address == broker.bootstrap_servers
    assert leader == hint[0]
    cluster.close()


def test_no_broker_at_all_is_told_with_every_address() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    told = {"bootstrap.servers": f"127.0.0.1:{port}", "default.api.timeout.ms": "10", "retry.backoff.ms": "1"}
    with pytest.raises(ClusterUnavailable, match=f"127.0.0.1:{port} cannot be reached"):
        Cluster(parse_settings(told)).topics(("t",))


def test_a_missing_right_is_named_with_the_command_that_adds_it(broker: Broker) -> None:
    for operation in ("Read", "Write"):
        cluster = Cluster(settings(broker), operation=operation)
        for api, said in (("METADATA", "The topic 't' cannot be used"), ("LIST_OFFSETS", "The offsets of t-0 are not available")):
            broker.faults.refuse(api, "TOPIC_AUTHORIZATION_FAILED", times=1)
            with pytest.raises(TopicMissing, match=f"{said}: TOPIC_AUTHORIZATION_FAILED.*--operation {operation} --topic t$"):
                cluster.topics(("t",))
                cluster.offsets({T0: -1})
