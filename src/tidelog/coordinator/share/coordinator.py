"""ShareCoordinator: the durable state of the share partitions on one partition of ``__share_group_state`` (KIP-932).

A record machine (``model.machine``). The group coordinator creates the state; the partition's leader reads and writes it, with
its leader epoch. A read by a newer leader is recorded, which fences the leader before it. The state epoch rises when an
administrator resets the offsets, which fences leaders that loaded the state before.

Writes are stored as updates, and after ``updates_per_snapshot`` of them as a new snapshot. Nothing older than the last snapshots
of all keys is needed (``prunable_offset``). A key without writes gets a snapshot when it is cold, so that it holds no log.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from tidelog.coordinator.share.records import UNCHANGED, ShareKey, ShareRecord, Snapshot, Update, decode, encode
from tidelog.coordinator.share.settings import ShareCoordinatorSettings
from tidelog.coordinator.share.state_batches import merged
from tidelog.metadata.image import EMPTY_IMAGE, ClusterImage
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import ZERO_UUID, Uuid
from tidelog.model.machine import NOTHING, Outcome, Reply, Token
from tidelog.records.builder import RecordData
from tidelog.records.record import Record
from tidelog.replication.share.record_state import StateBatch

ANY_EPOCH = -1
"""In a request: the epoch is not checked."""
UNINITIALIZED = "The share partition is not initialized: its group coordinator does that when a member subscribes."


class StoredShare:
    """The state of one share partition."""

    __slots__ = (
        "batches",
        "complete_count",
        "create_ms",
        "leader_epoch",
        "offset",
        "snapshot_epoch",
        "start_offset",
        "state_epoch",
        "updates",
        "write_ms",
    )

    def __init__(self, snapshot: Snapshot, offset: int) -> None:
        """``offset``: of the snapshot's record."""
        self.snapshot_epoch = snapshot.snapshot_epoch
        self.state_epoch = snapshot.state_epoch
        self.leader_epoch = snapshot.leader_epoch
        self.start_offset = snapshot.start_offset
        self.complete_count = snapshot.complete_count
        self.create_ms = snapshot.create_ms
        self.write_ms = snapshot.write_ms
        self.batches = list(snapshot.batches)
        self.offset = offset
        self.updates = 0
        """Updates since the snapshot."""

    def update(self, update: Update) -> None:
        """Replays an update."""
        self.leader_epoch = max(self.leader_epoch, update.leader_epoch)
        self.start_offset, self.complete_count = self.moved(update.start_offset, update.complete_count)
        self.batches = merged(self.batches, update.batches, self.start_offset)
        self.updates += 1

    def moved(self, start_offset: int, complete_count: int) -> tuple[int, int]:
        """Start offset and count of finished records after a write with these. A write may arrive late, after later ones: the
        start never goes back, nor does the count for the same start. Source: Kafka 4.4."""
        if start_offset > self.start_offset:
            return start_offset, self.complete_count if complete_count == UNCHANGED else complete_count
        late = start_offset not in {UNCHANGED, self.start_offset}
        return self.start_offset, self.complete_count if late else max(self.complete_count, complete_count)

    def snapshot(self, now_ms: int) -> Snapshot:
        """The next snapshot, with the same state."""
        return Snapshot(
            self.snapshot_epoch + 1,
            self.state_epoch,
            self.leader_epoch,
            self.start_offset,
            self.complete_count,
            now_ms,
            now_ms,
            tuple(self.batches),
        )


class Answer(NamedTuple):
    """The answer about one share partition; ``stored`` is set by a read that succeeded."""

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    stored: Found | None = None


class Found(NamedTuple):
    """The state as it was when the request was decided."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    complete_count: int
    batches: tuple[StateBatch, ...]


class Written(NamedTuple):
    """What a leader wants stored."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    complete_count: int
    batches: tuple[StateBatch, ...]


class ShareCoordinator:
    __slots__ = ("_check_ms", "_image", "_next_offset", "_settings", "_shares")

    def __init__(
        self, settings: ShareCoordinatorSettings, now_ms: int, image: Callable[[], ClusterImage] = lambda: EMPTY_IMAGE
    ) -> None:
        self._settings = settings
        self._image = image
        self._shares: dict[ShareKey, StoredShare] = {}
        self._next_offset = 0
        self._check_ms = now_ms + settings.cold_after_ms

    # -- requests ------------------------------------------------------------------------------------------------------------

    def initialize(self, token: Token, key: ShareKey, state_epoch: int, start_offset: int, now_ms: int) -> Outcome:
        """Creates the state, or resets it. An order that comes again, with the state epoch that is stored, changes nothing:
        members may have acknowledged records since."""
        stored = self._shares.get(key)
        refusal = self._unknown(key) or self._impossible(key) or self._stale(stored, ANY_EPOCH, state_epoch)
        if refusal is not None:
            return _refused(token, refusal)
        if stored is not None and state_epoch == stored.state_epoch:
            return _refused(token, Answer())
        snapshot = Snapshot(
            0 if stored is None else stored.snapshot_epoch + 1,
            _epoch(state_epoch, stored.state_epoch if stored is not None else 0),
            0,
            start_offset,
            UNCHANGED if start_offset == UNCHANGED else 0,  # nothing beyond a start that is known is done
            now_ms,
            now_ms,
        )
        return Outcome(records=(ShareRecord(key, snapshot),), replies=(Reply(token, Answer()),))

    def read(self, token: Token, key: ShareKey, leader_epoch: int, now_ms: int) -> Outcome:
        """The state, for the leader with that epoch; leaders with a lower one are fenced from now on."""
        stored = self._shares.get(key)
        refusal = self._impossible(key) or self._missing(stored) or self._stale(stored, leader_epoch, ANY_EPOCH)
        refusal = refusal or self._unknown(key)
        if refusal is not None or stored is None:
            return _refused(token, refusal or Answer())
        found = _found(stored)
        if leader_epoch <= stored.leader_epoch:
            return _refused(token, Answer(stored=found))
        written = Written(ANY_EPOCH, leader_epoch, stored.start_offset, UNCHANGED, ())
        answer = Answer(stored=found._replace(leader_epoch=leader_epoch))
        return Outcome(records=(self._record(key, stored, written, now_ms),), replies=(Reply(token, answer),))

    def write(self, token: Token, key: ShareKey, written: Written, now_ms: int) -> Outcome:
        """Stores what a leader decided."""
        stored = self._shares.get(key)
        refusal = self._impossible(key) or self._missing(stored)
        refusal = refusal or self._stale(stored, written.leader_epoch, written.state_epoch) or self._unknown(key)
        if refusal is not None or stored is None:
            return _refused(token, refusal or Answer())
        return Outcome(records=(self._record(key, stored, written, now_ms),), replies=(Reply(token, Answer()),))

    def delete(self, token: Token, key: ShareKey, now_ms: int) -> Outcome:
        """Forgets the state; nothing happens when there is none."""
        refusal = self._unknown(key) or self._impossible(key)
        if refusal is not None:
            return _refused(token, refusal)
        if key not in self._shares:
            return _refused(token, Answer())
        return Outcome(records=(ShareRecord(key, None),), replies=(Reply(token, Answer()),))

    def summary(self, token: Token, key: ShareKey, now_ms: int) -> Outcome:
        """The offsets, for administrators; ``stored`` is None when there is no state."""
        refusal = self._unknown(key) or self._impossible(key)
        stored = self._shares.get(key)
        if refusal is None:
            refusal = Answer() if stored is None else Answer(stored=_found(stored)._replace(batches=()))
        return _refused(token, refusal)

    def _record(self, key: ShareKey, stored: StoredShare, written: Written, now_ms: int) -> ShareRecord:
        leader_epoch = max(stored.leader_epoch, written.leader_epoch)
        if stored.updates < self._settings.updates_per_snapshot:
            batches = merged((), written.batches, written.start_offset)
            update = Update(stored.snapshot_epoch, leader_epoch, written.start_offset, written.complete_count, tuple(batches))
            return ShareRecord(key, update)
        start_offset, complete_count = stored.moved(written.start_offset, written.complete_count)
        snapshot = stored.snapshot(now_ms)._replace(
            leader_epoch=leader_epoch,
            start_offset=start_offset,
            complete_count=complete_count,
            batches=tuple(merged(stored.batches, written.batches, start_offset)),
        )
        return ShareRecord(key, snapshot)

    # -- what is refused -----------------------------------------------------------------------------------------------------

    @staticmethod
    def _impossible(key: ShareKey) -> Answer | None:
        if key.topic_id == ZERO_UUID or key.partition < 0:
            return Answer(ErrorCode.INVALID_REQUEST, "A topic id and a partition from 0 on are needed.")
        return None

    @staticmethod
    def _missing(stored: StoredShare | None) -> Answer | None:
        return Answer(ErrorCode.INVALID_REQUEST, UNINITIALIZED) if stored is None else None

    @staticmethod
    def _stale(stored: StoredShare | None, leader_epoch: int, state_epoch: int) -> Answer | None:
        if stored is None:
            return None
        if leader_epoch != ANY_EPOCH and leader_epoch < stored.leader_epoch:
            text = f"A leader with epoch {stored.leader_epoch} has taken over; the request has {leader_epoch}."
            return Answer(ErrorCode.FENCED_LEADER_EPOCH, text)
        if state_epoch != ANY_EPOCH and state_epoch < stored.state_epoch:
            text = f"The state was reset: its epoch is {stored.state_epoch}, and the request has {state_epoch}."
            return Answer(ErrorCode.FENCED_STATE_EPOCH, text)
        return None

    def _unknown(self, key: ShareKey) -> Answer | None:
        topic = self._image().topics.by_id.get(Uuid(key.topic_id))
        if topic is None or key.partition >= len(topic.partitions):
            return Answer(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.text)
        return None

    # -- topics and time -----------------------------------------------------------------------------------------------------

    def forget_topics(self, topic_ids: Collection[bytes]) -> Outcome:
        """The topics were deleted."""
        return Outcome(records=tuple(ShareRecord(key, None) for key in self._shares if key.topic_id in topic_ids))

    def offsets(self) -> Iterator[tuple[ShareKey, int, int]]:
        """The start offset of each share partition, and how many records beyond it are finished; -1 for what is unknown."""
        return ((key, stored.start_offset, stored.complete_count) for key, stored in self._shares.items())

    def stored(self, key: ShareKey) -> Found | None:
        """The state of one share partition; None when there is none."""
        stored = self._shares.get(key)
        return None if stored is None else _found(stored)

    def prunable_offset(self, safe_to: int) -> int | None:
        """Records below this offset are not needed. None when nothing is stored, and while a last snapshot is not below
        ``safe_to``: it may be lost, and then the one before it counts."""
        offsets = [stored.offset for stored in self._shares.values()]
        return min(offsets) if offsets and max(offsets) < safe_to else None

    def next_deadline(self) -> int:
        return self._check_ms

    def expire(self, now_ms: int) -> Outcome:
        """Forgets keys of topics that were deleted while no coordinator was loaded, and gives cold keys a new snapshot, unless
        all keys are cold and have one already."""
        self._check_ms = now_ms + self._settings.cold_after_ms
        by_id = self._image().topics.by_id
        gone = {key.topic_id for key in self._shares if Uuid(key.topic_id) not in by_id}
        if gone:
            return self.forget_topics(gone)
        cold = [key for key, stored in self._shares.items() if now_ms - stored.write_ms >= self._settings.cold_after_ms]
        if not cold or (len(cold) == len(self._shares) and not any(self._shares[key].updates for key in cold)):
            return NOTHING
        records = []
        for key in cold:
            stored = self._shares[key]
            records.append(ShareRecord(key, stored.snapshot(now_ms)._replace(create_ms=stored.create_ms)))
        return Outcome(records=tuple(records))

    # -- the log -------------------------------------------------------------------------------------------------------------

    def appending(self, first_offset: int) -> None:
        """The records that are replayed next begin at this offset."""
        self._next_offset = first_offset

    def replay(self, record: ShareRecord, now_ms: int) -> None:
        offset, self._next_offset = self._next_offset, self._next_offset + 1
        key, change = record
        if change is None:
            self._shares.pop(key, None)
        elif isinstance(change, Snapshot):
            former, new = self._shares.get(key), StoredShare(change, offset)
            if former is not None:
                # A reset has no leader epoch, but it does not let fenced leaders in again.
                new.leader_epoch = max(new.leader_epoch, former.leader_epoch)
            self._shares[key] = new
        else:
            stored = self._shares.get(key)
            # The snapshot of an update may have been deleted with its topic, or replaced.
            if stored is not None and stored.snapshot_epoch == change.snapshot_epoch:
                stored.update(change)
                stored.write_ms = max(stored.write_ms, now_ms)

    def replay_stored(self, record: Record, now_ms: int) -> None:
        if record.key is None:
            return
        read = decode(bytes(record.key), None if record.value is None else bytes(record.value))
        if read is not None:
            self._next_offset = record.offset
            self.replay(read, record.timestamp)

    def loaded(self, now_ms: int) -> None:
        self._check_ms = now_ms + self._settings.cold_after_ms

    def to_record(self, record: ShareRecord, now_ms: int) -> RecordData:
        key, value = encode(record)
        return RecordData(key, value, now_ms)

    def check(self) -> None:
        """Asserts the invariants."""
        for key, stored in self._shares.items():
            last = -1
            for batch in stored.batches:
                assert max(last, stored.start_offset - 1) < batch.first <= batch.last, (key, batch, stored.start_offset)
                last = batch.last


def _found(stored: StoredShare) -> Found:
    return Found(stored.state_epoch, stored.leader_epoch, stored.start_offset, stored.complete_count, tuple(stored.batches))


def _epoch(wanted: int, stored: int) -> int:
    return stored if wanted == ANY_EPOCH else wanted


def _refused(token: Token, answer: Answer) -> Outcome:
    return Outcome(replies=(Reply(token, answer),))
