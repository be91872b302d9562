"""What a client believes about a cluster when answers come late, or from brokers that know less."""

from __future__ import annotations

from tidelog.client.metadata import ClusterMetadata, Leader
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

ID, OTHER = b"i" * 16, b"o" * 16


def answer(leader: int, epoch: int, topic_id: bytes = ID, name: str = "t", brokers: int = 3) -> MetadataResponse:
    partition = MetadataResponsePartition(partition_index=0, leader_id=leader, leader_epoch=epoch)
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=i, host=f"h{i}", port=i) for i in range(brokers)],
        topics=[MetadataResponseTopic(name=name, topic_id=topic_id, partitions=[partition])],
    )


def known(*answers: MetadataResponse) -> ClusterMetadata:
    cluster = ClusterMetadata()
    for said in answers:
        cluster.update(said)
    return cluster


def test_leaders_and_addresses_are_known_from_an_answer() -> None:
    cluster = known(answer(1, 5))
    assert cluster.leader("t", 0) == Leader(1, 5)
    assert cluster.brokers[1] == ("h1", 1)
    assert cluster.leader("t", 1) is None
    assert cluster.leader("u", 0) is None


def test_an_older_epoch_is_not_believed() -> None:
    assert known(answer(1, 5), answer(2, 4)).leader("t", 0) == Leader(1, 5)
    assert known(answer(1, 5), answer(2, 6)).leader("t", 0) == Leader(2, 6)


def test_a_topic_with_another_id_is_another_topic() -> None:
    assert known(answer(1, 5), answer(2, 0, OTHER)).leader("t", 0) == Leader(2, 0)


def test_a_broker_too_old_for_epochs_is_believed() -> None:
    assert known(answer(1, 5), answer(2, -1)).leader("t", 0) == Leader(2, -1)


def test_a_partition_without_a_leader_has_none() -> None:
    assert known(answer(-1, 5)).leader("t", 0) is None


def test_a_list_of_all_topics_takes_those_away_that_are_gone() -> None:
    cluster = known(answer(1, 5), answer(1, 5, name="u"))
    assert set(cluster.topics) == {"t", "u"}
    cluster.update(answer(1, 5, name="u"), all_topics=True)
    assert set(cluster.topics) == {"u"}
    assert cluster.topics["u"].error is ErrorCode.NONE


def test_a_new_leader_in_a_fetch_answer_is_news_only_with_a_higher_epoch_and_a_known_address() -> None:
    cluster = known(answer(1, 5))
    assert not cluster.moved("t", 0, Leader(2, 5))
    assert not cluster.moved("t", 0, Leader(9, 6))
    assert cluster.moved("t", 0, Leader(9, 6), [(9, "new", 99)])
    assert cluster.leader("t", 0) == Leader(9, 6)
    assert cluster.brokers[9] == ("new", 99)
    assert not cluster.moved("t", 7, Leader(1, 6))
