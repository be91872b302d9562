from __future__ import annotations

import random
from collections.abc import Sequence

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import ZERO_UUID, Uuid
from tidelog.model.ports import FileSlice
from tidelog.replication.fetch_sessions import (
    FINAL_EPOCH,
    MAX_EPOCH,
    FetchAnswer,
    FetchContext,
    FetchSessionCache,
    WantedPartition,
)
from tidelog.replication.partition import PartitionRead

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
    context = sessions.open(request, now_ms, by_id=False, privileged=privileged)
    assert isinstance(context, FetchContext), context
    return context


def run(
    sessions: FetchSessionCache, request: Request, *reads: PartitionRead, now_ms: int = 0, privileged: bool = False
) -> FetchAnswer:
    context = open_(sessions, request, now_ms, privileged=privileged)
    return context.finish(reads or [nothing() for _ in context.partitions], now_ms)


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
    order = open_(sessions, Request(session_id, 2)).partitions
    assert [partition.topic for partition in order] == ["b", "a", "c"]


def test_partitions_are_added_changed_and_forgotten() -> None:
    sessions = cache()
    session_id = run(sessions, Request(0, 0, ("a", 0, 0), ("b", 0, 0))).session_id
    context = open_(sessions, Request(session_id, 1, ("b", 0, 9), ("c", 2, 4), forget=[("a", 0), ("never", 1)]))
    assert [(p.topic, p.index, p.fetch_offset) for p in context.partitions] == [("b", 0, 9), ("c", 2, 4)]


def test_a_session_without_partitions_ends() -> None:
    sessions = cache()
    session_id = run(sessions, Request(0, 0, ("a", 0, 0))).session_id
    answer = run(sessions, Request(session_id, 1, forget=[("a", 0)]))
    assert (answer.error, answer.session_id, len(sessions)) == (ErrorCode.NONE, 0, 0)


def test_unknown_sessions_and_wrong_epochs_are_refused() -> None:
    sessions = cache()
    session_id = run(sessions, Request(0, 0, ("a", 0, 0))).session_id

    def error(request: Request, by_id: bool = False) -> object:
        return sessions.open(request, 0, by_id=by_id, privileged=False)

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
    answer = waiting.finish([nothing()], 0)
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


def test_sessions_and_their_partitions_are_counted() -> None:
    sessions = cache()
    run(sessions, Request(0, 0, ("a", 0, 0), ("b", 0, 0)))
    run(sessions, Request(0, 0, ("a", 0, 0)))
    assert (len(sessions), sessions.partition_count) == (2, 3)


def test_a_partition_named_twice_is_fetched_once_with_the_last_wish() -> None:
    context = open_(cache(), Request(0, FINAL_EPOCH, ("a", 0, 1), ("a", 0, 2)))
    assert [partition.fetch_offset for partition in context.partitions] == [2]


def test_the_cached_partition_takes_over_the_leader_epoch() -> None:
    """KAFKA-9338: an incremental fetch is fenced by the epoch that the client knows now, not by the one it began with."""
    sessions = cache()
    session_id = run(sessions, Request(0, 0, ("a", 0, 0))).session_id
    request = Request(session_id, 1)
    request.topics = [("a", ZERO_UUID, [(0, 6, 3, 2, -1, 50)])]
    (partition,) = open_(sessions, request).partitions
    assert (partition.current_leader_epoch, partition.last_fetched_epoch, partition.max_bytes) == (6, 2, 50)
