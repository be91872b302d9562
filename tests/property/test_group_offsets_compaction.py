"""Compaction of ``__consumer_offsets`` with transactions in it: a coordinator that loads the log knows the same offsets as the
one that wrote it, those that count and those that wait."""

from __future__ import annotations

import random

import pytest

from sim.transactions import Producers
from tests.unit.coordinator.group.driver import Driver
from tests.unit.storage.test_cleaner import COMPACT, run
from tidelog.coordinator.group.coordinator import GroupCoordinator
from tidelog.coordinator.group.records import CommittedOffset, GroupRecord, OffsetKey, offset_record
from tidelog.coordinator.shard import LOAD_BYTES, _replay
from tidelog.model.ids import OFFSETS_TOPIC, TopicPartition
from tidelog.records.batch import read_header
from tidelog.records.builder import RecordData, build_batch
from tidelog.storage import reading
from tidelog.storage.cleaner import LogCleaner
from tidelog.storage.log_config import Origin
from tidelog.storage.log_creation import create_log
from tidelog.storage.verification_guard import NOT_REQUIRED
from tidelog.testing.simulation.disk import SimDisk

KEYS = [OffsetKey(group, "t", partition) for group in ("g", "h") for partition in (0, 1)]


class Coordinator:
    """A live machine and its log, written side by side."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        disk = SimDisk(seed)
        disk.make_dirs("/data")
        self.log = create_log(disk, f"/data/{OFFSETS_TOPIC}-0", TopicPartition(OFFSETS_TOPIC, 0), b"i" * 16, COMPACT, 0)
        self.cleaner = LogCleaner(disk)
        self.producers = Producers(self.rng)
        self.machine = Driver().machine
        self.now_ms = 1000
        self.removed = 0

    def put(self, batch: bytearray) -> None:
        result = self.log.append_as_leader(memoryview(batch), 0, self.now_ms, origin=Origin.COORDINATOR, proof=NOT_REQUIRED)
        assert result.error == 0, result.error_message
        self.log.update_high_watermark(self.log.log_end_offset)

    def record(self, *, tombstone: bool) -> GroupRecord:
        committed = None if tombstone else CommittedOffset(self.log.log_end_offset, -1, "", self.now_ms)
        return offset_record(self.rng.choice(KEYS), committed)

    def step(self) -> None:
        self.now_ms += 10
        choice = self.rng.random()
        if choice < 0.45:
            record = self.record(tombstone=False)
            data = self.producers.data([RecordData(record.key, record.value, self.now_ms)])
            self.put(data)
            self.machine.replay_pending(record, read_header(data).producer_id, self.now_ms)
        elif choice < 0.7:
            before = set(self.producers.open)
            commit = self.rng.random() < 0.5
            producer = self.rng.choice(sorted(before)) if before else self.rng.choice(self.producers.ids)
            self.put(self.producers.marker(self.now_ms, producer, commit=commit))
            self.machine.replay_marker(producer, committed=commit)
        else:
            record = self.record(tombstone=choice > 0.9)
            self.put(build_batch([RecordData(record.key, record.value, self.now_ms)], base_sequence=0))
            self.machine.replay(record, self.now_ms)

    def compact(self) -> None:
        self.log.roll(self.now_ms)
        self.log.flush()
        cleaning = self.cleaner.begin([self.log], self.now_ms)
        if cleaning is not None:
            run(cleaning, self.now_ms)
            self.removed += cleaning.stats.records_read - cleaning.stats.records_kept

    def loaded(self) -> GroupCoordinator:
        machine = Driver().machine
        machine._loading = True
        offset = self.log.log_start_offset
        while offset < self.log.log_end_offset:
            found = reading.read(self.log, offset, LOAD_BYTES, upto=self.log.log_end_offset, min_one=True).slice
            if found is None:
                break
            offset = _replay(machine, found, self.now_ms)
        machine.loaded(self.now_ms)
        return machine


def known(machine: GroupCoordinator) -> dict[OffsetKey, tuple[int | None, bool]]:
    """The offset that counts and whether one waits, by key."""
    found: dict[OffsetKey, tuple[int | None, bool]] = {}
    for key in KEYS:
        committed = machine.offsets.stored.get(key.group_id, key.topic, key.partition)
        found[key] = None if committed is None else committed.offset, machine.offsets.stored.holds_back(key)
    return found


@pytest.mark.parametrize("seed", range(15))
def test_a_coordinator_loads_from_a_compacted_log_what_the_former_one_knew(seed: int) -> None:
    world = Coordinator(seed)
    waited = False
    for _ in range(8):
        for _ in range(25):
            world.step()
        waited = waited or any(waits for _, waits in known(world.machine).values())
        assert known(world.loaded()) == known(world.machine)
        world.compact()
        world.now_ms += world.rng.choice([0, COMPACT.delete_retention_ms + 1])
        assert known(world.loaded()) == known(world.machine)
    for producer in sorted(world.producers.open):
        world.put(world.producers.marker(world.now_ms, producer, commit=True))
        world.machine.replay_marker(producer, committed=True)
    assert known(world.loaded()) == known(world.machine)
    assert waited and world.removed > 50, "nothing waited, or nothing was compacted: the test shows nothing"
