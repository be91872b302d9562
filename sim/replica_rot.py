"""Bits that turn at rest on one of three brokers, in flushed batches; scrub and repair as the node runs them.

One broker at a time is damaged, and it counts as the one that may have lost something (``ReplicaWorld.fragile``) until all of
it is mended. Only batches at committed offsets are damaged, but also those of a leader that was cut off and holds other records
there. A repair is taken apart into its steps, with time between them, so that appends, cuts, rolls and elections fall there.

What is checked: the bytes that a repair puts in place are the ones that were there before the bit turned; consumers get nothing
with a wrong checksum; in the end nothing is damaged, and replicas are equal byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from tidelog.model.errors import ErrorCode
from tidelog.records.batch import ATTRIBUTES_POSITION, BatchHeader, iter_headers
from tidelog.records.record import iter_records
from tidelog.replication import repair
from tidelog.replication.partition import Partition
from tidelog.replication.reads import read_partition
from tidelog.replication.repair import Damage, Readiness, Refusal, Replacement
from tidelog.replication.unmended import never
from tidelog.storage.scrub import SegmentCheck, segments_of
from tidelog.storage.segment import LOG_SUFFIX, LogSegment
from tidelog.storage.splice import SpliceFailed, SpliceJob
from tidelog.storage.unified_log import UnifiedLog

if TYPE_CHECKING:
    from sim.replica_broker import SimBroker
    from sim.replica_world import ReplicaWorld

DELTA_BYTES = range(23, 27)
"""Offset of the batch's last offset delta, which distinguishes batches before anything is checked."""


class Place(NamedTuple):
    """A damaged batch: its file, position, and bytes before and after."""

    path: str
    position: int
    right: bytes
    wrong: bytes


class Candidate(NamedTuple):
    """A batch that may be damaged."""

    broker: SimBroker
    index: int
    segment: LogSegment
    header: BatchHeader


class Rot:
    """The damage of one world."""

    def __init__(self, world: ReplicaWorld) -> None:
        self.world = world
        self.broker_id = -1
        self.places: list[Place] = []

    def flip(self, brokers: list[SimBroker], *, other_records: bool = False) -> None:
        """One bit, in a flushed batch of one of these brokers at committed offsets. ``other_records``: only in one that holds
        other records there than consumers saw, which must never be mended from another replica."""
        found = [each for broker in brokers for each in self._candidates(broker, uncommitted=other_records)]
        if other_records:
            found = [each for each in found if self._is_strange(each)]
        if not found:
            return
        broker, _, segment, header = self.world.rng.choice(found)
        path = segment.path(LOG_SUFFIX)
        within = self.world.rng.choice([each for each in range(ATTRIBUTES_POSITION, header.size) if each not in DELTA_BYTES])
        right = segment.file.read(header.position, header.size)
        broker.disk.flip(path, header.position + within, self.world.rng.randrange(8))
        self.places.append(Place(path, header.position, right, segment.file.read(header.position, header.size)))
        self.broker_id = self.world.fragile = broker.id
        self.world.note("flip of other records" if other_records else "flip")

    def _candidates(self, broker: SimBroker, *, uncommitted: bool) -> Iterator[Candidate]:
        marks = self.world.watermarks
        for partition in broker.manager.partitions():
            log = partition.log
            if log is None or (self.places and self.broker_id != broker.id):
                continue
            start = log.high_watermark if uncommitted else 0
            end = min(
                log.recovery_point, max((mark for (_, index), (_, mark) in marks.items() if index == partition.index), default=0)
            )
            for segment in segments_of(log):
                if segment.next_offset <= start:
                    continue
                for header in iter_headers(segment.file.read(0, segment.size)):  # lengths are never damaged
                    if start <= header.last_offset < end and not self._is_damaged(segment.path(LOG_SUFFIX), header.position):
                        yield Candidate(broker, partition.index, segment, header)

    def _is_strange(self, found: Candidate) -> bool:
        seen, header = self.world.seen[found.index], found.header
        records = iter_records(found.segment.file.read(header.position, header.size))
        return any(seen.get(each.offset, each.value) != each.value for each in records)

    def _is_damaged(self, path: str, position: int) -> bool:
        return any(each.path == path and each.position == position for each in self.places)

    def look(self) -> bool:
        """Whether nothing is damaged any more: the right bytes are back, or the place was cut and written again."""
        disk = self.world.disks[self.broker_id] if self.places else None
        left = []
        for place in self.places:
            assert disk is not None
            if disk.exists(place.path):
                file = disk.open(place.path, write=False)
                if file.read(place.position, len(place.wrong)) == place.wrong:
                    left.append(place)
                file.close()
        self.places = left
        return not left

    def check(self, job: SpliceJob) -> None:
        """After a repair: what was put in place is what was there."""
        path = job.segment.path(LOG_SUFFIX)
        rotten = job.rotten
        file = job.log.fs.open(path, write=False)
        for place in self.places:
            if place.path == path and rotten.position <= place.position < rotten.end:
                now = file.read(place.position, len(place.right))
                if now != place.right:
                    self.world.violated(
                        f"{path} is mended at position {place.position} with other bytes: {now!r}, not {place.right!r}"
                    )
        file.close()
        self.world.note("mended")


# --- scrub and repair ----------------------------------------------------------------------------------------------------


def scrub(broker: SimBroker) -> None:
    """One pass over all logs."""
    for log in list(broker.logs.logs()):
        for segment in segments_of(log):
            first = _read(SegmentCheck(log, segment, segment.file))
            second = first.again(segment.file)
            if second is not None and _read(second).take():
                broker.world.note("found by the scrub")
    broker.later(broker.world.rng.randint(100, 1_000), lambda: scrub(broker))


def _read(check: SegmentCheck) -> SegmentCheck:
    while not check.done:
        check.advance(1 << 20)
    return check


def mend(broker: SimBroker) -> None:
    """Looks for damage and mends one range of each log."""
    for partition in list(broker.manager.partitions()):
        log = partition.log
        if log is not None and (found := repair.damages(log)) and (partition not in broker.repairs):
            _Repair(broker, partition, log, broker.world.rng.choice(found)).begin()
    broker.later(broker.world.rng.randint(50, 400), lambda: mend(broker))


class _Repair:
    """One range from one donor, as ``server/replication/repairing.py`` does it."""

    def __init__(self, broker: SimBroker, partition: Partition, log: UnifiedLog, damage: Damage) -> None:
        self.broker, self.world = broker, broker.world
        self.partition, self.log, self.damage = partition, log, damage
        self.epoch = partition.leader_epoch
        self.found = Replacement(log, damage.rotten)

    def begin(self) -> None:
        ready = repair.readiness(self.log, self.damage)
        if ready is Readiness.ROLL:
            self.log.roll(self.world.now)
        if ready in (Readiness.ROLL, Readiness.FLUSH):
            self.broker.manager.flush(self.partition)
        if ready is not Readiness.READY or never(self.damage.rotten) is not None:
            return
        self.broker.repairs.add(self.partition)
        self._ask(self.world.rng.choice(repair.donors(self.partition)))

    def _ask(self, donor: int) -> None:
        wanted, size = self.found.next_offset, self.found.missing_bytes + 1

        def serve(there: SimBroker) -> Any:
            found = there.manager.by_id(self.partition.topic_id, self.partition.index)
            if isinstance(found, ErrorCode):
                return found, b""
            read = read_partition(found, wanted, size, min_one=True, committed=True, leader_epoch=self.epoch, any_replica=True)
            return read.error, read.records.read() if read.records is not None else b""

        def answered(answer: Any) -> None:
            if answer is None or answer[0] is not ErrorCode.NONE:
                self._end("refused repair")
                return
            try:
                self.found.take(answer[1])
            except Refusal:
                self._end("refused repair")
                return
            if self.found.complete:
                self._copy()
            else:
                self._ask(donor)

        self.world.ask(self.broker, donor, serve, answered)

    def _copy(self) -> None:
        try:
            job = SpliceJob(self.log, self.damage.segment, self.damage.rotten, self.found.data)
        except SpliceFailed:
            self._end("refused repair")
            return
        steps = job.steps()

        def step() -> None:
            try:
                length = next(steps, -1)
            except (SpliceFailed, OSError):
                job.drop()
                self._end("refused repair")
                return
            self.broker.later(self.world.rng.randint(0, 60), step if length >= 0 else put)

        def put() -> None:
            if self.log.flush_in_flight:
                self.broker.later(1, put)
            elif not (job.stands and self.partition.log is self.log and self.partition.leader_epoch == self.epoch):
                job.drop()
                self._end("changed under repair")
            else:
                job.put_in_place()
                self.found.teach_epochs()
                self.world.rot.check(job)
                self.broker.later(self.world.rng.randint(0, 60), finish)

        def finish() -> None:
            job.finish()
            self._end("repaired")

        self.broker.later(self.world.rng.randint(0, 60), step)

    def _end(self, what: str) -> None:
        self.broker.repairs.discard(self.partition)
        self.world.note(what)
