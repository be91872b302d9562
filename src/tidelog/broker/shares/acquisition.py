"""ShareFetching: one ShareFetch, from its session to its records. It reads what can be acquired, and waits if that is too little.

One fetch at a time reads a share partition. The limits are spent over the partitions in the session's order; what is read is
acquired only when there is enough of it, or when the time is over. Errors of some partitions do
not end the wait; one that comes up meanwhile does.

A session may name many partitions that are not served here. They are looked at once, some in each turn of the loop; a wake looks
only at the others, so it costs what the fetch can get.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, NamedTuple

from tidelog.broker.node import BrokerContext
from tidelog.broker.shares.hosted_share import HostedShare, Phase
from tidelog.broker.shares.log_reading import ShareRead, read_log
from tidelog.broker.shares.share_sessions import Place, ShareSession
from tidelog.model.errors import ErrorCode
from tidelog.replication.share.acquiring import Want
from tidelog.replication.share.record_state import AcquiredRange
from tidelog.storage import reading

_NONE = ErrorCode.NONE
A_TURN = 1000
"""Partitions that are looked at before other work of the loop gets its turn."""


class Fetched(NamedTuple):
    """The answer about one partition."""

    error: ErrorCode
    records: bytes = b""
    acquired: tuple[AcquiredRange, ...] = ()


class Outcome(Enum):
    """What one look at the partitions came to."""

    DONE = "there is an answer"
    TOO_LITTLE = "there is less than the client wants"
    READ_ON = "no member gets what was read: it is aborted, or gone; there may be more behind it"


class ParkedShareFetch:
    """Waits until anything changes at one of the partitions; then the fetch looks again."""

    __slots__ = ("_watched", "deadline_ms", "done", "expired", "on_done")

    operation = "ShareFetch"

    def __init__(self, deadline_ms: int) -> None:
        self.deadline_ms = deadline_ms
        self.done = False
        self.expired = False
        self.on_done: Callable[[], None] | None = None
        self._watched: list[Any] = []

    @property
    def places(self) -> int:
        """What is watched: partitions and share partitions."""
        return len(self._watched)

    def watch(self, source: Any) -> None:
        """Watches a partition, or a share partition."""
        source.watchers[self] = None
        self._watched.append(source)

    def changed(self, partition: object, key: object, new_bytes: int) -> None:
        """Something changed."""
        self.finish()

    def finish(self) -> None:
        """Ends the wait."""
        if self.done:
            return
        self.done = True
        for source in self._watched:
            source.watchers.pop(self, None)
        self._watched = []
        if self.on_done is not None:
            self.on_done()


class ShareFetching:
    def __init__(
        self, ctx: BrokerContext, session: ShareSession, request: Any, readable: Mapping[bytes, ErrorCode], *, exact: bool
    ) -> None:
        """``readable``: by topic id, whether the client may read it. ``exact``: at most as many records as asked for."""
        self._ctx = ctx
        self._session = session
        self._readable = readable
        self._shares = ctx.node.share_partitions
        self._committed = self._shares.settings.committed_only(session.group_id)
        self._max_bytes = min(request.max_bytes, ctx.config.fetch_max_bytes)
        self._min_bytes = min(request.min_bytes, self._max_bytes)
        self._want = Want(session.member_id, request.max_records, max(1, request.batch_size), exact)
        self._wait_ms = request.max_wait_ms
        self._served: list[Place] | None = None
        """Those that were without an error when the fetch came, in the session's order; None: it has not looked yet."""
        self.results: dict[Place, Fetched] = {}

    async def run(self) -> None:
        """Fills ``results``."""
        if self._max_bytes <= 0 or self._want.max_records <= 0:
            refused = {place: self._readable.get(place.topic_id, _NONE) for place in self._session.partitions}
            self.results = {place: Fetched(error) for place, error in refused.items() if error is not _NONE}
            return
        runtime = self._ctx.node.runtime
        deadline_ms = runtime.even_ms() + self._wait_ms
        waited = False
        while self._shares.sessions.holds(self._session):
            over = runtime.even_ms() >= deadline_ms
            if over and waited:
                self._shares.counts.expired += 1
                waited = False
            parked = ParkedShareFetch(runtime.now_ms() + deadline_ms - runtime.even_ms())
            try:
                outcome = await self._try(parked, over=over)
                if outcome is Outcome.DONE:
                    return
                if outcome is Outcome.READ_ON:
                    if over:
                        return
                    # Reads from the page cache never wait, and there may be gigabytes of aborted records.
                    await runtime.sleep(0)
                elif not parked.done:
                    if over:
                        return
                    await self._ctx.wait(parked)
                    waited = True
            finally:
                parked.finish()

    async def _try(self, parked: ParkedShareFetch, *, over: bool) -> Outcome:
        """Watches are set before anything is read, so that no change is missed."""
        locked: list[tuple[Place, HostedShare]] = []
        first = self._served is None
        looked = self._session.rotated() if self._served is None else self._served
        for place in self._served or ():
            self.results.pop(place, None)
        served: list[Place] = []
        try:
            for number, place in enumerate(looked, 1):
                if not number % A_TURN:
                    await self._ctx.node.runtime.sleep(0)
                hosted = self._servable(place)
                if hosted is None:
                    continue
                served.append(place)
                parked.watch(hosted)
                parked.watch(hosted.partition)
                if hosted.phase is not Phase.ACTIVE:
                    continue
                hosted.follow_log()
                if hosted.machine.can_acquire and hosted.begin_read(parked):
                    locked.append((place, hosted))
            if self.results and len(self.results) == len(self._session.partitions):
                return Outcome.DONE
            if first:
                self._served = served
            return await self._read_all(locked, over=over or len(served) < len(self._served or ()))
        finally:
            for _, hosted in locked:
                hosted.end_read()

    def _servable(self, place: Place) -> HostedShare | None:
        """The share partition; None when an error is all that there is to say."""
        error = self._readable.get(place.topic_id, _NONE)
        partition = self._ctx.node.replicas.by_id(place.topic_id, place.partition) if error is _NONE else error
        if not isinstance(partition, ErrorCode):
            error = partition.check_leader(-1)
            if error is _NONE:
                hosted = self._shares.serve(self._session.group_id, place, partition)
                if hosted.phase is not Phase.GONE:
                    return hosted
                error = hosted.error
        else:
            error = partition
        self.results[place] = Fetched(error)
        return None

    async def _read_all(self, locked: list[tuple[Place, HostedShare]], *, over: bool) -> Outcome:
        reads: dict[Place, tuple[int, ShareRead]] = {}
        left = self._max_bytes
        for index, (place, hosted) in enumerate(locked):
            share = max(1, left // (len(locked) - index))
            reads[place] = offset, read = await self._read(hosted, share, min_one=left == self._max_bytes)
            left = max(0, left - len(read.data))
            if read.error is not _NONE:
                self.results[place] = Fetched(read.error)
                over = True
        found = sum(len(read.data) for _, read in reads.values())
        if not self._shares.sessions.holds(self._session):
            return Outcome.DONE
        if not over and found < max(1, self._min_bytes):
            return Outcome.TOO_LITTLE
        room, acquired, went_on = self._want.max_records, False, False
        for place, hosted in locked:
            offset, read = reads[place]
            self.results.setdefault(place, Fetched(_NONE))
            if room > 0 and read.data and hosted.phase is Phase.ACTIVE:
                self.results[place] = fetched = self._acquire(hosted, offset, read, room)
                room -= sum(each.last - each.first + 1 for each in fetched.acquired)
                acquired = acquired or bool(fetched.acquired)
                went_on = went_on or hosted.machine.next_fetch_offset() != offset
        if went_on and not acquired:
            return Outcome.READ_ON
        return Outcome.DONE if over or acquired else Outcome.TOO_LITTLE

    async def _read(self, hosted: HostedShare, max_bytes: int, *, min_one: bool) -> tuple[int, ShareRead]:
        if hosted.phase is not Phase.ACTIVE:  # it ended while another one was read
            return 0, ShareRead(hosted.error)
        partition, machine = hosted.partition, hosted.machine
        log = partition.log
        offset = machine.next_fetch_offset()
        if log is None:
            return offset, ShareRead(ErrorCode.KAFKA_STORAGE_ERROR)
        if offset >= log.high_watermark:
            return offset, ShareRead(_NONE)
        if reading.may_block(log, offset, committed=self._committed):
            await self._ctx.run_blocking(lambda: reading.warm_up(log, offset, committed=self._committed))
            if hosted.phase is not Phase.ACTIVE:
                return offset, ShareRead(hosted.error)
        read = read_log(partition, offset, max_bytes, committed=self._committed, min_one=min_one)
        # The log start moved meanwhile: the next fetch begins there.
        return offset, ShareRead(_NONE) if read.error is ErrorCode.OFFSET_OUT_OF_RANGE else read

    def _acquire(self, hosted: HostedShare, offset: int, read: ShareRead, room: int) -> Fetched:
        machine, now_ms = hosted.machine, self._ctx.node.runtime.even_ms()
        acquired = machine.acquire(offset, read.offsets, self._want._replace(max_records=room), now_ms, read.aborted)
        if not acquired:
            return Fetched(_NONE)
        self._shares.acquired()
        return Fetched(_NONE, read.between(acquired[0].first, acquired[-1].last), tuple(acquired))
