"""The lane of plain Produces beside its twin in Python: the same frames for two brokers, which have to do the same.

``python -m tests.property.produce_twins SEED FRAMES`` runs from that seed on until so many frames were compared. A difference is
an AssertionError that names its seed.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import random
import sys
import time
from collections.abc import Callable, Coroutine
from typing import Any

from tests.property.test_codec_garbage import mutate
from tests.unit.broker.node_world import Ready
from tests.unit.broker.test_access_control import Audit, Log, identity
from tests.unit.replication.world import DIRECTORY_IDS, NOW_MS, World, led_by_us, topic_id
from tidelog.broker.access_control import AclAccessControl
from tidelog.broker.answer_types import Waiting, resume
from tidelog.broker.dispatch import Dispatcher, Lane
from tidelog.broker.quotas.client_quotas import ClientQuotas
from tidelog.broker.quotas.metering import Metering
from tidelog.broker.request import Session
from tidelog.broker.request_times import RequestTimes
from tidelog.broker.table import BROKER_APIS
from tidelog.metadata.image import PartitionImage
from tidelog.model.acl import AccessControlEntry, AclOperation, PatternType, PermissionType, ResourceType
from tidelog.model.errors import StorageFailure
from tidelog.protocol.framing import RequestHeader, encode_request_header
from tidelog.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tidelog.records.builder import RecordData, build_batch
from tidelog.replication.partition import Partition
from tidelog.replication.replica import Caller
from tidelog.security.authorizer import Authorizer
from tidelog.security.principal import KafkaPrincipal
from tidelog.storage.log_config import LogConfig

FRAMES_PER_SEED = 250
FOLLOWED = PartitionImage((1, 2), (1, 2), 1, directories=(DIRECTORY_IDS[0], b"C" * 16))
ALONE = PartitionImage((1, 2), (1,), 1, directories=(DIRECTORY_IDS[0], b"C" * 16))
ELSEWHERE = PartitionImage((2,), (2,), 2, leader_epoch=4, directories=(b"C" * 16,))
BROKEN = PartitionImage((1,), (1,), 1, directories=(DIRECTORY_IDS[1],))
TOPICS: dict[str, tuple[tuple[PartitionImage, ...], LogConfig]] = {
    "plain": ((led_by_us(), led_by_us(3), led_by_us()), LogConfig(segment_bytes=20_000, index_interval_bytes=300)),
    "n" * 140: ((led_by_us(),), LogConfig(segment_ms=50_000)),
    "followed": ((FOLLOWED, ALONE), LogConfig(min_insync_replicas=1)),
    "guarded": ((FOLLOWED, ALONE), LogConfig(min_insync_replicas=2)),
    "indexed": ((led_by_us(),), LogConfig(segment_index_bytes=72, index_interval_bytes=1)),
    "compacted": ((led_by_us(),), LogConfig(cleanup_policy=frozenset({"compact"}))),
    "stamped": ((led_by_us(),), LogConfig(message_timestamp_type="LogAppendTime")),
    "dated": ((led_by_us(),), LogConfig(message_timestamp_after_max_ms=1000)),
    "zipped": ((led_by_us(),), LogConfig(compression_type="lz4")),
    "flushed": ((led_by_us(),), LogConfig(flush_messages=7)),
    "small": ((led_by_us(),), LogConfig(max_message_bytes=250)),
    "elsewhere": ((ELSEWHERE,), LogConfig()),
    "dying": ((BROKEN, led_by_us()), LogConfig()),
    "__consumer_offsets": ((led_by_us(),), LogConfig()),
}
LIKELY = ["plain"] * 8 + ["followed"] * 3


def exact(frame: bytes) -> memoryview:
    """The frame in memory that ends where the frame ends, so that a sanitizer notices each byte that is read behind it."""
    return memoryview((ctypes.c_ubyte * len(frame)).from_buffer_copy(frame)).cast("B")


class Meddler:
    """Watches a partition: once it grows, it appends to another one, or fails."""

    def __init__(self, side: Side, other: Partition | None) -> None:
        self._side, self._other = side, other
        self._left = 3

    def changed(self, partition: Partition, _key: object, new_bytes: int) -> None:
        if self._left == 0 or new_bytes <= 0:
            return
        self._left -= 1
        if self._other is None:
            raise RuntimeError("a watcher that fails")
        if self._other is not partition and self._other.is_leader and self._other.log is not None:
            records = build_batch([RecordData(b"own", b"v", NOW_MS)])
            self._other.append(memoryview(bytearray(records)), self._side.world.now_ms, 1)


class Side:
    """One of the two brokers, and its client."""

    def __init__(self, seed: int, make_lane: Callable[..., Lane | None] | None) -> None:
        rng = random.Random(seed)
        self.taken = 0
        self.world = world = World(dirs=2)
        for name, (partitions, config) in TOPICS.items():
            world.create(name, *partitions, config=config, id=topic_id(name[:16]))
        self.audit = Audit()
        if rng.random() < 0.3:
            world.access = self._access(rng)
        node: Any = world.context(13).node
        node.node_id = world.broker_id
        node.runtime.run_blocking = lambda job: Ready(job())
        self.node = node
        self.slow: list[tuple[str, int, str | None]] = []
        self.times = RequestTimes(
            lambda: world.now_ms * 1_000_000 + 1, lambda slow: self.slow.append((slow.name, slow.version, slow.client_id))
        )
        if rng.random() < 0.2:
            self.times.slow_ns = 1
        self.session = Session("PLAINTEXT", "10.0.0.1", KafkaPrincipal("User", "alice"))
        self.muted: list[int] = []
        lanes = None if make_lane is None else self._counted(make_lane)
        if rng.random() < 0.3:
            quotas = ClientQuotas()
            quotas.change({(("user", "alice"),): {"producer_byte_rate": 10_000.0, "request_percentage": 1.0}})
            metering = Metering(node, quotas, BROKER_APIS, lambda: world.now_ms, self.times.clock_ns, self.times, produces=lanes)
            self.session.mute = self.muted.append
            self.handle, self.dispatcher = metering.handle, metering.dispatcher
        else:
            self.dispatcher = Dispatcher(node, BROKER_APIS, self.times, produces=lanes)
            self.handle = self.dispatcher.handle
        self.waiting: list[Waiting] = []

    def _access(self, rng: random.Random) -> AclAccessControl:
        allowed = {
            identity(n): AccessControlEntry(
                ResourceType.TOPIC, name, PatternType.LITERAL, "User:alice", "*", AclOperation.WRITE, PermissionType.ALLOW
            )
            for n, name in enumerate(TOPICS)
            if name == "plain" or rng.random() < 0.6
        }
        authorizer = Authorizer()
        authorizer.replace_all(allowed)
        return AclAccessControl(authorizer, Log(), lambda: True, self.audit)

    def _counted(self, make_lane: Callable[..., Lane | None]) -> Callable[..., Lane]:
        def make(*args: Any) -> Lane:
            lane = make_lane(*args)
            assert lane is not None

            def counted(session: Session, frame: memoryview, begun: Any) -> Any:
                outgoing = lane(session, frame, begun)
                self.taken += outgoing is not None
                return outgoing

            return counted

        return make

    # -- what happens -----------------------------------------------------------------------------------------------------

    def send(self, frame: bytes) -> Any:
        """What becomes of a frame, in a form that can be compared."""
        try:
            outgoing = self.handle(self.session, exact(frame))
        except Exception as error:
            return type(error).__name__, str(error)
        for each in self.session.timed:
            each.sending_ns = each.sending_ns or self.times.clock_ns()
            each.sent(self.times.clock_ns())
        self.session.timed.clear()
        return self._form(outgoing)

    def _form(self, outgoing: Any) -> Any:
        if isinstance(outgoing, list):
            return b"".join(bytes(part) for part in outgoing)
        if isinstance(outgoing, Waiting):
            self.waiting.append(outgoing)
            return "waits", outgoing.parked.deadline_ms, outgoing.parked.places, outgoing.lets_next_in
        if isinstance(outgoing, Coroutine):
            try:
                outgoing.send(None)
            except StopIteration as stop:
                return "later", self._form(stop.value)
            except Exception as error:
                return type(error).__name__
            outgoing.close()
            return "suspended"
        return outgoing

    def change(self, seed: int) -> Any:
        """Something else happens on the broker."""
        rng, world = random.Random(seed), self.world
        kind = rng.randrange(11)
        partition = rng.choice(list(world.manager.hosted))
        log = partition.log
        if kind < 3:
            world.now_ms += rng.choice((0, 1, 900, 30_000, 3_000_000))
        elif kind == 3:
            world.clock_set_by_ms = rng.choice((0, -5000, 5000))
        elif kind == 4 and log is not None and partition.leadership is not None:
            # The follower has everything.
            partition.note_follower(log, Caller(2, 5, world.now_ms), log.log_end_offset, 0, partition.leader_epoch)
        elif kind == 5:
            world.run_jobs()
        elif kind == 6 and log is not None and not log.flush_in_flight and log.failure is None:
            with contextlib.suppress(StorageFailure):
                log.flush(world.now_ms)
        elif kind == 7 and log is not None:
            log.set_config(TOPICS[partition.topic][1])
            log.producers.remove_expired(world.now_ms)
        elif kind == 8 and rng.random() < 0.1:
            world.disk.broken.append(("/data1", "write"))
        elif kind == 8 and partition.is_leader and rng.random() < 0.2:
            image = PartitionImage(partition.replicas, partition.isr, 1, leader_epoch=partition.leader_epoch + 1)
            partition.update_metadata(image, world.now_ms)
        elif kind == 9:
            other = None if rng.random() < 0.3 else rng.choice(list(world.manager.hosted))
            meddled = world.manager.by_name("plain", rng.randrange(3))
            assert isinstance(meddled, Partition)
            meddled.watchers[Meddler(self, other)] = None
        elif kind == 10:
            for each in self.world.manager.hosted:
                for meddler in [watcher for watcher in each.watchers if isinstance(watcher, Meddler)]:
                    del each.watchers[meddler]
        done, self.waiting = self.waiting, []
        forms = []
        for waiting in done:
            if waiting.parked.done or rng.random() < 0.2:
                waiting.parked.finish()
                forms.append(self._form(resume(waiting)))
            else:
                self.waiting.append(waiting)
        return forms

    # -- what it has become -----------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """All that a request may have changed."""
        audited = sorted(self.audit.events, key=repr)
        return {
            "files": {path: bytes(data) for path, data in self.world.disk.files.items()},
            "partitions": {partition.topic_partition: _partition(partition) for partition in self.world.manager.hosted},
            "requests": self.dispatcher.requests,
            "times": {name: [_slots(each) for each in found] for name, found in self.times.by_name.items()},
            "audit": audited,
            "access": (self.world.access.allowed, self.world.access.denied) if self.world.access else None,
            "muted": self.muted,
            "throttle": self.session.throttle_ms,
            "client": (self.session.api_key, self.session.client_id, self.session.requests),
            "slow": self.slow,
            "jobs": len(self.world.jobs),
        }


def _slots(of: Any, *left_out: str) -> dict[str, Any]:
    return {name: getattr(of, name) for name in type(of).__slots__ if name not in left_out and not name.startswith("__")}


def _partition(partition: Partition) -> dict[str, Any]:
    log = partition.log
    found: dict[str, Any] = {
        "stats": _slots(partition.stats),
        "unexposed": partition._unexposed_bytes,
        "flush": partition.flush_needed_to,
        "quiet": partition.leadership and partition.leadership.quiet,
    }
    if log is None:
        return found
    found["offsets"] = (log.log_start_offset, log.high_watermark, log.log_end_offset, log.recovery_point, log.last_stable_offset)
    found["failure"] = str(log.failure)
    found["epochs"] = log.leader_epochs.entries()
    producers = log.producers
    found["producers"] = {
        number: (entry.epoch, entry.batches, entry.last_timestamp, entry.txn_first_offset, entry.coordinator_epoch)
        for number, entry in producers.entries.items()
    }
    found["producers end"] = producers.end_offset
    for segment in log.segments:
        found[f"segment {segment.base_offset}"] = (
            _slots(segment, "_fs", "_file", "_offset_index", "_time_index", "_recent", "aborted", "rotten"),
            _slots(segment._recent),
            None if segment._offset_index is None else _slots(segment._offset_index),
            None if segment._time_index is None else _slots(segment._time_index),
        )
    return found


class Frames:
    """Produce requests, most of them good ones for the log ends of ``side``, others unusual in one way or broken."""

    def __init__(self, rng: random.Random, side: Side) -> None:
        self.rng = rng
        self._hosted = side.world.manager

    def _odd(self, share: float) -> bool:
        return self.rng.random() < share

    def frame(self) -> bytes:
        rng = self.rng
        version = rng.choice((13, 13, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3))
        topics = []
        for _ in range(rng.choice((1,) * 6 + (2, 3))):
            name = rng.choice([*TOPICS, "unknown"]) if self._odd(0.15) else rng.choice(LIKELY)
            most = 2 if name == "followed" else 3
            indexes = rng.sample(range(4) if self._odd(0.03) else range(most), rng.choice((1, 1, 1, 2)))
            data = [PartitionProduceData(index=index, records=self._batch(name, index)) for index in indexes]
            named = {"name": name} if version < 13 else {"topic_id": topic_id(name[:16])}
            topics.append(TopicProduceData(**named, partition_data=data))
        request = ProduceRequest(
            transactional_id="t" if self._odd(0.02) else None,
            acks=rng.choice((-2, 2)) if self._odd(0.01) else rng.choice((1, 1, -1, -1, 0)),
            timeout_ms=rng.choice((0, 1000, 30_000)),
            topic_data=topics,
        )
        client = rng.choice(("client", "client", "", None, "__admin_client"))
        whole = encode_request_header(RequestHeader(0, version, rng.randrange(1 << 31), client)) + request.encode(version)
        return mutate(rng, whole) if self._odd(0.15) else whole

    def _batch(self, topic: str, index: int) -> bytes | None:
        rng = self.rng
        if self._odd(0.01):
            return None
        count = rng.choice((1, 1, 2, 5, 70))
        records = [RecordData(b"k", b"v" * rng.choice((1, 20, 100)), NOW_MS + n) for n in range(count)]
        if self._odd(0.03):
            records[-1] = RecordData(None, b"", NOW_MS + rng.choice((-NOW_MS - 1, -NOW_MS - 2, -5, 4_000_000)))
        producer = rng.choice((-1, 5, 6, 7))
        epoch, sequence = self._place(topic, index, producer)
        if self._odd(0.04):
            sequence = max(0, sequence + rng.choice((-count, -1, 1, 0x7FFFFFFF - sequence, 0x7FFFFFFF - sequence - count + 1)))
        elif self._odd(0.01):
            epoch, sequence = epoch + rng.choice((-1, 1)), 0
        batch = build_batch(
            records,
            codec=rng.choice((1, 2, 3, 4)) if self._odd(0.1) else 0,
            producer_id=producer,
            producer_epoch=epoch,
            base_sequence=sequence,
            transactional=self._odd(0.01),
            control=self._odd(0.005),
            log_append_time=self._odd(0.01),
            base_offset=3 if self._odd(0.01) else 0,
        )
        return mutate(rng, bytes(batch)) if self._odd(0.05) else bytes(batch)

    def _place(self, topic: str, index: int, producer: int) -> tuple[int, int]:
        """The epoch and the sequence with which the producer would go on."""
        if producer < 0:
            return -1, -1
        found = self._hosted.by_name(topic, index)
        entry = found.log.producers.entries.get(producer) if isinstance(found, Partition) and found.log is not None else None
        return (0, 0) if entry is None else (entry.epoch, entry.last_sequence + 1 & 0x7FFFFFFF)


def compare(seed: int, make_lane: Callable[..., Lane | None], frames: int = FRAMES_PER_SEED) -> int:
    """Runs one seed; returns how many frames the lane has taken. AssertionError where the two differ."""
    rng = random.Random(seed)
    lane, twin = Side(seed, make_lane), Side(seed, None)
    made = Frames(rng, twin)
    for number in range(frames):
        frame = made.frame()
        place = f"seed {seed}, frame {number}"
        _same(lane.send(frame), twin.send(frame), place)
        if rng.random() < 0.2:
            kind = rng.randrange(1 << 30)
            _same(lane.change(kind), twin.change(kind), place)
        if number % 50 == 49:
            _same(lane.state(), twin.state(), place)
    for side in (lane, twin):
        side.world.disk.broken.clear()
        side.world.run_jobs()
        side.world.logs.close()
    _same(lane.state(), twin.state(), f"seed {seed}, at the end")
    return lane.taken


def _same(lane: Any, twin: Any, place: str) -> None:
    """AssertionError that names the innermost difference."""
    if isinstance(lane, dict) and isinstance(twin, dict) and lane.keys() == twin.keys():
        for name, value in lane.items():
            _same(value, twin[name], f"{place}: {name}")
    elif isinstance(lane, tuple | list) and isinstance(twin, tuple | list) and len(lane) == len(twin):
        for number, (one, other) in enumerate(zip(lane, twin, strict=True)):
            _same(one, other, f"{place}[{number}]")
    else:
        assert lane == twin, f"lane {str(lane)[:300]}, twin {str(twin)[:300]} in {place}"


def main() -> None:
    from tidelog.broker._produce_lane import produce_lane

    logging.disable()
    seed, wanted = int(sys.argv[1]), int(float(sys.argv[2]))
    compared = taken = 0
    began = told = time.monotonic()
    while compared < wanted:
        taken += compare(seed, produce_lane)
        compared += FRAMES_PER_SEED
        seed += 1
        if time.monotonic() - told > 60 or compared >= wanted:
            told = time.monotonic()
            print(f"{compared} frames, {taken} by the lane, {told - began:.0f} s, next seed {seed}", flush=True)


if __name__ == "__main__":
    main()
