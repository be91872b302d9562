"""What a transactional producer says, in few words, for tests through the wire."""

from __future__ import annotations

import time

from tests.unit.broker.apis.live import RETRY, Talk
from tidelog.coordinator.transaction.transitions import Producer
from tidelog.model.errors import ErrorCode as E
from tidelog.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from tidelog.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from tidelog.protocol.messages.find_coordinator import FindCoordinatorRequest
from tidelog.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

PATIENCE_S = 10


def find(talk: Talk, transactional_id: str) -> None:
    """Asks for the coordinator until there is one and it is loaded, as a client does."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        answer = talk.ask(FindCoordinatorRequest(key_type=1, coordinator_keys=[transactional_id]), 4).coordinators[0]
        if answer.error_code not in RETRY:
            assert answer.error_code == 0, answer
            return
        time.sleep(0.01)
    raise AssertionError(f"no coordinator in {PATIENCE_S} s")


def ask_init(
    talk: Talk, transactional_id: str | None, version: int = 5, had: Producer | None = None, timeout_ms: int = 60_000
) -> InitProducerIdResponse:
    """One question, until the coordinator is loaded."""
    request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=timeout_ms)
    if had is not None:
        request.producer_id, request.producer_epoch = had.producer_id, had.epoch
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        answer: InitProducerIdResponse = talk.ask(request, version)
        if answer.error_code not in RETRY:
            return answer
        time.sleep(0.01)
    raise AssertionError(f"no answer in {PATIENCE_S} s")


def init(talk: Talk, transactional_id: str, version: int = 5, had: Producer | None = None) -> Producer:
    """As a client does: asks again while an open transaction is being aborted."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        answer = ask_init(talk, transactional_id, version, had)
        if answer.error_code != E.CONCURRENT_TRANSACTIONS:
            assert answer.error_code == 0, answer
            return Producer(answer.producer_id, answer.producer_epoch)
        time.sleep(0.01)
    raise AssertionError(f"no producer id in {PATIENCE_S} s")


def add(talk: Talk, transactional_id: str, producer: Producer, *partitions: tuple[str, int], version: int = 3) -> list[int]:
    """The errors of AddPartitionsToTxn by partition, in their order."""
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=[index]) for topic, index in partitions],
    )
    answer = talk.ask(request, version).results_by_topic_v3_and_below
    return [int(result.partition_error_code) for topic in answer for result in topic.results_by_partition]


def begin(talk: Talk, transactional_id: str, *partitions: tuple[str, int]) -> Producer:
    """A producer with an open transaction."""
    producer = init(talk, transactional_id)
    assert set(add(talk, transactional_id, producer, *partitions)) == {0}
    return producer


def end(talk: Talk, transactional_id: str, producer: Producer, *, commit: bool, version: int = 4) -> EndTxnResponse:
    """One EndTxn."""
    request = EndTxnRequest(
        transactional_id=transactional_id, producer_id=producer.producer_id, producer_epoch=producer.epoch, committed=commit
    )
    answer: EndTxnResponse = talk.ask(request, version)
    return answer
