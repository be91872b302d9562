from __future__ import annotations

import random

import pytest

from tests.unit.replication.world import NOW_MS, World, batch, led_by_us
from tidelog.model.errors import StorageFailure
from tidelog.model.ids import TopicPartition
from tidelog.records.batch import CorruptBatch, iter_headers
from tidelog.replication import replica_move
from tidelog.replication.flush_intervals import next_flush
from tidelog.replication.partition import Partition
from tidelog.replication.replica_move import FlushStep, MoveState, ReadStep, ReplicaMove
from tidelog.storage import reading
from tidelog.storage.log_config import LogConfig
from tidelog.storage.rotten_range import RottenRange
from tidelog.storage.unified_log import UnifiedLog

NAME = TopicPartition("t", 0)
SMALL = LogConfig(segment_bytes=4000, index_interval_bytes=200)


def world_with(records: int, config: LogConfig = SMALL) -> World:
    world = World(dirs=2)
    world.create("t", led_by_us(), config=config)
    write(world, records)
    return world


def write(world: World, count: int) -> None:
    for number in range(count):
        world.partition("t").append(batch(b"%d" % number * 50), NOW_MS, 1)


def begin(world: World, target: int = 1) -> ReplicaMove:
    move = world.manager.moves.begin(world.partition("t"), world.logs.dirs[target], NOW_MS)
    assert move is not None
    return move


def go_on(move: ReplicaMove) -> bool:
    """One step; False when there is none."""
    step = move.next_step(NOW_MS)
    if isinstance(step, ReadStep):
        move.take(step.source.read(), NOW_MS)
    elif isinstance(step, FlushStep):
        step.job.run()
        move.flushed(step.job, NOW_MS)
    return step is not None


def finish(move: ReplicaMove) -> None:
    while go_on(move):
        pass


def content(partition: Partition) -> list[tuple[int, int]]:
    """(base offset, CRC) of every batch."""
    found: list[tuple[int, int]] = []
    log = partition.log
    assert log is not None
    offset = log.log_start_offset
    while (part := reading.read(log, offset, 1 << 20, upto=log.log_end_offset, min_one=True).slice) is not None:
        for header in iter_headers(part.read()):
            found.append((header.base_offset, header.crc))
            offset = header.last_offset + 1
    return found


def log_of(world: World) -> UnifiedLog:
    log = world.partition("t").log
    assert log is not None
    return log


@pytest.fixture(autouse=True)
def small_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica_move, "READ_BYTES", 1000)
    monkeypatch.setattr(replica_move, "LAST_BYTES", 300)


@pytest.mark.parametrize("records", [0, 1, 7, 200])
def test_a_replica_lies_in_the_other_dir_with_everything_it_held(records: int) -> None:
    world = world_with(records)
    before, old = content(world.partition("t")), log_of(world)
    move = begin(world)
    finish(move)
    world.run_jobs()
    log = log_of(world)
    assert move.state is MoveState.DONE
    assert (log.dir, log.log_dir, len(before)) == ("/data1/t-0", "/data1", records)
    assert content(world.partition("t")) == before
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (0, records, records)
    assert log.leader_epochs.entries() == old.leader_epochs.entries()
    assert world.logs.future.copies == {}
    assert [tuple(each.logs) for each in world.logs.dirs] == [(), (NAME,)]
    log.check()


def test_what_is_written_meanwhile_comes_along() -> None:
    world = world_with(60)
    move = begin(world)
    rng = random.Random(1)
    for _ in range(300):
        if not go_on(move):
            break
        write(world, rng.choice((0, 0, 1, 3)))
    finish(move)
    assert move.state is MoveState.DONE
    write(world, 2)
    world.run_jobs()
    assert [base for base, _ in content(world.partition("t"))] == list(range(log_of(world).log_end_offset))
    assert log_of(world).recovery_point == log_of(world).log_end_offset - 2
    log_of(world).check()


def test_records_that_were_deleted_stay_deleted() -> None:
    world = world_with(100)
    world.partition("t").delete_records(37)
    finish(begin(world))
    log = log_of(world)
    assert (log.log_start_offset, log.log_end_offset) == (37, 100)
    assert content(world.partition("t"))[0][0] == 37
    world.partition("t").delete_records(100)
    finish(begin(world, 0))
    assert (log_of(world).log_start_offset, log_of(world).log_end_offset) == (100, 100)
    write(world, 1)
    assert content(world.partition("t"))[0][0] == 100


def test_producers_are_remembered_across_the_move() -> None:
    world = world_with(1)
    ours = batch(b"x", producer_id=9, producer_epoch=0, base_sequence=0)
    again = memoryview(bytearray(ours))
    world.partition("t").append(ours, NOW_MS, 1)
    finish(begin(world))
    result = world.partition("t").append(again, NOW_MS, 1)
    assert (result.duplicate, result.first_offset) == (True, 1)  # type: ignore[union-attr]


def test_the_old_files_go_after_their_delay_and_the_new_ones_are_found_at_the_next_start() -> None:
    world = world_with(50)
    world.run_jobs()
    finish(begin(world))
    world.run_jobs()
    (gone,) = (name for name in world.disk.listdir("/data0") if "t-0" in name)
    assert gone.endswith("-delete")
    world.now_ms += log_of(world).config.file_delete_delay_ms
    assert world.manager.dir_jobs.remove_due(world.now_ms) == 1
    world.run_jobs()
    assert not any("t-0" in name for name in world.disk.listdir("/data0"))
    assert world.disk.exists("/data1/t-0/partition.metadata")
    assert all(file.startswith("/data1/t-0/") for file in world.disk.files if "t-0" in file)


def test_a_second_request_for_the_same_dir_changes_nothing_and_one_for_another_dir_ends_the_first() -> None:
    world = world_with(50)
    move = begin(world)
    go_on(move)
    (target, copy) = world.logs.future.copies[NAME]
    assert (target.path, copy.log_end_offset > 0) == ("/data1", True)
    assert world.manager.moves.begin(world.partition("t"), world.logs.dirs[1], NOW_MS) is None
    assert world.manager.moves.begin(world.partition("t"), world.logs.dirs[0], NOW_MS) is None
    assert (move.state, world.logs.future.copies, len(world.manager.moves)) == (MoveState.ENDED, {}, 0)
    assert not go_on(move)
    world.manager.dir_jobs.remove_due(NOW_MS)
    world.run_jobs()
    assert not any(name.endswith("-future") for name in world.disk.listdir("/data1"))
    assert log_of(world).dir == "/data0/t-0"


def test_a_damaged_replica_is_not_replaced_by_a_copy_without_what_lies_behind_the_damage() -> None:
    world = world_with(records=10)
    log = log_of(world)
    header = list(iter_headers(log.segments[0].file.read(0, log.segments[0].size)))[3]
    damaged = RottenRange(header.position, header.end_position, header.base_offset, header.next_offset)
    log.segments[0].rotten = (damaged,)
    move = begin(world)
    with pytest.raises(CorruptBatch, match="offset 3 cannot be read"):
        finish(move)
    assert log_of(world) is log


def test_a_move_ends_with_its_topic() -> None:
    world = world_with(50)
    move = begin(world)
    go_on(move)
    world.delete("t")
    assert not go_on(move)
    assert (move.state, world.logs.future.copies) == (MoveState.ENDED, {})


def test_a_target_that_fails_leaves_the_replica_where_it_is() -> None:
    world = world_with(50)
    move = begin(world)
    go_on(move)
    world.disk.broken.append(("/data1", "write"))
    with pytest.raises(StorageFailure) as failure:
        finish(move)
    world.manager.storage_failed(failure.value)
    world.manager.moves.end(move, NOW_MS)
    assert [each.path for each in world.logs.online_dirs()] == ["/data0"]
    assert len(content(world.partition("t"))) == 50
    write(world, 1)
    assert log_of(world).log_end_offset == 51


def test_a_flush_of_the_old_log_that_ends_late_says_nothing_about_the_new_one() -> None:
    world = world_with(3)
    partition = world.partition("t")
    late = next_flush(partition)
    assert late is not None
    finish(begin(world))
    write(world, 1)
    new = log_of(world)
    before = new.recovery_point
    late.error = OSError(2, "No such file or directory")
    partition.finish_flush(late, NOW_MS)
    assert (new.recovery_point, new.failure) == (before, None)


def test_an_unfinished_copy_is_removed_at_the_next_start_unless_it_is_all_there_is() -> None:
    world = world_with(5)
    go_on(begin(world))
    (unfinished,) = [name for name in world.disk.listdir("/data1") if name.endswith("-future")]
    world.disk.make_dirs("/data1/lost-0.0123-future")
    world.logs.load_jobs()
    names = world.disk.listdir("/data1")
    assert unfinished not in names
    assert "lost-0.0123-future" in names


def test_what_was_flushed_before_it_was_acknowledged_is_flushed_in_the_copy_before_that_takes_over() -> None:
    world = world_with(10, LogConfig(flush_messages=1))
    world.run_jobs()
    move = begin(world)
    while go_on(move) and not (move.copy is not None and move.copy.recovery_point):
        pass
    write(world, 2)
    world.run_jobs()
    safe = log_of(world).recovery_point
    assert move.copy is not None and move.copy.recovery_point < safe == 12
    order: list[tuple[str, str, int]] = []
    rename, sync_dir = world.disk.rename, world.disk.sync_dir

    def renamed(source: str, target: str) -> None:
        assert move.copy is not None
        order.append(("rename", target.partition(".")[0], move.copy.recovery_point))
        rename(source, target)

    def synced(path: str) -> None:
        order.append(("sync", path, 0))
        sync_dir(path)

    world.disk.rename, world.disk.sync_dir = renamed, synced  # type: ignore[method-assign]
    finish(move)
    assert move.state is MoveState.DONE
    steps = [step for step in order if step[1] in ("/data1", "/data1/t-0", "/data0/t-0") and not step[1].endswith("checkpoint")]
    assert steps[-3:] == [("rename", "/data1/t-0", safe), ("sync", "/data1", 0), ("rename", "/data0/t-0", safe)]


def test_a_truncation_meanwhile_begins_the_copy_anew_and_what_was_being_read_is_dropped() -> None:
    world = world_with(40)
    move = begin(world)
    assert go_on(move)
    reading = move.next_step(NOW_MS)
    assert isinstance(reading, ReadStep)
    gone = reading.source.read()
    world.run_jobs()
    world.manager.moves.restart(world.partition("t"), NOW_MS)
    world.logs.truncate(log_of(world), 3, NOW_MS)
    move.take(gone, NOW_MS)
    assert move.copy is None
    finish(move)
    assert move.state is MoveState.DONE
    assert content(world.partition("t")) == content(world.partition("t"))[:3] and log_of(world).log_end_offset == 3
