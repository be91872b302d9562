"""The follower's side of fetching from one leader: builds requests and turns responses into tasks. No I/O; one per leader and
fetcher.

One Fetch is in flight at a time. It runs in a fetch session (KIP-227): a request names only what changed since the last one, so a
thousand quiet partitions cost nothing. A partition that has to wait (an error, a log being truncated) leaves the session and
returns later. A response applies only to what its request asked for: a partition that was added, or whose leader epoch changed,
after the request was sent is skipped.

Invariants: a partition is in ``_entries`` exactly once; a partition in the session is ready or about to be forgotten; a ``busy``
or delayed partition is not fetched.

Elsewhere: the session (``follower_session``), back-offs (``followed_partition``), what a response does to a log
(``follower_log``), connections, time and threads (``server.replication.replica_fetcher_manager``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tidelog.model.errors import ErrorCode
from tidelog.model.ports import Buffer
from tidelog.protocol.fastpath.follower_fetch import PlainAnswer, Wanted
from tidelog.protocol.messages import fetch as wire
from tidelog.replication.followed_partition import BackOffs, Followed
from tidelog.replication.follower_session import FollowerSession
from tidelog.replication.partition import Partition

FIRST_BACKOFF_MS = 20
"""First back-off while a leader does not know yet that it leads; it doubles up to replica.fetch.backoff.ms."""
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


class FetcherSettings(NamedTuple):
    """The replica.fetch.* settings of this broker as a follower."""

    max_wait_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 10 << 20
    partition_max_bytes: int = 1 << 20
    backoff_ms: int = 1000


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


class PlainRequest(NamedTuple):
    """A Fetch that continues a session and has nothing unusual."""

    max_wait_ms: int
    session_id: int
    session_epoch: int
    wanted: list[Wanted]


class ReplicaFetcher:
    """All partitions that this broker follows on ``leader`` over one connection."""

    def __init__(self, broker_id: int, leader: int, settings: FetcherSettings) -> None:
        self.leader = leader
        self._broker_id = broker_id
        self._settings = settings
        self._entries: dict[Partition, Followed] = {}
        self._changed: dict[Followed, None] = {}
        """Partitions that the next request names, in this order."""
        self._back_offs = BackOffs()
        self._session = FollowerSession(settings.partition_max_bytes)
        self._calm_ms = 0
        self.waits_ms = 0
        """The longest wait of the last poll."""
        self._by_key: dict[tuple[bytes, int], Followed] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def partitions(self) -> Iterable[Partition]:
        return self._entries

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
            self._back_offs.cancel(known)
        entry = self._entries[partition] = Followed(partition)
        self._by_key[partition.topic_id, partition.index] = entry
        self._changed[entry] = None
        return True

    def drop(self, partition: Partition) -> None:
        """Stop following. A response in flight is ignored for this partition."""
        entry = self._entries.pop(partition, None)
        if entry is not None:
            self._leave(entry)
            self._back_offs.cancel(entry)
            del self._by_key[partition.topic_id, partition.index]

    def _leave(self, entry: Followed) -> None:
        self._changed.pop(entry, None)
        self._session.leave(entry)

    # -- requests -------------------------------------------------------------------------------------------------------

    def next_due_ms(self) -> int | None:
        """When the first delayed partition is due; None when none is delayed."""
        return self._back_offs.next_due_ms()

    @property
    def opens_session(self) -> bool:
        """Whether the last or the next fetch opens a session; such a fetch is answered at once."""
        return self._session.opens

    @property
    def answers_soon(self) -> bool:
        """Whether the last fetch returns soon, so that new partitions can wait for it instead of interrupting it."""
        return self.opens_session or self.waits_ms <= BRIEF_MS

    def request(self, now_ms: int, broker_epoch: int) -> wire.FetchRequest | None:
        """The next Fetch; None when there is nothing to fetch until ``next_due_ms`` or a call of ``follow``."""
        for due in self._back_offs.take_due(now_ms):
            self._changed[due] = None
        session = self._session
        full = session.epoch == 0
        named = [
            entry
            for entry in (self._entries.values() if full else self._changed)
            if not entry.busy and not entry.due_ms and entry.partition.log is not None
        ]
        self._changed = {}
        if full:
            if not named:
                return None
        elif not named and not any(not entry.busy and not entry.due_ms for entry in self._entries.values()):
            return None
        for entry in named:
            if not entry.asked:
                entry.asked = True
                self._calm_ms = now_ms + CALM_MS
        topics = session.name(named)
        settings = self._settings
        max_wait_ms = settings.max_wait_ms
        if session.opens:
            # Only a known session can be closed. A poll that waits without one would block its connection until the timeout.
            max_wait_ms = 0
        elif (due_ms := self._back_offs.next_due_ms()) is not None:
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
            session_id=session.id,
            session_epoch=session.epoch,
            topics=topics,
            forgotten_topics_data=session.take_forgotten(),
        )

    def plain_request(self, now_ms: int) -> PlainRequest | None:
        """The next Fetch if nothing is unusual: it continues the session, forgets nothing, and all that it names was named
        before. None: ask for ``request`` instead, nothing has changed."""
        session, changed = self._session, self._changed
        if not session.continues or now_ms < self._calm_ms or self._back_offs.next_due_ms() is not None or not self._entries:
            return None
        for entry in changed:
            if not entry.asked or entry.busy or entry.partition.log is None:
                return None
        if not changed and all(entry.busy for entry in self._entries.values()):
            return None
        self._changed = {}
        self.waits_ms = self._settings.max_wait_ms
        return PlainRequest(self.waits_ms, session.id, session.epoch, session.name_plainly(changed))

    # -- responses ------------------------------------------------------------------------------------------------------

    def interrupted(self) -> None:
        """The response will not be read: the next request closes this session and opens a new one."""
        self._session.interrupted()

    def failed(self) -> None:
        """No response arrived."""
        self._session.failed()

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
                for entry in self._entries.values():
                    if not entry.due_ms and not entry.busy:
                        self.delay(entry, now_ms, quickly=True)
            self.failed()
            return []
        self._session.answered(response.session_id)
        tasks: list[Task] = []
        for topic in response.responses:
            for part in topic.partitions:
                known = self._by_key.get((topic.topic_id, part.partition_index))
                if known is None or not known.asked or known.busy or known.due_ms or not known.is_current:
                    continue
                task = self._task(known, part, now_ms)
                if task is not None:
                    tasks.append(task)
        return tasks

    def answered_plainly(self, answer: PlainAnswer) -> list[Append] | None:
        """``answered`` for a plain answer to a request of this session; None: it is of another session, nothing has changed."""
        if answer.session_id != self._session.id or not self._session.epoch:
            return None
        self._session.answered(answer.session_id)
        tasks: list[Append] = []
        for topic_id, index, high_watermark, log_start_offset, records in answer.found:
            known = self._by_key.get((topic_id, index))
            if known is not None and known.asked and not known.busy and not known.due_ms and known.is_current:
                known.fetched(high_watermark)
                self._changed[known] = None
                tasks.append(Append(known, records, high_watermark, log_start_offset))
        return tasks

    def _task(self, entry: Followed, part: wire.PartitionData, now_ms: int) -> Task | None:
        if part.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self.begin(entry)
            return OutOfRange(entry)
        if part.error_code:
            self.delay(entry, now_ms, quickly=part.error_code in _QUICK)
            return None
        entry.fetched(part.high_watermark)
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
        self._back_offs.wait(entry, due_ms)

    def begin(self, entry: Followed) -> None:
        """A long operation starts: requests omit the partition until ``end``."""
        self._leave(entry)
        entry.busy = True

    def end(self, entry: Followed) -> None:
        """The long operation is over."""
        entry.busy = False
        if self._entries.get(entry.partition) is entry:
            self._changed[entry] = None
