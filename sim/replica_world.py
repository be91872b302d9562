"""Replicas of a few partitions under simulated faults: real logs, leaders, followers and controller decisions on virtual time.

Brokers lose power, are killed, stop in order, hang; messages between them and to the controller are lost, late, or cut off for a
while. The controller itself never fails (the quorum has a simulation of its own, ``raft_world``). At most one replica at a time
has lost what it had not synced, or may have: that is what min.insync.replicas 2 promises to survive.

What is checked: a record that some consumer could see stays at its offset for ever, on every replica below its high watermark;
acknowledged records are among them; no high watermark goes back within a broker's life; and once all is well again, every replica
is in sync and all logs are equal.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

from sim.replica_broker import SimBroker, directory_id
from sim.replica_rot import Rot, mend, scrub
from tidelog.controller.quorum_controller import QuorumController
from tidelog.controller.result import ControllerResult, ControllerSettings
from tidelog.metadata.image import ClusterImage, PartitionImage
from tidelog.metadata.records import MetadataRecord
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.alter_partition import AlterPartitionRequest
from tidelog.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from tidelog.protocol.messages.broker_registration import BrokerRegistrationRequest, Feature, Listener
from tidelog.protocol.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from tidelog.protocol.messages.feature_level_record import FeatureLevelRecord
from tidelog.records.batch import crc_is_valid, iter_headers
from tidelog.records.builder import RecordData, build_batch
from tidelog.records.record import iter_records
from tidelog.replication import acks_and_min_isr, repair
from tidelog.replication.acks_and_min_isr import ACKS_ALL
from tidelog.replication.partition import Partition
from tidelog.storage import reading
from tidelog.storage.append_rules import AppendResult
from tidelog.storage.rotten_range import rotten_with
from tidelog.testing.simulation.disk import SimDisk

BROKERS = (1, 2, 3)
PARTITIONS = 2
TOPIC = "t"
SESSION_MS = 1_500
CALM_MS = 30_000
START_MS = 1_700_000_000_000


class Violation(AssertionError):
    """A promise was broken."""


class NoRules:
    """Every setting is allowed."""

    def problem(self, *_: object) -> None:
        return None

    def is_list(self, *_: object) -> bool:
        return False

    def default(self, *_: object) -> str:
        return ""

    def topic_rows(self, *_: object) -> list[Any]:
        return []


class ReplicaWorld:
    """One run. ``run`` ends quietly or with a Violation."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self.now = START_MS
        self.counts: Counter[str] = Counter()
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._sequence = 0
        settings = ControllerSettings(broker_session_timeout_ms=SESSION_MS, min_insync_replicas=2)
        rules: Any = NoRules()
        self.controller = QuorumController(ClusterImage(cluster_id="cluster"), rng=self.rng, rules=rules, settings=settings)
        self.metadata: list[tuple[list[MetadataRecord], int]] = []
        self.brokers: dict[int, SimBroker] = {}
        self.disks = {each: SimDisk(self.rng.randrange(1 << 30)) for each in BROKERS}
        self.cut_until: dict[frozenset[int], int] = {}
        """Pairs that do not hear each other; the controller is 0."""
        self.loss = 0.0
        self.calm = False
        self.fragile: int | None = None
        """The one that lost something, or may have, and is not in sync again."""
        self.seen: dict[int, dict[int, bytes]] = {index: {} for index in range(PARTITIONS)}
        self.acknowledged: dict[bytes, tuple[int, int]] = {}
        self.watermarks: dict[tuple[int, int], tuple[object, int]] = {}
        self.produced = 0
        self.rot = Rot(self)
        self._incarnation = 0

    # -- time and messages ----------------------------------------------------------------------------------------------

    def at(self, delay_ms: int, event: Callable[[], None]) -> None:
        self._sequence += 1
        heapq.heappush(self._events, (self.now + delay_ms, self._sequence, event))

    def note(self, what: str) -> None:
        self.counts[what] += 1

    def violated(self, what: str) -> None:
        raise Violation(f"seed {self.seed} at {self.now - START_MS} ms: {what}")

    def _arrives(self, one: int, other: int) -> bool:
        return self.cut_until.get(frozenset((one, other)), 0) <= self.now and self.rng.random() >= self.loss

    def ask(self, asker: SimBroker, to: int, serve: Callable[[SimBroker], Any], answered: Callable[[Any], None]) -> None:
        """A question from one broker to another; None is answered when question or answer are lost."""
        delay = self.rng.randint(0, 5)

        def arrive() -> None:
            there = self.brokers.get(to)
            if there is None or not there.up or there.paused_until > self.now or not self._arrives(asker.id, to):
                asker.later(self.rng.randint(1, 400), lambda: answered(None))
                return
            answer = serve(there)
            if callable(answer):
                make = answer
                there.later(self.rng.randint(1, 40), lambda: send(make()))
                self.at(3_000, expire)
            else:
                send(answer)

        state = {"open": True}

        def expire() -> None:
            if state["open"]:
                state["open"] = False
                asker.later(0, lambda: answered(None))

        def send(answer: Any) -> None:
            if not state["open"]:
                return
            if self._arrives(to, asker.id):
                state["open"] = False
                asker.later(self.rng.randint(0, 5), lambda: answered(answer))
            else:
                self.at(self.rng.randint(1, 400), expire)

        self.at(delay, arrive)

    # -- the controller -------------------------------------------------------------------------------------------------

    def commit(self, result: ControllerResult) -> Any:
        """What it decided is in the log at once; brokers read it soon, each in its own time."""
        if result.records:
            last = self.controller.next_offset + len(result.records) - 1
            self.controller.replay(result.records, last, 1, self.now)
            self.metadata.append((list(result.records), last))
            for broker in self.brokers.values():
                self._send_metadata(broker)
        return result.response

    def _send_metadata(self, broker: SimBroker) -> None:
        until = self.cut_until.get(frozenset((0, broker.id)), 0)
        broker.later(max(0, until - self.now) + self.rng.randint(0, 60), broker.catch_up)

    def tick(self) -> None:
        while self.commit(self.controller.tick(self.now, self.now - START_MS)):
            pass
        self.at(100, self.tick)

    def alter_partition(self, asker: SimBroker, request: AlterPartitionRequest, answered: Callable[[Any], None]) -> None:
        def arrive() -> None:
            response = None
            if self._arrives(asker.id, 0):
                try:
                    response = self.commit(self.controller.alter_partition(request, self.now))
                    self.note("isr changed")
                except KafkaError as error:
                    self.note(f"alter partition {error.code.name}")
            if not self._arrives(0, asker.id):
                response = None
            slow = self.rng.random() < 0.2
            asker.later(self.rng.randint(0, 1_500 if slow else 20) if response is not None else 100, lambda: answered(response))

        self.at(self.rng.randint(0, 10), arrive)

    def partition_image(self, index: int) -> PartitionImage:
        return self.controller.image.topics.by_name[TOPIC].partitions[index]

    # -- brokers --------------------------------------------------------------------------------------------------------

    def start(self, broker_id: int, epoch_before: int = -1) -> None:
        broker = self.brokers[broker_id] = SimBroker(self, broker_id, self.disks[broker_id], epoch_before)
        self._incarnation += 1
        incarnation = self._incarnation
        broker.later(0, lambda: self._register(broker, incarnation))
        broker.later(self.rng.randint(1, 200), broker.isr_step)
        broker.later(self.rng.randint(1, 200), broker.house_step)
        broker.later(self.rng.randint(1, 1_500), lambda: scrub(broker))
        broker.later(self.rng.randint(1, 400), lambda: mend(broker))

    def _register(self, broker: SimBroker, incarnation: int) -> None:
        request = BrokerRegistrationRequest(
            broker_id=broker.id,
            cluster_id="cluster",
            incarnation_id=incarnation.to_bytes(16, "big"),
            listeners=[Listener(name="PLAINTEXT", host="h", port=9092, security_protocol=0)],
            features=[
                Feature(name="metadata.version", min_supported_version=7, max_supported_version=30),
                Feature(name="eligible.leader.replicas.version", min_supported_version=0, max_supported_version=1),
            ],
            log_dirs=[directory_id(broker.id)],
            previous_broker_epoch=broker.epoch_before,
        )
        try:
            response = self.commit(self.controller.register_broker(request, self.now))
        except KafkaError:
            response = None
        if response is None or response.error_code:
            broker.later(200, lambda: self._register(broker, incarnation))
            return
        broker.epoch = response.broker_epoch
        broker.begin(self.controller.image, len(self.metadata))
        broker.later(20, lambda: self._heartbeat(broker))

    def _heartbeat(self, broker: SimBroker) -> None:
        if self._arrives(broker.id, 0):
            request = BrokerHeartbeatRequest(
                broker_id=broker.id, broker_epoch=broker.epoch, current_metadata_offset=broker.image.offset
            )
            try:
                self.commit(self.controller.broker_heartbeat(request, self.now))
            except KafkaError as error:
                self.note(f"heartbeat {error.code.name}")
        broker.later(200, lambda: self._heartbeat(broker))

    def _end(self, broker: SimBroker, how: str) -> None:
        """A life ends; the next one begins after a while."""
        epoch_before = -1
        if how == "stop":
            for partition in list(broker.manager.partitions()):
                if partition.log is not None and partition.log.flush_in_flight:
                    return
            request = BrokerHeartbeatRequest(
                broker_id=broker.id, broker_epoch=broker.epoch, current_metadata_offset=broker.image.offset, want_shut_down=True
            )
            self.commit(self.controller.broker_heartbeat(request, self.now))
            broker.logs.close(broker.epoch)
            epoch_before = broker.epoch
        broker.up = False
        self.note(how)
        old = self.disks[broker.id]
        self.disks[broker.id] = old.crash(self.rng.randrange(1 << 30)) if how == "power loss" else old.kill()
        if how != "stop":
            self.fragile = broker.id
        self.at(self.rng.randint(50, 4_000), lambda: self.start(broker.id, epoch_before))

    def _fault(self) -> None:
        if self.calm:
            return
        self._look_after_the_fragile_one()
        broker = self.brokers[self.rng.choice(BROKERS)]
        kind = self.rng.choices(
            ["power loss", "kill", "stop", "pause", "cut", "cut from controller", "loss", "flip"], [3, 2, 2, 2, 4, 3, 2, 3]
        )[0]
        if kind in ("power loss", "kill"):
            if broker.up and broker.epoch >= 0 and self.fragile in (None, broker.id):
                self._end(broker, kind)
        elif kind == "stop":
            if broker.up and broker.epoch >= 0 and broker.paused_until <= self.now:
                self._end(broker, kind)
        elif kind == "flip":
            self.rot.flip(self._may_be_damaged())
        elif kind == "pause":
            broker.paused_until = self.now + self.rng.randint(100, 4_000)
            self.note(kind)
        elif kind == "loss":
            self.loss = self.rng.choice([0.0, 0.0, 0.05, 0.3])
        else:
            other = 0 if kind == "cut from controller" else self.rng.choice([each for each in BROKERS if each != broker.id])
            self.cut_until[frozenset((broker.id, other))] = self.now + self.rng.randint(100, 5_000)
            self.note(kind)
        self.at(self.rng.randint(50, 1_500), self._fault)

    def _may_be_damaged(self) -> list[SimBroker]:
        return [each for each in self.brokers.values() if each.up and each.epoch >= 0 and self.fragile in (None, each.id)]

    def _flip_other_records(self) -> None:
        """A leader that is cut off and does not know of the next one may hold other records for a while."""
        if not self.calm:
            self._look_after_the_fragile_one()
            self.rot.flip(self._may_be_damaged(), other_records=True)
            self.at(self.rng.randint(20, 400), self._flip_other_records)

    def _look_after_the_fragile_one(self) -> None:
        whole = self.rot.look()
        if (
            whole
            and self.fragile is not None
            and all(self.fragile in self.partition_image(index).isr for index in range(PARTITIONS))
        ):
            broker = self.brokers[self.fragile]
            if broker.up and broker.epoch == self.controller.image.brokers[broker.id].epoch:
                self.fragile = None

    # -- clients --------------------------------------------------------------------------------------------------------

    def _produce(self) -> None:
        if not self.calm:
            self.at(self.rng.randint(1, 40), self._produce)
        index = self.rng.randrange(PARTITIONS)
        # Clients ask whom they know; seldom somebody who no longer leads.
        to = self.partition_image(index).leader if self.rng.random() < 0.8 else self.rng.choice(BROKERS)
        broker = self.brokers.get(to)
        if broker is None or not broker.up or broker.paused_until > self.now:
            return
        found = broker.manager.by_name(TOPIC, index)
        if not isinstance(found, Partition):
            return
        values = [f"{self.produced + n}".encode() for n in range(self.rng.randint(1, 4))]
        self.produced += len(values)
        records = memoryview(bytearray(build_batch([RecordData(None, value, self.now, ()) for value in values])))
        result = found.append(records, self.now, ACKS_ALL)
        assert isinstance(result, AppendResult)
        if result.error is ErrorCode.NONE:
            epoch = found.leader_epoch
            broker.later(1, lambda: self._acknowledge(broker, found, epoch, result, values, self.now + 5_000))

    def _acknowledge(
        self, broker: SimBroker, partition: Partition, epoch: int, result: AppendResult, values: list[bytes], until: int
    ) -> None:
        if partition.leader_epoch != epoch:
            return
        error = acks_and_min_isr.acknowledge(partition, result.last_offset, ACKS_ALL)
        if error is ErrorCode.REQUEST_TIMED_OUT and self.now < until:
            broker.later(self.rng.randint(1, 10), lambda: self._acknowledge(broker, partition, epoch, result, values, until))
        elif error is ErrorCode.NONE:
            self.looked(broker, partition)
            for number, value in enumerate(values):
                self.acknowledged[value] = (partition.index, result.first_offset + number)
            self.note("acknowledged")

    # -- promises -------------------------------------------------------------------------------------------------------

    def looked(self, broker: SimBroker, partition: Partition) -> None:
        """What consumers may see at this broker now is what they saw anywhere before."""
        log = partition.log
        if log is None:
            return
        key = broker.id, partition.index
        life, before = self.watermarks.get(key, (None, 0))
        end = log.high_watermark
        if life is broker and end < before:
            self.violated(f"the high watermark of partition {partition.index} at broker {broker.id} goes back, {before} to {end}")
        start = before if life is broker else log.log_start_offset
        self.watermarks[key] = broker, end
        if end <= start:
            return
        seen = self.seen[partition.index]
        for offset, value in values_of(partition, start, end):
            if seen.setdefault(offset, value) != value:
                self.violated(
                    f"offset {offset} of partition {partition.index} was {seen[offset]!r} and is {value!r} "
                    f"at broker {broker.id}, leader epoch {partition.leader_epoch}"
                )

    def check_the_end(self) -> None:
        """All replicas are in sync and equal, and hold all that was acknowledged."""
        for index in range(PARTITIONS):
            image = self.partition_image(index)
            if sorted(image.isr) != sorted(BROKERS):
                self.violated(f"partition {index} is not whole again: {image}")
            held, files = [], []
            for broker in self.brokers.values():
                found = broker.manager.by_name(TOPIC, index)
                assert isinstance(found, Partition) and found.log is not None
                self.looked(broker, found)
                held.append(dict(values_of(found, 0, found.log.log_end_offset)))
                found.log.check()
                files.append(b"".join(segment.file.read(0, segment.size) for segment in found.log.segments))
                if repair.damages(found.log):
                    self.violated(f"partition {index} of broker {broker.id} is still damaged: {repair.damages(found.log)}")
            if any(each != held[0] for each in held) or any(each != files[0] for each in files):
                self.violated(f"logs of partition {index} differ")
            for value, (where, offset) in self.acknowledged.items():
                if where == index and held[0].get(offset) != value:
                    self.violated(
                        f"acknowledged {value!r} at offset {offset} of partition {index} is gone: {held[0].get(offset)!r}"
                    )

    # -- a run ----------------------------------------------------------------------------------------------------------

    def run(self, storm_ms: int = 20_000) -> None:
        """Faults for ``storm_ms``, then calm."""
        level = [
            FeatureLevelRecord(name="metadata.version", feature_level=30),
            FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1),
        ]
        self.commit(self.controller.bootstrap(level))
        for each in BROKERS:
            self.start(each)
        self.tick()
        self._until(START_MS + 1_000)
        assignments = [
            CreatableReplicaAssignment(partition_index=index, broker_ids=[BROKERS[(index + n) % 3] for n in range(3)])
            for index in range(PARTITIONS)
        ]
        topic = CreatableTopic(name=TOPIC, num_partitions=-1, replication_factor=-1, assignments=assignments)
        response = self.commit(self.controller.create_topics(CreateTopicsRequest(topics=[topic], timeout_ms=1000), self.now))
        assert not response.topics[0].error_code, response.topics[0].error_message
        self._until(self.now + 1_000)
        self.at(0, self._produce)
        self.at(500, self._fault)
        self.at(600, self._flip_other_records)
        self._until(self.now + storm_ms)
        self.calm, self.loss = True, 0.0
        self.cut_until = {}
        for broker in self.brokers.values():
            broker.paused_until = 0
        self._until(self.now + CALM_MS)
        self.check_the_end()

    def _until(self, end: int) -> None:
        while self._events and self._events[0][0] <= end:
            self.now, _, event = heapq.heappop(self._events)
            event()
        self.now = end


def values_of(partition: Partition, start: int, end: int) -> list[tuple[int, bytes]]:
    """(offset, value) of each record from ``start`` up to ``end``, as a consumer gets them: a batch with a wrong checksum, and a
    known damaged range, are skipped."""
    log = partition.log
    assert log is not None
    values: list[tuple[int, bytes]] = []
    offset = max(start, log.log_start_offset)
    while offset < end:
        found = reading.read(log, offset, 1 << 20, upto=end, min_one=True)
        if found.error is ErrorCode.CORRUPT_MESSAGE:
            rotten = rotten_with(log.segment_for(offset).rotten, offset)
            assert rotten is not None, (offset, end, log.log_end_offset)
            offset = rotten.next_offset
            continue
        assert found.slice is not None, (offset, end, log.log_end_offset)
        raw = found.slice.read()
        for header in iter_headers(raw):
            if crc_is_valid(raw, header):
                values += [
                    (record.offset, bytes(record.value or b""))
                    for record in iter_records(raw, header)
                    if start <= record.offset < end
                ]
            offset = header.last_offset + 1
    return values
