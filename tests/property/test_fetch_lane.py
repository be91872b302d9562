"""The compiled lane of Fetch and its twin in Python: the same frames, appends and changes on two brokers give the same answers,
waits, sessions and counts.

``python -m tests.property.test_fetch_lane SEED FRAMES`` runs more.
"""

from __future__ import annotations

import contextlib
import logging
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.property.produce_twins import exact
from tests.unit.broker.allowing import Allowing
from tests.unit.broker.node_world import Ready, run
from tests.unit.replication.world import MemoryDisk, World, batch, led_by_us, topic_id
from tidelog.broker.answer_types import Waiting, resume
from tidelog.broker.dispatch import Dispatcher, MakeLane
from tidelog.broker.request import Session
from tidelog.broker.request_times import RequestTimes
from tidelog.broker.table import BROKER_APIS
from tidelog.metadata.image import PartitionImage
from tidelog.model.acl import AclOperation, ResourceType
from tidelog.model.errors import ProtocolViolation
from tidelog.model.ids import Uuid
from tidelog.model.ports import FileSlice
from tidelog.protocol.framing import RequestHeader, encode_request_header
from tidelog.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic, ReplicaState
from tidelog.replication.marker_append import Marker, write_marker
from tidelog.replication.partition import Partition
from tidelog.server.disk import DiskFileSystem
from tidelog.server.native import fetch_lanes
from tidelog.storage.log_config import LogConfig

TOPICS = ("t", "u", "größe")
PARTITIONS = 3
FRAMES = 12_000
STEPS = 300
"""Of one pair of brokers."""
ELSEWHERE = PartitionImage((2,), (2,), 2, leader_epoch=9, directories=(b"C" * 16,))
SMALL = LogConfig(segment_bytes=20_000, index_interval_bytes=500)
_READ = [(AclOperation.READ, ResourceType.TOPIC, name) for name in TOPICS]


class RealLogs(MemoryDisk):
    """Its ``.log`` files are real ones, whose bytes the lane may copy from the page cache."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self.real = DiskFileSystem()

    def open(self, path: str, *, create: bool = False, write: bool = True) -> Any:
        found = super().open(path, create=create, write=write)
        return self.real.open(str(self.folder / path.replace("/", "_")), create=True) if path.endswith(".log") else found


class Side:
    """One broker, its dispatcher, and the fetches that wait."""

    def __init__(self, disk: MemoryDisk, lanes: MakeLane | None) -> None:
        self.world = World(disk=disk)
        for name in TOPICS:
            self.world.create(name, *[led_by_us()] * PARTITIONS, config=SMALL)
        self.node: Any = self.world.context(17).node
        self.node.runtime.run_blocking = lambda job: Ready(job())
        self.breaks = False
        self.node.runtime.even_ms = self._even_ms
        self.taken = 0
        self.clock_ns = 0
        self.times = RequestTimes(lambda: self.clock_ns)
        self.dispatcher = Dispatcher(self.node, BROKER_APIS, self.times, fetches=self._counted(lanes))
        self.sessions = [Session("PLAINTEXT", "127.0.0.1") for _ in range(2)]
        self.waiting: list[Waiting] = []
        self.said: list[Any] = []

    def _even_ms(self) -> int:
        if self.breaks:
            raise RuntimeError("no rule foresees this")
        return self.world.now_ms

    def _counted(self, lanes: MakeLane | None) -> Any:
        def make(*args: Any) -> Any:
            lane = None if lanes is None else lanes(*args)

            def counted(*frame: Any) -> Any:
                found = lane(*frame)
                self.taken += found is not None
                return found

            return None if lane is None else counted

        return make

    def send(self, connection: int, frame: bytes) -> None:
        """A frame arrives."""
        try:
            outgoing = self.dispatcher.handle(self.sessions[connection], exact(frame))
        except ProtocolViolation as violation:
            self.said.append(str(violation))
        else:
            self._take(outgoing)
        self.wake()

    def _take(self, outgoing: Any) -> None:
        while not isinstance(outgoing, list | Waiting):
            outgoing = run(outgoing)
        if isinstance(outgoing, Waiting):
            parked = outgoing.parked
            parked.on_done = lambda: None
            self.waiting.append(outgoing)
            self.said.append(("waits", parked.deadline_ms, parked.operation, parked.places))
        else:
            self.said.append(b"".join(part.read() if isinstance(part, FileSlice) else bytes(part) for part in outgoing))

    def wake(self) -> None:
        """What is over by now goes on."""
        while over := [each for each in self.waiting if each.parked.done]:
            self.waiting = [each for each in self.waiting if not each.parked.done]
            for each in over:
                self._take(resume(each))

    def expire(self) -> None:
        for each in self.waiting:
            each.parked.expired = True
            each.parked.finish()
        self.wake()

    def partition(self, topic: int, index: int) -> Partition | None:
        found = self.world.manager.by_name(TOPICS[topic], index)
        return found if isinstance(found, Partition) else None

    def state(self) -> Any:
        """All that a fetch may change."""
        cache: Any = self.world.manager.sessions
        sessions = [
            (
                each.id,
                each.epoch,
                each.last_used_ms,
                len(each.watchers),
                each.decider is not None,
                [(due.topic, due.index) for due in each.due],
                [_fields(wanted) for wanted in each.partitions.values()],
            )
            for each in cache._sessions.values()
        ]
        stats = {
            name: {field: getattr(counts, field) for field in counts.__slots__}
            for name, counts in self.world.manager.hosted.topic_stats().items()
        }
        watched = [len(partition.watchers) for partition in self.world.manager.partitions()]
        latencies = {name: len(found) for name, found in self.times.by_name.items()}
        timed = [[(each._version, each._client_id) for each in session.timed] for session in self.sessions]
        clients = [(session.api_key, session.client_id, session.requests) for session in self.sessions]
        asked = self.node.access.loud if self.node.access is not None else None
        return sessions, stats, watched, dict(self.dispatcher.requests), latencies, timed, clients, asked


def _fields(wanted: Any) -> tuple[Any, ...]:
    plain = tuple(getattr(wanted, name) for name in wanted.__slots__ if name not in ("partition", "watched"))
    return (*plain, wanted.partition is None, wanted.watched is None)


class Pair:
    """The lane and the twin, and what happens to both."""

    def __init__(self, rng: random.Random, folder: Path) -> None:
        self.rng = rng
        lanes = fetch_lanes()
        assert lanes is not None
        real = rng.random() < 0.5
        made = [folder / f"{number}-{rng.getrandbits(60)}" for number in range(2)]
        for path in made:
            path.mkdir()
        disks = [RealLogs(path) if real else MemoryDisk() for path in made]
        self.sides = [Side(disks[0], lanes), Side(disks[1], None)]
        if rng.random() < 0.4:
            for side in self.sides:
                side.node.access = Allowing(set(_READ))
        self.known: dict[int, tuple[int, int, int]] = {}
        """Sessions: the next epoch, and the version and connection that opened it."""
        self.open: dict[tuple[int, int], int] = {}
        """The producer of the open transaction in a partition."""
        self.frames = 0

    def step(self) -> None:
        """One thing happens to both sides."""
        rng = self.rng
        kind = rng.choices(
            [
                self._fetch,
                self._append,
                self._transaction,
                self._mutated,
                self._expire,
                self._time,
                self._move,
                self._records_go,
                self._permit,
                self._files_close,
                self._fails,
            ],
            [60, 25, 5, 8, 3, 3, 0.6, 1, 0.7, 0.3, 0.3],
        )[0]
        kind()
        lane, twin = self.sides
        assert lane.said == twin.said
        assert lane.state() == twin.state()
        self._learn()
        for side in self.sides:
            side.said.clear()

    def _learn(self) -> None:
        cache: Any = self.sides[1].world.manager.sessions
        known = {each.id: each.epoch for each in cache._sessions.values()}
        self.known = {number: (epoch, *self.known.get(number, (0, 17, 0))[1:]) for number, epoch in known.items()}
        for each in cache._sessions.values():
            epoch, version, connection = self.known[each.id]
            self.known[each.id] = (
                epoch,
                version if each.by_id == (version >= 13) else (12 if not each.by_id else 17),
                connection,
            )

    def _transaction(self) -> None:
        """A transaction begins, or ends."""
        topic, index = place = self.rng.randrange(len(TOPICS)), self.rng.randrange(PARTITIONS)
        producer, aborts = self.open.pop(place, -1), self.rng.random() < 0.2
        begins = producer < 0
        if begins:
            producer = self.open[place] = self.rng.getrandbits(40)
        for side in self.sides:
            partition = side.partition(topic, index)
            if partition is not None and begins:
                records = batch(b"x", producer_id=producer, producer_epoch=0, base_sequence=0, transactional=True)
                partition.append(records, side.world.now_ms, 1)
            elif partition is not None:
                write_marker(partition, Marker(producer, 0, not aborts, 1), side.world.now_ms, 0)
            side.wake()

    def _append(self) -> None:
        rng = self.rng
        topic, index, values = rng.randrange(len(TOPICS)), rng.randrange(PARTITIONS), [b"x" * rng.choice([1, 80, 3000])]
        for side in self.sides:
            partition = side.partition(topic, index)
            if partition is not None:
                partition.append(batch(*values * rng_count(rng, topic, index)), side.world.now_ms, 1)
            side.world.run_jobs()
            side.wake()

    def _expire(self) -> None:
        for side in self.sides:
            side.expire()

    def _time(self) -> None:
        passed = self.rng.choice([1, 100, 100_000])
        for side in self.sides:
            side.world.now_ms += passed
            side.clock_ns += passed * 1_000_000

    def _move(self) -> None:
        rng = self.rng
        topic, index, kind = rng.randrange(len(TOPICS)), rng.randrange(PARTITIONS), rng.random()
        for side in self.sides:
            partition = side.partition(topic, index)
            if kind < 0.15:
                side.world.delete(TOPICS[topic]) if TOPICS[topic] in side.world.image.topics.by_name else None
                again = Uuid(bytes([rng_count(rng, topic, index)]) * 16) if kind < 0.08 else topic_id(TOPICS[topic])
                side.world.create(TOPICS[topic], *[led_by_us(3)] * PARTITIONS, config=SMALL, id=again)
            elif partition is not None:
                epoch = partition.leader_epoch + 1
                leads = kind < 0.8
                image = (
                    led_by_us(epoch)
                    if leads
                    else PartitionImage((1, 2), (1, 2), 2, leader_epoch=epoch, directories=(b"A" * 16, b"C" * 16))
                )
                partition.update_metadata(image, side.world.now_ms)
                side.wake()
                if not leads and kind < 0.98:
                    partition.update_metadata(led_by_us(epoch + 1), side.world.now_ms)
            side.wake()

    def _records_go(self) -> None:
        rng = self.rng
        topic, index, offset = rng.randrange(len(TOPICS)), rng.randrange(PARTITIONS), rng.randrange(30)
        for side in self.sides:
            partition = side.partition(topic, index)
            if partition is not None:
                partition.delete_records(offset)
            side.wake()

    def _files_close(self) -> None:
        """An active segment's file is closed; perhaps it cannot be opened again."""
        topic, index, gone = self.rng.randrange(len(TOPICS)), self.rng.randrange(PARTITIONS), self.rng.random() < 0.3
        for side in self.sides:
            partition = side.partition(topic, index)
            if partition is not None and partition.log is not None:
                partition.log.active.close_file()
                if gone:
                    del side.world.disk.files[partition.log.active.path(".log")]

    def _fails(self) -> None:
        """A fetch meets an error that no rule foresees."""
        for side in self.sides:
            side.breaks = True
        self._fetch()
        for side in self.sides:
            side.breaks = False

    def _permit(self) -> None:
        rng = self.rng
        allowed = [each for each in _READ if rng.random() < 0.8]
        for side in self.sides:
            if side.node.access is not None:
                side.node.access.change(*allowed)

    # -- frames -------------------------------------------------------------------------------------------------------------

    def _fetch(self) -> None:
        version, request = self._request()
        self._send(self._frame(version, request), request.session_id)

    def _mutated(self) -> None:
        rng = self.rng
        version, request = self._request()
        frame = bytearray(self._frame(version, request))
        for _ in range(rng.randint(1, 3)):
            kind = rng.random()
            if kind < 0.6:
                frame[rng.randrange(len(frame))] = rng.choice([0, 1, 2, 0x7F, 0x80, 0xFF, rng.randrange(256)])
            elif kind < 0.8:
                del frame[rng.randrange(2, len(frame) + 1) :]
            else:
                at = rng.randrange(2, len(frame) + 1)
                frame[at:at] = rng.randbytes(rng.randint(1, 5))
        if frame[:2] != b"\0\1":
            frame[:2] = b"\0\1"
        self._send(bytes(frame), request.session_id)

    def _send(self, frame: bytes, session_id: int) -> None:
        connection = self.known[session_id][2] if session_id in self.known else self.rng.randrange(2)
        self.frames += 1
        for side in self.sides:
            side.send(connection, frame)

    def _frame(self, version: int, request: FetchRequest) -> bytes:
        client = self.rng.choice(["c", "", None, "größe"])
        return encode_request_header(RequestHeader(1, version, self.rng.getrandbits(31), client)) + request.encode(version)

    def _request(self) -> tuple[int, FetchRequest]:
        rng = self.rng
        version = rng.choice([12, 12, 13, 15, 16, 17, 17, 17, 18])
        request = FetchRequest(
            max_wait_ms=rng.choice([0, 0, 500, 500, 500]),
            min_bytes=rng.choice([0, 1, 1, 1, 200, 10_000]),
            max_bytes=rng.choice([0, 300, 5000, 1 << 20, 50 << 20]),
            isolation_level=rng.choice([0, 0, 1]),
            session_id=0,
            session_epoch=-1,
        )
        if rng.random() < 0.03:
            request.rack_id = rng.choice(["r1", "größe"])
        kind = rng.random()
        least = 1
        if kind < 0.1:
            request.session_epoch = 0
        elif kind < 0.75 and self.known:
            request.session_id = rng.choice(list(self.known))
            request.session_epoch, version, _ = self.known[request.session_id]
            least = 0
            if rng.random() < 0.03:
                request.session_epoch = rng.choice([-1, 0, 1, request.session_epoch + 1, 0x7FFFFFFF])
        elif kind < 0.77:
            request.session_id = rng.getrandbits(20)
        if rng.random() < 0.02:
            if version >= 15:
                request.replica_state = ReplicaState(replica_id=2, replica_epoch=5)
            else:
                request.replica_id = 2
        places = [(topic, index) for topic in range(len(TOPICS)) for index in range(PARTITIONS)]
        named = rng.sample(places, min(len(places), rng.choice([least, least, 1, 1, 1, 2, 3, 9])))
        named.sort(key=lambda place: place[0] if rng.random() < 0.9 else rng.random())
        for topic, index in named:
            name, number = self._named(topic)
            if not request.topics or request.topics[-1].topic != name or request.topics[-1].topic_id != number:
                request.topics.append(FetchTopic(topic=name, topic_id=number))
            request.topics[-1].partitions.append(self._wanted(topic, index))
        if rng.random() < 0.03:
            name, number = self._named(0)
            request.forgotten_topics_data.append(ForgottenTopic(topic=name, topic_id=number, partitions=[0]))
        return version, request

    def _named(self, topic: int) -> tuple[str, Uuid]:
        image = self.sides[1].world.image.topics.by_name.get(TOPICS[topic])
        return TOPICS[topic], topic_id(TOPICS[topic]) if image is None else image.id

    def _wanted(self, topic: int, index: int) -> FetchPartition:
        rng = self.rng
        partition = self.sides[1].partition(topic, index)
        log = partition.log if partition is not None else None
        start, end, epoch = (log.log_start_offset, log.log_end_offset, partition.leader_epoch) if log and partition else (0, 0, 0)
        offset = rng.choice([end, end, end, max(end - 1, 0), rng.randint(start, end)])
        if rng.random() < 0.005:
            offset = rng.choice([-1, end + 1, start - 1, 1 << 62])
        return FetchPartition(
            partition=index if rng.random() < 0.998 else rng.choice([-1, 7]),
            current_leader_epoch=epoch if rng.random() < 0.5 else -1 if rng.random() < 0.98 else rng.choice([0, epoch + 1]),
            fetch_offset=offset,
            last_fetched_epoch=-1 if rng.random() < 0.995 else epoch,
            log_start_offset=-1,
            partition_max_bytes=rng.choice([0, 100, 5000, 1 << 20, 1 << 20, 1 << 20]),
        )


def rng_count(rng: random.Random, topic: int, index: int) -> int:
    """A number that both sides agree on."""
    return 1 + (topic * PARTITIONS + index) % 4


def pairs(seed: int, frames: int, folder: Path) -> Iterator[Pair]:
    """Pairs that did the same, until as many frames were sent."""
    number = 0
    while frames > 0:
        rng = random.Random(f"{seed}/{number}")
        with tempfile.TemporaryDirectory(dir=folder) as own:
            pair = Pair(rng, Path(own))
            try:
                for _ in range(STEPS):
                    pair.step()
            except BaseException:
                print(f"pair {number} of seed {seed}", file=sys.stderr)
                raise
        number += 1
        frames -= pair.frames
        yield pair


def test_the_lane_does_what_its_twin_does(tmp_path: Path) -> None:
    if fetch_lanes() is None:
        pytest.skip("not compiled")
    taken = frames = 0
    for pair in pairs(1, FRAMES, tmp_path):
        taken += pair.sides[0].taken
        frames += pair.frames
    assert taken > frames / 3, "most of these frames should be the lane's"


if __name__ == "__main__":
    logging.disable()
    done = 0
    with tempfile.TemporaryDirectory() as scratch, contextlib.suppress(KeyboardInterrupt):
        for each in pairs(int(sys.argv[1]), int(sys.argv[2]), Path(scratch)):
            done += each.frames
    print(f"{done} frames: equal")
