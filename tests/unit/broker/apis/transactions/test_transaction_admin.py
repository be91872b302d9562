"""DescribeTransactions and ListTransactions through the wire."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.broker.apis.live import Talk
from tests.unit.broker.apis.transactional import begin, find, init
from tidelog.model.errors import ErrorCode as E
from tidelog.protocol.messages.describe_transactions import DescribeTransactionsRequest
from tidelog.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from tidelog.testing import Broker


@pytest.fixture(scope="module")
def talk() -> Iterator[Talk]:
    with Broker(config={"transaction.state.log.num.partitions": 3}) as broker:
        talk = Talk(broker.port)
        broker.create_topic("t", partitions=2)
        find(talk, "open")
        begin(talk, "open", ("t", 0), ("t", 1))
        init(talk, "empty")
        yield talk
        talk.close()


def listed(answer: ListTransactionsResponse) -> dict[str, str]:
    assert answer.error_code == 0
    return {state.transactional_id: state.transaction_state for state in answer.transaction_states}


def test_ids_are_described_wherever_they_live(talk: Talk) -> None:
    answer = talk.ask(DescribeTransactionsRequest(transactional_ids=["open", "empty", "none", ""]), 0).transaction_states
    assert [(state.error_code, state.transaction_state) for state in answer] == [
        (0, "Ongoing"),
        (0, "Empty"),
        (E.TRANSACTIONAL_ID_NOT_FOUND, ""),
        (E.INVALID_REQUEST, ""),
    ]
    assert [(topic.topic, topic.partitions) for topic in answer[0].topics] == [("t", [0, 1])]
    assert answer[0].transaction_start_time_ms > 0 > answer[1].transaction_start_time_ms


@pytest.mark.parametrize("version", range(3))
def test_ids_are_listed_by_state_and_producer_at_every_version(talk: Talk, version: int) -> None:
    assert listed(talk.ask(ListTransactionsRequest(), version)) == {"open": "Ongoing", "empty": "Empty"}
    answer = talk.ask(ListTransactionsRequest(state_filters=["Ongoing", "Nonsense"]), version)
    assert (answer.unknown_state_filters, listed(answer)) == (["Nonsense"], {"open": "Ongoing"})
    producer_id = next(s.producer_id for s in answer.transaction_states)
    assert list(listed(talk.ask(ListTransactionsRequest(producer_id_filters=[producer_id]), version))) == ["open"]


def test_a_duration_and_a_pattern_narrow_the_list(talk: Talk) -> None:
    assert list(listed(talk.ask(ListTransactionsRequest(duration_filter=3_600_000, state_filters=["Ongoing"]), 1))) == []
    assert list(listed(talk.ask(ListTransactionsRequest(transactional_id_pattern="em.*"), 2))) == ["empty"]
    refused = talk.ask(ListTransactionsRequest(transactional_id_pattern="(em"), 2)
    assert (refused.error_code, refused.transaction_states) == (E.INVALID_REGULAR_EXPRESSION, [])


def test_a_transaction_has_lasted_no_longer_where_the_clock_was_set_meanwhile() -> None:
    with Broker(config={"transaction.state.log.num.partitions": 3}) as broker:
        talk = Talk(broker.port)
        broker.create_topic("t")
        find(talk, "open")
        begin(talk, "open", ("t", 0))
        runtime = broker._host.thread.running().runtime
        set_ms = runtime.now_ms() + 7_200_000
        runtime.now_ms = lambda: set_ms
        talk.close()
        talk = Talk(broker.port)
        assert listed(talk.ask(ListTransactionsRequest(duration_filter=3_600_000), 1)) == {}
        talk.close()
