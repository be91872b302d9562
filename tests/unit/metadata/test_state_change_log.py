from __future__ import annotations

from dataclasses import replace

import pytest

from tidelog.metadata.delta import ClusterDelta
from tidelog.metadata.image import BrokerImage, ClusterImage, Endpoint
from tidelog.metadata.records import MetadataRecord
from tidelog.metadata.state_change_log import SHOWN_TOPICS, PartitionNews, broker_lines, topic_lines
from tidelog.model.ids import Uuid
from tidelog.protocol.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from tidelog.protocol.messages.partition_change_record import PartitionChangeRecord
from tidelog.protocol.messages.partition_record import PartitionRecord
from tidelog.protocol.messages.register_broker_record import BrokerEndpoint, RegisterBrokerRecord
from tidelog.protocol.messages.remove_topic_record import RemoveTopicRecord
from tidelog.protocol.messages.topic_record import TopicRecord
from tidelog.protocol.messages.unregister_broker_record import UnregisterBrokerRecord

T = b"T" * 16


def broker(number: int, *, fenced: bool = False, leaving: bool = False) -> BrokerImage:
    return BrokerImage(
        id=number,
        epoch=number * 10,
        incarnation_id=Uuid(bytes([number]) * 16),
        endpoints={"PLAINTEXT": Endpoint("PLAINTEXT", "host", 9090 + number)},
        features={},
        rack=None,
        fenced=fenced,
        in_controlled_shutdown=leaving,
        directories=(),
    )


def step(image: ClusterImage, *records: MetadataRecord) -> tuple[ClusterImage, ClusterImage, ClusterDelta]:
    delta = ClusterDelta(image)
    for record in records:
        delta.replay(record)
    return image, delta.apply(image.offset + len(records), 1, 1000), delta


def topic(name: str = "t", topic_id: bytes = T, partitions: int = 1, replicas: tuple[int, ...] = (1, 2)) -> list[MetadataRecord]:
    return [
        TopicRecord(name=name, topic_id=topic_id),
        *(
            PartitionRecord(
                topic_id=topic_id,
                partition_id=number,
                replicas=list(replicas),
                isr=list(replicas),
                leader=replicas[0],
                directories=[bytes(16)] * len(replicas),
            )
            for number in range(partitions)
        ),
    ]


def change(number: int, **fields: object) -> PartitionChangeRecord:
    return PartitionChangeRecord(topic_id=T, partition_id=number, **fields)  # type: ignore[arg-type]


@pytest.fixture
def cluster() -> ClusterImage:
    """Topic t with five partitions of brokers 1 and 2; 1 leads."""
    empty = ClusterImage(cluster_id="c", offset=0, epoch=1, brokers={1: broker(1), 2: broker(2)})
    return step(empty, *topic(partitions=5))[1]


def said(image: ClusterImage, *records: MetadataRecord, why: str | None = None) -> list[str]:
    return list(broker_lines(*step(image, *records), lambda number: why))


def fence(number: int) -> BrokerRegistrationChangeRecord:
    return BrokerRegistrationChangeRecord(broker_id=number, broker_epoch=number * 10, fenced=1)


def test_a_fenced_broker_its_reason_and_what_becomes_of_its_leaderships(cluster: ClusterImage) -> None:
    records = [*(change(number, leader=2, isr=[2]) for number in (0, 1)), change(2, leader=-1), fence(1)]
    assert said(cluster, *records, why="no heartbeat for 3.0 s") == [
        "broker 1 is fenced: no heartbeat for 3.0 s; 2 partitions get another leader, 1 has none"
    ]
    assert said(cluster, *records) == ["broker 1 is fenced; 2 partitions get another leader, 1 has none"]


def test_a_broker_that_stops_in_order(cluster: ClusterImage) -> None:
    leaving = BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=10, in_controlled_shutdown=1)
    assert said(cluster, leaving) == ["broker 1 stops: its leaderships move to other brokers"]
    stopping = replace(cluster, brokers={1: broker(1, leaving=True), 2: broker(2)})
    assert said(stopping, fence(1), why="not asked") == ["broker 1 is fenced: it stops in order"]


def test_registered_unfenced_and_unregistered_brokers(cluster: ClusterImage) -> None:
    point = BrokerEndpoint(name="PLAINTEXT", host="h", port=1, security_protocol=0)
    new = RegisterBrokerRecord(
        broker_id=3, broker_epoch=70, incarnation_id=b"3" * 16, end_points=[point], features=[], rack="r", fenced=True
    )
    assert said(cluster, new) == ["broker 3 is registered with epoch 70 at PLAINTEXT://h:1, rack r"]
    fenced = replace(cluster, brokers={**cluster.brokers, 2: broker(2, fenced=True)})
    back = BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=20, fenced=-1)
    assert said(fenced, back) == ["broker 2 is unfenced"]
    assert said(cluster, UnregisterBrokerRecord(broker_id=2, broker_epoch=20)) == ["broker 2 is unregistered"]


def test_topics_that_are_created_grown_and_deleted(cluster: ClusterImage) -> None:
    old, _, delta = step(cluster, *topic("new", b"N" * 16, 3), *topic(partitions=6)[-1:])
    assert topic_lines(old, delta) == [
        "topic new is created: 3 partitions, replication factor 2",
        "topic t has 6 partitions, 5 before",
    ]
    old, _, delta = step(cluster, RemoveTopicRecord(topic_id=T))
    assert topic_lines(old, delta) == ["topic t is deleted: 5 partitions"]


def test_only_the_first_topics_of_a_step_have_lines(cluster: ClusterImage) -> None:
    records = [each for number in range(SHOWN_TOPICS + 2) for each in topic(f"n{number}", bytes([number]) * 16)]
    old, _, delta = step(cluster, *records)
    lines = topic_lines(old, delta)
    assert (len(lines), lines[-1]) == (SHOWN_TOPICS + 1, "2 more topics are created")


def test_changes_of_partitions_are_summed_up(cluster: ClusterImage) -> None:
    news = PartitionNews()
    old, new, delta = step(cluster, *(change(number, leader=2, isr=[2]) for number in range(5)))
    news.add(old, delta)
    old, _, delta = step(new, change(0, isr=[2, 1]), change(1, leader=-1))
    news.add(old, delta)
    assert news
    lines, warnings = news.take()
    assert lines == [
        "broker 2 leads 5 partitions after broker 1: t-0, t-1, t-2 and 2 more",
        "broker 1 left the ISR of 5 partitions: t-0, t-1, t-2 and 2 more",
        "broker 1 joined the ISR of 1 partition: t-0",
    ]
    assert warnings == ["1 partition of leader 2 has no leader now: t-1"]
    assert (news.elections, news.unclean_elections, news.eligible_elections) == (5, 0, 0)
    assert not news
    assert news.take() == ([], [])


def test_an_unclean_election_is_a_warning(cluster: ClusterImage) -> None:
    without = step(cluster, change(0, leader=-1, isr=[1]))[1]
    news = PartitionNews()
    old, _, delta = step(without, change(0, leader=2, isr=[2], leader_recovery_state=1))
    news.add(old, delta)
    lines, warnings = news.take()
    assert "broker 2 leads 1 partition that had no leader: t-0" in lines
    assert warnings == ["broker 2 leads 1 partition without having been in the ISR, records may be lost: t-0"]
    assert (news.elections, news.unclean_elections) == (1, 1)


def test_a_new_topic_is_no_change_of_leaders(cluster: ClusterImage) -> None:
    news = PartitionNews()
    old, _, delta = step(cluster, *topic("new", b"N" * 16, 3))
    news.add(old, delta)
    assert not news
