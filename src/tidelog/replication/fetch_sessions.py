"""Incremental fetch sessions (KIP-227).

What is decided here: which partitions a fetch is about, when a client that fetches again may name only what changed, which
partitions an incremental answer holds, and which sessions stay when there are too many.

A request names a session and an epoch in it. (0, 0) asks for a new session, (any, -1) for none, (id, n) is the n-th fetch of
session id; n starts at 1 and wraps from 2147483647 to 1. The full forms close the session they name.

A session of thousands of partitions must not cost a look at each of them per fetch. So it keeps a set of those that may have
news, ``due``: a partition leaves it when it was answered with nothing more to give, and comes back when it changes (the session
watches it), or when the client names it. Only what is due is read.

Invariants: the cache never holds more sessions and partitions than its limits; a session is keyed by topic names or by topic
ids, for its whole life; a partition with an error, or with a topic id nobody knows, is in every answer until it is well or
forgotten; a partition that is not due is watched.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from tidelog.model import ids
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Uuid
from tidelog.model.ports import Rng
from tidelog.replication.delayed import Parked, ParkedFetch, Watched
from tidelog.replication.in_sync import follower_left
from tidelog.replication.partition import Partition
from tidelog.replication.reads import PartitionRead
from tidelog.replication.replica import Caller

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
NO_SESSION = 0
MAX_EPOCH = 0x7FFFFFFF
DEFAULT_SLOTS = 1000
EVICTION_MS = 120_000
"""A session that was idle for so long makes room for any other; one that lived for so long, for a larger one."""

MAX_PARTITIONS = 100_000
"""In all sessions together (some 450 bytes each). Beyond, clients fetch without a session, which they all can."""

PartitionKey = tuple[str | Uuid, int]


class FetchPartition:
    """One partition of a fetch: what is asked for and, in a session, what was answered last.

    ``topic`` is None as long as nobody knows ``topic_id``. ``partition`` is where the last lookup led; it is looked up again
    when it was deleted.
    """

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "follower_start",
        "held_back",
        "index",
        "last_fetched_epoch",
        "max_bytes",
        "partition",
        "read_stable_offset",
        "sent_high_watermark",
        "sent_last_stable_offset",
        "sent_log_start_offset",
        "stale",
        "topic",
        "topic_id",
        "watched",
    )

    def __init__(self, topic: str | None, topic_id: Uuid, index: int) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.current_leader_epoch = ids.NO_EPOCH
        self.fetch_offset = 0
        self.follower_start = ids.NO_OFFSET
        self.last_fetched_epoch = ids.NO_EPOCH
        self.max_bytes = 0
        self.partition: Partition | None = None
        self.watched: Partition | None = None
        """The partition at which the session is registered for this one."""
        self.stale = False
        """It changed since it was last read."""
        self.read_stable_offset = -1
        self.held_back = False
        self.sent_high_watermark = -1
        self.sent_last_stable_offset = -1
        self.sent_log_start_offset = -1

    def ask(self, wanted: WantedPartition) -> None:
        """Take over what a request asks of this partition."""
        _, self.current_leader_epoch, self.fetch_offset, self.last_fetched_epoch, self.follower_start, self.max_bytes = wanted

    def answer(self, read: PartitionRead) -> bool:
        """Remember what was read as answered. False: the client knows all of this, an incremental answer leaves it out."""
        if (
            read.high_watermark == self.sent_high_watermark
            and read.log_start_offset == self.sent_log_start_offset
            and read.last_stable_offset == self.sent_last_stable_offset
        ):
            return read.size > 0 or read.is_news
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

    __slots__ = ("by_id", "caller", "created_ms", "due", "epoch", "id", "last_used_ms", "partitions", "watchers")

    def __init__(self, session_id: int, partitions: Iterable[FetchPartition], *, by_id: bool, caller: Caller | None, now_ms: int):
        self.id = session_id
        self.by_id = by_id
        self.caller = caller
        """The follower whose session it is; None for consumers."""
        self.created_ms = now_ms
        self.last_used_ms = now_ms
        self.epoch = 1
        self.partitions: dict[PartitionKey, FetchPartition] = {}
        self.due: dict[FetchPartition, None] = {}
        """Partitions to be read by the next fetch, in this order: who got records goes to the end."""
        self.watchers: dict[Parked, Any] = {}
        """The fetch of this session that is parked, if any."""
        for partition in partitions:
            self.partitions[_key(partition.topic, partition.topic_id, partition.index, by_id)] = partition
            self.due[partition] = None

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
                self.due[partition] = None
        for name, topic_id, indices in request.forgotten:
            for index in indices:
                partition = partitions.pop(_key(name, topic_id, index, self.by_id), None)
                if partition is not None:
                    self.due.pop(partition, None)
                    self._leave(partition)

    def changed(self, partition: Watched, key: FetchPartition, new_bytes: int) -> None:
        """A partition that was quiet may have news. Told once, unless a fetch is parked that counts the bytes."""
        key.stale = True
        self.due[key] = None
        if self.watchers:
            for parked in list(self.watchers):
                parked.changed(partition, key, new_bytes)
        else:
            self._unwatch(key)

    def watch(self, wanted: FetchPartition) -> None:
        """Be told when its partition changes."""
        partition = wanted.partition
        if wanted.watched is not partition and partition is not None:
            self._unwatch(wanted)
            wanted.watched = partition
            (partition.watchers if self.caller is None else partition.tail.watchers)[self] = wanted

    def _unwatch(self, wanted: FetchPartition) -> None:
        if wanted.watched is not None:
            (wanted.watched.watchers if self.caller is None else wanted.watched.tail.watchers).pop(self, None)
            wanted.watched = None

    def _leave(self, wanted: FetchPartition) -> None:
        self._unwatch(wanted)
        if self.caller is not None and wanted.partition is not None:
            follower_left(wanted.partition, self.caller)

    def settle(self, wanted: FetchPartition, read: PartitionRead) -> None:
        """``wanted`` is answered with ``read``: it is due no more, or goes to the end of those that are."""
        if read.caught_up and not wanted.stale:
            self.watch(wanted)
            self.due.pop(wanted, None)
        elif read.size and wanted in self.due:
            del self.due[wanted]
            self.due[wanted] = None

    def close(self) -> None:
        """Watch nothing any more; a fetch that is parked goes on to find its session gone."""
        self.epoch = FINAL_EPOCH
        for wanted in self.partitions.values():
            self._leave(wanted)
        self.wake()

    def wake(self) -> None:
        """End the wait of a fetch that is parked."""
        for parked in list(self.watchers):
            parked.finish()


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
    """One fetch: the partitions to read, in order, and what to do with what was read. ``session`` is None unless incremental."""

    __slots__ = ("_by_id", "_cache", "_creates", "_epoch", "_everything", "caller", "session")

    def __init__(
        self,
        cache: FetchSessionCache,
        everything: Sequence[FetchPartition],
        *,
        session: FetchSession | None = None,
        creates: bool = False,
        by_id: bool = False,
        caller: Caller | None = None,
    ) -> None:
        self.session = session
        self.caller = caller
        self._cache = cache
        self._everything = everything
        self._epoch = session.epoch if session is not None else FINAL_EPOCH
        self._creates = creates
        self._by_id = by_id

    @property
    def due(self) -> Sequence[FetchPartition]:
        """What is to be read now."""
        return self._everything if self.session is None else list(self.session.due)

    @property
    def is_empty(self) -> bool:
        """Whether no partition is asked for at all, so that there is nothing to wait for."""
        return not (self._everything if self.session is None else self.session.partitions)

    @property
    def is_superseded(self) -> bool:
        """Whether another connection used the session while this fetch waited, or it was closed."""
        return self.session is not None and self.session.epoch != self._epoch

    def watch(self, parked: ParkedFetch, wanted_partitions: Iterable[FetchPartition]) -> None:
        """Let ``parked`` be told of changes; ``wanted_partitions`` are those that were read."""
        session = self.session
        if session is not None:
            for wanted in wanted_partitions:
                session.watch(wanted)
            parked.watch(session, None)
            return
        for wanted in wanted_partitions:
            partition = wanted.partition
            if partition is not None:
                parked.watch(partition if self.caller is None else partition.tail, wanted)

    def put_off(self) -> FetchAnswer:
        """The answer instead of ``finish`` to who is to come back later: nothing, and no session where there was none."""
        if self.session is None:
            return FetchAnswer(ErrorCode.NONE, NO_SESSION)
        if self.is_superseded:
            return FetchAnswer(ErrorCode.INVALID_FETCH_SESSION_EPOCH, NO_SESSION)
        return FetchAnswer(ErrorCode.NONE, self.session.id)

    def finish(self, reads: Mapping[FetchPartition, PartitionRead], now_ms: int) -> FetchAnswer:
        """The answer, given what was read. To be called once."""
        session = self.session
        if session is None:
            if not self._creates:
                return FetchAnswer(ErrorCode.NONE, NO_SESSION, list(reads.items()))
            for wanted, read in reads.items():
                wanted.answer(read)
            created = self._cache.create(self._everything, by_id=self._by_id, caller=self.caller, now_ms=now_ms)
            return FetchAnswer(ErrorCode.NONE, created, list(reads.items()))
        if self.is_superseded:
            return FetchAnswer(ErrorCode.INVALID_FETCH_SESSION_EPOCH, NO_SESSION)
        changed: list[tuple[FetchPartition, PartitionRead]] = []
        for wanted, read in reads.items():
            if wanted.answer(read):
                changed.append((wanted, read))
            session.settle(wanted, read)
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

    def open(self, request: FetchRequest, now_ms: int, *, by_id: bool, caller: Caller | None = None) -> FetchContext | ErrorCode:
        """What the request is about; or the error of the whole request: 70 no such session, 71 other epoch, 106 other naming.

        ``by_id``: this version names topics by id. ``caller``: the follower that asks.
        """
        epoch = request.session_epoch
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            closed = self._sessions.pop(request.session_id, None)
            if closed is not None:
                closed.close()
            creates = epoch == INITIAL_EPOCH
            return FetchContext(self, _full(request, by_id), creates=creates, by_id=by_id, caller=caller)
        session = self._sessions.get(request.session_id)
        if session is None:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        if session.by_id != by_id:
            return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        if (caller is None) is not (session.caller is None):
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if caller is not None and session.caller is not None:
            if caller.broker_id != session.caller.broker_id:
                return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
            session.caller.last_fetch_ms = caller.last_fetch_ms
            session.caller.broker_epoch = caller.broker_epoch
        session.wake()
        before = len(session.partitions)
        session.update(request)
        if len(session.partitions) > before and self.partition_count > MAX_PARTITIONS:
            session.close()
            del self._sessions[session.id]
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        # Re-inserted: the dictionary's order is the order of use.
        del self._sessions[session.id]
        if not session.partitions:
            return FetchContext(self, (), caller=session.caller)
        self._sessions[session.id] = session
        session.last_used_ms = now_ms
        session.epoch = epoch + 1 if epoch < MAX_EPOCH else 1
        return FetchContext(self, (), session=session, caller=session.caller)

    def create(self, partitions: Sequence[FetchPartition], *, by_id: bool, caller: Caller | None, now_ms: int) -> int:
        """A new session's id; NO_SESSION when there is no room for it."""
        if self.partition_count + len(partitions) > MAX_PARTITIONS:
            return NO_SESSION
        if len(self._sessions) >= self._slots and not self._evict(len(partitions), caller is not None, now_ms):
            return NO_SESSION
        session_id = NO_SESSION
        while session_id == NO_SESSION or session_id in self._sessions:
            session_id = self._rng.randrange(1, MAX_EPOCH)
        self._sessions[session_id] = FetchSession(session_id, partitions, by_id=by_id, caller=caller, now_ms=now_ms)
        return session_id

    def _evict(self, size: int, privileged: bool, now_ms: int) -> bool:
        """Make room for ``size`` partitions: an idle session goes, a consumer's for a follower's, an old one for a larger."""
        if not self._sessions:
            return False
        victim = next(iter(self._sessions.values()))
        if now_ms - victim.last_used_ms <= self._eviction_ms:
            candidates = [
                (session.caller is not None, len(session.partitions), session.id)
                for session in self._sessions.values()
                if now_ms - session.created_ms > self._eviction_ms or (privileged and session.caller is None)
            ]
            if not candidates:
                return False
            lowest = min(candidates)
            if lowest >= (privileged, size, 0):
                return False
            victim = self._sessions[lowest[2]]
        del self._sessions[victim.id]
        victim.close()
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
