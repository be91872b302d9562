"""One transaction of one transactional id, sans-IO: its requests, and what each response means.

The order is: ``begin`` (InitProducerId, which ends the open transaction of this id and fences its previous producer), partitions
joined and batches produced, a group's offset, ``end``. Under transaction.version 2 (KIP-890) partitions and groups join when they
are written to; before, they are added first. Every request may be retried until it is answered: batches carry sequence numbers,
the rest is idempotent within an epoch. Errors are classified as in KIP-1050: transient, fatal for this transaction, fatal for
this producer, and those that only the user can fix.

Invariants: batches of a partition have consecutive sequence numbers from 0, in the order in which they were stamped; nothing is
produced before ``begin`` or after ``end``; a transaction that met a fatal error is never committed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum

from tidelog.client.fetching import error_of
from tidelog.client.metadata import Leader
from tidelog.model.errors import ErrorCode, ProtocolViolation
from tidelog.model.ids import NO_BROKER, TopicPartition
from tidelog.model.ports import Buffer
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from tidelog.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from tidelog.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from tidelog.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from tidelog.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from tidelog.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from tidelog.records.batch import HEADER_SIZE, MAX_SEQUENCE, read_header, write_producer

ACKS_ALL = -1
TRANSACTION_FEATURE = "transaction.version"
# Produce 13 names topics by id, InitProducerId 6 is KIP-939's, AddPartitionsToTxn 4 is only for brokers (KIP-890).
_HIGHEST: dict[int, tuple[int, int]] = {
    ApiKey.PRODUCE: (11, 12),
    ApiKey.INIT_PRODUCER_ID: (5, 5),
    ApiKey.ADD_PARTITIONS_TO_TXN: (3, 3),
    ApiKey.ADD_OFFSETS_TO_TXN: (4, 4),
    ApiKey.TXN_OFFSET_COMMIT: (4, 5),
    ApiKey.END_TXN: (4, 5),
}


class Verdict(Enum):
    """How to handle a response."""

    DONE = "as asked"
    RETRY = "wait and ask again"
    REFRESH = "ask who leads or coordinates now, then again"
    ABORT = "this transaction cannot be committed any more"
    FENCED = "another producer has begun with this transactional id, or the transaction timed out"
    FAIL = "tell the user"


_VERDICTS: dict[ErrorCode, Verdict] = {
    ErrorCode.NONE: Verdict.DONE,
    # The batch was appended; the response to the first attempt was lost.
    ErrorCode.DUPLICATE_SEQUENCE_NUMBER: Verdict.DONE,
    ErrorCode.NOT_COORDINATOR: Verdict.REFRESH,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: Verdict.REFRESH,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: Verdict.REFRESH,
    ErrorCode.LEADER_NOT_AVAILABLE: Verdict.REFRESH,
    ErrorCode.FENCED_LEADER_EPOCH: Verdict.REFRESH,
    ErrorCode.REPLICA_NOT_AVAILABLE: Verdict.REFRESH,
    ErrorCode.KAFKA_STORAGE_ERROR: Verdict.REFRESH,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Verdict.REFRESH,
    ErrorCode.LISTENER_NOT_FOUND: Verdict.REFRESH,
    ErrorCode.INVALID_PRODUCER_EPOCH: Verdict.FENCED,
    ErrorCode.PRODUCER_FENCED: Verdict.FENCED,
    ErrorCode.TRANSACTION_COORDINATOR_FENCED: Verdict.FENCED,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: Verdict.FENCED,
    ErrorCode.INVALID_TXN_STATE: Verdict.ABORT,
    ErrorCode.TRANSACTION_ABORTABLE: Verdict.ABORT,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: Verdict.ABORT,
    ErrorCode.UNKNOWN_PRODUCER_ID: Verdict.ABORT,
    ErrorCode.UNKNOWN_SERVER_ERROR: Verdict.ABORT,
    ErrorCode.OPERATION_NOT_ATTEMPTED: Verdict.ABORT,
}


def judge(error: ErrorCode) -> Verdict:
    """How to handle an error of any of these requests."""
    found = _VERDICTS.get(error)
    if found is None:
        found = Verdict.RETRY if error.retriable else Verdict.FAIL
    return found


def highest_version(api_key: int, implicit: bool) -> int:
    """The highest version with the semantics that this module implements. ``implicit``: under transaction.version 2."""
    before, since = _HIGHEST[api_key]
    return since if implicit else before


def joins_by_writing(features: Mapping[str, int]) -> bool:
    """Whether this cluster is at transaction.version 2 or later; ``features``: its finalized features."""
    return features.get(TRANSACTION_FEATURE, 0) >= 2


def produce_request(batches: Mapping[TopicPartition, Buffer], transactional_id: str | None, timeout_ms: int) -> ProduceRequest:
    """One batch for each partition, acknowledged by all in-sync replicas."""
    topics: dict[str, list[PartitionProduceData]] = {}
    for at, batch in batches.items():
        topics.setdefault(at.topic, []).append(PartitionProduceData(index=at.partition, records=batch))
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=ACKS_ALL,
        timeout_ms=timeout_ms,
        topic_data=[TopicProduceData(name=name, partition_data=parts) for name, parts in topics.items()],
    )


class Appended:
    """The result of one batch. ``message``: the broker's message, if any; ``leader``: the new leader, if the broker named one."""

    __slots__ = ("base_offset", "error", "leader", "message")

    def __init__(self, error: ErrorCode, base_offset: int, message: str | None, leader: Leader | None) -> None:
        self.error = error
        self.base_offset = base_offset
        self.message = message
        self.leader = leader


def read_produced(response: ProduceResponse, asked: Iterable[TopicPartition]) -> dict[TopicPartition, Appended]:
    """The result of each batch. ProtocolViolation when the broker omits one."""
    said: dict[TopicPartition, Appended] = {}
    for topic in response.responses:
        for part in topic.partition_responses:
            now = part.current_leader
            leader = None if now.leader_id == NO_BROKER else Leader(now.leader_id, now.leader_epoch)
            found = Appended(error_of(part.error_code), part.base_offset, part.error_message, leader)
            said[TopicPartition(topic.name, part.index)] = found
    missing = [at for at in asked if at not in said]
    if missing:
        raise ProtocolViolation(f"the broker answers a Produce without {missing[0]}")
    return {at: said[at] for at in asked}


class _State(Enum):
    NEW, OPEN, LOST, ENDED = range(4)


class Transaction:
    """The state from InitProducerId to EndTxn. ``implicit``: see ``joins_by_writing``."""

    def __init__(self, transactional_id: str, timeout_ms: int, *, implicit: bool) -> None:
        self.transactional_id = transactional_id
        self.implicit = implicit
        self.producer_id, self.producer_epoch = -1, -1
        self._timeout_ms = timeout_ms
        self._state = _State.NEW
        self._sequences: dict[TopicPartition, int] = {}
        self._joined: set[TopicPartition] = set()
        self._joining: tuple[TopicPartition, ...] = ()

    @property
    def open(self) -> bool:
        """Whether it has begun and can still be committed."""
        return self._state is _State.OPEN

    @property
    def over(self) -> bool:
        """Whether there is nothing to end: not begun, or ended."""
        return self._state in (_State.NEW, _State.ENDED)

    def highest(self, api_key: int) -> int:
        """``highest_version`` for this transaction."""
        return highest_version(api_key, self.implicit)

    def begin_request(self) -> InitProducerIdRequest:
        """A request that aborts the open transaction of this id and fences its producer."""
        assert self._state is _State.NEW, self._state
        return InitProducerIdRequest(transactional_id=self.transactional_id, transaction_timeout_ms=self._timeout_ms)

    def began(self, response: InitProducerIdResponse) -> ErrorCode:
        """Process the coordinator's answer."""
        error = error_of(response.error_code)
        if error == ErrorCode.NONE:
            assert self._state is _State.NEW, self._state
            self.producer_id, self.producer_epoch = response.producer_id, response.producer_epoch
            self._state = _State.OPEN
        return error

    def stamped(self, at: TopicPartition, batch: bytearray) -> bytearray:
        """Stamp the batch, in place, as this producer's next one for the partition. CorruptBatch when it is not one batch."""
        assert self.open, self._state
        header = read_header(batch)
        assert header.size == len(batch) and header.size > HEADER_SIZE, "one whole batch"
        sequence = self._sequences.get(at, 0)
        write_producer(batch, self.producer_id, self.producer_epoch, sequence)
        self._sequences[at] = (sequence + header.last_offset_delta + 1) & MAX_SEQUENCE
        return batch

    def joining_request(self, partitions: Iterable[TopicPartition]) -> AddPartitionsToTxnRequest | None:
        """The request that adds these partitions before batches are sent to them; None if none is needed."""
        assert self.open, self._state
        self._joining = tuple(sorted(at for at in set(partitions) if at not in self._joined))
        if self.implicit or not self._joining:
            return None
        topics: dict[str, list[int]] = {}
        for at in self._joining:
            topics.setdefault(at.topic, []).append(at.partition)
        return AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.producer_epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=name, partitions=found) for name, found in topics.items()],
        )

    def joined(self, response: AddPartitionsToTxnResponse) -> ErrorCode:
        """The first error; NONE if all partitions have joined."""
        errors = [
            error_of(part.partition_error_code)
            for topic in response.results_by_topic_v3_and_below
            for part in topic.results_by_partition
        ]
        # OPERATION_NOT_ATTEMPTED only says that another partition failed; report that partition's error.
        wrong = [e for e in errors if e != ErrorCode.NONE]
        first = next((e for e in wrong if e != ErrorCode.OPERATION_NOT_ATTEMPTED), wrong[0] if wrong else ErrorCode.NONE)
        if first == ErrorCode.NONE:
            self._joined.update(self._joining)
        return self._survived(first)

    def produce_request(self, batches: Mapping[TopicPartition, Buffer], timeout_ms: int) -> ProduceRequest:
        """``produce_request`` within this transaction."""
        assert self.open, self._state
        return produce_request(batches, self.transactional_id, timeout_ms)

    def produced(self, found: Appended) -> ErrorCode:
        """Process the result of a batch."""
        return self._survived(found.error)

    def group_joining_request(self, group: str) -> AddOffsetsToTxnRequest | None:
        """The request that adds a group before its offset is written; None if none is needed."""
        assert self.open, self._state
        if self.implicit:
            return None
        return AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            group_id=group,
        )

    def offset_request(self, group: str, topic: str, offset: int, metadata: Sequence[str]) -> TxnOffsetCommitRequest:
        """Commits the same offset for one partition per text in ``metadata``, visible once the transaction is committed."""
        assert self.open, self._state
        parts = [
            TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=offset, committed_metadata=text)
            for index, text in enumerate(metadata)
        ]
        return TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=parts)],
        )

    def offset_taken(self, response: TxnOffsetCommitResponse) -> ErrorCode:
        """Process the group coordinator's answer."""
        errors = [error_of(part.error_code) for topic in response.topics for part in topic.partitions]
        if not errors:
            raise ProtocolViolation("the broker answers a TxnOffsetCommit with nothing")
        return self._survived(next((error for error in errors if error != ErrorCode.NONE), ErrorCode.NONE))

    def end_request(self, commit: bool) -> EndTxnRequest:
        """Commit or abort. Only an open transaction can be committed."""
        assert self._state is _State.OPEN or (self._state is _State.LOST and not commit), self._state
        return EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            committed=commit,
        )

    def ended(self, response: EndTxnResponse) -> ErrorCode:
        """Process the coordinator's answer: after NONE the outcome is decided and will be applied."""
        error = error_of(response.error_code)
        if error == ErrorCode.NONE:
            self._state = _State.ENDED
        return self._survived(error)

    def failed(self) -> None:
        """An error outside the protocol: the transaction must not be committed."""
        if self._state is _State.OPEN:
            self._state = _State.LOST

    def _survived(self, error: ErrorCode) -> ErrorCode:
        if judge(error) in (Verdict.ABORT, Verdict.FENCED, Verdict.FAIL):
            self.failed()
        return error
