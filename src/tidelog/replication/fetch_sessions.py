"""Incremental fetch sessions (KIP-227).

What is decided here: which partitions a fetch is about, when a client that fetches again may name only what changed, which
partitions an incremental answer holds, and which sessions stay when there are too many.

A request names a session and an epoch in it. (0, 0) asks for a new session, (any, -1) for none, (id, n) is the n-th fetch of
session id; n starts at 1 and wraps from 2147483647 to 1. The full forms close the session they name.

Invariants: the cache never holds more than its limit; a session is keyed by topic names or by topic ids, for its whole life;
a partition with an error, or with a topic id nobody knows, is in every answer until it is well or forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from tidelog.model import ids
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Uuid
from tidelog.model.ports import Rng
from tidelog.replication.partition import Partition, PartitionRead

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
NO_SESSION = 0
MAX_EPOCH = 0x7FFFFFFF
DEFAULT_SLOTS = 1000
EVICTION_MS = 120_000
"""A session that was idle for so long makes room for any other; one that lived for so long, for a larger one."""

PartitionKey = tuple[str | Uuid, int]


class FetchPartition:
    """One partition of a fetch: what is asked for and, in a session, what was answered last.

    ``topic`` is None as long as nobody knows ``topic_id``. ``partition`` is where the last lookup led; it is looked up again
    when it was deleted.
    """

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "index",
        "last_fetched_epoch",
        "max_bytes",
        "partition",
        "sent_high_watermark",
        "sent_last_stable_offset",
        "sent_log_start_offset",
        "topic",
        "topic_id",
    )

    def __init__(self, topic: str | None, topic_id: Uuid, index: int) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.current_leader_epoch = ids.NO_EPOCH
        self.fetch_offset = 0
        self.last_fetched_epoch = ids.NO_EPOCH
        self.max_bytes = 0
        self.partition: Partition | None = None
        self.sent_high_watermark = -1
        self.sent_last_stable_offset = -1
        self.sent_log_start_offset = -1

    def ask(self, wanted: WantedPartition) -> None:
        """Take over what a request asks of this partition."""
        _, self.current_leader_epoch, self.fetch_offset, self.last_fetched_epoch, _, self.max_bytes = wanted

    def answer(self, read: PartitionRead) -> bool:
        """Remember what was read as answered. False: the client knows all of this, an incremental answer leaves it out."""
        if (
            read.high_watermark == self.sent_high_watermark
            and read.log_start_offset == self.sent_log_start_offset
            and read.last_stable_offset == self.sent_last_stable_offset
        ):
            return read.size > 0 or read.error is not ErrorCode.NONE or read.diverging is not None
        self.sent_high_watermark = read.high_watermark
        self.sent_log_start_offset = read.log_start_offset
        self.sent_last_stable_offset = read.last_stable_offset
        return True


WantedPartition = tuple[int, int, int, int, int, int]
"""(index, current leader epoch, fetch offset, last fetched epoch, follower's log start offset, max bytes)."""


class FetchRequest(Protocol):
    """What is read of a Fetch request here; ``protocol.fastpath`` has it."""

    @property
    def session_id(self) -> int: ...

    @property
    def session_epoch(self) -> int: ...

    @property
    def topics(self) -> Sequence[tuple[str | None, Uuid, Sequence[WantedPartition]]]: ...

    @property
    def forgotten(self) -> Sequence[tuple[str | None, Uuid, Sequence[int]]]: ...


class FetchSession:
    """What one client fetches, between its requests. ``epoch`` is the one its next request has to name."""

    __slots__ = ("by_id", "created_ms", "epoch", "id", "last_used_ms", "partitions", "privileged")

    def __init__(self, session_id: int, partitions: Iterable[FetchPartition], *, by_id: bool, privileged: bool, now_ms: int):
        self.id = session_id
        self.by_id = by_id
        self.privileged = privileged
        self.created_ms = now_ms
        self.last_used_ms = now_ms
        self.epoch = 1
        self.partitions: dict[PartitionKey, FetchPartition] = {}
        """In the order in which they are read: who got records goes to the end."""
        for partition in partitions:
            self.partitions[_key(partition.topic, partition.topic_id, partition.index, by_id)] = partition

    def update(self, request: FetchRequest) -> None:
        """Add and change the partitions that the request names, drop those that it forgets."""
        partitions = self.partitions
        for name, topic_id, wanted_partitions in request.topics:
            for wanted in wanted_partitions:
                key = _key(name, topic_id, wanted[0], self.by_id)
                partition = partitions.get(key)
                if partition is None:
                    partition = partitions[key] = FetchPartition(name, topic_id, wanted[0])
                partition.ask(wanted)
        for name, topic_id, indices in request.forgotten:
            for index in indices:
                partitions.pop(_key(name, topic_id, index, self.by_id), None)


def _key(name: str | None, topic_id: Uuid, index: int, by_id: bool) -> PartitionKey:
    if by_id:
        return topic_id, index
    assert name is not None, "a fetch by name has names"
    return name, index


class FetchAnswer:
    """How a fetch is answered: the whole request's error, the session, and each partition that the answer holds."""

    __slots__ = ("error", "partitions", "session_id")

    def __init__(
        self, error: ErrorCode, session_id: int, partitions: Sequence[tuple[FetchPartition, PartitionRead]] = ()
    ) -> None:
        self.error = error
        self.session_id = session_id
        self.partitions = partitions


class FetchContext:
    """One fetch: the partitions it is about, in reading order, and what to do with what was read."""

    __slots__ = ("_by_id", "_cache", "_creates", "_epoch", "_privileged", "_session", "partitions")

    def __init__(
        self,
        cache: FetchSessionCache,
        partitions: Sequence[FetchPartition],
        *,
        session: FetchSession | None = None,
        creates: bool = False,
        by_id: bool = False,
        privileged: bool = False,
    ) -> None:
        self.partitions = partitions
        self._cache = cache
        self._session = session
        self._epoch = session.epoch if session is not None else FINAL_EPOCH
        self._creates = creates
        self._by_id = by_id
        self._privileged = privileged

    def finish(self, reads: Sequence[PartitionRead], now_ms: int) -> FetchAnswer:
        """The answer, given what was read of ``partitions``, in their order. To be called once."""
        session = self._session
        answered = zip(self.partitions, reads, strict=True)
        if session is None:
            everything = list(answered)
            if not self._creates:
                return FetchAnswer(ErrorCode.NONE, NO_SESSION, everything)
            for partition, read in everything:
                partition.answer(read)
            created = self._cache.create(self.partitions, by_id=self._by_id, privileged=self._privileged, now_ms=now_ms)
            return FetchAnswer(ErrorCode.NONE, created, everything)
        if session.epoch != self._epoch:
            # Another connection used the session while this fetch waited.
            return FetchAnswer(ErrorCode.INVALID_FETCH_SESSION_EPOCH, NO_SESSION)
        changed = [(partition, read) for partition, read in answered if partition.answer(read)]
        order = session.partitions
        if len(order) > 1:
            for partition, read in changed:
                if read.size:
                    key = _key(partition.topic, partition.topic_id, partition.index, session.by_id)
                    if order.get(key) is partition:
                        order[key] = order.pop(key)
        return FetchAnswer(ErrorCode.NONE, session.id, changed)


class FetchSessionCache:
    """All fetch sessions of this broker, at most ``slots``; the least recently used first."""

    __slots__ = ("_eviction_ms", "_rng", "_sessions", "_slots", "evictions")

    def __init__(self, rng: Rng, *, slots: int = DEFAULT_SLOTS, eviction_ms: int = EVICTION_MS) -> None:
        self._rng = rng
        self._slots = slots
        self._eviction_ms = eviction_ms
        self._sessions: dict[int, FetchSession] = {}
        self.evictions = 0

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partition_count(self) -> int:
        """Partitions in all sessions."""
        return sum(len(session.partitions) for session in self._sessions.values())

    def open(self, request: FetchRequest, now_ms: int, *, by_id: bool, privileged: bool) -> FetchContext | ErrorCode:
        """What the request is about; or the error of the whole request: 70 no such session, 71 other epoch, 106 other naming.

        ``by_id``: this version names topics by id. ``privileged``: a follower asks.
        """
        epoch = request.session_epoch
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            if request.session_id != NO_SESSION:
                self._sessions.pop(request.session_id, None)
            creates = epoch == INITIAL_EPOCH
            return FetchContext(self, _full(request, by_id), creates=creates, by_id=by_id, privileged=privileged)
        session = self._sessions.get(request.session_id)
        if session is None:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        if session.by_id != by_id:
            return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        session.update(request)
        # Re-inserted: the dictionary's order is the order of use.
        del self._sessions[session.id]
        if not session.partitions:
            return FetchContext(self, ())
        self._sessions[session.id] = session
        session.last_used_ms = now_ms
        session.epoch = epoch + 1 if epoch < MAX_EPOCH else 1
        return FetchContext(self, list(session.partitions.values()), session=session)

    def create(self, partitions: Sequence[FetchPartition], *, by_id: bool, privileged: bool, now_ms: int) -> int:
        """A new session's id; NO_SESSION when there is no room for it."""
        if len(self._sessions) >= self._slots and not self._evict(len(partitions), privileged, now_ms):
            return NO_SESSION
        session_id = NO_SESSION
        while session_id == NO_SESSION or session_id in self._sessions:
            session_id = self._rng.randrange(1, MAX_EPOCH)
        self._sessions[session_id] = FetchSession(session_id, partitions, by_id=by_id, privileged=privileged, now_ms=now_ms)
        return session_id

    def _evict(self, size: int, privileged: bool, now_ms: int) -> bool:
        """Make room for ``size`` partitions: an idle session goes, a consumer's for a follower's, an old one for a larger."""
        if not self._sessions:
            return False
        victim = next(iter(self._sessions.values()))
        if now_ms - victim.last_used_ms <= self._eviction_ms:
            candidates = [
                (session.privileged, len(session.partitions), session.id)
                for session in self._sessions.values()
                if now_ms - session.created_ms > self._eviction_ms or (privileged and not session.privileged)
            ]
            if not candidates:
                return False
            lowest = min(candidates)
            if lowest >= (privileged, size, 0):
                return False
            victim = self._sessions[lowest[2]]
        del self._sessions[victim.id]
        self.evictions += 1
        return True


def _full(request: FetchRequest, by_id: bool) -> list[FetchPartition]:
    """The partitions of a full fetch; of one named twice, the last."""
    partitions: dict[PartitionKey, FetchPartition] = {}
    for name, topic_id, wanted_partitions in request.topics:
        for wanted in wanted_partitions:
            partition = FetchPartition(name, topic_id, wanted[0])
            partition.ask(wanted)
            partitions[_key(name, topic_id, wanted[0], by_id)] = partition
    return list(partitions.values())
