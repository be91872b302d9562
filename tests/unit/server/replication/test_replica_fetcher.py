from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest

from tests.unit.server.replica_pair import Pair, contents, placed, run
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.fetch import FetchableTopicResponse as FetchResponseTopic
from tidelog.protocol.messages.fetch import FetchRequest, FetchResponse, PartitionData
from tidelog.replication import follower_log
from tidelog.replication.fetcher import BRIEF_MS
from tidelog.replication.partition import Partition
from tidelog.server.replication.replica_fetcher import Following
from tidelog.storage.log_config import LogConfig

T = TypeVar("T")


def test_a_follower_copies_its_leaders_log_and_the_high_watermark_follows() -> None:
    async def story(pair: Pair) -> None:
        pair.create(placed(1), placed(1))
        pair.start()
        pair.produce(b"a", b"b")
        pair.produce(b"c", index=1)
        await pair.until(lambda: pair.log(1).high_watermark == 2 and pair.log(1, 1).high_watermark == 1)
        assert contents(pair.log(1)) == contents(pair.log(2)) and contents(pair.log(1, 1)) == contents(pair.log(2, 1))
        pair.produce(b"d")
        await pair.until(lambda: pair.log(2).high_watermark == 3)

    run(story)


def test_a_replica_outside_of_the_isr_catches_up_and_joins() -> None:
    async def story(pair: Pair) -> None:
        pair.create(placed(1, isr=(1,)))
        pair.produce(*[b"v"] * 10)
        pair.start()
        await pair.until(lambda: pair.worlds[1].partition("t").isr == (1, 2))
        assert len(pair.isr_requests) == 1

    run(story)


def test_partitions_that_come_while_the_long_poll_waits_are_asked_for_at_once() -> None:
    async def story(pair: Pair) -> None:
        pair.create(placed(1), placed(-1, leader_epoch=0))
        pair.replications[2].config.replica_fetch_wait_max_ms = 60_000
        pair.start()
        await pair.until(lambda: any(isinstance(each, FetchRequest) and each.max_wait_ms > BRIEF_MS for each in pair.asked))
        count = len(pair.asked)
        pair.create(placed(1), placed(1, leader_epoch=1))
        pair.produce(b"x", index=1)
        await pair.until(lambda: pair.log(1, 1).high_watermark == 1)
        assert pair.asked[count].session_epoch == 0, "the poll was given up: its session is closed, another one opened"

    run(story)


def test_an_unacknowledged_tail_is_cut_where_the_new_leaders_log_parts() -> None:
    async def story(pair: Pair) -> None:
        pair.create(placed(1))
        pair.produce(b"a")
        pair.start()
        await pair.until(lambda: pair.log(2).high_watermark == 1)
        pair.down = True
        pair.produce(b"lost", b"lost too")
        pair.create(placed(2, leader_epoch=1))
        pair.produce(b"b", broker=2)
        pair.down = False
        await pair.until(lambda: pair.log(1).high_watermark == 2)
        assert contents(pair.log(1)) == contents(pair.log(2))
        assert pair.log(1).leader_epochs.entries() == [(0, 0), (1, 1)]

    run(story)


def test_a_follower_whose_log_ends_below_its_leaders_start_begins_there() -> None:
    async def story(pair: Pair) -> None:
        pair.create(placed(1, isr=(1,)))
        for value in (b"a", b"b", b"c"):
            pair.produce(value)
        pair.worlds[1].partition("t").delete_records(2)
        pair.start()
        await pair.until(lambda: pair.log(2).log_end_offset == 3)
        assert pair.log(2).log_start_offset == 2
        await pair.until(lambda: pair.worlds[1].partition("t").isr == (1, 2))

    run(story)


def test_a_follower_begins_with_the_whole_batch_in_which_its_leaders_log_starts() -> None:
    """Records are deleted one by one, and sent in batches."""

    async def story(pair: Pair) -> None:
        pair.create(placed(1, isr=(1,)))
        pair.produce(b"a", b"b", b"c")
        pair.worlds[1].partition("t").delete_records(2)
        pair.start()
        await pair.until(lambda: pair.log(2).log_end_offset == 3)
        assert contents(pair.log(1)) == contents(pair.log(2))
        assert pair.log(2).log_start_offset == 2
        await pair.until(lambda: pair.worlds[1].partition("t").isr == (1, 2))
        pair.produce(b"d")
        await pair.until(lambda: pair.log(2).high_watermark == 4)

    run(story)


def test_a_follower_ahead_of_a_leader_that_was_elected_without_its_records_is_cut_to_the_leaders_end() -> None:
    async def story(pair: Pair) -> None:
        pair.create(placed(2))
        pair.produce(b"a", b"b", broker=2)
        pair.worlds[2].partition("t").log.update_high_watermark(2)  # type: ignore[union-attr]
        pair.start()
        pair.down = True
        pair.create(placed(1, leader_epoch=3, isr=(1,)))
        pair.produce(b"other")
        pair.down = False
        await pair.until(lambda: contents(pair.log(1)) == contents(pair.log(2)))
        assert pair.log(2).log_end_offset == 1

    run(story)


def test_a_topic_that_demands_flushes_gets_them_before_the_leader_hears_of_the_records() -> None:
    async def story(pair: Pair) -> None:
        pair.create(placed(1), config=LogConfig(flush_messages=1))
        pair.start()
        pair.produce(b"a")
        await pair.until(lambda: pair.log(1).high_watermark == 1)
        assert pair.log(2).recovery_point == 1

    run(story)


def test_a_leader_that_cannot_be_reached_is_asked_until_it_can() -> None:
    async def story(pair: Pair) -> None:
        pair.create(placed(1))
        pair.down = True
        pair.start()
        pair.produce(b"a")
        await asyncio.sleep(0)
        pair.down = False
        await pair.until(lambda: pair.log(1).high_watermark == 1)

    run(story)


def test_a_partition_that_is_followed_no_more_leaves_its_fetcher_and_an_empty_fetcher_ends() -> None:
    async def story(pair: Pair) -> None:
        pair.create(placed(1))
        pair.start()
        assert list(pair.replications[2].fetchers) == [(1, 0)] and not pair.replications[1].fetchers
        pair.create(placed(2, leader_epoch=1))
        assert list(pair.replications[1].fetchers) == [(2, 0)] and not pair.replications[2].fetchers
        pair.worlds[1].delete("t")
        pair.replications[1].follow(pair.worlds[1].image)
        assert not pair.replications[1].fetchers

    run(story)


@pytest.mark.parametrize("offset", [-1, -(2**63)])
def test_a_leader_that_tells_of_no_offsets_is_asked_again_and_replication_goes_on(offset: int) -> None:
    async def story(pair: Pair) -> None:
        pair.create(placed(1), placed(1))
        pair.start()
        honest, lies = pair._ask, 3

        async def ask(host: str, request: Any, *, timeout_ms: int) -> Any:
            nonlocal lies
            if lies and isinstance(request, FetchRequest):
                named = [FetchResponseTopic(topic_id=topic.topic_id, partitions=[lost()]) for topic in request.topics]
                return FetchResponse(session_id=7, responses=named)
            answer = await honest(host, request, timeout_ms=timeout_ms)
            if lies and not isinstance(request, FetchRequest):
                lies -= 1
                for topic in answer.topics:
                    for partition in topic.partitions:
                        partition.offset = offset
            return answer

        pair._ask = ask  # type: ignore[method-assign]
        pair.produce(b"a")
        pair.produce(b"b", index=1)
        await pair.until(lambda: pair.log(1).high_watermark == 1 and pair.log(1, 1).high_watermark == 1)

    run(story)


def lost() -> PartitionData:
    return PartitionData(partition_index=0, error_code=ErrorCode.OFFSET_OUT_OF_RANGE)


def test_what_is_wrong_with_one_partition_holds_up_no_other(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    healthy = follower_log.append

    def broken(partition: Partition, *rest: Any) -> int:
        assert partition.index != 0, "a bug"
        return healthy(partition, *rest)

    async def story(pair: Pair) -> None:
        pair.create(placed(1), placed(1))
        monkeypatch.setattr(follower_log, "append", broken)
        pair.start()
        pair.produce(b"a")
        pair.produce(b"b", index=1)
        await pair.until(lambda: pair.log(1, 1).high_watermark == 1)
        assert pair.replications[2].fetchers[1, 0].machine.failed_partitions == 1
        monkeypatch.setattr(follower_log, "append", healthy)
        await pair.until(lambda: pair.log(1).high_watermark == 1)

    run(story)
    assert "failed on t-0" in caplog.text


def test_an_answer_that_nobody_foresaw_ends_no_fetcher(caplog: pytest.LogCaptureFixture) -> None:
    async def story(pair: Pair) -> None:
        pair.create(placed(1))
        honest, lies = pair._ask, 2

        async def ask(host: str, request: Any, *, timeout_ms: int) -> Any:
            nonlocal lies
            lies -= 1
            return await honest(host, request, timeout_ms=timeout_ms) if lies < 0 else object()

        pair._ask = ask  # type: ignore[method-assign]
        pair.start()
        pair.produce(b"a")
        await pair.until(lambda: pair.log(1).high_watermark == 1)

    run(story)
    assert "starts again" in caplog.text


def test_a_follower_whose_log_dir_fails_leaves_the_session_and_is_not_asked_back_into_the_isr() -> None:
    async def story(pair: Pair) -> None:
        pair.create(placed(1), placed(1))
        pair.start()
        pair.produce(b"a")
        pair.produce(b"b", index=1)
        await pair.until(lambda: pair.log(1).high_watermark == 1 and pair.log(1, 1).high_watermark == 1)
        offline = pair.worlds[2].partition("t", 1)
        offline.log.fail("append", OSError("the dir has gone"))  # type: ignore[union-attr]
        pair.worlds[2].manager._follow_failures()
        assert offline.log is None
        led = pair.worlds[1].partition("t", 1)
        assert led.leadership is not None
        await pair.until(lambda: not led.leadership.replicas[2].is_asking)  # type: ignore[union-attr]
        pair.create(placed(1), replace(placed(1, isr=(1,)), partition_epoch=1))
        pair.produce(b"c", index=1)
        pair.produce(b"d")
        await pair.until(lambda: pair.log(1, 1).high_watermark == 2 and pair.log(1).high_watermark == 2)
        assert not pair.isr_requests

    run(story)


def test_a_cut_that_one_disk_cannot_keep_is_kept_on_the_others() -> None:
    failed: list[object] = []
    synced: list[str] = []

    def fails() -> None:
        raise OSError(5, "Input/output error")

    async def run_blocking(job: Callable[[], T]) -> T:
        return job()

    logs: list[Any] = [SimpleNamespace(fail=lambda what, problem, number=number: (number, str(problem))) for number in range(3)]
    fetcher: Any = SimpleNamespace(
        _runtime=SimpleNamespace(run_blocking=run_blocking), _replicas=SimpleNamespace(storage_failed=failed.append)
    )
    cut = [(logs[0], [fails, lambda: synced.append("not this one")]), (logs[1], [lambda: synced.append("b")]), (logs[2], [fails])]
    asyncio.run(Following._sync(fetcher, cut))
    assert synced == ["b"]
    assert failed == [(0, "[Errno 5] Input/output error"), (2, "[Errno 5] Input/output error")]
