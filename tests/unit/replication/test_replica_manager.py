from __future__ import annotations

from tests.unit.replication.world import NOW_MS, World, batch, led_by_us, topic_id
from tidelog.metadata.image import TOPIC_RESOURCE, PartitionImage
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import OFFSETS_TOPIC, TopicPartition
from tidelog.protocol.messages.config_record import ConfigRecord
from tidelog.protocol.messages.partition_change_record import PartitionChangeRecord
from tidelog.protocol.messages.partition_record import PartitionRecord
from tidelog.protocol.messages.remove_topic_record import RemoveTopicRecord
from tidelog.protocol.messages.topic_record import TopicRecord
from tidelog.replication.partition import Partition
from tidelog.replication.replica_manager import CREATED_AT_ONCE, CREATED_IN_A_STEP
from tidelog.storage.log_config import LogConfig

ELSEWHERE = PartitionImage((2,), (2,), 2, directories=(b"C" * 16,))
T = topic_id("t")


def created(index: int = 0, replicas: tuple[int, ...] = (1,)) -> PartitionRecord:
    return PartitionRecord(
        partition_id=index,
        topic_id=T,
        replicas=list(replicas),
        isr=list(replicas),
        leader=replicas[0],
        leader_epoch=0,
        partition_epoch=0,
        directories=[b"A" * 16 for _ in replicas],
    )


def test_topics_appear_and_vanish_with_the_metadata_log() -> None:
    world = World()
    world.replay(TopicRecord(name="t", topic_id=T), created(0), created(1))
    log = world.partition("t", 1).log
    assert log is not None and log.dir == "/data0/t-1" and log.topic_id == T
    world.replay(RemoveTopicRecord(topic_id=T))
    assert world.manager.by_name("t", 0) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert world.manager.by_id(T, 0) == ErrorCode.UNKNOWN_TOPIC_ID
    assert world.logs.get(TopicPartition("t", 0)) is None
    assert not [name for name in world.disk.files if name.startswith("/data0/t-0/")]


def test_a_partition_that_moves_away_is_dropped_and_one_that_comes_is_made() -> None:
    world = World()
    world.replay(TopicRecord(name="t", topic_id=T), created(0), created(1, (2,)))
    world.replay(
        PartitionChangeRecord(partition_id=0, topic_id=T, replicas=[2], isr=[2], leader=2),
        PartitionChangeRecord(partition_id=1, topic_id=T, replicas=[1], isr=[1], leader=1, directories=[b"A" * 16]),
    )
    assert world.manager.by_name("t", 0) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert world.partition("t", 1).is_leader


def test_a_change_of_leader_reaches_the_partition() -> None:
    world = World()
    world.replay(TopicRecord(name="t", topic_id=T), created(0))
    world.replay(PartitionChangeRecord(partition_id=0, topic_id=T, leader=1))
    assert world.partition("t").leader_epoch == 1
    assert world.partition("t").partition_epoch == 1


def test_a_changed_setting_reaches_the_log() -> None:
    world = World()
    world.replay(TopicRecord(name="t", topic_id=T), created(0))
    world.configs["t"] = LogConfig(max_message_bytes=10)
    world.replay(ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name="t", name="max.message.bytes", value="10"))
    result = world.partition("t").append(batch(), NOW_MS, 1)
    assert not hasattr(result, "run") and result.error == ErrorCode.MESSAGE_TOO_LARGE  # type: ignore[union-attr]


def test_a_changed_broker_default_reaches_all_logs() -> None:
    world = World()
    world.replay(TopicRecord(name="t", topic_id=T), created(0))
    world.configs["t"] = LogConfig(flush_messages=1)
    world.replay(ConfigRecord(resource_type=4, resource_name="", name="log.flush.interval.messages", value="1"))
    log = world.partition("t").log
    assert log is not None and log.config.flush_messages == 1


def test_logs_that_the_metadata_does_not_place_here_are_set_aside_at_load() -> None:
    world = World()
    world.create("t")
    world.logs.get_or_create(TopicPartition("ghost", 0), b"G" * 16, NOW_MS)
    world.manager.load(world.image, NOW_MS)
    assert world.logs.get(TopicPartition("ghost", 0)) is None
    assert any("-stray/" in name for name in world.disk.files)
    assert world.partition("t").log is not None


def test_a_failing_log_dir_takes_its_partitions_and_no_others() -> None:
    world = World(dirs=2)
    world.create("t", led_by_us(), led_by_us(directories=(b"B" * 16,)))
    world.disk.broken.append(("/data0", "write"))
    result = world.partition("t", 0).append(batch(), NOW_MS, 1)
    assert result.error == ErrorCode.KAFKA_STORAGE_ERROR  # type: ignore[union-attr]
    assert world.partition("t", 1).append(batch(), NOW_MS, 1).error == ErrorCode.NONE  # type: ignore[union-attr]
    assert world.manager.gauges()["kafka_server_replicamanager_offlinereplicacount"] == 1


def test_a_topic_created_on_a_failing_dir_is_there_but_offline() -> None:
    world = World()
    world.disk.broken.append(("/data0", "write"))
    world.create("t")
    assert world.partition("t").log is None
    assert world.partition("t").check_leader(-1) == ErrorCode.KAFKA_STORAGE_ERROR


def test_flush_ms_flushes_what_has_waited_long_enough() -> None:
    world = World()
    world.create("t", config=LogConfig(flush_ms=1000))
    partition = world.partition("t")
    assert partition.log is not None
    assert world.manager.flush_step(NOW_MS + 5000) == 0, "nothing to flush"
    partition.append(batch(), NOW_MS, 1)
    partition.log.files.unflushed.succeeded(NOW_MS)
    assert world.manager.flush_step(NOW_MS + 999) == 0
    assert world.manager.flush_step(NOW_MS + 1000) == 1
    world.run_jobs()
    assert partition.log.recovery_point == 1


def test_a_closed_segment_is_flushed_in_the_background() -> None:
    world = World()
    world.create("t", config=LogConfig(segment_bytes=len(batch())))
    partition = world.partition("t")
    partition.append(batch(), NOW_MS, 1)
    assert not world.jobs
    partition.append(batch(), NOW_MS, 1)
    assert world.run_jobs() == 1
    assert partition.log is not None and partition.log.recovery_point == 1


def test_segments_closed_while_a_flush_is_running_are_flushed_after_it() -> None:
    world = World()
    world.create("t", config=LogConfig(segment_bytes=len(batch())))
    partition = world.partition("t")
    for _ in range(4):
        partition.append(batch(), NOW_MS, 1)
    assert len(world.jobs) == 1, "one flush of a log at a time"
    assert world.run_jobs() == 2
    assert partition.log is not None
    assert [segment.sealed for segment in partition.log.segments] == [True, True, True, False]


def test_a_flush_of_a_deleted_partition_fails_nobody() -> None:
    world = World()
    world.create("t", config=LogConfig(flush_messages=1))
    world.partition("t").append(batch(), NOW_MS, 1)
    world.disk.broken.append(("/data0/t-0", "sync"))
    world.delete("t")
    world.disk.broken.append(("/data0", "sync"))
    world.run_jobs()
    assert world.logs.online_dirs()


def test_retention_takes_old_segments_and_removes_their_files_later() -> None:
    world = World()
    world.create("t", config=LogConfig(segment_bytes=len(batch()), retention_ms=1000, file_delete_delay_ms=60_000))
    partition = world.partition("t")
    partition.append(batch(timestamp=NOW_MS - 5000), NOW_MS, 1)
    partition.append(batch(timestamp=NOW_MS), NOW_MS, 1)
    world.run_jobs()
    assert len(world.manager.retention_step(NOW_MS, NOW_MS)) == 1
    assert partition.log is not None and partition.log.log_start_offset == 1
    assert world.manager.dir_jobs.remove_due(NOW_MS + 59_999) == 0
    assert any(name.endswith(".deleted") for name in world.disk.files)
    assert world.manager.dir_jobs.remove_due(NOW_MS + 60_000) == 1
    world.run_jobs()
    assert not any(name.endswith(".deleted") for name in world.disk.files)


def test_gauges_count_leaders_and_partitions_in_trouble() -> None:
    world = World()
    behind = PartitionImage((1, 2), (1,), 1, directories=(b"A" * 16, b"C" * 16))
    followed = PartitionImage((1, 2), (1, 2), 2, directories=(b"A" * 16, b"C" * 16))
    world.create("t", behind, followed, ELSEWHERE, config=LogConfig(min_insync_replicas=2))
    world.create("alone")
    gauges = {name.rpartition("_")[2]: value for name, value in world.manager.gauges().items()}
    assert gauges == {
        "partitioncount": 3,
        "leadercount": 2,
        "offlinereplicacount": 0,
        "underreplicatedpartitions": 1,
        "underminisrpartitioncount": 1,
        "atminisrpartitioncount": 1,
        "numincrementalfetchsessions": 0,
        "numincrementalfetchpartitionscached": 0,
    }


def many(*indexes: int) -> list[PartitionRecord]:
    return [created(index) for index in indexes]


def test_many_new_partitions_are_made_in_steps_when_somebody_takes_them() -> None:
    world = World()
    called: list[None] = []
    world.manager.on_postponed = lambda: called.append(None)
    count = CREATED_AT_ONCE + CREATED_IN_A_STEP + 3
    world.replay(TopicRecord(name="t", topic_id=T), *many(*range(count)))
    assert called and world.manager.postponed == CREATED_IN_A_STEP + 3
    assert world.manager.by_name("t", count - 1) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert isinstance(world.manager.by_name("t", CREATED_AT_ONCE - 1), Partition)
    world.manager.moved.clear()
    first = world.manager.create_step(NOW_MS)
    assert [each.index for each in first] == list(range(CREATED_AT_ONCE, CREATED_AT_ONCE + CREATED_IN_A_STEP))
    assert list(world.manager.moved) == first
    assert len(world.manager.create_step(NOW_MS)) == 3
    assert not world.manager.postponed and world.manager.create_step(NOW_MS) == []
    assert all(world.partition("t", index).is_leader for index in range(count))


def test_a_partition_that_waits_to_be_made_is_made_as_the_metadata_is_by_then() -> None:
    world = World()
    world.manager.on_postponed = lambda: None
    count = CREATED_AT_ONCE + 3
    world.replay(TopicRecord(name="t", topic_id=T), *[created(index, (1, 2)) for index in range(count)])
    led, gone, left = range(CREATED_AT_ONCE, count)
    world.replay(
        PartitionChangeRecord(topic_id=T, partition_id=led, leader=2),
        PartitionChangeRecord(topic_id=T, partition_id=gone, replicas=[2], isr=[2], leader=2),
    )
    while world.manager.postponed:
        world.manager.create_step(NOW_MS)
    assert (world.partition("t", led).leader, world.partition("t", led).leader_epoch) == (2, 1)
    assert world.manager.by_name("t", gone) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert world.partition("t", left).is_leader


def test_a_topic_that_is_deleted_before_all_of_it_was_made_comes_to_nothing() -> None:
    world = World()
    world.manager.on_postponed = lambda: None
    world.replay(TopicRecord(name="t", topic_id=T), *many(*range(CREATED_AT_ONCE + 2)))
    world.replay(RemoveTopicRecord(topic_id=T))
    assert world.manager.create_step(NOW_MS) == [] and not world.manager.postponed
    assert not list(world.manager.partitions())


def test_partitions_of_coordinators_are_made_at_once() -> None:
    world = World()
    world.manager.on_postponed = lambda: None
    world.replay(TopicRecord(name=OFFSETS_TOPIC, topic_id=T), *many(*range(CREATED_AT_ONCE + 2)))
    assert not world.manager.postponed and isinstance(world.manager.by_name(OFFSETS_TOPIC, CREATED_AT_ONCE + 1), Partition)
