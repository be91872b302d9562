from __future__ import annotations

from collections.abc import Coroutine, Iterator
from types import SimpleNamespace

import pytest

from tests.unit.broker.apis.live import Talk
from tests.unit.broker.apis.transactional import add, ask_init, begin, end, find, init
from tests.unit.broker.node_world import NodeWorld, run
from tidelog.broker.apis.transactions.transactions import init_producer_id
from tidelog.coordinator.partition_for_key import partition_of
from tidelog.coordinator.transaction.transitions import Producer
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ids import TRANSACTION_STATE_TOPIC
from tidelog.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from tidelog.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from tidelog.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tidelog.protocol.messages.describe_transactions import DescribeTransactionsRequest
from tidelog.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from tidelog.testing import Broker

E = ErrorCode

IDEMPOTENT = InitProducerIdRequest(transactional_id=None)


def ask(world: NodeWorld, request: InitProducerIdRequest = IDEMPOTENT) -> InitProducerIdResponse:
    answer = init_producer_id(world.context(4), request)
    return run(answer) if isinstance(answer, Coroutine) else answer


def test_every_producer_gets_an_id_of_its_own_at_epoch_zero() -> None:
    world = NodeWorld()
    answers = [ask(world) for _ in range(5)]
    assert [answer.producer_epoch for answer in answers] == [0] * 5
    assert len({answer.producer_id for answer in answers}) == 5


def test_the_next_block_is_fetched_before_the_first_is_used_up() -> None:
    world = NodeWorld()
    ids = [ask(world).producer_id for _ in range(900)]
    assert len(world.runtime.spawned) == 1
    world.runtime.run_spawned()
    ids += [ask(world).producer_id for _ in range(500)]
    assert ids == list(range(1400))


def test_without_a_controller_the_producer_is_asked_to_come_again() -> None:
    world = NodeWorld()
    world.controller.refuses = KafkaError(ErrorCode.NOT_CONTROLLER)
    assert ask(world).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert world.broker.producer_ids.requested == 0


def test_a_broker_that_is_not_registered_gives_no_ids() -> None:
    world = NodeWorld()
    world.broker.node_id = 9
    assert ask(world).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


@pytest.mark.parametrize(("producer_id", "epoch"), [(5, -1), (-1, 5)])
def test_half_of_a_past_is_no_past(producer_id: int, epoch: int) -> None:
    world = NodeWorld()
    request = InitProducerIdRequest(transactional_id=None, producer_id=producer_id, producer_epoch=epoch)
    assert ask(world, request).error_code == ErrorCode.INVALID_REQUEST


def test_who_is_not_the_coordinator_says_so_without_asking_for_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that is cut off from the controller would wait for them for half a minute."""
    world = NodeWorld()
    elsewhere = SimpleNamespace(find=lambda key: ErrorCode.NOT_COORDINATOR)
    monkeypatch.setattr(world.broker, "transactions", elsewhere)
    answer = init_producer_id(world.context(4), InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1000))
    assert isinstance(answer, InitProducerIdResponse) and answer.error_code == ErrorCode.NOT_COORDINATOR


def test_a_transactional_id_has_a_name() -> None:
    assert ask(NodeWorld(), InitProducerIdRequest(transactional_id="")).error_code == ErrorCode.INVALID_REQUEST


# -- through the wire ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(config={"transaction.state.log.num.partitions": 3, "offsets.topic.num.partitions": 3}) as running:
        running.create_topic("t", partitions=3)
        yield running


@pytest.fixture
def talk(broker: Broker) -> Iterator[Talk]:
    talk = Talk(broker.port)
    find(talk, "any")
    yield talk
    talk.close()


@pytest.mark.parametrize("version", range(6))
def test_a_transactional_id_is_initialised_at_every_version(talk: Talk, version: int) -> None:
    name = f"init-{version}"
    first, second = init(talk, name, version), init(talk, name, version)
    assert (second.producer_id, second.epoch) == (first.producer_id, first.epoch + 1) == (first.producer_id, 1)


def test_the_word_for_fenced_depends_on_what_the_client_knows(talk: Talk) -> None:
    had = init(talk, "fenced")
    init(talk, "fenced")
    init(talk, "fenced")
    told = {version: ask_init(talk, "fenced", version, had).error_code for version in (3, 4, 5)}
    assert told == {3: E.INVALID_PRODUCER_EPOCH, 4: E.PRODUCER_FENCED, 5: E.PRODUCER_FENCED}
    assert {version: add(talk, "fenced", had, ("t", 0), version=version) for version in range(4)} == {
        0: [E.INVALID_PRODUCER_EPOCH],
        1: [E.INVALID_PRODUCER_EPOCH],
        2: [E.PRODUCER_FENCED],
        3: [E.PRODUCER_FENCED],
    }
    assert {version: add_offsets(talk, "fenced", had, version) for version in range(5)} == {
        0: E.INVALID_PRODUCER_EPOCH,
        1: E.INVALID_PRODUCER_EPOCH,
        2: E.PRODUCER_FENCED,
        3: E.PRODUCER_FENCED,
        4: E.PRODUCER_FENCED,
    }
    assert {version: end(talk, "fenced", had, commit=True, version=version).error_code for version in range(6)} == {
        0: E.INVALID_PRODUCER_EPOCH,
        1: E.INVALID_PRODUCER_EPOCH,
        2: E.PRODUCER_FENCED,
        3: E.PRODUCER_FENCED,
        4: E.PRODUCER_FENCED,
        5: E.PRODUCER_FENCED,
    }


def add_offsets(talk: Talk, transactional_id: str, producer: Producer, version: int = 4) -> int:
    request = AddOffsetsToTxnRequest(
        transactional_id=transactional_id, producer_id=producer.producer_id, producer_epoch=producer.epoch, group_id="g"
    )
    return int(talk.ask(request, version).error_code)


def partitions_of(talk: Talk, transactional_id: str) -> list[tuple[str, list[int]]]:
    (state,) = talk.ask(DescribeTransactionsRequest(transactional_ids=[transactional_id]), 0).transaction_states
    return [(topic.topic, topic.partitions) for topic in state.topics]


@pytest.mark.parametrize("version", range(4))
def test_a_producer_adds_partitions_and_ends_the_transaction_at_every_old_version(talk: Talk, version: int) -> None:
    name = f"old-{version}"
    producer = init(talk, name)
    assert add(talk, name, producer, ("t", 0), ("t", 2), version=version) == [0, 0]
    assert partitions_of(talk, name) == [("t", [0, 2])]
    assert end(talk, name, producer, commit=True, version=version).error_code == 0
    assert partitions_of(talk, name) == []
    assert end(talk, name, producer, commit=True, version=version).error_code == 0, "asked twice"
    assert end(talk, name, producer, commit=False, version=version).error_code == E.INVALID_TXN_STATE


def test_one_partition_that_does_not_exist_keeps_all_of_them_out(talk: Talk) -> None:
    producer = init(talk, "missing")
    assert add(talk, "missing", producer, ("t", 0), ("t", 9), ("none", 0)) == [
        E.OPERATION_NOT_ATTEMPTED,
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert partitions_of(talk, "missing") == []


def test_clients_add_no_internal_topics(talk: Talk) -> None:
    """Their markers would go past the coordinator that lives there. As Kafka says."""
    producer = init(talk, "internal")
    for version in range(4):
        assert add(talk, "internal", producer, ("__transaction_state", 0), ("t", 0), version=version) == [
            E.TOPIC_AUTHORIZATION_FAILED,
            E.OPERATION_NOT_ATTEMPTED,
        ]
    assert partitions_of(talk, "internal") == []


def test_the_partition_of_a_groups_offsets_joins_the_transaction(talk: Talk) -> None:
    producer = init(talk, "offsets")
    assert add_offsets(talk, "offsets", producer) == 0
    assert partitions_of(talk, "offsets") == [("__consumer_offsets", [partition_of("g", 3)])]


@pytest.mark.parametrize("version", [4, 5])
def test_brokers_add_and_ask_for_several_transactions_at_once(talk: Talk, version: int) -> None:
    one, two = init(talk, f"b1-{version}"), init(talk, f"b2-{version}")
    assert add(talk, f"b2-{version}", two, ("t", 1)) == [0]

    def transaction(name: str, producer: Producer, *partitions: int, verify: bool) -> AddPartitionsToTxnTransaction:
        return AddPartitionsToTxnTransaction(
            transactional_id=name,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            verify_only=verify,
            topics=[AddPartitionsToTxnTopic(name="t", partitions=list(partitions))],
        )

    request = AddPartitionsToTxnRequest(
        transactions=[
            transaction(f"b1-{version}", one, 0, verify=False),
            transaction(f"b2-{version}", two, 1, 2, verify=True),
            transaction("unknown", two, 1, verify=True),
        ]
    )
    answer = talk.ask(request, version)
    assert [
        (result.transactional_id, [p.partition_error_code for t in result.topic_results for p in t.results_by_partition])
        for result in answer.results_by_transaction
    ] == [
        (f"b1-{version}", [0]),
        (f"b2-{version}", [0, E.TRANSACTION_ABORTABLE]),
        ("unknown", [E.INVALID_PRODUCER_ID_MAPPING]),
    ]
    assert partitions_of(talk, f"b1-{version}") == [("t", [0])] and partitions_of(talk, f"b2-{version}") == [("t", [1])]


def test_the_answer_of_version_5_carries_the_next_epoch_also_when_asked_again(talk: Talk) -> None:
    producer = begin(talk, "v5", ("t", 0))
    answers = [end(talk, "v5", producer, commit=True, version=5) for _ in range(2)]
    assert [(a.error_code, a.producer_id, a.producer_epoch) for a in answers] == [(0, producer.producer_id, 1)] * 2


def test_an_open_transaction_is_aborted_for_whoever_comes_next(broker: Broker, talk: Talk) -> None:
    producer = begin(talk, "taken", ("t", 0))
    assert ask_init(talk, "taken").error_code == E.CONCURRENT_TRANSACTIONS
    assert init(talk, "taken") == Producer(producer.producer_id, producer.epoch + 2)


def test_a_timeout_longer_than_allowed_is_refused(talk: Talk) -> None:
    assert ask_init(talk, "long", timeout_ms=900_001).error_code == E.INVALID_TRANSACTION_TIMEOUT


def test_nobody_coordinates_what_was_never_asked_for() -> None:
    with Broker() as fresh:
        talk = Talk(fresh.port)
        talk.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name=TRANSACTION_STATE_TOPIC)], timeout_ms=10_000), 6)
        assert end(talk, "x", Producer(1, 0), commit=True).error_code == E.NOT_COORDINATOR
        assert add_offsets(talk, "x", Producer(1, 0)) == E.NOT_COORDINATOR
        assert add(talk, "x", Producer(1, 0)) == []
        talk.close()
