"""Which shards there are, whom to ask, when they are woken."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from tests.unit.coordinator.shard_world import Notebook, ShardWorld
from tests.unit.replication.world import led_by_us
from tidelog.coordinator.partition_for_key import partition_of
from tidelog.coordinator.shard import Shard, Waiting, WithinTransaction
from tidelog.coordinator.shards import RELOAD_AFTER_FAILED_LOAD_MS
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import OFFSETS_TOPIC, TopicPartition
from tidelog.model.machine import NOTHING, Outcome, Token
from tidelog.records.record import Record
from tidelog.storage.log_config import LogConfig


def test_there_is_nobody_to_ask_before_the_topic_exists() -> None:
    world = ShardWorld()
    world.world.delete(OFFSETS_TOPIC)
    world.shards.follow()
    assert not world.shards.exists and not world.shards.running
    assert world.shards.find("g") is ErrorCode.NOT_COORDINATOR


def test_a_key_lives_on_the_partition_that_it_hashes_to() -> None:
    world = ShardWorld(partitions=7)
    for key in ("a", "group", "another"):
        shard = world.shards.find(key)
        assert isinstance(shard, Shard) and shard.partition.index == partition_of(key, 7) == world.shards.partition_of(key)


def test_until_it_is_loaded_a_shard_says_so() -> None:
    world = ShardWorld()
    world.shards.stop()
    world.hold = True
    world.shards.follow()
    assert world.shards.find("g") is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert world.shards.machines() is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    world.release()
    assert isinstance(world.shards.find("g"), Shard)
    machines = world.shards.machines()
    assert isinstance(machines, list) and len(machines) == 1


def test_loading_that_is_overtaken_by_a_stop_ends_without_a_machine() -> None:
    world = ShardWorld()
    world.shards.stop()
    world.hold = True
    world.shards.follow()
    world.shards.stop()
    world.release()
    assert world.shards.machines() == []


def test_a_machine_is_woken_at_its_deadline_and_not_before() -> None:
    world = ShardWorld()
    shard = world.shards.find("g")
    assert isinstance(shard, Shard) and shard.machine is not None
    machine = shard.machine
    machine.deadline_ms = world.even_ms() + 500
    world.shards.tell_all(lambda _: NOTHING)
    world.advance(499)
    assert machine.expired == []
    world.advance(1)
    assert machine.expired == [world.even_ms()]


def test_a_shard_that_failed_for_another_reason_than_its_disk_is_loaded_again() -> None:
    world = ShardWorld()
    shard = world.shards.find("g")
    assert isinstance(shard, Shard)
    world.shards.ask(shard, lambda machine, token, _: machine.write(token, b"kept"))
    shard.stop(ErrorCode.NOT_COORDINATOR)
    world.shards.follow()
    again = world.shards.find("g")
    assert isinstance(again, Shard) and again is not shard and again.machine is not None
    assert again.machine.notes == [b"kept"]


def test_a_log_that_cannot_be_loaded_is_tried_again_later_and_nobody_waits_for_it_meanwhile() -> None:
    world = ShardWorld()
    shard = world.shards.find("g")
    assert isinstance(shard, Shard)
    world.shards.ask(shard, lambda machine, token, _: machine.write(token, b"kept"))
    world.shards.stop()
    sound = Notebook.replay_stored

    def stumble(machine: Notebook, record: Record, now_ms: int) -> None:
        raise ValueError("a record of a version that nobody knows")

    Notebook.replay_stored = stumble  # type: ignore[method-assign]
    try:
        world.shards.follow()
    finally:
        Notebook.replay_stored = sound  # type: ignore[method-assign]
    assert world.shards.find("g") is ErrorCode.NOT_COORDINATOR
    world.advance(RELOAD_AFTER_FAILED_LOAD_MS)
    again = world.shards.find("g")
    assert isinstance(again, Shard) and again.machine is not None and again.machine.notes == [b"kept"]


def test_a_log_that_moves_while_it_is_loaded_is_loaded_from_its_new_place() -> None:
    world = ShardWorld()
    world.shards.stop()
    world.hold = True
    world.shards.follow()
    partition = world.world.partition(OFFSETS_TOPIC)
    stored = partition.log
    assert stored is not None
    loading = world.held.pop()
    partition.log = None
    world.held.append(loading)
    world.release()
    partition.log = stored
    assert world.shards.find("g") is ErrorCode.NOT_COORDINATOR
    world.hold = False
    world.advance(RELOAD_AFTER_FAILED_LOAD_MS)
    assert isinstance(world.shards.find("g"), Shard)


def test_a_machine_that_stumbles_over_its_timers_does_not_stop_the_others() -> None:
    world = ShardWorld(partitions=2)
    machines = world.shards.machines()
    assert isinstance(machines, list)
    bad, good = machines
    due = world.even_ms() + 100

    def stumble(now_ms: int) -> Outcome:
        raise ValueError("a bug")

    bad.expire = stumble  # type: ignore[method-assign]
    bad.deadline_ms = good.deadline_ms = due
    world.shards.tell_all(lambda _: NOTHING)
    world.advance(100)
    assert good.expired == [due]
    good.deadline_ms = due + 50
    world.shards.tell_all(lambda _: NOTHING)
    world.advance(50)
    assert good.expired == [due, due + 50]
    world.advance(1000)
    anew = world.shards.machines()
    assert isinstance(anew, list) and len(anew) == 2 and bad not in anew


def test_reloaded_machines_know_what_their_logs_hold_and_whoever_waited_is_sent_away() -> None:
    world = ShardWorld()
    shard = world.shards.find("g")
    assert isinstance(shard, Shard)
    world.shards.ask(shard, lambda machine, token, _: machine.write(token, b"kept"))
    _, waiting = shard.wait()
    seen = []

    async def look(where: TopicPartition) -> None:
        seen.append(where)

    world.shards.before_load = look
    world.shards.reload()
    again = world.shards.find("g")
    assert isinstance(again, Shard) and again is not shard and again.machine is not None
    assert again.machine.notes == [b"kept"]
    assert waiting.error is ErrorCode.NOT_COORDINATOR
    assert seen == [again.partition.topic_partition]


def test_a_request_that_its_machine_stumbles_over_leaves_nobody_waiting() -> None:
    world = ShardWorld()
    shard = world.shards.find("g")
    assert isinstance(shard, Shard)

    def stumble(machine: Notebook, token: Token, now_ms: int) -> Outcome:
        raise ZeroDivisionError

    for ask in (partial(world.shards.ask, shard), partial(world.shards.ask_within, shard, WithinTransaction(1, 0, None))):
        with pytest.raises(ZeroDivisionError):
            ask(stumble)
    assert not shard.waits


# Replicas


def ask(world: ShardWorld, call: Callable[[Notebook, Token], Outcome], *, writes: bool = True) -> Waiting | ErrorCode:
    shard = world.shards.find("g", writes=writes)
    if isinstance(shard, ErrorCode):
        return shard
    return world.shards.ask(shard, lambda machine, token, _: call(machine, token))[1]


def write(world: ShardWorld, *values: bytes) -> Waiting:
    waiting = ask(world, lambda machine, token: machine.write(token, *values))
    assert isinstance(waiting, Waiting)
    return waiting


def test_who_has_waited_too_long_for_the_replicas_is_told_so_and_the_others_wait_on() -> None:
    """The records are in the log, and count when the replicas have them."""
    world = ShardWorld(config=LogConfig(flush_messages=1), patience_ms=500)
    first = write(world, b"a")
    world.advance(400)
    second = write(world, b"b")
    world.advance(99)
    assert not first.done
    world.advance(1)
    assert (first.done, first.error) == (True, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert not second.done
    world.world.manager.flush(world.world.partition(OFFSETS_TOPIC))
    world.world.run_jobs()
    assert (second.done, second.error, second.response) == (True, ErrorCode.NONE, 2)
    third = write(world, b"c")
    world.advance(500)
    assert third.error is ErrorCode.COORDINATOR_NOT_AVAILABLE, "patience is armed anew"


def starving() -> ShardWorld:
    """Two replicas, of which one is in sync where both have to be; a note from before."""
    world = ShardWorld(config=LogConfig(min_insync_replicas=2))
    write(world, b"before")
    world.world.create(OFFSETS_TOPIC, led_by_us(replicas=(1, 2)), config=LogConfig(min_insync_replicas=2))
    world.shards.follow()
    return world


def in_sync_again(world: ShardWorld) -> None:
    world.world.create(OFFSETS_TOPIC, led_by_us(replicas=(1, 2), isr=(1, 2)), config=LogConfig(min_insync_replicas=2))
    world.shards.follow()


def test_while_too_few_replicas_are_in_sync_only_questions_are_answered() -> None:
    world = starving()
    assert ask(world, lambda machine, token: machine.write(token, b"x")) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    read = ask(world, lambda machine, token: machine.read(token), writes=False)
    assert isinstance(read, Waiting) and read.response == [b"before"]


def test_while_nothing_can_be_recorded_no_time_runs_out_and_what_comes_is_dropped() -> None:
    """No member loses its session over heartbeats that could not be served."""
    world = starving()
    shard = world.shards.find("g", writes=False)
    assert isinstance(shard, Shard) and shard.machine is not None
    machine = shard.machine
    machine.deadline_ms = world.even_ms() + 10
    world.shards._arm()
    heard: list[Notebook] = []

    def hear(notebook: Notebook) -> Outcome:
        heard.append(notebook)
        return NOTHING

    world.shards.tell_all(hear)
    world.shards.tell(shard, lambda notebook, _: hear(notebook))
    for _ in range(3):
        world.advance(1_000)
    assert (heard, machine.expired) == ([], [])
    in_sync_again(world)
    again = world.shards.find("g")
    assert isinstance(again, Shard) and again is not shard and again.machine is not None
    assert again.machine.notes == [b"before"]


def test_replicas_that_come_and_go_while_nobody_asks_change_nothing() -> None:
    world = starving()
    shard = world.shards.find("g", writes=False)
    in_sync_again(world)
    assert world.shards.find("g") is shard


def test_who_may_have_been_replaced_answers_nothing_and_begins_anew_when_he_was_not() -> None:
    """A coordinator that is cut off from the others, but not from its clients: what it knows may be old by now."""
    world = ShardWorld()
    write(world, b"kept")
    shard = world.shards.find("g")
    assert isinstance(shard, Shard) and shard.machine is not None and not world.shards.doubts("g")
    shard.machine.deadline_ms = world.even_ms() + 10
    world.shards._arm()
    world.doubtful = True
    assert world.shards.doubts("g")
    assert world.shards.find("g") is world.shards.find("g", writes=False) is ErrorCode.NOT_COORDINATOR
    assert world.shards.machines() == [], "nor is it listed"
    for _ in range(3):
        world.advance(1_000)
    assert shard.machine is not None and shard.machine.expired == [], "nobody loses a session for heartbeats that were sent away"
    world.doubtful = False
    assert world.shards.find("g") is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    world.advance(0)
    again = world.shards.find("g")
    assert isinstance(again, Shard) and again is not shard and again.machine is not None
    assert again.machine.notes == [b"kept"]


def test_a_leadership_of_another_epoch_begins_anew_and_sends_everybody_away() -> None:
    world = ShardWorld(config=LogConfig(flush_messages=1))
    waiting = write(world, b"a")
    shard = world.shards.find("g")
    world.world.create(OFFSETS_TOPIC, led_by_us(leader_epoch=2), config=LogConfig(flush_messages=1))
    world.shards.follow()
    assert (waiting.done, waiting.error) == (True, ErrorCode.NOT_COORDINATOR)
    again = world.shards.find("g")
    assert isinstance(again, Shard) and again is not shard and again.epoch == 2


def test_a_partition_that_another_broker_leads_is_not_ours_and_comes_back_with_what_its_log_holds() -> None:
    world = ShardWorld()
    write(world, b"a")
    world.world.create(OFFSETS_TOPIC, led_by_us(leader_epoch=1, replicas=(1, 2), isr=(1, 2), leader=2))
    world.shards.follow()
    assert world.shards.find("g") is ErrorCode.NOT_COORDINATOR
    assert not world.shards.running
    world.world.create(OFFSETS_TOPIC, led_by_us(leader_epoch=2, replicas=(1, 2)))
    world.shards.follow()
    again = world.shards.find("g")
    assert isinstance(again, Shard) and again.machine is not None and again.machine.notes == [b"a"]
