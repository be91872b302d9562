"""Fetch: records to consumers and to followers.

This module turns a request into a ``replication.fetch.Fetch`` and its result into a frame. Records stay file slices between the
bytes around them; they are not loaded here. When a fetch has enough, and what an incremental answer omits, is decided in
``replication``.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable
from typing import Any

from tidelog.broker.answer_types import Answer, Frame, Outgoing, Waiting
from tidelog.broker.apis.records.readable import ReadGate
from tidelog.broker.apis.topics.current_leader import current_leader, node_endpoints
from tidelog.broker.node import BrokerContext
from tidelog.broker.refusals import REGULAR
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ids import Uuid
from tidelog.protocol.fastpath import FetchResult, FetchTopicResult, FetchView, encode_fetch_response
from tidelog.protocol.messages.fetch import FetchRequest
from tidelog.replication.fetch import Fetch
from tidelog.replication.fetch_partition import FetchPartition
from tidelog.replication.fetch_sessions import INITIAL_EPOCH
from tidelog.replication.purgatory import ParkedFetch
from tidelog.replication.reads import PartitionRead
from tidelog.replication.replica import Caller

_NONE = ErrorCode.NONE
_WRONG_LEADER = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
_BY_ID_FROM = 13
_ZSTD_FROM = 10
_FROM_FOLLOWERS = 11
_READ_COMMITTED = 1


def fetch(ctx: BrokerContext, request: FetchView) -> Answer | Coroutine[Any, Any, Answer]:
    """Sent by consumers and followers. v7 added sessions, v9 leader epoch fencing, v10 zstd, v12 the diverging epoch, v13
    topic ids, v15 the replica id in a tag, v16 the new leader.

    Waits up to ``max_wait_ms`` for ``min_bytes``, but not when there is an error. Errors of the request: 70, 71, 106. Of a
    partition: 1, 3, 6, 29, 56, 74, 75, 76, 100, 103.

    A request with a replica id needs CLUSTER_ACTION, because it moves the high watermark (CVE-2018-1288). Without it no session
    is opened or used: a request that continues one gets 70, and any other gets 29 for each partition.
    """
    replicas = ctx.node.replicas
    even_ms = ctx.node.runtime.even_ms()
    caller = Caller(request.replica_id, request.replica_epoch, even_ms) if request.replica_id >= 0 else None
    access = ctx.node.access
    gate = None if access is None else ReadGate(ctx, access, follower=caller is not None)
    if gate is not None and caller is not None and gate.refuses(None):
        return _denied_follower(ctx, request)
    context = replicas.sessions.open(request, even_ms, by_id=ctx.api_version >= _BY_ID_FROM, caller=caller)
    if isinstance(context, ErrorCode):
        parts, _ = encode_fetch_response(ctx.correlation_id, ctx.api_version, (), error_code=context)
        return parts
    work = replicas.fetch(
        context,
        min_bytes=request.min_bytes,
        max_bytes=min(request.max_bytes, ctx.config.fetch_max_bytes),
        committed=request.isolation_level == _READ_COMMITTED,
        any_replica=caller is None and ctx.api_version >= _FROM_FOLLOWERS,
        rack=request.rack_id if caller is None else "",
        gate=gate,
    )
    return proceed(ctx, work, even_ms + request.max_wait_ms, even_ms)


def proceed(ctx: BrokerContext, work: Fetch, deadline_ms: int, even_ms: int) -> Outgoing | Coroutine[Any, Any, Outgoing]:
    """What follows a read: the answer, or a wait. Both times by the even clock; ``even_ms``: now."""
    if work.cold:
        return _warmed(ctx, work, deadline_ms)
    if work.is_complete or even_ms >= deadline_ms:
        return _answer(ctx, work)
    return _Poll(ctx, work, deadline_ms, even_ms)


def _denied_follower(ctx: BrokerContext, request: FetchView) -> Answer:
    if request.session_epoch > INITIAL_EPOCH:
        return encode_fetch_response(ctx.correlation_id, ctx.api_version, (), error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)[0]
    return refuse(ctx, request, KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED))


def refuse(ctx: BrokerContext, request: FetchView | FetchRequest, error: KafkaError) -> Answer:
    """The error for each partition that the request names; the top-level error if it names none."""
    if isinstance(request, FetchRequest):
        return REGULAR(ctx, request, error)
    named = [(name, topic_id, [each[0] for each in partitions]) for name, topic_id, partitions in request.topics]
    return _refused(ctx, error, request.session_id, named)


def _refused(
    ctx: BrokerContext, error: KafkaError, session_id: int, named: Iterable[tuple[str | None, Uuid, Iterable[int]]]
) -> Frame:
    topics: list[FetchTopicResult] = [
        (name, topic_id, [FetchResult(index, error.code) for index in partitions]) for name, topic_id, partitions in named
    ]
    whole = _NONE if topics else error.code
    parts, _ = encode_fetch_response(ctx.correlation_id, ctx.api_version, topics, error_code=whole, session_id=session_id)
    return parts


class _Poll(Waiting):
    """A long poll: a fetch with too few bytes, until there are enough or the deadline passes. The deadline uses the even
    clock, because the poll may park more than once and the wall clock may be set in between."""

    __slots__ = ("_ctx", "_deadline_ms", "_work")

    def __init__(self, ctx: BrokerContext, work: Fetch, deadline_ms: int, even_ms: int) -> None:
        """``even_ms``: now."""
        self._ctx = ctx
        self._work = work
        self._deadline_ms = deadline_ms
        self._park(even_ms)

    def _park(self, even_ms: int) -> None:
        self.parked: ParkedFetch = self._work.park(self._ctx.now_ms() + self._deadline_ms - even_ms)

    def go_on(self) -> Outgoing | Coroutine[Any, Any, Outgoing]:
        ctx, work, parked = self._ctx, self._work, self.parked
        work.read_again(parked.touched)
        if work.cold:
            return _warmed(ctx, work, self._deadline_ms)
        if work.is_complete or parked.expired:
            return _answer(ctx, work)
        even_ms = ctx.node.runtime.even_ms()
        if even_ms >= self._deadline_ms:
            return _answer(ctx, work)
        self._park(even_ms)
        return self

    def refuse(self, error: KafkaError) -> Outgoing:
        return refused(self._ctx, error, self._work.context.due)


def refused(ctx: BrokerContext, error: KafkaError, due: Iterable[FetchPartition]) -> Frame:
    """The error for each partition of a fetch that waited."""
    return _refused(ctx, error, 0, [(wanted.topic, wanted.topic_id, [wanted.index]) for wanted in due])


async def _warmed(ctx: BrokerContext, work: Fetch, deadline_ms: int) -> Outgoing:
    """Load in a thread what would have waited for a disk, then read it."""
    await ctx.run_blocking(work.warm_up)
    work.read_warm()
    even_ms = ctx.node.runtime.even_ms()
    over = work.is_complete or even_ms >= deadline_ms
    return _answer(ctx, work) if over else _Poll(ctx, work, deadline_ms, even_ms)


def _answer(ctx: BrokerContext, work: Fetch) -> Frame:
    if ctx.fetch_quota is not None and (wait_ms := ctx.fetch_quota.wait_ms(work.bytes_read)) > 0:
        return _throttled(ctx, work, wait_ms)
    answer = work.finish(ctx.node.runtime.even_ms)
    version = ctx.api_version
    topics: list[FetchTopicResult] = []
    results: list[FetchResult] = []
    leaders: dict[tuple[int, int], None] = {}
    last_name: str | None = None
    last_id: Uuid | None = None
    for wanted, read in answer.partitions:
        if wanted.topic_id != last_id or wanted.topic != last_name:
            last_id, last_name = wanted.topic_id, wanted.topic
            results = []
            topics.append((last_name, last_id, results))
        result = FetchResult(
            wanted.index,
            read.error,
            read.high_watermark,
            read.last_stable_offset,
            read.log_start_offset,
            read.records if read.records is not None else b"",
            read.aborted,
        )
        if read.is_news:
            _explain(ctx, wanted, read, result, leaders)
        elif read.size:
            partition = wanted.partition
            assert partition is not None and partition.log is not None
            if work.context.caller is None:
                partition.stats.bytes_out += read.size
            else:
                partition.stats.replication_bytes_out += read.size
            if version < _ZSTD_FROM and partition.log.config.compression_type == "zstd":
                result = FetchResult(wanted.index, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        results.append(result)
    parts, _ = encode_fetch_response(
        ctx.correlation_id,
        version,
        topics,
        error_code=answer.error,
        session_id=answer.session_id,
        node_endpoints=node_endpoints(ctx, leaders) if leaders else (),
    )
    return parts


def _throttled(ctx: BrokerContext, work: Fetch, wait_ms: int) -> Frame:
    """An empty response. The session does not advance: the client's next fetch reads the same records again."""
    answer = work.context.put_off()
    parts, _ = encode_fetch_response(
        ctx.correlation_id, ctx.api_version, (), throttle_time_ms=wait_ms, error_code=answer.error, session_id=answer.session_id
    )
    return parts


def _explain(
    ctx: BrokerContext, wanted: FetchPartition, read: PartitionRead, result: FetchResult, leaders: dict[tuple[int, int], None]
) -> None:
    """Add the details of an error or a divergence: where the logs diverge, and the current leader."""
    result.diverging_epoch = read.diverging
    result.preferred_read_replica = read.preferred_replica
    if wanted.partition is not None and read.error is not _NONE:
        wanted.partition.stats.failed_fetch_requests += 1
    if read.error in _WRONG_LEADER:
        leader = current_leader(ctx, wanted.topic, wanted.topic_id, wanted.index)
        if leader is not None:
            result.current_leader = leader
            leaders[leader] = None
