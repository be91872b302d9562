"""The compiled lane of followers' Fetch and its twin in Python: the same frames, appends and changes on two brokers give the same
answers, waits, sessions, high watermarks, ISRs and counts.

``python -m tests.property.test_follower_twins SEED FRAMES`` runs more.
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
from tests.unit.replication.world import DIRECTORY_IDS, MemoryDisk, World, batch, broker_image, topic_id
from tidelog.broker.answer_types import Waiting, resume
from tidelog.broker.dispatch import Dispatcher
from tidelog.broker.request import Session
from tidelog.broker.request_times import RequestTimes
from tidelog.broker.table import BROKER_APIS
from tidelog.metadata.image import PartitionImage
from tidelog.model.acl import CLUSTER_NAME, AclOperation, ResourceType
from tidelog.model.errors import ProtocolViolation
from tidelog.model.ids import Uuid
from tidelog.model.ports import FileSlice
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.framing import RequestHeader, encode_request_header
from tidelog.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic, ReplicaState
from tidelog.replication.partition import Partition
from tidelog.server.disk import DiskFileSystem
from tidelog.server.serving.follower_lane import MakeLane, compiled
from tidelog.storage.log_config import LogConfig

TOPICS = ("t", "u", "größe")
PARTITIONS = 3
FRAMES = 8_000
STEPS = 300
"""Of one pair of brokers."""
FOLLOWERS = (2, 3)
SMALL = LogConfig(segment_bytes=20_000, index_interval_bytes=500, min_insync_replicas=2)
_CLUSTER_ACTION = (AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME)


def placed(leader: int = 1, epoch: int = 0, isr: tuple[int, ...] = (1, 2, 3)) -> PartitionImage:
    directories = (Uuid(DIRECTORY_IDS[0]), Uuid(b"C" * 16), Uuid(b"D" * 16))
    return PartitionImage((1, 2, 3), isr, leader, leader_epoch=epoch, partition_epoch=epoch, directories=directories)


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

    def __init__(self, disk: MemoryDisk, make: MakeLane | None) -> None:
        self.world = World(disk=disk)
        self.world.set_brokers({number: broker_image(number) for number in (1, *FOLLOWERS)})
        for name in TOPICS:
            self.world.create(name, *[placed()] * PARTITIONS, config=SMALL)
        self.node: Any = self.world.context(17).node
        runtime: Any = self.node.runtime
        runtime.run_blocking = lambda job: Ready(job())
        self.breaks = False
        runtime.even_ms = self._even_ms
        self.node.config.fetch_max_bytes = 40_000
        self.clock_ns = 0
        self.times = RequestTimes(lambda: self.clock_ns)
        self.dispatcher = Dispatcher(self.node, BROKER_APIS, self.times)
        self.handle: Any = self.dispatcher.handle
        row = self.dispatcher.row(ApiKey.FETCH)
        if make is not None and row is not None:
            self.handle = make(self.node, row, self.dispatcher)
        self.sessions = [Session("PLAINTEXT", "127.0.0.1") for _ in range(2)]
        self.waiting: list[Waiting] = []
        self.said: list[Any] = []
        self.appends_on_progress = False
        for partition in self.world.manager.partitions():
            partition.watchers[Coordinator(self)] = None

    def _even_ms(self) -> int:
        if self.breaks:
            raise RuntimeError("no rule foresees this")
        return self.world.now_ms

    def send(self, connection: int, frame: bytes) -> None:
        """A frame arrives."""
        try:
            outgoing = self.handle(self.sessions[connection], exact(frame))
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
        """All that a follower's fetch may change."""
        manager: Any = self.world.manager
        sessions = [
            (
                each.id,
                each.epoch,
                each.last_used_ms,
                len(each.watchers),
                each.decider is not None,
                None if each.caller is None else (each.caller.broker_id, each.caller.broker_epoch, each.caller.last_fetch_ms),
                [(due.topic, due.index) for due in each.due],
                [_fields(wanted) for wanted in each.partitions.values()],
            )
            for each in manager.sessions._sessions.values()
        ]
        stats = {
            name: {field: getattr(counts, field) for field in counts.__slots__}
            for name, counts in manager.hosted.topic_stats().items()
        }
        partitions = [
            (
                len(each.tail.watchers),
                None if each.log is None else (each.log.high_watermark, each.log.log_end_offset, each.log.log_start_offset),
                None if each.leadership is None else _followers(each.leadership),
            )
            for each in manager.partitions()
        ]
        latencies = {name: len(found) for name, found in self.times.by_name.items()}
        timed = [[(each._version, each._client_id) for each in session.timed] for session in self.sessions]
        clients = [(session.api_key, session.client_id, session.requests) for session in self.sessions]
        asked = list(self.node.access.loud) if self.node.access is not None else None
        return sessions, stats, partitions, dict(self.dispatcher.requests), latencies, timed, clients, asked


class Coordinator:
    """Watches a partition, and may append when the high watermark moves, as a coordinator's runner does."""

    def __init__(self, side: Side) -> None:
        self._side = side

    def changed(self, partition: Any, _key: object, _new_bytes: int) -> None:
        if self._side.appends_on_progress and partition.is_leader and partition.log is not None:
            self._side.appends_on_progress = False
            partition.append(batch(b"own"), self._side.world.now_ms, 1)


def _fields(wanted: Any) -> tuple[Any, ...]:
    plain = tuple(getattr(wanted, name) for name in wanted.__slots__ if name not in ("partition", "watched"))
    return (*plain, wanted.partition is None, wanted.watched is None)


def _followers(leadership: Any) -> Any:
    replicas = [
        (each.broker_id, each.log_end_offset, each.log_start_offset, each.caught_up_ms, each.broker_epoch, each.is_asking)
        for each in leadership.replicas.values()
    ]
    return replicas, sorted(leadership.maximal_isr), leadership.pending, leadership.quiet


class Pair:
    """The lane and the twin, and what happens to both."""

    def __init__(self, rng: random.Random, folder: Path) -> None:
        self.rng = rng
        make = compiled()
        assert make is not None
        made = [folder / f"{number}" for number in range(2)]
        for path in made:
            path.mkdir()
        real = rng.random() < 0.5
        disks = [RealLogs(path) if real else MemoryDisk() for path in made]
        self.sides = [Side(disks[0], make), Side(disks[1], None)]
        if rng.random() < 0.4:
            for side in self.sides:
                side.node.access = Allowing({_CLUSTER_ACTION})
        self.frames = 0
        self.old: set[int] = set()
        """Sessions from before partitions moved: most of what they have is unusual for ever."""

    def step(self) -> None:
        """One thing happens to both sides."""
        kinds = [
            (self._fetch, 60.0),
            (self._append, 25.0),
            (self._mutated, 6.0),
            (self._expire, 3.0),
            (self._time, 3.0),
            (self._coordinate, 4.0),
            (self._move, 0.2),
            (self._records_go, 1.0),
            (self._permit, 0.5),
            (self._settings, 0.5),
            (self._fails, 0.3),
        ]
        self.rng.choices([kind for kind, _ in kinds], [weight for _, weight in kinds])[0]()
        lane, twin = self.sides
        assert lane.said == twin.said
        assert lane.state() == twin.state()
        for side in self.sides:
            side.said.clear()

    # -- what happens to the brokers ------------------------------------------------------------------------------------------

    def _append(self) -> None:
        rng = self.rng
        topic, index = rng.randrange(len(TOPICS)), rng.randrange(PARTITIONS)
        values = [b"x" * rng.choice([1, 80, 3000])] * rng.randint(1, 4)
        for side in self.sides:
            partition = side.partition(topic, index)
            if partition is not None:
                partition.append(batch(*values), side.world.now_ms, 1)
            side.world.run_jobs()
            side.wake()

    def _coordinate(self) -> None:
        for side in self.sides:
            side.appends_on_progress = True

    def _expire(self) -> None:
        for side in self.sides:
            side.expire()

    def _time(self) -> None:
        passed = self.rng.choice([1, 100, 100_000])
        for side in self.sides:
            side.world.now_ms += passed
            side.clock_ns += passed * 1_000_000
            side.world.manager.isr_step(side.world.now_ms)
            side.wake()

    def _move(self) -> None:
        rng = self.rng
        topic, index, kind = rng.randrange(len(TOPICS)), rng.randrange(PARTITIONS), rng.random()
        again = Uuid(rng.randbytes(16)) if rng.random() < 0.5 else topic_id(TOPICS[topic])
        for side in self.sides:
            partition = side.partition(topic, index)
            if kind < 0.1:
                if TOPICS[topic] in side.world.image.topics.by_name:
                    side.world.delete(TOPICS[topic])
                side.world.create(TOPICS[topic], *[placed(epoch=3)] * PARTITIONS, config=SMALL, id=again)
            elif partition is not None:
                epoch = partition.leader_epoch + 1
                partition.update_metadata(placed(1 if kind < 0.8 else 2, epoch, (1, 2)), side.world.now_ms)
                side.wake()
                if 0.8 <= kind < 0.98:
                    partition.update_metadata(placed(epoch=epoch + 1), side.world.now_ms)
            side.wake()
        cache: Any = self.sides[1].world.manager.sessions
        self.old.update(cache._sessions)

    def _records_go(self) -> None:
        rng = self.rng
        topic, index, offset = rng.randrange(len(TOPICS)), rng.randrange(PARTITIONS), rng.randrange(30)
        for side in self.sides:
            partition = side.partition(topic, index)
            if partition is not None:
                partition.delete_records(offset)
            side.wake()

    def _permit(self) -> None:
        allowed = [_CLUSTER_ACTION] if self.rng.random() < 0.7 else []
        for side in self.sides:
            if side.node.access is not None:
                side.node.access.change(*allowed)

    def _fails(self) -> None:
        """A fetch meets an error that no rule foresees."""
        for side in self.sides:
            side.breaks = True
        self._fetch()
        for side in self.sides:
            side.breaks = False

    def _settings(self) -> None:
        """Throttles, racks, and a follower that registers again."""
        rng = self.rng
        rate, rack_aware = rng.choice([None] * 9 + [100]), rng.random() < 0.1
        for side in self.sides:
            manager = side.world.manager
            manager.throttles.leader.change(rate, dict.fromkeys(TOPICS, frozenset((0,))))
            manager.rack_aware = rack_aware

    # -- frames -------------------------------------------------------------------------------------------------------------

    def _fetch(self) -> None:
        self._send(self._frame(*self._request()))

    def _mutated(self) -> None:
        rng = self.rng
        frame = bytearray(self._frame(*self._request()))
        for _ in range(rng.randint(1, 3)):
            kind = rng.random()
            if kind < 0.6:
                frame[rng.randrange(len(frame))] = rng.choice([0, 1, 2, 0x7F, 0x80, 0xFF, rng.randrange(256)])
            elif kind < 0.8:
                del frame[rng.randrange(2, len(frame) + 1) :]
            else:
                at = rng.randrange(2, len(frame) + 1)
                frame[at:at] = rng.randbytes(rng.randint(1, 5))
        frame[:2] = b"\0\1"
        self._send(bytes(frame))

    def _send(self, frame: bytes) -> None:
        connection = self.rng.randrange(2)
        self.frames += 1
        for side in self.sides:
            side.send(connection, frame)

    def _frame(self, version: int, request: FetchRequest) -> bytes:
        client = self.rng.choice(["node-2"] * 20 + ["", None, "größe"])
        return encode_request_header(RequestHeader(1, version, self.rng.getrandbits(31), client)) + request.encode(version)

    def _request(self) -> tuple[int, FetchRequest]:
        rng = self.rng
        version = rng.choice([13] + [15, 16, 17, 17, 18, 18] * 4)
        request = FetchRequest(
            max_wait_ms=rng.choice([0, 500, 500, 500]),
            min_bytes=rng.choice([0, 1, 1, 1, 1, 200]),
            max_bytes=rng.choice([0, 5000, 10 << 20, 10 << 20]),
            isolation_level=int(rng.random() < 0.01),
        )
        cache: Any = self.sides[1].world.manager.sessions
        sessions = [each for each in cache._sessions.values() if each.caller is not None]
        if rng.random() < 0.95:  # a follower fetches again when it has the answer
            sessions = [each for each in sessions if not each.watchers]
        if rng.random() < 0.9:
            sessions = [each for each in sessions if each.id not in self.old]
        least, follower = 1, rng.choice(FOLLOWERS)
        if sessions and rng.random() < 0.97:
            session = rng.choice(sessions[-3:])
            request.session_id, request.session_epoch = session.id, session.epoch
            follower, least = session.caller.broker_id, 0
            if rng.random() < 0.03:
                request.session_epoch = rng.choice([-1, 0, 1, session.epoch + 1, 0x7FFFFFFF])
        else:
            request.session_epoch, least = 0, 9
        if rng.random() < 0.02:
            follower = rng.choice([-1, 4, *FOLLOWERS])
        if version >= 15:
            request.replica_state = ReplicaState(replica_id=follower, replica_epoch=rng.choice([5, 5, 5, 5, 5, 4, -1]))
        else:
            request.replica_id = follower
        if rng.random() < 0.01:
            request.rack_id = "r1"
        places = [(topic, index) for topic in range(len(TOPICS)) for index in range(PARTITIONS)]
        named = rng.sample(places, max(least, rng.choice([0, 0, 1, 1, 1, 2, 9])))
        if request.session_epoch > 0 and rng.random() < 0.8:  # a follower names what it was answered
            due = [
                (TOPICS.index(each.topic), each.index) for each in session.due if each.topic in TOPICS and each.index in range(3)
            ]
            named = list(dict.fromkeys([*due, *named]))
        named.sort(key=lambda place: place[0] if rng.random() < 0.9 else rng.random())
        for topic, index in named:
            number = self._id(topic)
            if not request.topics or request.topics[-1].topic_id != number:
                request.topics.append(FetchTopic(topic_id=number))
            request.topics[-1].partitions.append(self._wanted(topic, index))
        if rng.random() < 0.02:
            request.forgotten_topics_data.append(ForgottenTopic(topic_id=self._id(0), partitions=[0]))
        return version, request

    def _id(self, topic: int) -> Uuid:
        image = self.sides[1].world.image.topics.by_name.get(TOPICS[topic])
        return topic_id(TOPICS[topic]) if image is None else image.id

    def _wanted(self, topic: int, index: int) -> FetchPartition:
        rng = self.rng
        partition = self.sides[1].partition(topic, index)
        log = partition.log if partition is not None else None
        start, end, epoch = (log.log_start_offset, log.log_end_offset, partition.leader_epoch) if log and partition else (0, 0, 0)
        offset = rng.choice([end] * 12 + [max(end - 1, 0), max(end - 4, start), rng.randint(start, end)])
        if rng.random() < 0.005:
            offset = rng.choice([-1, end + 1, start - 1, 1 << 62])
        return FetchPartition(
            partition=index if rng.random() < 0.998 else rng.choice([-1, 7]),
            current_leader_epoch=epoch if rng.random() < 0.99 else rng.choice([-1, 0, epoch + 1]),
            fetch_offset=offset,
            last_fetched_epoch=epoch if rng.random() < 0.98 else rng.choice([-1, 0, epoch + 1]),
            log_start_offset=rng.choice([start, start, 0]),
            partition_max_bytes=rng.choice([0, 100, 5000, 1 << 20, 1 << 20, 1 << 20, 1 << 20]),
        )


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
    if compiled() is None:
        pytest.skip("not compiled")
    taken = frames = 0
    for pair in pairs(1, FRAMES, tmp_path):
        taken += pair.sides[0].handle.taken
        frames += pair.frames
    assert taken > frames / 5, "too few requests for the lane: the comparison says little"


if __name__ == "__main__":
    logging.disable()
    done = 0
    with tempfile.TemporaryDirectory() as scratch, contextlib.suppress(KeyboardInterrupt):
        for each in pairs(int(sys.argv[1]), int(sys.argv[2]), Path(scratch)):
            done += each.frames
    print(f"{done} frames: equal")
