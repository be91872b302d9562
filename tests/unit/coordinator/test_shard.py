"""When an answer may leave, and what becomes of those who wait when the partition fails or moves."""

from __future__ import annotations

import pytest

from tests.unit.coordinator.shard_world import Notebook, ShardWorld
from tests.unit.replication.world import batch
from tidelog.coordinator.shard import Shard, Waiting
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import OFFSETS_TOPIC
from tidelog.records.batch import iter_headers
from tidelog.replication.purgatory import Purgatory
from tidelog.storage import reading
from tidelog.storage.log_config import LogConfig
from tidelog.storage.rotten_range import RottenRange

SYNCED = LogConfig(flush_messages=1)


def found(world: ShardWorld, key: str = "g") -> Shard[Notebook]:
    shard = world.shards.find(key)
    assert isinstance(shard, Shard), shard
    return shard


def write(world: ShardWorld, *values: bytes) -> Waiting:
    return world.shards.ask(found(world), lambda machine, token, _: machine.write(token, *values))[1]


def read(world: ShardWorld) -> Waiting:
    return world.shards.ask(found(world), lambda machine, token, _: machine.read(token))[1]


def test_an_answer_is_there_at_once_when_its_records_are_safe_at_once() -> None:
    world = ShardWorld()
    waiting = write(world, b"a", b"b")
    assert (waiting.done, waiting.response) == (True, 2)
    assert read(world).response == [b"a", b"b"]


def test_records_of_one_outcome_are_one_batch() -> None:
    world = ShardWorld()
    write(world, b"a", b"b")
    write(world, b"c")
    log = world.world.partition(OFFSETS_TOPIC).log
    assert log is not None and log.log_end_offset == 3


def test_an_answer_waits_for_the_flush_that_the_topic_demands_and_later_ones_wait_behind_it() -> None:
    world = ShardWorld(config=SYNCED)
    first = write(world, b"a")
    second = read(world)
    assert not first.done and not second.done
    told: list[str] = []
    first.on_done, second.on_done = (lambda: told.append("first")), (lambda: told.append("second"))
    world.world.manager.flush(world.world.partition(OFFSETS_TOPIC))
    world.world.run_jobs()
    assert told == ["first", "second"]
    assert second.response == [b"a"]


def test_a_new_shard_reads_what_the_former_one_wrote() -> None:
    world = ShardWorld()
    write(world, b"a")
    world.world.partition(OFFSETS_TOPIC).append(batch(b"x", b"y", keys=[b"k", b"k"]), world.even_ms(), 1)
    world.shards.stop()
    world.shards.follow()
    assert read(world).response == [b"a", b"x", b"y"]
    machine = found(world).machine
    assert machine is not None and machine.loaded_at == world.even_ms()


def test_a_shard_whose_log_is_damaged_is_not_loaded_from_it(caplog: pytest.LogCaptureFixture) -> None:
    world = ShardWorld()
    write(world, b"a")
    log = world.world.partition(OFFSETS_TOPIC).log
    assert log is not None
    data = bytearray(log.active.file.read(0, log.active.size))
    data[-2] ^= 4
    log.active.file.write(0, bytes(data))
    world.shards.stop()
    world.shards.follow()
    assert isinstance(world.shards.find("g"), ErrorCode)
    assert "the batch at offset 0 has a wrong checksum" in caplog.text


def test_a_shard_is_not_loaded_from_a_log_with_a_range_that_cannot_be_read(caplog: pytest.LogCaptureFixture) -> None:
    world = ShardWorld()
    write(world, b"a")
    write(world, b"b")
    log = world.world.partition(OFFSETS_TOPIC).log
    assert log is not None
    log.active.rotten = (RottenRange(0, next(iter_headers(log.active.file.read(0, log.active.size))).size, 0, 1),)
    world.shards.stop()
    world.shards.follow()
    assert isinstance(world.shards.find("g"), ErrorCode)
    assert "offset 0 cannot be read" in caplog.text


def test_an_append_that_fails_drops_the_machine_and_tells_everybody_who_waits() -> None:
    world = ShardWorld(config=SYNCED)
    before = write(world, b"a")
    world.world.disk.broken.append(("/data0", "write"))
    failing = write(world, b"b")
    assert (before.error, failing.error) == (ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_COORDINATOR)
    assert world.shards.find("g") is ErrorCode.NOT_COORDINATOR


def test_a_deleted_topic_ends_its_shards() -> None:
    world = ShardWorld(config=SYNCED)
    waiting = write(world, b"a")
    world.world.delete(OFFSETS_TOPIC)
    world.shards.follow()
    assert waiting.error is ErrorCode.NOT_COORDINATOR


def test_an_abandoned_request_is_forgotten() -> None:
    world = ShardWorld(config=SYNCED)
    shard = found(world)
    token, waiting = world.shards.ask(shard, lambda machine, token, _: machine.write(token, b"a"))
    told: list[Waiting] = []
    waiting.on_done = lambda: told.append(waiting)
    purgatory = Purgatory()
    purgatory.park(waiting)
    shard.abandon(token)
    assert len(purgatory) == 0, "it has no deadline: else it would be kept for ever, with its connection"
    world.world.manager.flush(world.world.partition(OFFSETS_TOPIC))
    world.world.run_jobs()
    assert waiting.response is None and told == []


def test_more_than_a_batch_may_hold_is_written_as_several() -> None:
    world = ShardWorld(config=LogConfig(max_message_bytes=1000))
    values = [bytes([n]) * 300 for n in range(10)]
    waiting = write(world, *values)
    assert (waiting.error, waiting.response) == (ErrorCode.NONE, 10)
    assert read(world).response == values
    world.shards.stop()
    world.shards.follow()
    assert read(world).response == values


def test_what_a_machine_sends_leaves_when_its_records_are_safe_and_behind_what_came_before() -> None:
    world = ShardWorld(config=SYNCED)
    world.shards.ask(found(world), lambda machine, token, _: machine.send(b"first", b"a"))
    world.shards.ask(found(world), lambda machine, token, _: machine.send(b"second"))
    assert world.sent == []
    world.world.manager.flush(world.world.partition(OFFSETS_TOPIC))
    world.world.run_jobs()
    assert world.sent == [b"first", b"second"]


def test_what_a_machine_wanted_to_send_is_dropped_with_it() -> None:
    world = ShardWorld(config=SYNCED)
    world.shards.ask(found(world), lambda machine, token, _: machine.send(b"first", b"a"))
    world.shards.stop()
    world.world.manager.flush(world.world.partition(OFFSETS_TOPIC))
    world.world.run_jobs()
    assert world.sent == []


def test_an_answer_to_what_was_sent_reaches_the_machine_that_sent_it_and_no_later_one() -> None:
    world = ShardWorld()
    shard = found(world)
    world.shards.tell(shard, lambda machine, _: machine.send(b"again", b"a"))
    assert world.sent == [b"again"] and read(world).response == [b"a"]
    world.shards.stop()
    world.shards.follow()
    world.shards.tell(shard, lambda machine, _: machine.send(b"late", b"b"))
    assert world.sent == [b"again"] and read(world).response == [b"a"]


def test_nothing_leaves_before_what_was_loaded_is_safe() -> None:
    world = ShardWorld(config=SYNCED)
    write(world, b"a")
    world.shards.stop()
    world.shards.follow()
    answer = read(world)
    world.shards.ask(found(world), lambda machine, token, _: machine.send(b"first"))
    assert not answer.done and world.sent == []
    world.world.manager.flush(world.world.partition(OFFSETS_TOPIC))
    world.world.run_jobs()
    assert answer.response == [b"a"] and world.sent == [b"first"]


def test_batches_carry_the_sequence_that_kafka_writes_for_this_kind_of_coordinator() -> None:
    for sequence in (0, -1):
        world = ShardWorld(base_sequence=sequence)
        write(world, b"a")
        log = world.world.partition(OFFSETS_TOPIC).log
        assert log is not None
        stored = reading.read(log, 0, 1000, upto=1, min_one=True).slice
        assert stored is not None
        assert [header.base_sequence for header in iter_headers(memoryview(stored.read()))] == [sequence]
