from __future__ import annotations

from tests.unit.replication.followed import EPOCH, led, produce
from tests.unit.replication.world import NOW_MS, World, batch, led_by_us, topic_id
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import ZERO_UUID
from tidelog.protocol.fastpath import FetchView
from tidelog.replication.fetch import Fetch
from tidelog.replication.fetch_partition import FetchPartition
from tidelog.replication.fetch_sessions import FetchContext
from tidelog.replication.reads import PartitionRead
from tidelog.replication.replica import Caller
from tidelog.storage.log_config import LogConfig

SIZE = len(batch(b"v"))


def fetch(
    world: World,
    *wanted: tuple[str, int],
    min_bytes: int = 1,
    max_bytes: int = 1 << 20,
    partition_bytes: int = 1 << 20,
    committed: bool = False,
) -> Fetch:
    partitions = []
    for topic, offset in wanted:
        partition = FetchPartition(topic, ZERO_UUID, 0)
        partition.ask((0, -1, offset, -1, -1, partition_bytes))
        partitions.append(partition)
    context = FetchContext(world.manager.sessions, partitions)
    return world.manager.fetch(context, min_bytes=min_bytes, max_bytes=max_bytes, committed=committed)


def only(work: Fetch) -> PartitionRead:
    (read,) = work.reads.values()
    return read


def world_with(*topics: str, batches: int = 0) -> World:
    world = World()
    for topic in topics:
        world.create(topic)
        for _ in range(batches):
            world.partition(topic).append(batch(b"v"), NOW_MS, 1)
    return world


def test_a_fetch_with_enough_bytes_is_complete() -> None:
    work = fetch(world_with("a", batches=2), ("a", 0), min_bytes=2 * SIZE)
    assert work.is_complete and work.bytes_read == 2 * SIZE


def test_a_fetch_of_nothing_new_waits_and_an_empty_one_does_not() -> None:
    world = world_with("a")
    assert not fetch(world, ("a", 0)).is_complete
    assert fetch(world).is_complete


def test_an_error_completes_a_fetch() -> None:
    work = fetch(world_with("a"), ("a", 0), ("unknown", 0), min_bytes=1000)
    assert work.is_complete and [read.error for read in work.reads.values()] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]


def test_the_first_batch_is_whole_whatever_the_limits_and_only_the_first() -> None:
    world = world_with("a", "b", batches=2)
    work = fetch(world, ("a", 0), ("b", 0), max_bytes=10, partition_bytes=10)
    assert [read.size for read in work.reads.values()] == [SIZE, 0]
    work = fetch(world, ("a", 2), ("b", 0), max_bytes=10, partition_bytes=10)
    assert [read.size for read in work.reads.values()] == [0, SIZE], (
        "the first partition has nothing, so the second is the first with any"
    )


def test_the_limit_of_the_request_is_spent_over_the_partitions_in_order() -> None:
    world = world_with("a", "b", "c", batches=2)
    work = fetch(world, ("a", 0), ("b", 0), ("c", 0), max_bytes=3 * SIZE)
    assert [read.size for read in work.reads.values()] == [2 * SIZE, SIZE, 0]


def test_min_bytes_beyond_the_limit_does_not_wait_for_what_cannot_come() -> None:
    assert fetch(world_with("a", batches=2), ("a", 0), min_bytes=1 << 30, max_bytes=SIZE).is_complete


def test_an_append_wakes_a_parked_fetch_and_only_that_partition_is_read_again() -> None:
    world = world_with("a", "b")
    work = fetch(world, ("a", 0), ("b", 0))
    untouched = next(iter(work.reads.values()))
    parked = work.park(NOW_MS + 500)
    world.partition("b").append(batch(b"v"), NOW_MS, 1)
    assert parked.done
    work.read_again(parked.touched)
    assert work.is_complete and work.bytes_read == SIZE and next(iter(work.reads.values())) is untouched


def test_what_was_read_before_the_wait_counts() -> None:
    world = world_with("a", "b", batches=1)
    work = fetch(world, ("a", 0), ("b", 1), min_bytes=2 * SIZE)
    assert not work.is_complete
    parked = work.park(NOW_MS + 500)
    world.partition("b").append(batch(b"v"), NOW_MS, 1)
    assert parked.done
    work.read_again(parked.touched)
    assert work.is_complete and work.bytes_read == 2 * SIZE


def test_a_deleted_topic_wakes_a_parked_fetch_with_an_error() -> None:
    world = world_with("a")
    work = fetch(world, ("a", 0))
    parked = work.park(NOW_MS + 500)
    world.delete("a")
    assert parked.done
    work.read_again(parked.touched)
    assert work.is_complete and only(work).error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_lost_leadership_wakes_a_parked_fetch() -> None:
    world = world_with("a")
    work = fetch(world, ("a", 0))
    parked = work.park(NOW_MS + 500)
    world.partition("a").update_metadata(led_by_us(1, leader=2))
    assert parked.done
    work.read_again(parked.touched)
    assert only(work).error == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_old_segments_are_warmed_up_before_they_are_read() -> None:
    world = World()
    world.create("a", config=LogConfig(segment_bytes=2 * SIZE))
    partition = world.partition("a")
    for _ in range(6):
        partition.append(batch(b"v"), NOW_MS, 1)
    world.run_jobs()
    assert partition.log is not None
    partition.log.files.drop_cold_indexes()
    work = fetch(world, ("a", 0))
    assert len(work.cold) == 1 and work.bytes_read == 0
    work.warm_up()
    work.read_warm()
    assert not work.cold and work.is_complete and work.bytes_read == 2 * SIZE


def test_a_disk_that_fails_while_warming_up_is_told_when_it_is_read() -> None:
    world = World()
    world.create("a", config=LogConfig(segment_bytes=2 * SIZE))
    partition = world.partition("a")
    for _ in range(6):
        partition.append(batch(b"v"), NOW_MS, 1)
    world.run_jobs()
    assert partition.log is not None
    partition.log.files.drop_cold_indexes()
    work = fetch(world, ("a", 0))
    world.disk.broken.append(("/data0", "read"))
    work.warm_up()
    work.read_warm()
    assert only(work).error == ErrorCode.KAFKA_STORAGE_ERROR and partition.log is None


def test_what_is_appended_because_of_a_followers_position_comes_with_the_same_fetch() -> None:
    """A coordinator decides when its record is safe, and writes into a partition that this fetch has read already."""
    world = World()
    world.create("t", led(), led())
    first, second = world.partition("t", 0), world.partition("t", 1)
    produce(second)

    class Decides:
        def changed(self, _partition: object, _key: object, _new_bytes: int) -> None:
            if not first.log.log_end_offset:  # type: ignore[union-attr]
                produce(first)

    second.watchers[Decides()] = None
    request = FetchView()
    request.topics = [(None, topic_id("t"), [(0, -1, 0, -1, 0, 1 << 20), (1, -1, 1, -1, 0, 1 << 20)])]
    request.session_epoch = -1
    context = world.manager.sessions.open(request, NOW_MS, by_id=True, caller=Caller(2, EPOCH, NOW_MS))
    assert isinstance(context, FetchContext)
    work = world.manager.fetch(context, min_bytes=1, max_bytes=1 << 20, committed=False)
    assert work.is_complete and [read.size > 0 for read in work.reads.values()] == [True, False]


def test_where_consumers_read_from_followers_a_high_watermark_is_news() -> None:
    def polled(*, rack_aware: bool) -> Fetch:
        world = World()
        world.manager.rack_aware = rack_aware
        world.create("t", led())
        produce(world.partition("t"))
        request = FetchView()
        request.topics = [(None, topic_id("t"), [(0, -1, 1, -1, 0, 1 << 20)])]
        request.session_epoch = -1
        context = world.manager.sessions.open(request, NOW_MS, by_id=True, caller=Caller(2, EPOCH, NOW_MS))
        assert isinstance(context, FetchContext)
        return world.manager.fetch(context, min_bytes=1, max_bytes=1 << 20, committed=False)

    assert polled(rack_aware=True).is_complete
    assert not polled(rack_aware=False).is_complete
