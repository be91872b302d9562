"""Produce: records from clients.

This module takes a request apart and builds its answer. A request of one partition, by far the most common, has a fast path that
packs its answer in one call. The general path gives the same answer more slowly; a test compares the two. Whether records may be
appended, and when they are safe: ``storage.validation`` and ``replication.partition``.

The first batch of a transaction in a partition waits for the coordinator's confirmation (``broker.transaction_verification``).
Meanwhile the partition holds a proof, and it rejects the batch if a marker was written in between. Later batches are appended at
once.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from functools import lru_cache
from struct import Struct
from typing import Any

from tidelog.broker.answer_types import CLOSE_CONNECTION, NO_RESPONSE, Answer, Frame, Outgoing, Signal, Waiting
from tidelog.broker.apis.records.writable import denial, refusals
from tidelog.broker.apis.topics.current_leader import current_leader, node_endpoints
from tidelog.broker.node import BrokerContext
from tidelog.broker.transaction_verification import Operation, operation_of_produce, produce_error, verify_or_add
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ids import Uuid
from tidelog.protocol.fastpath import ProduceResult, ProduceTopicResult, ProduceView, encode_produce_response
from tidelog.protocol.primitives import write_compact_string
from tidelog.records.batch import FLAGS_POSITION, TRANSACTIONAL_BIT, read_producer
from tidelog.replication import acks_and_min_isr
from tidelog.replication.acks_and_min_isr import refused
from tidelog.replication.partition import Partition
from tidelog.replication.partition_verification import begin_verification, refuse_verification
from tidelog.replication.purgatory import ParkedAppend
from tidelog.storage.append_rules import AppendResult
from tidelog.storage.validation import DeepValidation
from tidelog.storage.verification_guard import NOT_REQUIRED, Verification

_NONE = ErrorCode.NONE
_OUT_OF_ORDER = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
_WRONG_LEADER = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
_ZSTD_FROM = 7
_FLEXIBLE_FROM = 9
_BY_ID_FROM = 13
_NO_ERRORS_NO_THROTTLE = bytes((1, 0, 0, 0, 0, 0, 0, 0, 0))
"""The end of an answer about one partition: no record errors, no message, tags, the topic's tags, throttle time, tags."""
_ADMIN_CLIENT = "__admin_client"
"""The one client id that may write to internal topics, as in Kafka."""
_NO_RECORDS = memoryview(b"")


def produce(ctx: BrokerContext, request: ProduceView) -> Answer | Coroutine[Any, Any, Answer]:
    """Sent by every producer. v5 added the log start offset to the answer, v7 zstd, v8 errors of single records, v10 the new
    leader and its address, v12 adds partitions to the transaction implicitly, v13 addresses topics by id.

    acks=0 gets no response; an error closes the connection so that the producer notices. acks=-1 waits until all in-sync replicas
    have the records, acks=1 only for the leader; both wait for a flush if the topic demands one. Errors, per partition: 2, 3, 6,
    7, 10, 17, 18, 19, 20, 21, 29, 32, 45, 47, 48, 49, 51, 53, 56, 76, 87, 100, 120.
    """
    acks = request.acks
    topics = request.topics
    if len(topics) == 1 and len(topics[0][2]) == 1 and acks * acks == 1:
        name, topic_id, ((index, records),) = topics[0]
        replicas = ctx.node.replicas
        partition = replicas.by_id(topic_id, index) if name is None else replicas.by_name(name, index)
        if partition.__class__ is Partition:
            assert isinstance(partition, Partition)
            if ctx.node.access is None or not (denied := denial(ctx, request, partition.topic, records)):
                result = _append(ctx, request, partition, records)
            else:
                result = refused(denied)
            if result.__class__ is AppendResult:
                assert isinstance(result, AppendResult)
                version = ctx.api_version
                if result.error is _NONE and version >= _FLEXIBLE_FROM:
                    if partition.is_safe(result.last_offset, acks):
                        return [_packed(partition, version, ctx.correlation_id, result)]
                    work = _Work(ctx, acks, [_Entry(name, topic_id, index, partition, result)])
                    return work.wait_for(work.entries, ctx.now_ms() + request.timeout_ms)
            return _Work(ctx, acks, [_Entry(name, topic_id, index, partition, result)]).go_on(request)
    return _Work(ctx, request.acks, _append_all(ctx, request)).go_on(request)


def refuse(ctx: BrokerContext, request: ProduceView, error: KafkaError) -> Answer:
    """The response with this error for every partition."""
    if request.acks == 0:
        return CLOSE_CONNECTION
    topics: list[ProduceTopicResult] = [
        (name, topic_id, [ProduceResult(index, error.code, error_message=error.detail or None) for index, _ in partitions])
        for name, topic_id, partitions in request.topics
    ]
    return [encode_produce_response(ctx.correlation_id, ctx.api_version, topics)]


def acknowledge(
    ctx: BrokerContext,
    acks: int,
    timeout_ms: int,
    appended: Sequence[tuple[str | None, Uuid, int, Partition, AppendResult]],
) -> Outgoing:
    """The answer about batches that ``broker._produce_lane`` has appended, or a wait for it. Each is (name if the request has
    names, topic id, partition index, partition, result)."""
    entries = [_Entry(name, topic_id, index, partition, result) for name, topic_id, index, partition, result in appended]
    return _Work(ctx, acks, entries).acknowledged(timeout_ms)


def _packed(partition: Partition, version: int, correlation_id: int, result: AppendResult) -> bytes:
    """The answer to a request of one partition whose records are safe."""
    pack, size, prefix = partition.produce_frames.get(version) or _frame(partition, version)
    return pack(
        size,
        correlation_id,
        0,
        prefix,
        0,
        result.first_offset,
        result.log_append_time_ms,
        result.log_start_offset,
        _NO_ERRORS_NO_THROTTLE,
    )


class _Unverified:
    """A batch whose transaction the coordinator has to confirm first."""

    __slots__ = ("producer_epoch", "producer_id", "proof", "records")

    def __init__(self, records: memoryview, producer_id: int, producer_epoch: int, proof: Verification) -> None:
        self.records = records
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.proof = proof


_Result = AppendResult | DeepValidation | _Unverified


class _Entry:
    """One partition of a request, and the state of its append."""

    __slots__ = ("index", "name", "partition", "proof", "result", "topic_id")

    def __init__(self, name: str | None, topic_id: Uuid, index: int, partition: Partition | None, result: _Result) -> None:
        self.name = name
        self.topic_id = topic_id
        self.index = index
        self.partition = partition
        self.result = result
        self.proof: Verification | None = None


def _append(ctx: BrokerContext, request: ProduceView, partition: Partition, records: memoryview | None) -> _Result:
    if records is None:
        records = _NO_RECORDS
    if partition.is_internal and ctx.client_id != _ADMIN_CLIENT:
        return refused(ErrorCode.INVALID_TOPIC_EXCEPTION)
    if len(records) > FLAGS_POSITION and records[FLAGS_POSITION] & TRANSACTIONAL_BIT:
        return _append_transactional(ctx, request, partition, records)
    return partition.append(records, ctx.node.runtime.now_ms(), request.acks, zstd_allowed=ctx.api_version >= _ZSTD_FROM)


def _append_transactional(ctx: BrokerContext, request: ProduceView, partition: Partition, records: memoryview) -> _Result:
    """Append to an open transaction at once; otherwise ask the coordinator first."""
    if request.transactional_id is None:
        return refused(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    now_ms, zstd_allowed = ctx.now_ms(), ctx.api_version >= _ZSTD_FROM
    producer_id, epoch, sequence = read_producer(records)
    if producer_id < 0 or sequence < 0:
        # The append rejects such a batch; it must not count as the producer's first sequence.
        return partition.append(records, now_ms, request.acks, zstd_allowed=zstd_allowed)
    operation = operation_of_produce(ctx.api_version)
    proof = begin_verification(
        partition,
        producer_id,
        epoch,
        sequence,
        starts_at_zero=operation is Operation.ADD,
        transactional_id=request.transactional_id,
        now_ms=now_ms,
    )
    if proof is None:
        return partition.append(records, now_ms, request.acks, zstd_allowed=zstd_allowed)
    if operation is not Operation.ADD and not ctx.config.transaction_partition_verification_enable:
        return partition.append(records, now_ms, request.acks, zstd_allowed=zstd_allowed, proof=NOT_REQUIRED)
    return _Unverified(records, producer_id, epoch, proof)


def _append_all(ctx: BrokerContext, request: ProduceView) -> list[_Entry]:
    """Append to each partition that the request names; one named twice is refused."""
    replicas = ctx.node.replicas
    entries: list[_Entry] = []
    seen: set[Partition] = set()
    known_acks = request.acks in (-1, 0, 1)
    whole, of_topics = refusals(ctx, request)
    for place, (name, topic_id, wanted) in enumerate(request.topics):
        refusal = whole or of_topics[place]
        for index, records in wanted:
            if refusal:
                entries.append(_Entry(name, topic_id, index, None, refused(refusal)))
                continue
            found = replicas.by_id(topic_id, index) if name is None else replicas.by_name(name, index)
            result: _Result
            if not known_acks:
                result = refused(ErrorCode.INVALID_REQUIRED_ACKS)
            elif not isinstance(found, Partition):
                result = refused(found)
            elif found in seen:
                result = refused(ErrorCode.INVALID_RECORD)
                result.error_message = f"The request names {found.topic_partition} twice: send one batch per partition."
            else:
                seen.add(found)
                result = _append(ctx, request, found, records)
            entries.append(_Entry(name, topic_id, index, found if isinstance(found, Partition) else None, result))
    return entries


class _Acks(Waiting):
    """Answers the request when its records are safe or its deadline has passed."""

    __slots__ = ("_unsafe", "_work")

    lets_next_in = True

    def __init__(self, parked: ParkedAppend, work: _Work, unsafe: list[_Entry]) -> None:
        super().__init__(parked)
        self._work = work
        self._unsafe = unsafe

    def go_on(self) -> Outgoing:
        work = self._work
        for entry in self._unsafe:
            assert entry.partition is not None and isinstance(entry.result, AppendResult)
            error = acks_and_min_isr.acknowledge(entry.partition, entry.result.last_offset, work.acks)
            if error is not _NONE:
                entry.result = refused(error)
        return work.answer()

    def refuse(self, error: KafkaError) -> Outgoing:
        for entry in self._unsafe:
            entry.result = refused(error.code)
        return self._work.answer()


class _Work:
    """A request from its appends to its answer; some batches may first need a verification or a deep validation.

    It keeps only what the answer needs, none of the request's bytes: the connection continues while the request is
    unacknowledged.
    """

    __slots__ = ("_ctx", "acks", "entries")

    def __init__(self, ctx: BrokerContext, acks: int, entries: list[_Entry]) -> None:
        self._ctx = ctx
        self.acks = acks
        self.entries = entries

    def go_on(self, request: ProduceView) -> Outgoing | Coroutine[Any, Any, Outgoing]:
        """The answer, or a wait for it."""
        if any(entry.result.__class__ is not AppendResult for entry in self.entries):
            return self._checked(request, self._ctx.node.runtime.even_ms() + request.timeout_ms)
        return self.acknowledged(request.timeout_ms)

    def acknowledged(self, timeout_ms: int) -> Outgoing:
        """The answer about batches that were appended, or a wait until they are safe."""
        unsafe = self._unsafe()
        return self.wait_for(unsafe, self._ctx.now_ms() + timeout_ms) if unsafe else self.answer()

    def _unsafe(self) -> list[_Entry]:
        acks = self.acks
        return [
            entry
            for entry in self.entries
            if acks != 0
            and entry.partition is not None
            and isinstance(entry.result, AppendResult)
            and entry.result.error is _NONE
            and not entry.partition.is_safe(entry.result.last_offset, acks)
        ]

    def wait_for(self, unsafe: list[_Entry], deadline_ms: int) -> Waiting:
        """Wait until these entries are safe."""
        parked = ParkedAppend(deadline_ms, self.acks)
        for index, entry in enumerate(unsafe):
            assert entry.partition is not None and isinstance(entry.result, AppendResult)
            parked.watch(entry.partition, index, entry.result.last_offset)
        return _Acks(parked, self, unsafe)

    async def _checked(self, request: ProduceView, until_even_ms: int) -> Outgoing:
        """Verify or validate the batches that were not appended at once; the request's bytes are kept until then. The rest of
        its timeout is counted by the even clock, because the wall clock may be set in between."""
        ctx, acks = self._ctx, self.acks
        unverified = [entry for entry in self.entries if entry.result.__class__ is _Unverified]
        try:
            if unverified:
                await self._verify(request, unverified)
            for entry in self.entries:
                if isinstance(entry.result, DeepValidation):
                    assert entry.partition is not None
                    verdict = await ctx.run_blocking(entry.result.run)
                    entry.result = entry.partition.append_validated(verdict, ctx.now_ms(), acks, proof=entry.proof)
        finally:  # also if the client has disconnected
            for entry in unverified:
                if entry.proof is not None:
                    entry.proof.served()
        return self.acknowledged(until_even_ms - ctx.node.runtime.even_ms())

    async def _verify(self, request: ProduceView, entries: list[_Entry]) -> None:
        """Ask the coordinator about these partitions, and append to those that are part of the transaction."""
        ctx = self._ctx
        operation = operation_of_produce(ctx.api_version)
        names = [entry.partition.topic_partition for entry in entries if entry.partition is not None]
        asked = entries[0].result
        assert isinstance(asked, _Unverified) and request.transactional_id is not None
        for entry in entries:
            assert isinstance(entry.result, _Unverified)
            entry.proof = entry.result.proof
        errors = await verify_or_add(ctx, request.transactional_id, asked.producer_id, asked.producer_epoch, names, operation)
        for entry, name in zip(entries, names, strict=True):
            batch, error = entry.result, errors[name]
            assert isinstance(batch, _Unverified) and entry.partition is not None
            if error is not _NONE:
                told = produce_error(error, operation)
                entry.proof = None
                entry.result = refuse_verification(entry.partition, batch.producer_id, batch.proof, told, len(batch.records))
                entry.result.error_message = (
                    f"{request.transactional_id}: the coordinator did not confirm that {name} is part of the transaction: "
                    f"{error.name}. Nothing was appended."
                )
                continue
            zstd_allowed = ctx.api_version >= _ZSTD_FROM
            entry.result = entry.partition.append(
                batch.records, ctx.now_ms(), request.acks, zstd_allowed=zstd_allowed, proof=batch.proof
            )

    def answer(self) -> Frame | Signal:
        """The result of each batch."""
        ctx, version = self._ctx, self._ctx.api_version
        if len(self.entries) == 1 and version >= _FLEXIBLE_FROM and self.acks != 0:
            (only,) = self.entries
            result = only.result
            if only.partition is not None and isinstance(result, AppendResult) and result.error is _NONE:
                return [_packed(only.partition, version, ctx.correlation_id, result)]
        topics: list[ProduceTopicResult] = []
        leaders: dict[tuple[int, int], None] = {}
        results: list[ProduceResult] = []
        last: tuple[str | None, Uuid] | None = None
        failed = False
        for entry in self.entries:
            result = entry.result
            assert isinstance(result, AppendResult)
            if (entry.name, entry.topic_id) != last:
                last = entry.name, entry.topic_id
                results = []
                topics.append((entry.name, entry.topic_id, results))
            failed = failed or result.error is not _NONE
            leader = None
            if result.error is _OUT_OF_ORDER and entry.partition is not None and not ctx.node.leads(entry.partition):
                # The producer may have continued with a new leader that we do not know yet: make it look for that leader instead
                # of giving up.
                result = refused(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            elif result.error in _WRONG_LEADER:
                leader = current_leader(ctx, entry.name, entry.topic_id, entry.index)
                if leader is not None:
                    leaders[leader] = None
            results.append(
                ProduceResult(
                    entry.index,
                    result.error,
                    result.first_offset,
                    result.log_append_time_ms,
                    result.log_start_offset,
                    result.record_errors,
                    result.error_message,
                    leader,
                )
            )
        if self.acks == 0:
            return CLOSE_CONNECTION if failed else NO_RESPONSE
        return [encode_produce_response(ctx.correlation_id, version, topics, node_endpoints=node_endpoints(ctx, leaders))]


@lru_cache(maxsize=512)
def _layout(prefix_length: int) -> tuple[Callable[..., bytes], int]:
    """The packer of an answer about one partition with a prefix of this length, and the frame's size field."""
    layout = Struct(f">iib{prefix_length}shqqq{len(_NO_ERRORS_NO_THROTTLE)}s")
    return layout.pack, layout.size - 4


def _frame(partition: Partition, version: int) -> tuple[Callable[..., bytes], int, bytes]:
    """The constant part of a successful answer about this partition alone; cached with the partition."""
    prefix = bytearray(b"\x02")
    if version >= _BY_ID_FROM:
        prefix += partition.topic_id
    else:
        write_compact_string(prefix, partition.topic)
    prefix += b"\x02" + partition.index.to_bytes(4, "big")
    pack, size = _layout(len(prefix))
    frame = partition.produce_frames[version] = (pack, size, bytes(prefix))
    return frame
