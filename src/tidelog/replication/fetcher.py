"""What a follower asks one leader for, and what is to be done with the answers: a pure machine, one per leader and fetcher.

One Fetch is in flight at a time. It runs in a fetch session (KIP-227): a request names only what changed since the last one, so a
thousand quiet partitions cost nothing. A partition that has to wait (an error, a log being looked at) leaves the session and
comes back later. An answer is only about what the request it belongs to asked for: a partition whose leader epoch changed
meanwhile, or that came new, is passed over.

Invariants: a partition is in ``_entries`` exactly once; one that is in the session is ready or waits to be forgotten; who is
``busy`` or delayed is not asked for.

Elsewhere: what an answer does to a log (``following``), connections, time and threads (``server.replication.replica_fetching``).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Uuid
from tidelog.model.ports import Buffer
from tidelog.protocol.messages import fetch as wire
from tidelog.replication.following import Position, position
from tidelog.replication.partition import Partition

FIRST_BACKOFF_MS = 20
"""A leader that does not know yet that it leads is asked again so soon; then ever later, up to replica.fetch.backoff.ms."""
MAX_EPOCH = 0x7FFFFFFF
CALM_MS = 500
BRIEF_MS = 10
"""Partitions come in groups, one after another, when a broker stops or starts: for ``CALM_MS`` after some came, polls wait no
longer than ``BRIEF_MS``, so that those that come next are named soon, and no poll has to be given up for them."""

_QUICK = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.UNKNOWN_TOPIC_ID})
"""Metadata reaches brokers at different times: these are over soon."""
_NEW_SESSION = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)


@dataclass(frozen=True, slots=True)
class FetcherSettings:
    """Of this broker as a follower (replica.fetch.*)."""

    max_wait_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 10 << 20
    partition_max_bytes: int = 1 << 20
    backoff_ms: int = 1000


class Followed:
    """A partition as a fetcher has it, in one leader epoch."""

    __slots__ = (
        "asked_in",
        "busy",
        "delay_ms",
        "due_ms",
        "failed",
        "in_session",
        "leader_epoch",
        "leader_high_watermark",
        "partition",
        "told",
    )

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.told: Position | None = None
        """What the session knows of it."""
        self.in_session = False
        self.asked_in = 0
        """The number of the request that first asked for it; 0: none did."""
        self.busy = False
        """Something that takes longer is done to it."""
        self.delay_ms = 0
        self.due_ms = 0
        """Not asked for before."""
        self.failed = False
        """Its leader sent what could not be appended."""
        self.leader_high_watermark = 0

    @property
    def is_current(self) -> bool:
        """Whether the partition still follows this leader in this epoch."""
        partition = self.partition
        return (
            partition.leader_epoch == self.leader_epoch
            and not partition.is_leader
            and not partition.deleted
            and partition.log is not None
        )


class Append(NamedTuple):
    """Append ``records`` (maybe none), then take over the watermarks."""

    followed: Followed
    records: Buffer
    high_watermark: int
    log_start_offset: int


class Diverged(NamedTuple):
    """The logs part: the leader's greatest epoch at or below ours ended there."""

    followed: Followed
    leader_epoch: int
    end_offset: int


class OutOfRange(NamedTuple):
    """Our end is not in the leader's log: ask where that begins and ends."""

    followed: Followed


Task = Append | Diverged | OutOfRange


class ReplicaFetcher:
    """All partitions that this broker follows at ``leader`` by one connection."""

    def __init__(self, broker_id: int, leader: int, settings: FetcherSettings) -> None:
        self.leader = leader
        self._broker_id = broker_id
        self._settings = settings
        self._entries: dict[Partition, Followed] = {}
        self._changed: dict[Followed, None] = {}
        """To be named by the next request, in this order."""
        self._forgotten: dict[tuple[Uuid, int], None] = {}
        self._delayed: list[tuple[int, int, Followed]] = []
        self._session_id = 0
        self._session_epoch = 0
        self._no_room = False
        """The leader gave us no session: each fetch names everything, and waits for news."""
        self._requests = 0
        self._calm_ms = 0
        self.waits_ms = 0
        """How long the poll that was asked last may wait."""
        self._by_key: dict[tuple[bytes, int], Followed] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def partitions(self) -> Iterable[Partition]:
        """What is followed here."""
        return self._entries

    def followed(self, partition: Partition) -> Followed | None:
        """The partition as it is followed here, if it is."""
        return self._entries.get(partition)

    @property
    def failed_partitions(self) -> int:
        """Those whose leader sent what could not be appended."""
        return sum(entry.failed for entry in self._entries.values())

    def lags(self) -> Iterator[tuple[Partition, int]]:
        """How many records of the leader's high watermark, as it was last told, each partition lacks."""
        for partition, entry in self._entries.items():
            end = partition.log.log_end_offset if partition.log is not None else 0
            yield partition, max(0, entry.leader_high_watermark - end)

    # -- which partitions -----------------------------------------------------------------------------------------------

    def follow(self, partition: Partition) -> bool:
        """Follow ``partition``, in the leader epoch that it has now. False: that is done already."""
        known = self._entries.get(partition)
        if known is not None:
            if known.leader_epoch == partition.leader_epoch:
                return False
            self._leave(known)
        entry = self._entries[partition] = Followed(partition)
        self._by_key[partition.topic_id, partition.index] = entry
        self._changed[entry] = None
        return True

    def drop(self, partition: Partition) -> None:
        """Follow it no more. What an answer on its way says about it is passed over."""
        entry = self._entries.pop(partition, None)
        if entry is not None:
            self._leave(entry)
            del self._by_key[partition.topic_id, partition.index]

    def _leave(self, entry: Followed) -> None:
        self._changed.pop(entry, None)
        if entry.in_session:
            entry.in_session = False
            self._forgotten[entry.partition.topic_id, entry.partition.index] = None

    # -- asking ---------------------------------------------------------------------------------------------------------

    def next_due_ms(self) -> int | None:
        """When a delayed partition comes back; None when none is delayed."""
        while self._delayed and not self._is_delayed(self._delayed[0][2]):
            heapq.heappop(self._delayed)
        return self._delayed[0][0] if self._delayed else None

    def _is_delayed(self, entry: Followed) -> bool:
        return entry.due_ms > 0 and self._entries.get(entry.partition) is entry

    @property
    def has_work(self) -> bool:
        """Whether there is anything to ask for now."""
        return any(not entry.busy and not entry.due_ms for entry in self._entries.values())

    @property
    def opens_session(self) -> bool:
        """Whether the fetch that was asked last, or is to be asked next, opens a session: it is answered at once."""
        return self._session_epoch == 0 and not self._no_room

    @property
    def answers_soon(self) -> bool:
        """Whether the fetch that was asked last needs not be given up for others to be named soon."""
        return self.opens_session or self.waits_ms <= BRIEF_MS

    def request(self, now_ms: int, broker_epoch: int) -> wire.FetchRequest | None:
        """The next Fetch; None when there is nothing to ask for until ``next_due_ms`` or a call of ``follow``."""
        while self._delayed and self._delayed[0][0] <= now_ms:
            entry = heapq.heappop(self._delayed)[2]
            if self._is_delayed(entry):
                entry.due_ms = 0
                self._changed[entry] = None
        full = self._session_epoch == 0
        named = [entry for entry in (self._entries.values() if full else self._changed) if self._takes_part(entry)]
        self._changed = {}
        if full:
            if not named:
                return None
        elif not named and not self.has_work:
            return None
        self._requests += 1
        if any(not entry.asked_in for entry in named):
            self._calm_ms = now_ms + CALM_MS
        topics: dict[Uuid, wire.FetchTopic] = {}
        for entry in named:
            self._name(entry, topics, full=full)
        settings = self._settings
        max_wait_ms = settings.max_wait_ms
        if self.opens_session:
            # Only a session that is known can be closed: a poll that waits outside of one holds up its connection to the end.
            max_wait_ms = 0
        elif (due_ms := self.next_due_ms()) is not None:
            # Who comes back soon must not wait for the end of the others' poll.
            max_wait_ms = min(max_wait_ms, due_ms - now_ms)
        if now_ms < self._calm_ms:
            max_wait_ms = min(max_wait_ms, BRIEF_MS)
        self.waits_ms = max_wait_ms
        return wire.FetchRequest(
            replica_state=wire.ReplicaState(replica_id=self._broker_id, replica_epoch=broker_epoch),
            max_wait_ms=max_wait_ms,
            min_bytes=settings.min_bytes,
            max_bytes=settings.max_bytes,
            session_id=self._session_id,
            session_epoch=self._session_epoch,
            topics=list(topics.values()),
            forgotten_topics_data=self._forget(full=full),
        )

    def _takes_part(self, entry: Followed) -> bool:
        return not entry.busy and not entry.due_ms and entry.partition.log is not None

    def _name(self, entry: Followed, topics: dict[Uuid, wire.FetchTopic], *, full: bool) -> None:
        partition = entry.partition
        assert partition.log is not None
        at = position(partition.log)
        if not full and entry.in_session and entry.told == at:
            return
        entry.told, entry.in_session = at, True
        if not entry.asked_in:
            entry.asked_in = self._requests
        self._forgotten.pop((partition.topic_id, partition.index), None)
        topic = topics.get(partition.topic_id)
        if topic is None:
            topic = topics[partition.topic_id] = wire.FetchTopic(topic=partition.topic, topic_id=partition.topic_id)
        topic.partitions.append(
            wire.FetchPartition(
                partition=partition.index,
                current_leader_epoch=entry.leader_epoch,
                fetch_offset=at.offset,
                last_fetched_epoch=at.last_epoch,
                log_start_offset=at.log_start_offset,
                partition_max_bytes=self._settings.partition_max_bytes,
            )
        )

    def _forget(self, *, full: bool) -> list[wire.ForgottenTopic]:
        forgotten, self._forgotten = self._forgotten, {}
        topics: dict[Uuid, wire.ForgottenTopic] = {}
        if not full:
            for topic_id, index in forgotten:
                topic = topics.setdefault(topic_id, wire.ForgottenTopic(topic_id=topic_id))
                topic.partitions.append(index)
        return list(topics.values())

    # -- what came of it ------------------------------------------------------------------------------------------------

    def interrupted(self) -> None:
        """Nobody waits for the answer any more: the next request opens a new session, and closes this one."""
        self._session_epoch = 0
        for entry in self._entries.values():
            entry.in_session = False

    def failed(self) -> None:
        """There was no answer."""
        self._session_id = 0
        self.interrupted()

    def begin_anew(self, now_ms: int) -> None:
        """An answer could not be worked off, and nobody knows how far it was: everything is asked for again, after a pause."""
        self.failed()
        for entry in list(self._entries.values()):
            entry.busy = False
            if not entry.due_ms:
                self.delay(entry, now_ms)

    def answered(self, response: wire.FetchResponse, now_ms: int) -> list[Task]:
        """What to do, in this order. When all of it is done, or given to ``busy`` hands, the next ``request`` follows."""
        if response.error_code:
            if response.error_code not in _NEW_SESSION:
                self._delay_all(now_ms)
            self.failed()
            return []
        self._session_id = response.session_id
        self._no_room = response.session_id == 0
        if response.session_id == 0:
            # The leader has no room for our session: everything is asked for each time.
            self.interrupted()
        else:
            self._session_epoch = self._session_epoch + 1 if self._session_epoch < MAX_EPOCH else 1
        tasks: list[Task] = []
        for topic in response.responses:
            for part in topic.partitions:
                entry = self._by_key.get((topic.topic_id, part.partition_index))
                if entry is None or not entry.asked_in or entry.busy or entry.due_ms or not entry.is_current:
                    continue
                task = self._task(entry, part, now_ms)
                if task is not None:
                    tasks.append(task)
        return tasks

    def _task(self, entry: Followed, part: wire.PartitionData, now_ms: int) -> Task | None:
        if part.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self.begin(entry)
            return OutOfRange(entry)
        if part.error_code:
            self.delay(entry, now_ms, quickly=part.error_code in _QUICK)
            return None
        entry.delay_ms = 0
        entry.failed = False
        entry.leader_high_watermark = part.high_watermark
        self._changed[entry] = None
        diverging = part.diverging_epoch
        if diverging.end_offset >= 0 or diverging.epoch >= 0:
            return Diverged(entry, diverging.epoch, diverging.end_offset)
        return Append(entry, part.records if part.records is not None else b"", part.high_watermark, part.log_start_offset)

    def delay(self, entry: Followed, now_ms: int, *, quickly: bool = False) -> None:
        """Ask for it again after a pause; ``quickly`` for what is usually over in a moment."""
        if self._entries.get(entry.partition) is not entry:
            return
        most = self._settings.backoff_ms
        entry.delay_ms = min(most, max(FIRST_BACKOFF_MS, 2 * entry.delay_ms)) if quickly else most
        self._wait(entry, now_ms + entry.delay_ms)

    def refuse(self, entry: Followed, now_ms: int) -> None:
        """What the leader sent could not be appended: ask again after a pause, and be counted meanwhile."""
        entry.failed = True
        self.delay(entry, now_ms)

    def pause(self, entry: Followed, now_ms: int, wait_ms: int) -> None:
        """Ask for it again when its throttle allows."""
        if self._entries.get(entry.partition) is entry:
            self._wait(entry, now_ms + wait_ms)

    def _wait(self, entry: Followed, due_ms: int) -> None:
        self._leave(entry)
        entry.busy = False
        entry.due_ms = max(1, due_ms)
        # The count breaks ties: entries have no order.
        self._requests += 1
        heapq.heappush(self._delayed, (entry.due_ms, self._requests, entry))

    def _delay_all(self, now_ms: int) -> None:
        for entry in self._entries.values():
            if not entry.due_ms and not entry.busy:
                self.delay(entry, now_ms, quickly=True)

    def begin(self, entry: Followed) -> None:
        """Something takes longer with it: it is left out of requests until ``end``."""
        self._leave(entry)
        entry.busy = True

    def end(self, entry: Followed) -> None:
        """It is ready again."""
        entry.busy = False
        if self._entries.get(entry.partition) is entry:
            self._changed[entry] = None
