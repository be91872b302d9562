"""Where a marker goes, and what is said when it cannot go there."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tests.unit.coordinator.shard_world import ShardWorld
from tests.unit.replication.world import NOW_MS, Pending, led_by_us
from tidelog.broker.local_markers import ANSWER_WITHIN_MS, write_marker
from tidelog.metadata.image import PartitionImage
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import OFFSETS_TOPIC, TopicPartition
from tidelog.replication.marker_append import Marker
from tidelog.storage.log_config import LogConfig

COMMIT = Marker(7, 0, True, 0)
SYNCED = LogConfig(flush_messages=1)
ELSEWHERE = PartitionImage((2,), (2,), 2, leader_epoch=4, directories=(b"C" * 16,))


def begin(world: ShardWorld, where: TopicPartition) -> tuple[Any, Any]:
    """(what is returned, a context to wait on)"""
    ctx = world.world.context(2)
    broker: Any = SimpleNamespace(replicas=world.world.manager, groups=world.shards, runtime=ctx.node.runtime)
    return write_marker(broker, where, COMMIT, NOW_MS), ctx


def pending(world: ShardWorld, where: TopicPartition) -> Pending:
    awaitable, ctx = begin(world, where)
    return Pending(ctx, awaitable)


def flush(world: ShardWorld, where: TopicPartition) -> None:
    world.world.manager.flush(world.world.partition(*where))
    world.world.run_jobs()


def test_a_marker_that_is_safe_at_once_is_answered_at_once() -> None:
    world = ShardWorld()
    world.world.create("t")
    assert begin(world, TopicPartition("t", 0))[0] is ErrorCode.NONE
    assert begin(world, TopicPartition(OFFSETS_TOPIC, 0))[0] is ErrorCode.NONE


def test_a_partition_that_is_gone_is_another_thing_than_one_that_is_elsewhere() -> None:
    world = ShardWorld()
    world.world.create("t", ELSEWHERE)
    assert begin(world, TopicPartition("gone", 0))[0] is ErrorCode.UNKNOWN_TOPIC_ID
    assert begin(world, TopicPartition("t", 5))[0] is ErrorCode.UNKNOWN_TOPIC_ID
    assert begin(world, TopicPartition("t", 0))[0] is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_marker_waits_until_it_is_safe() -> None:
    world = ShardWorld(config=SYNCED)
    world.world.create("t", config=SYNCED)
    for where in (TopicPartition("t", 0), TopicPartition(OFFSETS_TOPIC, 0)):
        waits = pending(world, where)
        assert not waits.done and waits.parked is not None
        assert waits.parked.deadline_ms == NOW_MS + ANSWER_WITHIN_MS
        flush(world, where)
        waits.go_on()
        assert waits.answer is ErrorCode.NONE


def test_a_marker_of_groups_waits_for_the_replicas_also_where_the_wall_clock_was_set_back() -> None:
    world = ShardWorld(config=SYNCED, patience_ms=5000)
    world.world.now_ms = NOW_MS + 3_600_000
    where = TopicPartition(OFFSETS_TOPIC, 0)
    waits = pending(world, where)
    world.shards._arm()
    world.advance(0)
    flush(world, where)
    waits.go_on()
    assert waits.answer is ErrorCode.NONE


def test_a_marker_that_does_not_become_safe_is_to_be_written_again() -> None:
    world = ShardWorld(config=SYNCED)
    world.world.create("t", config=SYNCED)
    for where in (TopicPartition("t", 0), TopicPartition(OFFSETS_TOPIC, 0)):
        waits = pending(world, where)
        waits.expire()
        assert waits.answer is ErrorCode.REQUEST_TIMED_OUT


def test_a_partition_that_moves_while_its_marker_waits_is_asked_elsewhere() -> None:
    world = ShardWorld(config=SYNCED)
    waits = pending(world, TopicPartition(OFFSETS_TOPIC, 0))
    world.world.partition(OFFSETS_TOPIC).update_metadata(led_by_us(leader=2, leader_epoch=4))
    world.shards.follow()
    waits.go_on()
    assert waits.answer is ErrorCode.NOT_LEADER_OR_FOLLOWER
