"""The leader's answers to Fetch of the metadata log, by voters and observers. FetchSnapshot is in ``leader_fetch_snapshot``.

A fetch from an offset confirms that everything below is on the fetcher's disk. It is answered at once when there is news:
records, a high watermark that the fetcher does not know yet, a diverging epoch, a snapshot to start with, an error. Otherwise it
is parked for at most ``max_wait_ms``; it is answered when the high watermark moves, when the leadership ends, and, for a voter,
when the log grows. An observer cannot use uncommitted records, so it gets them together with their commit; with hundreds of
brokers that halves the answers and delays nothing.
"""

from __future__ import annotations

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Uuid
from tidelog.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse
from tidelog.raft import messages
from tidelog.raft.effects import Inbound, ReplyRecords
from tidelog.raft.election import Role
from tidelog.raft.log_shape import Fit
from tidelog.raft.parked_fetches import ParkedFetch
from tidelog.raft.quorum import Quorum
from tidelog.raft.voter_requests import wrong_cluster
from tidelog.raft.voters import ReplicaKey

MAX_PARKED = 10_000
"""The most parked fetches; a replica has one."""
MAX_WAIT_MS = 60_000


def not_leading(quorum: Quorum, epoch: int) -> ErrorCode:
    """Why a request to the leader of ``epoch`` is refused; NONE when this replica is that leader."""
    if epoch < quorum.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if epoch > quorum.epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    if quorum.role is not Role.LEADER:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if quorum.shut_down_ms is not None:
        return ErrorCode.BROKER_NOT_AVAILABLE
    return ErrorCode.NONE


def fetch(quorum: Quorum, inbound: Inbound, request: FetchRequest, now_ms: int) -> None:
    """Sent by followers and observers; replica ids below 0 are tools that only read."""
    partition = messages.fetched_partition(request.topics, "partition")
    if wrong_cluster(quorum, request.cluster_id):
        quorum.out.reply(inbound, FetchResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID))
        return
    if partition is None:
        quorum.out.reply(inbound, FetchResponse(error_code=ErrorCode.INVALID_REQUEST))
        return
    if (
        request.max_wait_ms < 0
        or partition.fetch_offset < 0
        or partition.last_fetched_epoch < 0
        or partition.last_fetched_epoch > partition.current_leader_epoch
    ):
        quorum.out.reply(inbound, messages.fetch_answer(quorum, inbound, ErrorCode.INVALID_REQUEST))
        return
    replica_id = request.replica_state.replica_id if inbound.version >= 15 else request.replica_id
    key = ReplicaKey(replica_id, Uuid(partition.replica_directory_id))
    wait_ms = min(request.max_wait_ms, MAX_WAIT_MS)
    parked = ParkedFetch(inbound, key, partition, min(request.max_bytes, quorum.config.fetch_max_bytes), now_ms + wait_ms)
    if not answer_fetch(quorum, parked, now_ms, final=wait_ms == 0 or len(quorum.parked) >= MAX_PARKED):
        quorum.parked.park(parked)


def answer_fetch(quorum: Quorum, parked: ParkedFetch, now_ms: int, *, final: bool) -> bool:
    """True when it was answered; with ``final`` it always is."""
    inbound, asked = parked.inbound, parked.partition
    error = not_leading(quorum, asked.current_leader_epoch)
    if error is ErrorCode.NONE and parked.key.id == quorum.me.id:
        error = ErrorCode.INVALID_REQUEST
    if error is not ErrorCode.NONE:
        quorum.out.reply(inbound, messages.fetch_answer(quorum, inbound, error))
        return True
    fitness = quorum.log.shape.fitness(asked.fetch_offset, asked.last_fetched_epoch)
    if fitness.fit is not Fit.VALID:
        answer = messages.fetch_answer(quorum, inbound, error, fitness=fitness, high_watermark=quorum.leading().high_watermark)
        quorum.out.reply(inbound, answer)
        return True
    _progress(quorum, parked, now_ms)
    high_watermark = quorum.leading().high_watermark
    if not final and not _has_records(quorum, parked) and not _news(asked, inbound, high_watermark):
        return False
    _hand_out(quorum, parked)
    return True


def _has_records(quorum: Quorum, parked: ParkedFetch) -> bool:
    """Whether there are records that the fetcher can use."""
    offset, state = parked.partition.fetch_offset, quorum.leading()
    if state.is_voter(parked.key):
        return quorum.log.shape.end_offset > offset
    return state.high_watermark is not None and state.high_watermark > offset


def _hand_out(quorum: Quorum, parked: ParkedFetch) -> None:
    """Answers with all available records; with a snapshot, where they went while the fetch was parked."""
    inbound, offset = parked.inbound, parked.partition.fetch_offset
    fitness = quorum.log.shape.fitness(offset, parked.partition.last_fetched_epoch)
    high_watermark = quorum.leading().high_watermark
    known = None if fitness.fit is Fit.VALID else fitness
    answer = messages.fetch_answer(quorum, inbound, ErrorCode.NONE, fitness=known, high_watermark=high_watermark)
    if known is None and quorum.log.shape.end_offset > offset:
        quorum.out.add(ReplyRecords(inbound.token, answer, offset, parked.max_bytes))
    else:
        quorum.out.reply(inbound, answer)


def _news(asked: FetchPartition, inbound: Inbound, high_watermark: int | None) -> bool:
    """Whether the fetcher does not know the high watermark yet; from version 18 on it sends the one it knows (KIP-1166)."""
    return inbound.version >= 18 and high_watermark is not None and asked.high_watermark < high_watermark


def _progress(quorum: Quorum, parked: ParkedFetch, now_ms: int) -> None:
    if parked.key.id < 0:
        return
    state = quorum.leading()
    state.replica_fetched(parked.key, parked.partition.fetch_offset, quorum.log.shape.end_offset, now_ms)
    if state.is_voter(parked.key):
        advance(quorum, now_ms)


def advance(quorum: Quorum, now_ms: int) -> None:
    """Commits what can be committed and answers the fetches that wait for it."""
    state = quorum.leading()
    moved = state.advance()
    if moved is None:
        return
    quorum.log.raise_high_watermark(moved)
    change = state.change
    if change is not None and change.is_committed(moved):
        if change.inbound is not None:
            quorum.out.reply(change.inbound, change.answer(error_code=ErrorCode.NONE, error_message=None))
        state.set_change(None)
    if not quorum.is_voter and quorum.log.sets.offset < moved:
        # Its removal is committed, so its work is done.
        state.request_resignation()
    wake(quorum)


def wake_voters(quorum: Quorum) -> None:
    """The log grew: answers waiting voters."""
    for each in [each for each in quorum.parked if quorum.leading().is_voter(each.key) and _has_records(quorum, each)]:
        quorum.parked.abandon(each.inbound.token)
        _hand_out(quorum, each)


def wake(quorum: Quorum) -> None:
    """The high watermark moved: answers the fetches that wait for it."""
    high_watermark = quorum.leading().high_watermark
    for each in quorum.parked.take_all():
        # A fetch below version 18 cannot state the high watermark it knows, so any move is news (KIP-1166).
        known = each.partition.high_watermark if each.inbound.version >= 18 else -1
        if _has_records(quorum, each) or (high_watermark is not None and known < high_watermark):
            _hand_out(quorum, each)
        else:
            quorum.parked.park(each)


def expire_fetches(quorum: Quorum, now_ms: int) -> None:
    """Answers the fetches whose deadline has passed. Without records only where the log has none: a replica that mends its log
    takes that for the end (``follower_fetch.caught_up``)."""
    for each in quorum.parked.take_expired(now_ms):
        _hand_out(quorum, each)
