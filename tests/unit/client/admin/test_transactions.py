from __future__ import annotations

from typing import Any

import pytest

from tests.unit.client.scripted import Table, answered
from tidelog.client.admin.results import TransactionListing
from tidelog.client.admin.transactions import describe, force_terminate, list_all
from tidelog.client.calls import TRANSACTION, Ask, Coordinator, Locate, Node
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.describe_transactions import DescribeTransactionsResponse, TopicData
from tidelog.protocol.messages.describe_transactions import TransactionState as Described
from tidelog.protocol.messages.init_producer_id import InitProducerIdResponse
from tidelog.protocol.messages.list_transactions import ListTransactionsResponse, TransactionState
from tidelog.protocol.messages.metadata import MetadataResponse, MetadataResponseBroker

COORDINATOR = Coordinator("pay", TRANSACTION)


class Located(Table):
    """Also says where the coordinator is."""

    def __call__(self, step: Any) -> Any:
        return (4, "h", 1) if isinstance(step, Locate) else super().__call__(step)


def test_every_broker_lists_its_own() -> None:
    brokers = MetadataResponse(brokers=[MetadataResponseBroker(node_id=each) for each in (1, 2)])
    row = TransactionState(transactional_id="pay", producer_id=7, transaction_state="Ongoing")
    table = Table(brokers, ListTransactionsResponse(transaction_states=[row]))
    assert answered(list_all(), table) == [TransactionListing("pay", each, 7, "Ongoing") for each in (1, 2)]
    assert [step.to for step in table.asked] == [None, Node(1), Node(2)]


def test_a_transaction_is_described_by_its_coordinator() -> None:
    state = Described(transactional_id="pay", transaction_start_time_ms=-1, topics=[TopicData(topic="t", partitions=[1, 0])])
    found = answered(describe("pay"), Located(DescribeTransactionsResponse(transaction_states=[state])))
    assert (found.coordinator, found.started_ms, found.partitions) == (4, None, (("t", 0), ("t", 1)))


def test_an_unknown_id_is_not_created_by_ending_it() -> None:
    state = Described(error_code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
    table = Located(DescribeTransactionsResponse(transaction_states=[state]))
    with pytest.raises(KafkaError, match="TRANSACTIONAL_ID_NOT_FOUND"):
        answered(force_terminate("pay"), table)
    assert len(table.asked) == 1


def test_an_end_that_is_under_way_is_waited_for() -> None:
    table = Located(DescribeTransactionsResponse(transaction_states=[Described()]), InitProducerIdResponse())
    answered(force_terminate("pay"), table)
    last = table.asked[-1]
    assert isinstance(last, Ask)
    assert last.to == COORDINATOR
    assert last.code_of is not None
    ending = InitProducerIdResponse(error_code=ErrorCode.CONCURRENT_TRANSACTIONS)
    assert last.code_of(ending) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
