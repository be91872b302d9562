from __future__ import annotations

from tests.unit.replication.world import NOW_MS, World, batch, led_by_us, topic_id
from tidelog.metadata.image import PartitionImage
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import ZERO_UUID, Uuid
from tidelog.replication.fetch_partition import FetchPartition
from tidelog.replication.partition import Partition

ELSEWHERE = PartitionImage((2,), (2,), 2, directories=(b"C" * 16,))
T = topic_id("t")


def wanted(topic: str | None, id: Uuid = ZERO_UUID, index: int = 0) -> FetchPartition:
    return FetchPartition(topic, id, index)


def test_what_cannot_be_found_says_why() -> None:
    world = World()
    world.create("t", led_by_us(), ELSEWHERE)
    assert world.manager.by_name("t", 1) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert world.manager.by_name("t", 2) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert world.manager.by_name("t", -1) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert world.manager.by_name("u", 0) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert world.manager.by_id(T, 1) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert world.manager.by_id(T, 2) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert world.manager.by_id(bytes(16), 0) == ErrorCode.UNKNOWN_TOPIC_ID


def test_a_fetch_finds_a_topic_by_name_or_by_id() -> None:
    world = World()
    world.create("t")
    by_id = wanted(None, T)
    assert world.manager.hosted.locate(by_id) is world.partition("t") is world.manager.hosted.locate(wanted("t"))
    assert by_id.topic == "t"


def test_a_topic_made_anew_is_inconsistent_for_who_knew_the_old_one_and_unknown_for_others() -> None:
    world = World()
    world.create("t")
    known = wanted(None, T)
    world.manager.hosted.locate(known)
    world.delete("t")
    assert world.manager.hosted.locate(known) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    world.create("t", id=Uuid(b"N" * 16))
    assert world.manager.hosted.locate(known) == ErrorCode.INCONSISTENT_TOPIC_ID
    assert world.manager.hosted.locate(wanted(None, T)) == ErrorCode.UNKNOWN_TOPIC_ID


def test_a_topic_id_that_becomes_known_is_found_by_who_kept_asking() -> None:
    world = World()
    early = wanted(None, T)
    assert world.manager.hosted.locate(early) == ErrorCode.UNKNOWN_TOPIC_ID
    world.create("t")
    assert world.manager.hosted.locate(early) is world.partition("t")


def test_counters_outlive_their_topic_in_the_totals() -> None:
    world = World()
    world.create("t")
    world.partition("t").append(batch(b"a", b"b"), NOW_MS, 1)
    assert world.manager.hosted.topic_stats()["t"].messages_in == 2
    world.delete("t")
    assert not world.manager.hosted.topic_stats()
    assert world.manager.hosted.totals().messages_in == 2


def test_partitions_are_listed_topic_by_topic() -> None:
    world = World()
    world.create("b", led_by_us(), led_by_us())
    world.create("a")
    listed = [partition.topic_partition for partition in world.manager.partitions()]
    assert listed == [("b", 0), ("b", 1), ("a", 0)]
    assert all(isinstance(world.manager.by_name(*each), Partition) for each in listed)


def test_the_id_that_stands_for_none_is_an_unknown_topic_and_no_crash() -> None:
    world = World()
    assert world.manager.hosted.locate(FetchPartition(None, ZERO_UUID, 0)) is ErrorCode.UNKNOWN_TOPIC_ID
