"""Incremental fetch sessions (KIP-227).

Decided here: which partitions a fetch covers, when a client may name only what changed, which partitions an incremental answer
holds, and which sessions are evicted when there are too many.

A request names a session and an epoch in it: (0, 0) asks for a new session, (any, -1) for none, (id, n) is the n-th fetch of
session id; n starts at 1 and wraps from 2147483647 to 1. The full forms close the session they name.

A fetch must not look at each of a session's thousands of partitions. The session keeps the set ``due`` of partitions that may
have news. A partition leaves it when it was answered and has nothing more to give. It returns when it changes (the session
watches it) or when the client names it. Only due partitions are read.

Invariants: the cache never exceeds its limits on sessions and partitions; a session is keyed by topic names or by topic ids for
its whole life; a partition with an error, or with an unknown topic id, is in every answer until the error is gone or the client
forgets the partition; a partition that is not due is watched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Uuid
from tidelog.model.ports import Rng
from tidelog.replication.fetch_partition import FetchPartition, WantedPartition
from tidelog.replication.purgatory import Parked, ParkedFetch, Watched
from tidelog.replication.reads import PartitionRead
from tidelog.replication.replica import Caller

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
NO_SESSION = 0
MAX_EPOCH = 0x7FFFFFFF
DEFAULT_SLOTS = 1000
EVICTION_MS = 120_000
"""A session idle for this long makes room for any other; a session that is this old, for a larger one."""

MAX_PARTITIONS = 100_000
"""In all sessions together (about 450 bytes each). Beyond that clients fetch without a session, which every client can."""

PartitionKey = tuple[str | Uuid, int]


class FetchRequest(Protocol):
    """The fields of a Fetch request that sessions use; ``protocol.fastpath`` implements it."""

    @property
    def session_id(self) -> int: ...

    @property
    def session_epoch(self) -> int: ...

    @property
    def topics(self) -> Sequence[tuple[str | None, Uuid, Sequence[WantedPartition]]]: ...

    @property
    def forgotten(self) -> Sequence[tuple[str | None, Uuid, Sequence[int]]]: ...


class FetchSession:
    """What one client fetches, kept between its requests. ``epoch`` is the epoch that its next request must name."""

    __slots__ = ("by_id", "caller", "created_ms", "decider", "due", "epoch", "id", "last_used_ms", "partitions", "watchers")

    def __init__(self, session_id: int, partitions: Iterable[FetchPartition], *, by_id: bool, caller: Caller | None, now_ms: int):
        self.id = session_id
        self.by_id = by_id
        self.caller = caller
        """The follower that uses this session; None for consumers."""
        self.created_ms = now_ms
        self.last_used_ms = now_ms
        self.epoch = 1
        self.decider: object = None
        """The permissions by which the partitions that are not due were decided; None when there are none."""
        self.partitions: dict[PartitionKey, FetchPartition] = {}
        self.due: dict[FetchPartition, None] = {}
        """Partitions that the next fetch reads, in this order; a partition that returned records moves to the end."""
        self.watchers: dict[Parked, Any] = {}
        """The parked fetch of this session, if any."""
        for partition in partitions:
            self.partitions[_key(partition.topic, partition.topic_id, partition.index, by_id)] = partition
            self.due[partition] = None

    def ask(self, partition: FetchPartition, wanted: WantedPartition) -> None:
        """The request names the partition, which is in the session."""
        partition.ask(wanted)
        self.due[partition] = None

    def update(self, request: FetchRequest) -> None:
        """Add or change the partitions that the request names; drop those that it forgets."""
        partitions = self.partitions
        for name, topic_id, wanted_partitions in request.topics:
            for wanted in wanted_partitions:
                key = _key(name, topic_id, wanted[0], self.by_id)
                partition = partitions.get(key)
                if partition is None:
                    partition = partitions[key] = FetchPartition(name, topic_id, wanted[0])
                self.ask(partition, wanted)
        for name, topic_id, indices in request.forgotten:
            for index in indices:
                partition = partitions.pop(_key(name, topic_id, index, self.by_id), None)
                if partition is not None:
                    self.due.pop(partition, None)
                    self._leave(partition)

    def changed(self, partition: Watched, key: FetchPartition, new_bytes: int) -> None:
        """A quiet partition may have news. Reported once, unless a parked fetch counts the bytes."""
        key.stale = True
        self.due[key] = None
        if self.watchers:
            for parked in list(self.watchers):
                parked.changed(partition, key, new_bytes)
        else:
            self._unwatch(key)

    def watch(self, wanted: FetchPartition) -> None:
        """Watch the partition for changes."""
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
        partition = wanted.partition
        if self.caller is not None and partition is not None and partition.leadership is not None and partition.log is not None:
            partition.leadership.left(self.caller, partition.log.log_end_offset)

    def settle(self, wanted: FetchPartition, read: PartitionRead) -> None:
        """``wanted`` is answered with ``read``: it is no longer due, or it moves to the end of the due partitions."""
        if read.caught_up and not wanted.stale:
            self.watch(wanted)
            self.due.pop(wanted, None)
        elif read.size and wanted in self.due:
            del self.due[wanted]
            self.due[wanted] = None

    def close(self) -> None:
        """Stop watching; a parked fetch wakes up and finds its session gone."""
        self.epoch = FINAL_EPOCH
        for wanted in self.partitions.values():
            self._leave(wanted)
        self.wake()

    def wake(self) -> None:
        """Finish the parked fetch."""
        for parked in list(self.watchers):
            parked.finish()


def _key(name: str | None, topic_id: Uuid, index: int, by_id: bool) -> PartitionKey:
    if by_id:
        return topic_id, index
    assert name is not None, "a fetch by name has names"
    return name, index


class FetchAnswer:
    """The answer to a fetch: the top-level error, the session id, and the partitions to return."""

    __slots__ = ("error", "partitions", "session_id")

    def __init__(
        self, error: ErrorCode, session_id: int, partitions: Sequence[tuple[FetchPartition, PartitionRead]] = ()
    ) -> None:
        self.error = error
        self.session_id = session_id
        self.partitions = partitions


class FetchContext:
    """One fetch: the partitions to read, in order, and how their results are answered. ``session`` is None unless incremental."""

    __slots__ = ("_by_id", "_cache", "_creates", "_decider", "_epoch", "_everything", "caller", "session")

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
        self._decider: object = None

    def decide_by(self, decider: object) -> None:
        """Decide the fetch by these permissions. If the session was decided by others, all of its partitions are due. One that
        may not be read stays in the session, as any with an error."""
        self._decider = decider
        session = self.session
        if session is not None and session.decider != decider:
            session.decider = decider
            session.due.update(dict.fromkeys(session.partitions.values()))

    @property
    def due(self) -> Sequence[FetchPartition]:
        """The partitions to read now."""
        return self._everything if self.session is None else list(self.session.due)

    @property
    def size(self) -> int:
        """How many partitions the fetch covers, due or not."""
        return len(self._everything if self.session is None else self.session.partitions)

    @property
    def is_superseded(self) -> bool:
        """Whether another connection used the session while this fetch waited, or the session was closed."""
        return self.session is not None and self.session.epoch != self._epoch

    def watch(self, parked: ParkedFetch, wanted_partitions: Iterable[FetchPartition]) -> None:
        """Make ``parked`` watch ``wanted_partitions``, the partitions that were read."""
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
        """The answer for a client that has to retry later, instead of ``finish``: no partitions, and no new session."""
        if self.session is None:
            return FetchAnswer(ErrorCode.NONE, NO_SESSION)
        if self.is_superseded:
            return FetchAnswer(ErrorCode.INVALID_FETCH_SESSION_EPOCH, NO_SESSION)
        return FetchAnswer(ErrorCode.NONE, self.session.id)

    def finish(self, reads: Mapping[FetchPartition, PartitionRead], even_ms: Callable[[], int]) -> FetchAnswer:
        """The answer for these results. Call it once. ``even_ms``: the even clock, which only a new session asks."""
        session = self.session
        if session is None:
            if not self._creates:
                return FetchAnswer(ErrorCode.NONE, NO_SESSION, list(reads.items()))
            for wanted, read in reads.items():
                wanted.answer(read)
            created = self._cache.create(
                self._everything, by_id=self._by_id, caller=self.caller, now_ms=even_ms(), decider=self._decider
            )
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
    """All fetch sessions of this broker, at most ``slots``, least recently used first."""

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

    def continued_by_follower(self, session_id: int, epoch: int) -> FetchSession | None:
        """The follower's session that this request continues, by topic id, if it has partitions and none of its fetches waits."""
        session = self._sessions.get(session_id)
        if session is None or session.epoch != epoch or session.caller is None or session.watchers:
            return None
        return session if session.partitions and session.by_id else None

    def open(self, request: FetchRequest, now_ms: int, *, by_id: bool, caller: Caller | None = None) -> FetchContext | ErrorCode:
        """The context of the request, or a top-level error: 70 unknown session, 71 wrong epoch, 106 topic ids in place of
        names or the reverse.

        ``by_id``: this version names topics by id. ``caller``: the follower that fetches.
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
        if not session.partitions:
            del self._sessions[session.id]
            return FetchContext(self, (), caller=session.caller)
        self.advance(session, now_ms)
        return FetchContext(self, (), session=session, caller=session.caller)

    def continued(self, session_id: int, epoch: int, *, by_id: bool) -> FetchSession | None:
        """The consumer's session that this request continues, if it has partitions and none of its fetches waits."""
        session = self._sessions.get(session_id)
        if session is None or session.epoch != epoch or session.by_id != by_id or session.caller is not None:
            return None
        return session if session.partitions and not session.watchers else None

    def advance(self, session: FetchSession, now_ms: int) -> None:
        """The session is used: its next fetch names the next epoch."""
        # Inserted again: the dictionary is in order of use.
        del self._sessions[session.id]
        self._sessions[session.id] = session
        session.last_used_ms = now_ms
        session.epoch = session.epoch + 1 if session.epoch < MAX_EPOCH else 1

    def create(
        self,
        partitions: Sequence[FetchPartition],
        *,
        by_id: bool,
        caller: Caller | None,
        now_ms: int,
        decider: object = None,
    ) -> int:
        """The id of a new session; NO_SESSION when there is no room."""
        if self.partition_count + len(partitions) > MAX_PARTITIONS:
            return NO_SESSION
        if len(self._sessions) >= self._slots and not self._evict(len(partitions), caller is not None, now_ms):
            return NO_SESSION
        session_id = NO_SESSION
        while session_id == NO_SESSION or session_id in self._sessions:
            session_id = self._rng.randrange(1, MAX_EPOCH)
        session = self._sessions[session_id] = FetchSession(session_id, partitions, by_id=by_id, caller=caller, now_ms=now_ms)
        session.decider = decider
        return session_id

    def _evict(self, size: int, privileged: bool, now_ms: int) -> bool:
        """Make room for ``size`` partitions: evict an idle session, a consumer's in favour of a follower's, or an old one in
        favour of a larger one."""
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
    """The partitions of a full fetch. If one is named twice, the last entry counts."""
    partitions: dict[PartitionKey, FetchPartition] = {}
    for name, topic_id, wanted_partitions in request.topics:
        for wanted in wanted_partitions:
            partition = FetchPartition(name, topic_id, wanted[0])
            partition.ask(wanted)
            partitions[_key(name, topic_id, wanted[0], by_id)] = partition
    return list(partitions.values())
