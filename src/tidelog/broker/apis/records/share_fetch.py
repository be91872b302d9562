"""ShareFetch and ShareAcknowledge: records to the members of share groups, and what became of them (KIP-932).

Any member id that looks valid is served, member of the group or not: what guards a share partition is the permission on group and
topic, and that the group coordinator has initialized its state. A request without enough records waits, as a Fetch does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tidelog.broker.apis.topics.current_leader import current_leader, node_endpoints
from tidelog.broker.authorization import allowed, allows
from tidelog.broker.node import BrokerContext
from tidelog.broker.shares.acquisition import A_TURN, ShareFetching
from tidelog.broker.shares.hosted_share import Persisting
from tidelog.broker.shares.share_partitions import SharePartitions
from tidelog.broker.shares.share_sessions import CLOSE, MOST_PLACES, OPEN, Place, ShareSession
from tidelog.metadata.supported_features import SHARE_VERSION
from tidelog.model.acl import AclOperation, ResourceType
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ids import Uuid
from tidelog.protocol.messages import share_acknowledge as acknowledging
from tidelog.protocol.messages import share_fetch as fetching
from tidelog.replication.share.record_state import Acknowledgement, AckType

_NONE = ErrorCode.NONE
LONGEST_MEMBER_ID = 36
_RECORD_LIMIT = 1
_WRONG_LEADER = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
Acks = dict[Place, ErrorCode | Persisting]


def is_served(ctx: BrokerContext) -> bool:
    """Whether the cluster's share.version is at least 1."""
    return ctx.image.features.get(SHARE_VERSION, 0) >= 1


def _check(ctx: BrokerContext, group_id: str | None, member_id: str | None) -> str:
    """The group's id. KafkaError 35, 42, 30."""
    if not is_served(ctx):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    if group_id is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "A group id is needed.")
    if not allows(ctx, AclOperation.READ, ResourceType.GROUP, group_id):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not member_id or len(member_id) > LONGEST_MEMBER_ID:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"A member id has 1 to {LONGEST_MEMBER_ID} characters.")
    return group_id


async def share_fetch(ctx: BrokerContext, request: fetching.ShareFetchRequest) -> fetching.ShareFetchResponse:
    """Sent by share consumers. v2 added the acquire mode and renewals. Errors of the request: 30, 35, 42, 122, 123, 133. Of a
    partition: 3, 6, 15, 29, 56, 78, 100; of its acknowledgements besides: 42, 121."""
    try:
        group_id = _check(ctx, request.group_id, request.member_id)
        if request.is_renew_ack and (request.max_bytes or request.min_bytes or request.max_records or request.max_wait_ms):
            raise KafkaError(ErrorCode.INVALID_REQUEST, "A renewal fetches nothing: its limits and its wait have to be 0.")
        session = await _session(ctx, group_id, request)
    except KafkaError as refused:
        return fetching.ShareFetchResponse(error_code=refused.code, error_message=refused.detail)
    shares = ctx.node.share_partitions
    named = [(Place(topic.topic_id, each.partition_index), each) for topic in request.topics for each in topic.partitions]
    closes = request.share_session_epoch == CLOSE
    if not closes and not session.add(place for place, _ in named):
        text = f"A share session has at most {MOST_PLACES} partitions."
        return fetching.ShareFetchResponse(error_code=ErrorCode.INVALID_REQUEST, error_message=text)
    readable = _readable(ctx, [place for place, _ in named] + list(session.partitions))
    acks = _acknowledge(shares, session, named, readable, renews=request.is_renew_ack)
    fetch = None
    if closes:
        released = shares.leave(session) if shares.sessions.close(session) else []
        await _settled(ctx, (*acks.values(), *released))
    else:
        session.forget(Place(topic.topic_id, each) for topic in request.forgotten_topics_data for each in topic.partitions)
        await _settled(ctx, acks.values())
        fetch = ShareFetching(ctx, session, request, readable, exact=request.share_acquire_mode == _RECORD_LIMIT)
        if not request.is_renew_ack:
            await fetch.run()
            _count_fetched(ctx, fetch)
    errors = {place: _error(each) for place, each in acks.items()}
    _count_answered(ctx, errors)
    return await _fetch_response(ctx, group_id, session, fetch, errors)


async def _session(ctx: BrokerContext, group_id: str, request: fetching.ShareFetchRequest) -> ShareSession:
    shares, member_id = ctx.node.share_partitions, request.member_id or ""
    if request.share_session_epoch != OPEN:
        found = shares.sessions.next_request(group_id, member_id, request.share_session_epoch)
        if isinstance(found, ErrorCode):
            raise KafkaError(found)
        return found
    if any(each.acknowledgement_batches for topic in request.topics for each in topic.partitions):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "The first request of a session acknowledges nothing.")
    # What the member holds from a former session stays its own: it may still be at work on it, and acknowledges it in this one.
    opened = shares.sessions.open(group_id, member_id, ctx.session)
    if isinstance(opened, ErrorCode):
        # Answered late, so that clients do not ask without a pause.
        await ctx.node.runtime.sleep(min(request.max_wait_ms, 30_000) / 1000)
        raise KafkaError(opened)
    _watch(ctx, shares)
    return opened


def _watch(ctx: BrokerContext, shares: SharePartitions) -> None:
    """The sessions of a connection end with it."""
    owner = ctx.session
    if not isinstance(owner.on_closed, _Closed):
        owner.on_closed = _Closed(shares, owner, owner.on_closed)


class _Closed:
    """Called when a connection with share sessions is closed."""

    def __init__(self, shares: SharePartitions, owner: object, before: Callable[[], None] | None) -> None:
        self._shares = shares
        self._owner = owner
        self._before = before

    def __call__(self) -> None:
        if self._before is not None:
            self._before()
        self._shares.lost(self._owner)


async def share_acknowledge(
    ctx: BrokerContext, request: acknowledging.ShareAcknowledgeRequest
) -> acknowledging.ShareAcknowledgeResponse:
    """Sent by share consumers that fetch nothing now. v2 added renewals. Errors of the request: 30, 35, 42, 122, 123. Of a
    partition: 3, 6, 15, 29, 42, 100, 121."""
    shares = ctx.node.share_partitions
    try:
        group_id = _check(ctx, request.group_id, request.member_id)
        if request.share_session_epoch == OPEN:
            raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        session = shares.sessions.next_request(group_id, request.member_id or "", request.share_session_epoch)
        if isinstance(session, ErrorCode):
            raise KafkaError(session)
    except KafkaError as refused:
        return acknowledging.ShareAcknowledgeResponse(error_code=refused.code, error_message=refused.detail)
    named = [(Place(topic.topic_id, each.partition_index), each) for topic in request.topics for each in topic.partitions]
    readable = _readable(ctx, [place for place, _ in named])
    acks = _acknowledge(shares, session, named, readable, renews=request.is_renew_ack)
    released: list[Persisting] = []
    if request.share_session_epoch == CLOSE and shares.sessions.close(session):
        released = shares.leave(session)
    await _settled(ctx, (*acks.values(), *released))
    errors = {place: _error(each) for place, each in acks.items()}
    _count_answered(ctx, errors)
    return _acknowledge_response(ctx, group_id, errors)


# -- acknowledgements --------------------------------------------------------------------------------------------------------


def _readable(ctx: BrokerContext, places: Iterable[Place]) -> dict[bytes, ErrorCode]:
    """By topic id: NONE, 29 where the client may not read the topic, 100 where there is no such topic."""
    ids = dict.fromkeys(place.topic_id for place in places)
    names = {topic_id: ctx.image.topics.by_id.get(Uuid(topic_id)) for topic_id in ids}
    found = {topic.name for topic in names.values() if topic is not None}
    visible = allowed(ctx, AclOperation.READ, ResourceType.TOPIC, found)
    return {
        topic_id: ErrorCode.UNKNOWN_TOPIC_ID
        if topic is None
        else (_NONE if topic.name in visible else ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        for topic_id, topic in names.items()
    }


def _acknowledge(
    shares: SharePartitions,
    session: ShareSession,
    named: Sequence[tuple[Place, Any]],
    readable: dict[bytes, ErrorCode],
    *,
    renews: bool,
) -> Acks:
    """What becomes of the acknowledgements in the request, by partition."""
    acks: Acks = {}
    for place, each in named:
        if not each.acknowledgement_batches:
            continue
        error = readable[place.topic_id]
        if error is _NONE and not _are_valid(each.acknowledgement_batches, renews=renews):
            error = ErrorCode.INVALID_REQUEST
        hosted = shares.find(session.group_id, place) if error is _NONE else None
        if hosted is None:
            acks[place] = error or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            continue
        batches = [
            Acknowledgement(batch.first_offset, batch.last_offset, tuple(batch.acknowledge_types))
            for batch in each.acknowledgement_batches
        ]
        acks[place] = outcome = hosted.acknowledge(session.member_id, batches)
        if outcome is _NONE or isinstance(outcome, Persisting):
            shares.counts.acknowledge(batches)
    return acks


def _are_valid(batches: Sequence[Any], *, renews: bool) -> bool:
    above = -1
    for batch in batches:
        count = len(batch.acknowledge_types)
        if batch.first_offset < above or batch.last_offset < batch.first_offset:
            return False
        if count not in {1, batch.last_offset - batch.first_offset + 1}:
            return False
        if not all(0 <= kind <= (AckType.RENEW if renews else AckType.REJECT) for kind in batch.acknowledge_types):
            return False
        above = batch.last_offset
    return True


async def _settled(ctx: BrokerContext, changes: Iterable[ErrorCode | Persisting]) -> None:
    for each in changes:
        if isinstance(each, Persisting) and not each.done:
            await ctx.wait(each)


def _count_answered(ctx: BrokerContext, errors: dict[Place, ErrorCode]) -> None:
    """Counts the request for each topic whose records it acknowledged."""
    failed = {place.topic_id for place, error in errors.items() if error is not _NONE}
    for topic_id in dict.fromkeys(place.topic_id for place in errors):
        topic = ctx.image.topics.by_id.get(Uuid(topic_id))
        if topic is not None:
            ctx.node.share_partitions.counts.answered(topic.name, failed=topic_id in failed)


def _count_fetched(ctx: BrokerContext, fetch: ShareFetching) -> None:
    """Counts the request for each topic that it fetched from."""
    failed: dict[bytes, bool] = {}
    for place, found in fetch.results.items():
        failed[place.topic_id] = failed.get(place.topic_id, False) or found.error is not _NONE
    for topic_id, one_failed in failed.items():
        topic = ctx.image.topics.by_id.get(Uuid(topic_id))
        if topic is not None:
            ctx.node.share_partitions.counts.fetched(topic.name, failed=one_failed)


def _error(outcome: ErrorCode | Persisting) -> ErrorCode:
    return outcome.error if isinstance(outcome, Persisting) else outcome


# -- responses ---------------------------------------------------------------------------------------------------------------


async def _fetch_response(
    ctx: BrokerContext, group_id: str, session: ShareSession, fetch: ShareFetching | None, acks: dict[Place, ErrorCode]
) -> fetching.ShareFetchResponse:
    topics: dict[bytes, list[fetching.PartitionData]] = {}
    leaders: dict[tuple[int, int], None] = {}
    results = {}
    for number, (place, found) in enumerate((fetch.results if fetch is not None else {}).items(), 1):
        if session.answers(place, found.error, has_records=bool(found.acquired)):
            results[place] = found
        if not number % A_TURN:
            await ctx.node.runtime.sleep(0)
    for place in dict.fromkeys((*results, *acks)):
        given = results.get(place)
        told = fetching.PartitionData(partition_index=place.partition)
        error, ack_error = _NONE if given is None else given.error, acks.get(place, _NONE)
        told.error_code, told.acknowledge_error_code = error, ack_error
        told.error_message = None if error is _NONE else error.text
        told.acknowledge_error_message = None if ack_error is _NONE else ack_error.text
        if given is not None:
            told.records = given.records
            told.acquired_records = [fetching.AcquiredRecords(*each) for each in given.acquired]
        if error in _WRONG_LEADER or ack_error in _WRONG_LEADER:
            leader = current_leader(ctx, None, Uuid(place.topic_id), place.partition)
            if leader is not None:
                told.current_leader = fetching.LeaderIdAndEpoch(*leader)
                leaders[leader] = None
        topics.setdefault(place.topic_id, []).append(told)
        if told.acquired_records:
            session.served(place)
    return fetching.ShareFetchResponse(
        acquisition_lock_timeout_ms=ctx.node.share_partitions.settings.lock_ms(group_id),
        responses=[fetching.ShareFetchableTopicResponse(topic_id, partitions) for topic_id, partitions in topics.items()],
        node_endpoints=[fetching.NodeEndpoint(*each) for each in node_endpoints(ctx, leaders)],
    )


def _acknowledge_response(
    ctx: BrokerContext, group_id: str, acks: dict[Place, ErrorCode]
) -> acknowledging.ShareAcknowledgeResponse:
    topics: dict[bytes, list[acknowledging.PartitionData]] = {}
    leaders: dict[tuple[int, int], None] = {}
    for place, error in acks.items():
        told = acknowledging.PartitionData(place.partition, error, None if error is _NONE else error.text)
        if error in _WRONG_LEADER:
            leader = current_leader(ctx, None, Uuid(place.topic_id), place.partition)
            if leader is not None:
                told.current_leader = acknowledging.LeaderIdAndEpoch(*leader)
                leaders[leader] = None
        topics.setdefault(place.topic_id, []).append(told)
    return acknowledging.ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=ctx.node.share_partitions.settings.lock_ms(group_id),
        responses=[acknowledging.ShareAcknowledgeTopicResponse(*each) for each in topics.items()],
        node_endpoints=[acknowledging.NodeEndpoint(*each) for each in node_endpoints(ctx, leaders)],
    )
