"""Fetches that are applied in the callback of the connection: ``Pair`` hands every answer to it first."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.server.replica_pair import VERSION, Pair, contents, placed, run
from tidelog.client.connection import ClientConnection
from tidelog.client.net.async_connection import Over
from tidelog.model.ids import Uuid
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.framing import encode_response
from tidelog.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from tidelog.replication.fetcher import Append, FetcherSettings, PlainRequest
from tidelog.replication.partition import Partition
from tidelog.server.replication.plain_fetches import LARGEST_BYTES, Applied, PlainFetches
from tidelog.storage.log_config import LogConfig

ID = Uuid(b"i" * 16)


def test_under_load_the_next_request_leaves_from_within_the_answer() -> None:
    async def story(pair: Pair) -> None:
        pair.create(placed(1), placed(1))
        pair.start()
        await pair.until(lambda: pair.plain_requests > 0)
        for number in range(20):
            pair.produce(b"%d" % number, index=number % 2)
            await pair.until(lambda number=number: pair.log(1, number % 2).high_watermark == number // 2 + 1)  # type: ignore[misc]
        assert contents(pair.log(1)) == contents(pair.log(2)) and contents(pair.log(1, 1)) == contents(pair.log(2, 1))
        assert pair.plain_requests >= 20
        # A partition that comes now is named by a generic request, and the exchange goes on with it.
        before = pair.plain_requests
        pair.create(placed(1), placed(1), placed(1))
        pair.produce(b"new", index=2)
        await pair.until(lambda: pair.log(1, 2).high_watermark == 1 and pair.plain_requests > before)

    run(story)


def test_a_topic_that_demands_flushes_is_flushed_before_the_next_request() -> None:
    async def story(pair: Pair) -> None:
        pair.create(placed(1), config=LogConfig(flush_messages=1))
        pair.start()
        await pair.until(lambda: pair.plain_requests > 0)
        for number in range(3):
            pair.produce(b"v")
            await pair.until(lambda number=number: pair.log(1).high_watermark == number + 1)  # type: ignore[misc]
            assert pair.log(2).recovery_point == number + 1

    run(story)


class Fetcher:
    """A machine whose answers the test chooses."""

    def __init__(self) -> None:
        self.machine: Any = self
        self.request: PlainRequest | None = PlainRequest(500, 7, 3, [])
        self.tasks: list[Any] | None = []
        self.problem: Exception | None = None
        self.faulty: Any = None
        self.refused: list[Any] = []

    def answered_plainly(self, _answer: object) -> Any:
        return self.tasks

    def plain_request(self, _now_ms: int) -> PlainRequest | None:
        if self.problem is not None:
            raise self.problem
        return self.request

    def append(self, task: Append, unflushed: list[tuple[Partition, int]]) -> None:
        if task.followed is self.faulty:
            raise RuntimeError("a bug")
        unflushed.append((task.followed.partition, 4))

    def refuse(self, followed: Any, _now_ms: int) -> None:
        self.refused.append(followed)


class Exchange:
    """One answer to request 0, with ``size`` bytes of batches."""

    def __init__(
        self, fetcher: Fetcher, *, version: int = VERSION, size: int = 0, paused: bool = False, ends: bool = False
    ) -> None:
        plain = PlainFetches(fetcher, 2, FetcherSettings(), lambda: 5, lambda: 0, lambda: 0.0)
        self.connection = ClientConnection("node")
        self.connection.sent(ApiKey.FETCH, version)
        line: Any = SimpleNamespace(machine=self.connection, paused=paused, session_ends=lambda _: ends)
        parts = [PartitionData(aborted_transactions=None, records=bytes(size))]
        answer = FetchResponse(session_id=7, responses=[FetchableTopicResponse(topic_id=ID, partitions=parts)])
        self.taken = plain.on_frame(line, memoryview(encode_response(0, True, answer.encode(VERSION)))[4:])

    @property
    def awaits(self) -> int:
        """The correlation id of the answer that the connection waits for."""
        return self.connection.oldest()[0]


def test_the_next_request_has_the_next_correlation_id() -> None:
    exchange = Exchange(Fetcher())
    assert isinstance(exchange.taken, bytes) and exchange.taken[8:12] == b"\0\0\0\1" and exchange.awaits == 1


@pytest.mark.parametrize("case", [{"version": 14}, {"size": LARGEST_BYTES}])
def test_old_versions_and_large_answers_are_left_alone(case: dict[str, int]) -> None:
    exchange = Exchange(Fetcher(), **case)  # type: ignore[arg-type]
    assert exchange.taken is None and exchange.awaits == 0


def test_the_answer_of_another_session_is_left_alone() -> None:
    fetcher = Fetcher()
    fetcher.tasks = None
    exchange = Exchange(fetcher)
    assert exchange.taken is None and exchange.awaits == 0


@pytest.mark.parametrize("case", [{"paused": True}, {"ends": True}])
def test_a_line_that_may_not_send_now_ends_the_exchange(case: dict[str, bool]) -> None:
    assert Exchange(Fetcher(), **case).taken == Over(Applied([]))


def test_a_request_that_is_not_plain_ends_the_exchange() -> None:
    fetcher = Fetcher()
    fetcher.request = None
    assert Exchange(fetcher).taken == Over(Applied([]))


def test_logs_to_flush_end_the_exchange() -> None:
    fetcher = Fetcher()
    followed: Any = SimpleNamespace(partition="p", is_current=True)
    fetcher.tasks = [Append(followed, b"", 0, 0)]
    assert Exchange(fetcher).taken == Over(Applied([("p", 4)]))  # type: ignore[list-item]


def test_of_several_partitions_only_those_still_followed_are_appended() -> None:
    fetcher = Fetcher()
    tasks: list[Any] = [SimpleNamespace(partition=name, is_current=name != "gone") for name in ("a", "gone", "b")]
    fetcher.tasks = [Append(each, b"", 0, 0) for each in tasks]
    assert Exchange(fetcher).taken == Over(Applied([("a", 4), ("b", 4)]))  # type: ignore[list-item]


def test_a_fault_in_one_partition_does_not_hold_up_the_others(caplog: pytest.LogCaptureFixture) -> None:
    fetcher = Fetcher()
    tasks: list[Any] = [SimpleNamespace(partition=SimpleNamespace(topic_partition=each), is_current=True) for each in "ab"]
    fetcher.tasks = [Append(each, b"", 0, 0) for each in tasks]
    fetcher.faulty = tasks[0]
    assert Exchange(fetcher).taken == Over(Applied([(tasks[1].partition, 4)]))
    assert fetcher.refused == [tasks[0]] and "failed on a" in caplog.text


def test_an_error_goes_to_the_fetcher() -> None:
    fetcher = Fetcher()
    fetcher.problem = RuntimeError("a bug")
    taken = Exchange(fetcher).taken
    assert isinstance(taken, Over) and taken.result is fetcher.problem
