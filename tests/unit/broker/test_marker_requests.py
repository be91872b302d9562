from __future__ import annotations

from tidelog.broker.marker_requests import PartitionMarker, errors_of, markers_request
from tidelog.model.errors import ErrorCode as E
from tidelog.model.ids import TopicPartition
from tidelog.protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from tidelog.replication.marker_append import Marker

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
COMMIT = Marker(7, 1, True, 3, 2)
ABORT = Marker(8, 5, False, 3, 2)


def test_a_decision_is_told_once_with_all_of_its_partitions() -> None:
    wanted = [PartitionMarker(A0, COMMIT), PartitionMarker(A1, ABORT), PartitionMarker(B0, COMMIT), PartitionMarker(A1, COMMIT)]
    request = markers_request(wanted)
    told = [
        (
            each.producer_id,
            each.producer_epoch,
            each.transaction_result,
            each.coordinator_epoch,
            each.transaction_version,
            {topic.name: topic.partition_indexes for topic in each.topics},
        )
        for each in request.markers
    ]
    assert told == [(7, 1, True, 3, 2, {"a": [0, 1], "b": [0]}), (8, 5, False, 3, 2, {"a": [1]})]


def test_a_broker_that_knows_version_1_only_is_told_all_but_the_transactions_version() -> None:
    request = markers_request([PartitionMarker(A0, COMMIT)])
    read = WriteTxnMarkersRequest.decode(request.encode(1), 1)
    assert (read.markers[0].producer_epoch, read.markers[0].transaction_version) == (1, 0)


def result(producer_id: int, **errors: int) -> WritableTxnMarkerResult:
    topics = [
        WritableTxnMarkerTopicResult(name, [WritableTxnMarkerPartitionResult(partition_index=0, error_code=code)])
        for name, code in errors.items()
    ]
    return WritableTxnMarkerResult(producer_id=producer_id, topics=topics)


def test_answers_are_told_apart_by_producer_and_partition() -> None:
    response = WriteTxnMarkersResponse(markers=[result(7, a=0, b=6), result(8, a=19)])
    assert errors_of(response) == {(7, A0): E.NONE, (7, B0): E.NOT_LEADER_OR_FOLLOWER, (8, A0): E.NOT_ENOUGH_REPLICAS}


def test_a_broker_that_contradicts_itself_has_no_marker() -> None:
    for codes in ((0, 6), (6, 0)):
        response = WriteTxnMarkersResponse(markers=[result(7, a=code) for code in codes])
        assert errors_of(response) == {(7, A0): E.NOT_LEADER_OR_FOLLOWER}


def test_no_other_broker_can_say_that_a_partition_is_gone_for_good_and_unknown_codes_are_failures() -> None:
    response = WriteTxnMarkersResponse(markers=[result(7, a=100, b=9999)])
    assert errors_of(response) == {(7, A0): E.UNKNOWN_TOPIC_OR_PARTITION, (7, B0): E.UNKNOWN_SERVER_ERROR}
