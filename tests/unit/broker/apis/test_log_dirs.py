from __future__ import annotations

from tests.unit.replication.world import DIRECTORY_IDS, NOW_MS, Pending, World, batch, led_by_us
from tidelog.broker.apis.log_dirs import describe_log_dirs
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest, DescribeLogDirsResult

Rows = list[tuple[str, list[tuple[int, int]]]]


def ask(world: World, topics: list[DescribableLogDirTopic] | None) -> list[DescribeLogDirsResult]:
    ctx = world.context(5)
    ctx.broker.node_id = 1
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
    size = world.partition("a", 1).log.size_bytes  # type: ignore[union-attr]
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
