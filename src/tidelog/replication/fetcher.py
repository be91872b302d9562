"""The follower's side of fetching from one leader: builds requests and turns responses into tasks. No I/O; one per leader and
fetcher.

One Fetch is in flight at a time. It runs in a fetch session (KIP-227): a request names only what changed since the last one, so a
thousand quiet partitions cost nothing. A partition that has to wait (an error, a log being truncated) leaves the session and
returns later. A response applies only to what its request asked for: a partition that was added, or whose leader epoch changed,
after the request was sent is skipped.

Invariants: a partition is in ``_entries`` exactly once; a partition in the session is ready or about to be forgotten; a ``busy``
or delayed partition is not fetched.

Elsewhere: what a response does to a log (``following``), connections, time and threads (``server.replication.replica_fetching``).
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
"""First back-off while a leader does not know yet that it leads; it doubles up to replica.fetch.backoff.ms."""
MAX_EPOCH = 0x7FFFFFFF
CALM_MS = 500
BRIEF_MS = 10
"""When a broker stops or starts, partitions arrive in groups, one after another. For ``CALM_MS`` after an arrival, polls wait
at most ``BRIEF_MS``: the next partitions are named soon, and no poll has to be abandoned for them."""

_QUICK = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.UNKNOWN_TOPIC_ID})
"""Metadata reaches brokers at different times; these errors pass quickly."""
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
    """The replica.fetch.* settings of this broker as a follower."""

    max_wait_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 10 << 20
    partition_max_bytes: int = 1 << 20
    backoff_ms: int = 1000


class Followed:
    """A followed partition, in one leader epoch."""

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
        """The position that the session last sent to the leader."""
        self.in_session = False
        self.asked_in = 0
        """The number of the request that first named it; 0: no request did."""
        self.busy = False
        """A long operation on the partition is running."""
        self.delay_ms = 0
        self.due_ms = 0
        """Not fetched before this time; 0: not delayed."""
        self.failed = False
        """The last batches from the leader could not be appended."""
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
    """Append ``records`` (may be empty), then apply the watermarks."""

    followed: Followed
    records: Buffer
    high_watermark: int
    log_start_offset: int


class Diverged(NamedTuple):
    """The logs diverged: the leader's largest epoch not above ours ended at ``end_offset``."""

    followed: Followed
    leader_epoch: int
    end_offset: int


class OutOfRange(NamedTuple):
    """Our log end is not in the leader's log: ask for the leader's log start and end."""

    followed: Followed


Task = Append | Diverged | OutOfRange


class ReplicaFetcher:
    """All partitions that this broker follows on ``leader`` over one connection."""

    def __init__(self, broker_id: int, leader: int, settings: FetcherSettings) -> None:
        self.leader = leader
        self._broker_id = broker_id
        self._settings = settings
        self._entries: dict[Partition, Followed] = {}
        self._changed: dict[Followed, None] = {}
        """Partitions that the next request names, in this order."""
        self._forgotten: dict[tuple[Uuid, int], None] = {}
        self._delayed: list[tuple[int, int, Followed]] = []
        self._session_id = 0
        self._session_epoch = 0
        self._no_room = False
        """The leader gave us no session: each fetch names every partition and long-polls."""
        self._requests = 0
        self._calm_ms = 0
        self.waits_ms = 0
        """The longest wait of the last poll."""
        self._by_key: dict[tuple[bytes, int], Followed] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def partitions(self) -> Iterable[Partition]:
        return self._entries

    def followed(self, partition: Partition) -> Followed | None:
        """The entry of the partition, or None."""
        return self._entries.get(partition)

    @property
    def failed_partitions(self) -> int:
        """Partitions whose last batches could not be appended."""
        return sum(entry.failed for entry in self._entries.values())

    def lags(self) -> Iterator[tuple[Partition, int]]:
        """Per partition, the records missing up to the leader's last known high watermark."""
        for partition, entry in self._entries.items():
            end = partition.log.log_end_offset if partition.log is not None else 0
            yield partition, max(0, entry.leader_high_watermark - end)

    # -- which partitions -----------------------------------------------------------------------------------------------

    def follow(self, partition: Partition) -> bool:
        """Follow ``partition`` in its current leader epoch. False: it is already followed in that epoch."""
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
        """Stop following. A response in flight is ignored for this partition."""
        entry = self._entries.pop(partition, None)
        if entry is not None:
            self._leave(entry)
            del self._by_key[partition.topic_id, partition.index]

    def _leave(self, entry: Followed) -> None:
        self._changed.pop(entry, None)
        if entry.in_session:
            entry.in_session = False
            self._forgotten[entry.partition.topic_id, entry.partition.index] = None

    # -- requests -------------------------------------------------------------------------------------------------------

    def next_due_ms(self) -> int | None:
        """When the first delayed partition is due; None when none is delayed."""
        while self._delayed and not self._is_delayed(self._delayed[0][2]):
            heapq.heappop(self._delayed)
        return self._delayed[0][0] if self._delayed else None

    def _is_delayed(self, entry: Followed) -> bool:
        return entry.due_ms > 0 and self._entries.get(entry.partition) is entry

    @property
    def has_work(self) -> bool:
        """Whether any partition can be fetched now."""
        return any(not entry.busy and not entry.due_ms for entry in self._entries.values())

    @property
    def opens_session(self) -> bool:
        """Whether the last or the next fetch opens a session; such a fetch is answered at once."""
        return self._session_epoch == 0 and not self._no_room

    @property
    def answers_soon(self) -> bool:
        """Whether the last fetch returns soon, so that new partitions can wait for it instead of interrupting it."""
        return self.opens_session or self.waits_ms <= BRIEF_MS

    def request(self, now_ms: int, broker_epoch: int) -> wire.FetchRequest | None:
        """The next Fetch; None when there is nothing to fetch until ``next_due_ms`` or a call of ``follow``."""
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
            # Only a known session can be closed. A poll that waits without one would block its connection until the timeout.
            max_wait_ms = 0
        elif (due_ms := self.next_due_ms()) is not None:
            # A partition whose back-off ends soon must not wait for the end of this poll.
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

    # -- responses ------------------------------------------------------------------------------------------------------

    def interrupted(self) -> None:
        """The response will not be read: the next request closes this session and opens a new one."""
        self._session_epoch = 0
        for entry in self._entries.values():
            entry.in_session = False

    def failed(self) -> None:
        """No response arrived."""
        self._session_id = 0
        self.interrupted()

    def start_again(self, now_ms: int) -> None:
        """Processing a response failed at an unknown point: fetch everything again after the back-off."""
        self.failed()
        for entry in list(self._entries.values()):
            entry.busy = False
            if not entry.due_ms:
                self.delay(entry, now_ms)

    def answered(self, response: wire.FetchResponse, now_ms: int) -> list[Task]:
        """The tasks of the response, in order. The next ``request`` follows when all are done or marked ``busy``."""
        if response.error_code:
            if response.error_code not in _NEW_SESSION:
                self._delay_all(now_ms)
            self.failed()
            return []
        self._session_id = response.session_id
        self._no_room = response.session_id == 0
        if response.session_id == 0:
            # The leader has no room for our session: name every partition each time.
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
        """Fetch it again after the back-off; ``quickly`` for errors that usually pass at once."""
        if self._entries.get(entry.partition) is not entry:
            return
        most = self._settings.backoff_ms
        entry.delay_ms = min(most, max(FIRST_BACKOFF_MS, 2 * entry.delay_ms)) if quickly else most
        self._wait(entry, now_ms + entry.delay_ms)

    def refuse(self, entry: Followed, now_ms: int) -> None:
        """The batches from the leader could not be appended: retry after the back-off, and count the partition as failed until
        then."""
        entry.failed = True
        self.delay(entry, now_ms)

    def pause(self, entry: Followed, now_ms: int, wait_ms: int) -> None:
        """Fetch it again when its throttle allows."""
        if self._entries.get(entry.partition) is entry:
            self._wait(entry, now_ms + wait_ms)

    def _wait(self, entry: Followed, due_ms: int) -> None:
        self._leave(entry)
        entry.busy = False
        entry.due_ms = max(1, due_ms)
        # The counter breaks ties: entries cannot be compared.
        self._requests += 1
        heapq.heappush(self._delayed, (entry.due_ms, self._requests, entry))

    def _delay_all(self, now_ms: int) -> None:
        for entry in self._entries.values():
            if not entry.due_ms and not entry.busy:
                self.delay(entry, now_ms, quickly=True)

    def begin(self, entry: Followed) -> None:
        """A long operation starts: requests omit the partition until ``end``."""
        self._leave(entry)
        entry.busy = True

    def end(self, entry: Followed) -> None:
        """The long operation is over."""
        entry.busy = False
        if self._entries.get(entry.partition) is entry:
            self._changed[entry] = None
