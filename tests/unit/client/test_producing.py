"""A transaction without a socket: what is asked under each protocol, how batches are numbered, what errors mean."""

from __future__ import annotations

import pytest

from tidelog.client.producing import (
    Appended,
    Transaction,
    Verdict,
    highest_version,
    joins_by_writing,
    judge,
    produce_request,
    read_produced,
)
from tidelog.model.errors import ErrorCode, ProtocolViolation
from tidelog.model.ids import TopicPartition
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from tidelog.protocol.messages.end_txn import EndTxnResponse
from tidelog.protocol.messages.init_producer_id import InitProducerIdResponse
from tidelog.protocol.messages.produce import LeaderIdAndEpoch, PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from tidelog.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from tidelog.records.batch import MAX_SEQUENCE, crc_is_valid, read_header
from tidelog.records.builder import RecordData, build_batch

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def begun(*, implicit: bool = True) -> Transaction:
    transaction = Transaction("id", 1000, implicit=implicit)
    request = transaction.begin_request()
    assert (request.transactional_id, request.transaction_timeout_ms, request.producer_id) == ("id", 1000, -1)
    assert transaction.began(InitProducerIdResponse(producer_id=7, producer_epoch=3)) == ErrorCode.NONE
    return transaction


def batch(count: int = 2) -> bytearray:
    return build_batch([RecordData(b"k", b"v", 5)] * count)


def joined(*codes: ErrorCode) -> AddPartitionsToTxnResponse:
    parts = [AddPartitionsToTxnPartitionResult(partition_index=i, partition_error_code=code) for i, code in enumerate(codes)]
    return AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=[AddPartitionsToTxnTopicResult(name="t", results_by_partition=parts)]
    )


def test_batches_of_a_partition_are_numbered_on_and_checked_anew() -> None:
    transaction = begun()
    headers = [read_header(bytes(transaction.stamped(at, batch()))) for at in (T0, T0, T1)]
    assert [header.base_sequence for header in headers] == [0, 2, 0]
    stamped = transaction.stamped(T0, batch())
    header = read_header(stamped)
    assert (header.producer_id, header.producer_epoch, header.is_transactional) == (7, 3, True)
    assert crc_is_valid(stamped, header)


def test_sequence_numbers_begin_again_after_the_last_one() -> None:
    transaction = begun()
    transaction._sequences[T0] = MAX_SEQUENCE
    assert read_header(transaction.stamped(T0, batch(3))).base_sequence == MAX_SEQUENCE
    assert read_header(transaction.stamped(T0, batch())).base_sequence == 2


def test_under_version_2_partitions_and_groups_join_by_being_written_to() -> None:
    transaction = begun()
    assert transaction.joining_request([T0]) is None
    assert transaction.group_joining_request("g") is None
    assert [transaction.highest(key) for key in (ApiKey.PRODUCE, ApiKey.TXN_OFFSET_COMMIT, ApiKey.END_TXN)] == [12, 5, 5]


def test_before_it_they_are_added_once_and_never_in_versions_that_mean_the_other() -> None:
    transaction = begun(implicit=False)
    request = transaction.joining_request([T1, T0, T1])
    assert request is not None
    assert [(topic.name, topic.partitions) for topic in request.v3_and_below_topics] == [("t", [0, 1])]
    assert transaction.joined(joined(ErrorCode.NONE, ErrorCode.NONE)) == ErrorCode.NONE
    assert transaction.joining_request([T0, T1]) is None
    group = transaction.group_joining_request("g")
    assert group is not None and group.group_id == "g"
    assert [transaction.highest(key) for key in (ApiKey.PRODUCE, ApiKey.TXN_OFFSET_COMMIT, ApiKey.END_TXN)] == [11, 4, 4]


def test_a_partition_that_spoils_it_for_the_others_is_the_reason() -> None:
    transaction = begun(implicit=False)
    transaction.joining_request([T0, T1])
    said = joined(ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert transaction.joined(said) == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert not transaction.open


def test_what_passes_leaves_it_open_and_what_it_does_not_survive_is_never_committed() -> None:
    transaction = begun()
    transaction.produced(Appended(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, None, None))
    assert transaction.open
    transaction.produced(Appended(ErrorCode.TRANSACTION_ABORTABLE, -1, None, None))
    assert not transaction.open
    with pytest.raises(AssertionError):
        transaction.end_request(True)
    assert transaction.end_request(False).committed is False


def test_it_ends_when_the_coordinator_says_so() -> None:
    transaction = begun()
    assert not transaction.over
    offset = transaction.offset_request("g", "t", 9, ["te", "xt"])
    parts = [(part.partition_index, part.committed_offset, part.committed_metadata) for part in offset.topics[0].partitions]
    assert (parts, offset.producer_epoch) == ([(0, 9, "te"), (1, 9, "xt")], 3)
    taken = TxnOffsetCommitResponse(
        topics=[TxnOffsetCommitResponseTopic(name="t", partitions=[TxnOffsetCommitResponsePartition(partition_index=0)])]
    )
    assert transaction.offset_taken(taken) == ErrorCode.NONE
    assert transaction.ended(EndTxnResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)) != ErrorCode.NONE
    assert transaction.end_request(True).committed
    assert transaction.ended(EndTxnResponse()) == ErrorCode.NONE
    assert transaction.over
    with pytest.raises(AssertionError):
        transaction.stamped(T0, batch())


def test_answers_that_leave_something_out_are_no_answers() -> None:
    with pytest.raises(ProtocolViolation, match="without t-1"):
        read_produced(produced(0), [T0, T1])
    with pytest.raises(ProtocolViolation, match="with nothing"):
        begun().offset_taken(TxnOffsetCommitResponse())


def produced(code: int, leader: int = -1) -> ProduceResponse:
    part = PartitionProduceResponse(
        index=0, error_code=code, base_offset=4, error_message="why", current_leader=LeaderIdAndEpoch(leader, 2)
    )
    return ProduceResponse(responses=[TopicProduceResponse(name="t", partition_responses=[part])])


def test_a_produce_has_a_batch_a_partition_and_its_answer_is_read() -> None:
    request = produce_request({T0: b"a", T1: b"b", TopicPartition("u", 0): b"c"}, None, 50)
    assert [(t.name, [p.index for p in t.partition_data]) for t in request.topic_data] == [("t", [0, 1]), ("u", [0])]
    assert (request.acks, request.timeout_ms) == (-1, 50)
    found = read_produced(produced(6, leader=3), [T0])[T0]
    assert (found.error, found.base_offset, found.message) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 4, "why")
    assert found.leader is not None and found.leader.broker == 3
    assert read_produced(produced(30_000), [T0])[T0].error == ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        ("NONE", "DONE"),
        ("DUPLICATE_SEQUENCE_NUMBER", "DONE"),
        ("CONCURRENT_TRANSACTIONS", "RETRY"),
        ("COORDINATOR_LOAD_IN_PROGRESS", "RETRY"),
        ("NOT_ENOUGH_REPLICAS_AFTER_APPEND", "RETRY"),
        ("UNSTABLE_OFFSET_COMMIT", "RETRY"),
        ("NOT_COORDINATOR", "REFRESH"),
        ("OUT_OF_ORDER_SEQUENCE_NUMBER", "ABORT"),
        ("INVALID_TXN_STATE", "ABORT"),
        ("PRODUCER_FENCED", "FENCED"),
        ("INVALID_PRODUCER_EPOCH", "FENCED"),
        ("TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "FAIL"),
        ("MESSAGE_TOO_LARGE", "FAIL"),
    ],
)
def test_errors_are_sorted_by_what_survives_them(error: str, verdict: str) -> None:
    assert judge(ErrorCode[error]) is Verdict[verdict]


def test_the_cluster_says_which_protocol_it_is() -> None:
    assert joins_by_writing({"transaction.version": 2})
    assert not joins_by_writing({"transaction.version": 1})
    assert not joins_by_writing({})
    assert highest_version(ApiKey.INIT_PRODUCER_ID, True) == 5
