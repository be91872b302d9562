from __future__ import annotations

from dataclasses import replace

from tests.unit.replication.followed import follow, followed, produce
from tests.unit.replication.world import World
from tidelog.model.errors import ErrorCode
from tidelog.replication.partition import Partition
from tidelog.replication.reads import read_partition
from tidelog.replication.replica_selector import preferred_replica, send_elsewhere


def racked(**racks: str | None) -> tuple[World, Partition]:
    world, partition = followed()
    produce(partition, 4)
    follow(partition, 3)
    brokers = {number: world.image.brokers[number]._replace(rack=racks[f"b{number}"]) for number in (1, 2)}
    world.set_brokers(brokers)
    return world, partition


def test_a_consumer_is_sent_to_a_replica_in_its_rack_that_holds_the_offset() -> None:
    _, partition = racked(b1="a", b2="b")
    assert preferred_replica(partition, "b", 2) == 2
    assert preferred_replica(partition, "b", 4) == -1, "it does not hold that yet"
    assert preferred_replica(partition, "a", 2) == -1, "the leader is near"
    assert preferred_replica(partition, "c", 2) == -1, "nobody is near"
    assert preferred_replica(partition, "", 2) == -1


def test_nobody_is_sent_to_a_broker_that_is_fenced() -> None:
    world, partition = racked(b1="a", b2="b")
    brokers = dict(world.manager.image.brokers)
    brokers[2] = brokers[2]._replace(fenced=True)
    world.set_brokers(brokers)
    assert preferred_replica(partition, "b", 2) == -1


def test_who_is_sent_elsewhere_gets_the_offsets_and_no_records_and_a_wrong_epoch_an_error() -> None:
    _, partition = racked(b1="a", b2="b")
    read = send_elsewhere(partition, 2, 0)
    assert (read.error, read.preferred_replica, read.size, read.high_watermark) == (ErrorCode.NONE, 2, 0, 3)
    assert read.is_news
    assert send_elsewhere(partition, 2, 9).error == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_a_follower_serves_consumers_up_to_its_high_watermark() -> None:
    world = World(broker_id=2)
    image = replace(followed()[0].image.topics.by_name["t"].partitions[0], leader=1)
    world.create("t", image)
    partition = world.partition("t")
    assert read_partition(partition, 0, 100, min_one=True).error == ErrorCode.NOT_LEADER_OR_FOLLOWER
    read = read_partition(partition, 0, 100, min_one=True, any_replica=True)
    assert (read.error, read.high_watermark, read.caught_up) == (ErrorCode.NONE, 0, True)
    assert read_partition(partition, 9, 100, min_one=True, any_replica=True).error == ErrorCode.OFFSET_OUT_OF_RANGE
