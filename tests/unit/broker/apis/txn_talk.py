"""A transactional producer of single messages, for tests at the level of the wire."""

from __future__ import annotations

import time
from typing import Any

from tests.unit.broker.apis.live import RETRY, Talk
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from tidelog.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from tidelog.protocol.messages.end_txn import EndTxnRequest
from tidelog.protocol.messages.find_coordinator import FindCoordinatorRequest
from tidelog.protocol.messages.init_producer_id import InitProducerIdRequest
from tidelog.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tidelog.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tidelog.records.builder import RecordData, build_batch

OLD_PRODUCE = 9
"""A version at which a producer adds its partitions itself."""


class TransactionalTalk:
    """One transactional id of the protocol before transaction.version 2."""

    def __init__(self, talk: Talk, name: str) -> None:
        self.talk = talk
        self.name = name
        self.sequences: dict[tuple[str, int], int] = {}
        self._ask_until_there(FindCoordinatorRequest(key_type=1, coordinator_keys=[name]), 4)
        answer = self._ask_until_there(InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000), 4)
        self.producer_id: int = answer.producer_id
        self.epoch: int = answer.producer_epoch

    def _ask_until_there(self, request: Any, version: int) -> Any:
        """A coordinator that is being created or loaded asks for patience, and so do transactions that are just ending."""
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            answer = self.talk.ask(request, version)
            error = answer.coordinators[0].error_code if isinstance(request, FindCoordinatorRequest) else answer.error_code
            if error not in {*RETRY, ErrorCode.CONCURRENT_TRANSACTIONS}:
                assert error == 0, answer
                return answer
            time.sleep(0.01)
        raise AssertionError(f"no answer but try again to {request}")

    def add(self, topic: str, *partitions: int) -> None:
        """AddPartitionsToTxn."""
        deadline = time.monotonic() + 20
        errors = {ErrorCode.CONCURRENT_TRANSACTIONS}
        while errors & {ErrorCode.CONCURRENT_TRANSACTIONS} and time.monotonic() < deadline:
            answer = self.talk.ask(
                AddPartitionsToTxnRequest(
                    v3_and_below_transactional_id=self.name,
                    v3_and_below_producer_id=self.producer_id,
                    v3_and_below_producer_epoch=self.epoch,
                    v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))],
                ),
                3,
            )
            topics = answer.results_by_topic_v3_and_below
            errors = {part.partition_error_code for result in topics for part in result.results_by_partition}
        assert errors == {0}, answer

    def add_offsets(self, group: str) -> None:
        """AddOffsetsToTxn."""
        self._ask_until_there(
            AddOffsetsToTxnRequest(
                transactional_id=self.name, producer_id=self.producer_id, producer_epoch=self.epoch, group_id=group
            ),
            3,
        )

    def produce(self, topic: str, partition: int = 0, value: bytes = b"v", version: int = OLD_PRODUCE) -> int:
        """One record; the error."""
        sequence = self.sequences.get((topic, partition), 0)
        batch = build_batch(
            [RecordData(b"k", value, int(time.time() * 1000))],
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            transactional=True,
        )
        data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=partition, records=bytes(batch))])
        request = ProduceRequest(transactional_id=self.name, acks=-1, timeout_ms=10_000, topic_data=[data])
        error: int = self.talk.ask(request, version).responses[0].partition_responses[0].error_code
        if error == 0:
            self.sequences[topic, partition] = sequence + 1
        return error

    def commit_offset(self, group: str, topic: str, offset: int, version: int = 3, **member: Any) -> int:
        """TxnOffsetCommit of partition 0; the error."""
        partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
        request = TxnOffsetCommitRequest(
            transactional_id=self.name,
            group_id=group,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=[partition])],
            **member,
        )
        error: int = self.talk.ask(request, version).topics[0].partitions[0].error_code
        return error

    def end(self, *, commit: bool) -> None:
        """EndTxn; the markers come soon after."""
        self._ask_until_there(
            EndTxnRequest(transactional_id=self.name, producer_id=self.producer_id, producer_epoch=self.epoch, committed=commit),
            3,
        )
