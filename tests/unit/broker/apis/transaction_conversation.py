"""One long conversation about transactions, held with Apache Kafka 4.3.1 once and with tidelog in each test run.

``python -m tests.unit.broker.apis.transaction_conversation PORT LEVEL`` prints what a broker answers whose transaction.version is
LEVEL; ``tests/golden/transactions`` has what Kafka did. The broker is new, has three partitions in each internal topic, and looks
for transactions that take too long twice a second or more. What only newer clients do is left out below level 2: Kafka fails
there.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

from tests.unit.broker.apis.live import RETRY, Talk
from tests.unit.broker.apis.transactional import add, ask_init, begin, end, find, init
from tidelog.coordinator.transaction.transitions import Producer
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from tidelog.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from tidelog.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tidelog.protocol.messages.describe_transactions import DescribeTransactionsRequest
from tidelog.protocol.messages.end_txn import EndTxnResponse
from tidelog.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from tidelog.protocol.messages.list_transactions import ListTransactionsRequest

Said = Iterator[tuple[str, object]]
NOBODY = Producer(424_242, 0)
AT_REST = ("Empty", "Ongoing", "CompleteCommit", "CompleteAbort")


class Conversation(Talk):
    """A connection that knows the cluster's transaction.version."""

    def __init__(self, port: int, level: int) -> None:
        super().__init__(port)
        self.old_and_new = (False, True) if level >= 2 else (False,)
        self.end_versions = (4, 5) if level >= 2 else (4,)


def conversation(port: int, level: int) -> list[str]:
    """What was asked and what was answered, a line each."""
    talk = Conversation(port, level)
    topic = CreatableTopic(name="t", num_partitions=3, replication_factor=1)
    talk.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7)
    find(talk, "x")
    ask_init(talk, None)
    parts = (_refusals, _strangers, _ends, _additions, _inits, _timeouts, _lists)
    lines = [f"{asked}: {answered}" for part in parts for asked, answered in part(talk)]
    talk.close()
    return lines


def _name(code: int) -> str:
    return ErrorCode(code).name


def _state(talk: Talk, name: str) -> str:
    """What DescribeTransactions says once no marker is missing."""
    while True:
        (state,) = talk.ask(DescribeTransactionsRequest(transactional_ids=[name]), 0).transaction_states
        if not state.transaction_state.startswith("Prepare"):
            break
        time.sleep(0.005)
    if state.error_code:
        return _name(state.error_code)
    partitions = sorted(f"{topic.topic}-{index}" for topic in state.topics for index in topic.partitions)
    begun = "begun" if state.transaction_start_time_ms > 0 else "not begun"
    return f"{state.transaction_state} e{state.producer_epoch} {state.transaction_timeout_ms} ms {begun} {' '.join(partitions)}"


def _init_said(answer: InitProducerIdResponse, had: Producer | None = None) -> str:
    if answer.error_code:
        return _name(answer.error_code)
    which = "" if had is None else " same id" if answer.producer_id == had.producer_id else " other id"
    return f"e{answer.producer_epoch}{which}"


def _end_said(answer: EndTxnResponse) -> str:
    name = _name(answer.error_code)
    return name if answer.producer_id < 0 else f"{name} e{answer.producer_epoch}"


def _between_brokers(talk: Talk, name: str, producer: Producer, *partitions: tuple[str, int], verify: bool) -> str:
    transaction = AddPartitionsToTxnTransaction(
        transactional_id=name,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        verify_only=verify,
        topics=[AddPartitionsToTxnTopic(name=topic, partitions=[index]) for topic, index in partitions],
    )
    answer = talk.ask(AddPartitionsToTxnRequest(transactions=[transaction]), 4)
    results = sorted(
        (topic.name, result.partition_index, _name(result.partition_error_code))
        for each in answer.results_by_transaction
        for topic in each.topic_results
        for result in topic.results_by_partition
    )
    return " ".join(f"{topic}-{index}={error}" for topic, index, error in results)


def _added(talk: Talk, name: str, producer: Producer, *partitions: tuple[str, int], version: int = 3) -> str:
    return " ".join(sorted(_name(error) for error in add(talk, name, producer, *partitions, version=version)))


# -- the parts ---------------------------------------------------------------------------------------------------------------


def _refusals(talk: Conversation) -> Said:
    for version in range(6):
        request = InitProducerIdRequest(transactional_id="", transaction_timeout_ms=1000)
        yield f"init of the empty id v{version}", _name(talk.ask(request, version).error_code)
    for timeout_ms in (0, -1, 900_001, 2_147_483_647):
        yield f"init with {timeout_ms} ms", _init_said(ask_init(talk, "timeout", timeout_ms=timeout_ms))
    for producer_id, epoch in ((5, -1), (-1, 5)):
        for name in (None, "half"):
            answer = ask_init(talk, name, had=Producer(producer_id, epoch))
            yield f"init of {name} that had {producer_id} e{epoch}", _init_said(answer)
    yield "init without a name, with a past", _init_said(ask_init(talk, None, had=Producer(5, 3)))
    had = Producer(77, 3)
    yield "init of a new name, with a past", _init_said(ask_init(talk, "past", had=had), had)


def _strangers(talk: Conversation) -> Said:
    for version in range(6):
        yield f"end of nothing v{version}", _end_said(end(talk, "none", NOBODY, commit=True, version=version))
        yield f"end of the empty id v{version}", _end_said(end(talk, "", NOBODY, commit=True, version=version))
    for version in range(4):
        yield f"add to nothing v{version}", _added(talk, "none", NOBODY, ("t", 0), version=version)
    yield "add to the empty id", _added(talk, "", NOBODY, ("t", 0))
    yield "add what is not there", _added(talk, "none", NOBODY, ("t", 0), ("nope", 1), ("t", 9))
    for verify in (True, False):
        yield f"broker, nothing, verify={verify}", _between_brokers(talk, "none", NOBODY, ("t", 0), verify=verify)
        yield f"broker, empty id, verify={verify}", _between_brokers(talk, "", NOBODY, ("t", 0), verify=verify)
        missing = _between_brokers(talk, "none", NOBODY, ("t", 0), ("nope", 1), verify=verify)
        yield f"broker, not there, verify={verify}", missing
    yield "describe nothing", _state(talk, "none")
    yield "describe the empty id", _state(talk, "")


def _ends(talk: Conversation) -> Said:
    for version in talk.end_versions:
        for state in AT_REST:
            for step in (-2, -1, 0, 1):
                for commit in (True, False):
                    name = f"end-{version}-{state}-{step}-{commit}"
                    producer = _brought_to(talk, name, state, version)
                    answer = end(
                        talk, name, Producer(producer.producer_id, producer.epoch + step), commit=commit, version=version
                    )
                    yield name, f"{_end_said(answer)}, then {_state(talk, name)}"


def _brought_to(talk: Talk, name: str, state: str, version: int) -> Producer:
    """A producer whose id is in ``state``, two epochs after its first."""
    producer = [init(talk, name) for _ in range(3)][-1]
    if state == "Empty":
        return producer
    add(talk, name, producer, ("t", 0), ("t", 1))
    if state == "Ongoing":
        return producer
    answer = end(talk, name, producer, commit=state == "CompleteCommit", version=version)
    assert answer.error_code == 0, answer
    _state(talk, name)
    return Producer(answer.producer_id, answer.producer_epoch) if version >= 5 else producer


def _additions(talk: Conversation) -> Said:
    for state in ("Empty", "Ongoing", "CompleteCommit"):
        for step in (-1, 0, 1):
            for by_broker in talk.old_and_new:
                name = f"add-{state}-{step}-{by_broker}"
                producer = _brought_to(talk, name, state, 4)
                asked = Producer(producer.producer_id, producer.epoch + step)
                if by_broker:
                    yield name, _between_brokers(talk, name, asked, ("t", 0), ("t", 1), verify=False)
                else:
                    yield name, _added(talk, name, asked, ("t", 0), ("t", 1))
                yield f"{name} state", _state(talk, name)
                yield f"{name} verify", _between_brokers(talk, name, asked, ("t", 0), ("t", 2), verify=True)
                other = Producer(asked.producer_id + 1000, asked.epoch)
                yield f"{name} other id", _added(talk, name, other, ("t", 0))
                for version in (1, 2, talk.end_versions[-1]):
                    yield f"{name} end other id v{version}", _end_said(end(talk, name, other, commit=False, version=version))


def _inits(talk: Conversation) -> Said:
    for version in talk.end_versions:
        for state in AT_REST:
            for step in (None, -2, -1, 0, 1):
                name = f"init-{version}-{state}-{step}"
                producer = init(talk, name)
                producer = init(talk, name, had=producer)
                if state != "Empty":
                    add(talk, name, producer, ("t", 0))
                if state.startswith("Complete"):
                    answer = end(talk, name, producer, commit=state == "CompleteCommit", version=version)
                    if version >= 5:
                        producer = Producer(answer.producer_id, answer.producer_epoch)
                    _state(talk, name)
                had = None if step is None else Producer(producer.producer_id, producer.epoch + step)
                for turn in range(3):
                    said = _init_said(ask_init(talk, name, had=had), producer)
                    yield f"{name} #{turn}", f"{said}, then {_state(talk, name)}"
                stranger = Producer(producer.producer_id + 1000, producer.epoch)
                yield f"{name} stranger", _init_said(ask_init(talk, name, had=stranger))


def _timeouts(talk: Conversation) -> Said:
    for by_broker in talk.old_and_new:
        name = f"timeout-{by_broker}"
        answer = ask_init(talk, name, timeout_ms=100)
        producer = Producer(answer.producer_id, answer.producer_epoch)
        if by_broker:
            _between_brokers(talk, name, producer, ("t", 0), verify=False)
        else:
            add(talk, name, producer, ("t", 0))
        while (state := _state(talk, name)).startswith("Ongoing"):
            time.sleep(0.01)
        yield name, state
        for version in talk.end_versions:
            for commit in (True, False):
                said = _end_said(end(talk, name, producer, commit=commit, version=version))
                yield f"{name} end v{version} commit={commit}", said
        yield f"{name} add", _added(talk, name, producer, ("t", 0))
        for turn in range(2):
            yield f"{name} init #{turn}", _init_said(ask_init(talk, name, had=producer), producer)


def _lists(talk: Conversation) -> Said:
    producer = begin(talk, "list-open", ("t", 0))
    init(talk, "list-empty")
    time.sleep(0.003)  # "longer than 0 ms" is asked: the clock has to move on by one
    requests = {
        "all": ListTransactionsRequest(),
        "open": ListTransactionsRequest(state_filters=["Ongoing"]),
        "unknown states": ListTransactionsRequest(state_filters=["X", "ongoing"]),
        "many states": ListTransactionsRequest(state_filters=["X", "Ongoing", "Empty", "PrepareEpochFence", "Dead"]),
        "producer": ListTransactionsRequest(producer_id_filters=[producer.producer_id]),
    }
    requests |= {f"{ms} ms": ListTransactionsRequest(duration_filter=ms) for ms in (0, 1_000_000, -5)}
    patterns = ("list-open", "list.*", ".*open", "", "list", "(", "^list.*$", "(?=a)")
    requests |= {f"pattern {pattern!r}": ListTransactionsRequest(transactional_id_pattern=pattern) for pattern in patterns}
    for kind, request in requests.items():
        answer = talk.ask(request, 2)
        names = sorted(
            f"{state.transactional_id}={state.transaction_state}"
            for state in answer.transaction_states
            if state.transactional_id.startswith("list-")
        )
        yield f"list {kind}", f"{_name(answer.error_code)} {answer.unknown_state_filters} {' '.join(names)}"
    for version in range(5):
        request = AddOffsetsToTxnRequest(
            transactional_id="list-open", producer_id=producer.producer_id, producer_epoch=producer.epoch, group_id="g"
        )
        while (code := talk.ask(request, version).error_code) in RETRY:
            time.sleep(0.01)
        yield f"offsets v{version}", _name(code)
    yield "offsets state", _state(talk, "list-open")


if __name__ == "__main__":
    print("\n".join(conversation(int(sys.argv[1]), int(sys.argv[2]))))
