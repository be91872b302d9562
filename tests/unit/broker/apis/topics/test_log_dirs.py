from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from tests.unit.replication.world import DIRECTORY_IDS, NOW_MS, Pending, World, batch, led_by_us
from tidelog.broker.apis.topics.log_dirs import alter_replica_log_dirs, describe_log_dirs
from tidelog.broker.replica_moves import run_move
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from tidelog.protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest, DescribeLogDirsResult
from tidelog.replication.replica_move import MoveState
from tidelog.replication.throttle import ReplicationQuota

Rows = list[tuple[str, list[tuple[int, int]]]]


def ask(world: World, topics: list[DescribableLogDirTopic] | None) -> list[DescribeLogDirsResult]:
    ctx = world.context(5)
    ctx.node.node_id = 1
    pending = Pending(ctx, describe_log_dirs(ctx, DescribeLogDirsRequest(topics=topics)))
    pending.go_on()
    for version in range(1, 6):
        pending.answer.encode(version)
    results: list[DescribeLogDirsResult] = pending.answer.results
    return results


def rows(result: DescribeLogDirsResult) -> Rows:
    return [(topic.name, [(each.partition_index, each.partition_size) for each in topic.partitions]) for topic in result.topics]


def two_dirs() -> World:
    world = World(dirs=2)
    world.create("a", led_by_us(), led_by_us(directories=(DIRECTORY_IDS[1],)))
    world.create("b", led_by_us(directories=(DIRECTORY_IDS[1],)))
    world.partition("a", 1).append(batch(b"x" * 100), NOW_MS, 1)
    return world


def test_each_dir_names_its_replicas_with_their_sizes_and_the_volumes_room() -> None:
    world = two_dirs()
    size = world.partition("a", 1).log.files.segments.size_bytes  # type: ignore[union-attr]
    first, second = ask(world, None)
    assert (first.log_dir, rows(first)) == ("/data0", [("a", [(0, 0)])])
    assert (second.log_dir, rows(second)) == ("/data1", [("a", [(1, size)]), ("b", [(0, 0)])])
    assert size > 100
    assert (first.total_bytes, first.usable_bytes, first.is_cordoned) == (1 << 40, 1 << 39, False)


def test_only_partitions_that_were_asked_for_and_are_here_are_named() -> None:
    world = two_dirs()
    asked = [DescribableLogDirTopic("a", [1, 9]), DescribableLogDirTopic("missing", [0])]
    first, second = ask(world, asked)
    assert (rows(first), [name for name, _ in rows(second)]) == ([], ["a"])
    assert [rows(each) for each in ask(world, [])] == [[], []]


def test_a_failed_dir_is_a_storage_error_and_the_others_are_described() -> None:
    world = two_dirs()
    world.logs.fail_dir("/data0", "gone")
    first, second = ask(world, None)
    assert (first.error_code, first.log_dir, rows(first)) == (ErrorCode.KAFKA_STORAGE_ERROR, "/data0", [])
    assert second.error_code == 0


def move(world: World, path: str, *asked: tuple[str, list[int]]) -> list[tuple[str, list[tuple[int, int]]]]:
    """The answer; what was begun is run to its end."""
    ctx = world.context(2)
    ctx.node.node_id = 1
    begun: list[Coroutine[Any, Any, Any]] = []
    ctx.node.runtime.spawn = lambda coroutine, name: begun.append(coroutine)  # type: ignore[attr-defined]
    topics = [AlterReplicaLogDirTopic(name, indexes) for name, indexes in asked]
    response = alter_replica_log_dirs(ctx, AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path, topics)]))
    for version in (1, 2):
        response.encode(version)
    for coroutine in begun:
        ctx.node.controller = Controller(world)  # type: ignore[assignment]
        pending = Pending(ctx, coroutine)
        while not pending.done:
            pending.go_on()
    return [(each.topic_name, [(one.partition_index, one.error_code) for one in each.partitions]) for each in response.results]


class Controller:
    """Accepts a replica's new log dir."""

    def __init__(self, world: World) -> None:
        self.world = world

    def submit(self, handler: Any, request: Any, version: int | None = None) -> Any:
        (directory,) = request.directories
        self.world.told = (directory.id, directory.topics[0].partitions[0].partition_index)  # type: ignore[attr-defined]
        return ready()


async def ready() -> None:
    """There already."""


def test_a_replica_moves_and_the_controller_is_told() -> None:
    world = two_dirs()
    assert move(world, "/data0", ("a", [1])) == [("a", [(1, 0)])]
    log = world.partition("a", 1).log
    assert log is not None
    assert (log.log_dir, log.log_end_offset) == ("/data0", 1)
    assert world.told == (DIRECTORY_IDS[0], 1)  # type: ignore[attr-defined]
    assert len(world.manager.moves) == 0


def test_moves_keep_to_their_rate_together_and_hear_of_another_one() -> None:
    world = two_dirs()
    quota = world.manager.throttles.log_dirs = ReplicationQuota(windows=2, window_ms=1000)
    quota.change(10, {})
    ctx = world.context(2)
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        world.now_ms += int(seconds * 1000)
        if len(slept) == 3:
            quota.change(None, {})

    ctx.node.runtime.sleep = sleep  # type: ignore[attr-defined]
    ctx.node.node_id = 1
    ctx.node.controller = Controller(world)  # type: ignore[assignment]
    quota.record(100_000, world.now_ms)
    quota.windows = 10
    moving = world.manager.moves.begin(world.partition("a", 1), world.logs.dirs[0], NOW_MS)
    assert moving is not None
    pending = Pending(ctx, run_move(ctx.node, moving))
    while not pending.done:
        pending.go_on()
    assert slept == [1.0, 1.0, 1.0] and moving.state is MoveState.DONE


def test_a_replica_that_lies_there_already_stays() -> None:
    world = two_dirs()
    assert move(world, "/data0", ("a", [0])) == [("a", [(0, 0)])]
    assert len(world.manager.moves) == 0


def test_what_cannot_be_moved_says_why() -> None:
    world = two_dirs()
    assert move(world, "/elsewhere", ("a", [0])) == [("a", [(0, ErrorCode.LOG_DIR_NOT_FOUND)])]
    assert move(world, "/data1", ("a", [9]), ("missing", [0])) == [("a", [(9, 3)]), ("missing", [(0, 3)])]
    world.logs.fail_dir("/data1", "gone")
    world.partition("b").go_offline()
    assert move(world, "/data1", ("a", [0])) == [("a", [(0, ErrorCode.KAFKA_STORAGE_ERROR)])]
    assert move(world, "/data0", ("b", [0])) == [("b", [(0, ErrorCode.KAFKA_STORAGE_ERROR)])]


def test_a_copy_under_way_is_described_as_the_replica_to_be() -> None:
    world = two_dirs()
    begun = world.manager.moves.begin(world.partition("a", 1), world.logs.dirs[0], NOW_MS)
    assert begun is not None
    world.logs.future.create(begun.source, begun.target, 0, NOW_MS)
    first, second = ask(world, None)
    future = [each for topic in first.topics for each in topic.partitions if each.is_future_key]
    assert [(each.partition_index, each.offset_lag) for each in future] == [(1, 1)]
    assert not any(each.is_future_key for topic in second.topics for each in topic.partitions)
