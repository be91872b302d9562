from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from tests.unit.replication.world import NOW_MS, World, batch, led_by_us
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import ZERO_UUID, Uuid
from tidelog.model.ports import FileSlice
from tidelog.replication import fetch_sessions
from tidelog.replication.fetch_partition import WantedPartition
from tidelog.replication.fetch_sessions import FINAL_EPOCH, MAX_EPOCH, FetchAnswer, FetchContext, FetchSessionCache
from tidelog.replication.reads import PartitionRead
from tidelog.replication.replica import Caller

Topics = list[tuple[str | None, Uuid, Sequence[WantedPartition]]]


class Request:
    """The part of a Fetch request that sessions read."""

    def __init__(
        self, session_id: int = 0, session_epoch: int = 0, *asked: tuple[str, int, int], forget: Sequence[tuple[str, int]] = ()
    ):
        self.session_id = session_id
        self.session_epoch = session_epoch
        self.topics: Topics = [(topic, ZERO_UUID, [(index, -1, offset, -1, -1, 100)]) for topic, index, offset in asked]
        self.forgotten: list[tuple[str | None, Uuid, Sequence[int]]] = [(topic, ZERO_UUID, [index]) for topic, index in forget]


def cache(slots: int = 10) -> FetchSessionCache:
    return FetchSessionCache(random.Random(3), slots=slots)


def nothing(high_watermark: int = 0) -> PartitionRead:
    return PartitionRead(ErrorCode.NONE, high_watermark, high_watermark, 0)


def records(high_watermark: int = 5) -> PartitionRead:
    piece: FileSlice = FileSlice(None, 0, 70)  # type: ignore[arg-type]
    return PartitionRead(ErrorCode.NONE, high_watermark, high_watermark, 0, piece, 70)


def open_(sessions: FetchSessionCache, request: Request, now_ms: int = 0, *, privileged: bool = False) -> FetchContext:
    context = sessions.open(request, now_ms, by_id=False, caller=Caller(2, -1, now_ms) if privileged else None)
    assert isinstance(context, FetchContext), context
    return context


def run(
    sessions: FetchSessionCache, request: Request, *reads: PartitionRead, now_ms: int = 0, privileged: bool = False
) -> FetchAnswer:
    context = open_(sessions, request, now_ms, privileged=privileged)
    due = context.due
    return context.finish(dict(zip(due, reads or [nothing() for _ in due], strict=True)), lambda: now_ms)


def named(answer: FetchAnswer) -> list[tuple[str | None, int]]:
    return [(partition.topic, partition.index) for partition, _ in answer.partitions]


def test_a_full_fetch_opens_a_session_and_answers_everything() -> None:
    sessions = cache()
    answer = run(sessions, Request(0, 0, ("a", 0, 0), ("b", 1, 7)))
    assert answer.error == ErrorCode.NONE and answer.session_id > 0 and len(sessions) == 1
    assert named(answer) == [("a", 0), ("b", 1)]


def test_a_sessionless_fetch_opens_none() -> None:
    sessions = cache()
    answer = run(sessions, Request(0, FINAL_EPOCH, ("a", 0, 0)))
    assert answer.session_id == 0 and named(answer) == [("a", 0)] and len(sessions) == 0


def test_an_incremental_fetch_answers_only_what_changed() -> None:
    sessions = cache()
    session_id = run(sessions, Request(0, 0, ("a", 0, 0), ("b", 0, 0), ("c", 0, 0), ("d", 0, 0))).session_id
    error = PartitionRead(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    answer = run(sessions, Request(session_id, 1), nothing(), records(), nothing(3), error)
    assert answer.session_id == session_id
    assert named(answer) == [("b", 0), ("c", 0), ("d", 0)]


def test_an_error_is_answered_each_time_and_its_end_as_well() -> None:
    sessions = cache()
    session_id = run(sessions, Request(0, 0, ("a", 0, 0))).session_id
    error = PartitionRead(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert named(run(sessions, Request(session_id, 1), error)) == [("a", 0)]
    assert named(run(sessions, Request(session_id, 2), error)) == [("a", 0)]
    assert named(run(sessions, Request(session_id, 3), nothing())) == [("a", 0)]
    assert named(run(sessions, Request(session_id, 4), nothing())) == []


def test_a_moved_log_start_or_last_stable_offset_is_news() -> None:
    sessions = cache()
    session_id = run(sessions, Request(0, 0, ("a", 0, 0)), PartitionRead(ErrorCode.NONE, 9, 9, 0)).session_id
    assert len(run(sessions, Request(session_id, 1), PartitionRead(ErrorCode.NONE, 9, 9, 4)).partitions) == 1
    assert len(run(sessions, Request(session_id, 2), PartitionRead(ErrorCode.NONE, 9, 5, 4)).partitions) == 1
    assert len(run(sessions, Request(session_id, 3), PartitionRead(ErrorCode.NONE, 9, 5, 4)).partitions) == 0


def test_a_partition_that_had_records_goes_to_the_end_of_the_order() -> None:
    sessions = cache()
    session_id = run(sessions, Request(0, 0, ("a", 0, 0), ("b", 0, 0), ("c", 0, 0))).session_id
    run(sessions, Request(session_id, 1), records(), nothing(), records())
    order = open_(sessions, Request(session_id, 2)).due
    assert [partition.topic for partition in order] == ["b", "a", "c"]


def test_partitions_are_added_changed_and_forgotten() -> None:
    sessions = cache()
    session_id = run(sessions, Request(0, 0, ("a", 0, 0), ("b", 0, 0))).session_id
    context = open_(sessions, Request(session_id, 1, ("b", 0, 9), ("c", 2, 4), forget=[("a", 0), ("never", 1)]))
    assert [(p.topic, p.index, p.fetch_offset) for p in context.due] == [("b", 0, 9), ("c", 2, 4)]


def test_a_session_without_partitions_ends() -> None:
    sessions = cache()
    session_id = run(sessions, Request(0, 0, ("a", 0, 0))).session_id
    answer = run(sessions, Request(session_id, 1, forget=[("a", 0)]))
    assert (answer.error, answer.session_id, len(sessions)) == (ErrorCode.NONE, 0, 0)


def test_unknown_sessions_and_wrong_epochs_are_refused() -> None:
    sessions = cache()
    session_id = run(sessions, Request(0, 0, ("a", 0, 0))).session_id

    def error(request: Request, by_id: bool = False) -> object:
        return sessions.open(request, 0, by_id=by_id)

    assert error(Request(session_id + 1, 1)) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert error(Request(session_id, 2)) == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert error(Request(session_id, 1), by_id=True) == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    assert isinstance(error(Request(session_id, 1)), FetchContext), "a refused request leaves the session as it was"
    assert error(Request(session_id, 1)) == ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_the_final_epoch_closes_the_session() -> None:
    sessions = cache()
    session_id = run(sessions, Request(0, 0, ("a", 0, 0))).session_id
    assert run(sessions, Request(session_id, FINAL_EPOCH, ("a", 0, 0))).session_id == 0
    assert len(sessions) == 0


def test_a_new_session_takes_the_place_of_the_one_it_names() -> None:
    sessions = cache()
    first = run(sessions, Request(0, 0, ("a", 0, 0))).session_id
    second = run(sessions, Request(first, 0, ("a", 0, 0))).session_id
    assert second not in (0, first) and len(sessions) == 1


def test_the_epoch_wraps_to_one() -> None:
    sessions = cache()
    session_id = run(sessions, Request(0, 0, ("a", 0, 0))).session_id
    sessions._sessions[session_id].epoch = MAX_EPOCH
    run(sessions, Request(session_id, MAX_EPOCH))
    assert run(sessions, Request(session_id, 1)).error == ErrorCode.NONE


def test_a_fetch_that_waited_while_its_session_went_on_elsewhere_is_refused() -> None:
    sessions = cache()
    session_id = run(sessions, Request(0, 0, ("a", 0, 0))).session_id
    waiting = open_(sessions, Request(session_id, 1))
    run(sessions, Request(session_id, 2))
    answer = waiting.finish({}, 0)
    assert (answer.error, answer.session_id) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 0)


def test_a_full_cache_refuses_a_session_while_all_are_young_and_in_use() -> None:
    sessions = cache(slots=1)
    assert run(sessions, Request(0, 0, ("a", 0, 0))).session_id > 0
    assert run(sessions, Request(0, 0, ("a", 0, 0), ("b", 0, 0)), now_ms=60_000).session_id == 0


def test_an_idle_session_makes_room() -> None:
    sessions = cache(slots=1)
    run(sessions, Request(0, 0, ("a", 0, 0), ("b", 0, 0)))
    assert run(sessions, Request(0, 0, ("a", 0, 0)), now_ms=120_001).session_id > 0
    assert len(sessions) == 1 and sessions.evictions == 1


def test_a_session_that_has_lived_long_makes_room_only_for_a_larger_one() -> None:
    sessions = cache(slots=1)
    session_id = run(sessions, Request(0, 0, ("a", 0, 0), ("b", 0, 0))).session_id
    run(sessions, Request(session_id, 1), now_ms=130_000)
    assert run(sessions, Request(0, 0, ("a", 0, 0), ("b", 0, 0)), now_ms=130_000).session_id == 0
    assert run(sessions, Request(0, 0, ("a", 0, 0), ("b", 0, 0), ("c", 0, 0)), now_ms=130_000).session_id > 0


def test_a_follower_takes_a_consumers_place_and_never_the_other_way_round() -> None:
    sessions = cache(slots=1)
    run(sessions, Request(0, 0, ("a", 0, 0), ("b", 0, 0)))
    follower = run(sessions, Request(0, 0, ("a", 0, 0)), privileged=True).session_id
    assert follower > 0
    run(sessions, Request(follower, 1), now_ms=130_000, privileged=True)
    big = Request(0, 0, *[("t", index, 0) for index in range(50)])
    assert run(sessions, big, now_ms=130_000).session_id == 0


def test_without_slots_there_are_no_sessions() -> None:
    assert run(cache(slots=0), Request(0, 0, ("a", 0, 0))).session_id == 0


def test_all_sessions_together_keep_a_bounded_number_of_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_sessions, "MAX_PARTITIONS", 3)
    sessions = cache()
    session_id = run(sessions, Request(0, 0, ("a", 0, 0), ("b", 0, 0))).session_id
    refused = run(sessions, Request(0, 0, ("a", 0, 0), ("b", 0, 0)))
    assert refused.session_id == 0 and len(refused.partitions) == 2, "answered, but without a session"
    grown = sessions.open(Request(session_id, 1, ("c", 0, 0), ("d", 0, 0)), 0, by_id=False)
    assert grown == ErrorCode.FETCH_SESSION_ID_NOT_FOUND and len(sessions) == 0


def test_sessions_and_their_partitions_are_counted() -> None:
    sessions = cache()
    run(sessions, Request(0, 0, ("a", 0, 0), ("b", 0, 0)))
    run(sessions, Request(0, 0, ("a", 0, 0)))
    assert (len(sessions), sessions.partition_count) == (2, 3)


def test_a_partition_named_twice_is_fetched_once_with_the_last_wish() -> None:
    context = open_(cache(), Request(0, FINAL_EPOCH, ("a", 0, 1), ("a", 0, 2)))
    assert [partition.fetch_offset for partition in context.due] == [2]


def test_the_cached_partition_takes_over_the_leader_epoch() -> None:
    """KAFKA-9338: an incremental fetch is fenced by the epoch that the client knows now, not by the one it began with."""
    sessions = cache()
    session_id = run(sessions, Request(0, 0, ("a", 0, 0))).session_id
    request = Request(session_id, 1)
    request.topics = [("a", ZERO_UUID, [(0, 6, 3, 2, -1, 50)])]
    (partition,) = open_(sessions, request).due
    assert (partition.current_leader_epoch, partition.last_fetched_epoch, partition.max_bytes) == (6, 2, 50)


def quiet_world(count: int) -> tuple[World, int]:
    """``count`` topics in a session that has answered all of them with nothing to give."""
    world = World()
    asked = []
    for number in range(count):
        world.create(f"t{number}")
        asked.append((f"t{number}", 0, 0))
    session_id = read(world, Request(0, 0, *asked)).session_id
    assert not read(world, Request(session_id, 1)).partitions
    return world, session_id


def read(world: World, request: Request) -> FetchAnswer:
    context = open_(world.manager.sessions, request)
    work = world.manager.fetch(context, min_bytes=1, max_bytes=1 << 20, committed=False)
    return work.finish(lambda: 0)


def test_only_partitions_that_may_have_news_are_looked_at() -> None:
    world, session_id = quiet_world(50)
    world.partition("t7").append(batch(b"x"), NOW_MS, 1)
    context = open_(world.manager.sessions, Request(session_id, 2, ("t9", 0, 0)))
    assert [wanted.topic for wanted in context.due] == ["t7", "t9"]


def test_a_session_nobody_fetches_from_costs_its_partitions_nothing_after_the_first_change() -> None:
    world, _ = quiet_world(1)
    assert world.partition("t0").watchers
    world.partition("t0").append(batch(b"x"), NOW_MS, 1)
    assert not world.partition("t0").watchers


def test_closed_and_evicted_sessions_and_forgotten_partitions_are_not_watched() -> None:
    world, session_id = quiet_world(2)
    read(world, Request(session_id, 2, forget=[("t0", 0)]))
    assert not world.partition("t0").watchers and world.partition("t1").watchers
    read(world, Request(session_id, FINAL_EPOCH))
    assert not world.partition("t1").watchers


def test_a_retained_log_start_reaches_a_quiet_partition() -> None:
    world, session_id = quiet_world(1)
    partition = world.partition("t0")
    partition.append(batch(b"x"), NOW_MS, 1)
    assert partition.log is not None
    read(world, Request(session_id, 2))
    read(world, Request(session_id, 3, ("t0", 0, 1)))
    partition.log.delete_records_before(1)
    assert named(read(world, Request(session_id, 4))) == []
    world.manager.retention_step(NOW_MS, NOW_MS)
    assert named(read(world, Request(session_id, 5))) == [("t0", 0)]


def test_a_change_between_the_wake_up_and_the_answer_is_not_lost() -> None:
    world, session_id = quiet_world(2)
    context = open_(world.manager.sessions, Request(session_id, 2, ("t0", 0, 0), ("t1", 0, 0)))
    work = world.manager.fetch(context, min_bytes=1, max_bytes=1 << 20, committed=False)
    parked = work.park(NOW_MS + 500)
    world.partition("t0").append(batch(b"x"), NOW_MS, 1)
    assert parked.done
    world.partition("t1").append(batch(b"y"), NOW_MS, 1)
    work.read_again(parked.touched)
    assert named(work.finish(lambda: 0)) == [("t0", 0)]
    assert ("t1", 0) in named(read(world, Request(session_id, 3)))


@pytest.mark.parametrize("seed", range(20))
def test_whatever_happens_a_session_tells_what_a_full_look_would_find(seed: int) -> None:
    """The session against a model that remembers the client's answers and looks at every partition each time."""
    rng = random.Random(seed)
    world, session_id = quiet_world(6)
    told = {f"t{n}": (0, 0) for n in range(6)}
    offsets = dict.fromkeys(told, 0)
    epoch = 2
    for _ in range(60):
        topic = rng.choice(list(told))
        partition = world.partition(topic)
        deed = rng.randrange(6)
        asked: list[tuple[str, int, int]] = []
        if deed < 3:
            partition.append(batch(b"x"), NOW_MS, 1)
        elif deed == 3:
            partition.delete_records(rng.randrange(partition.log.high_watermark + 1))  # type: ignore[union-attr]
        elif deed == 4:
            partition.update_metadata(led_by_us(partition.leader_epoch + 1))
        else:
            offsets[topic] = partition.log.high_watermark  # type: ignore[union-attr]
            asked = [(topic, 0, offsets[topic])]
        if not asked and rng.random() < 0.5:
            continue
        answer = read(world, Request(session_id, epoch, *asked))
        epoch += 1
        expected = set()
        for name in told:
            log = world.partition(name).log
            assert log is not None
            state = (log.high_watermark, log.log_start_offset)
            if offsets[name] < log.log_start_offset:
                expected.add(name)
                told[name] = (-1, -1)
            elif told[name] != state or offsets[name] < log.high_watermark:
                expected.add(name)
                told[name] = state
        assert {wanted.topic for wanted, _ in answer.partitions} == expected
