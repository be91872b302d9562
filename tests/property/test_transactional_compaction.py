"""Compaction of transactional logs: what readers of committed records end up with stays, aborted records go, no marker goes
before its records, and no transaction is left hanging by what was removed."""

from __future__ import annotations

import random

import pytest

from sim.transactions import Producers, read_committed
from tests.unit.storage.test_cleaner import COMPACT, run
from tidelog.model.ids import TopicPartition
from tidelog.records.batch import iter_headers
from tidelog.records.builder import RecordData, build_batch
from tidelog.storage.cleaner import LogCleaner
from tidelog.storage.log_config import Origin
from tidelog.storage.log_creation import create_log
from tidelog.storage.producer_state import SNAPSHOT_SUFFIX
from tidelog.storage.recovery import LoadRequest, load_log
from tidelog.storage.unified_log import UnifiedLog
from tidelog.storage.verification_guard import NOT_REQUIRED
from tidelog.testing.simulation.disk import SimDisk

KEYS = [b"a", b"b", b"c", b"d", b"e"]
SEEDS = 12
HORIZON_MS = COMPACT.delete_retention_ms


def latest(log: UnifiedLog) -> dict[bytes, bytes | None]:
    """What a reader of committed records ends up with, key by key; tombstones are nothing."""
    log.update_high_watermark(log.log_end_offset)
    found = {bytes(record.key or b""): record.value for _, record in sorted(read_committed(log, 0, 600).items())}
    return {key: bytes(value) for key, value in found.items() if value is not None}


def state_of(log: UnifiedLog) -> dict[int, tuple[int, int, int]]:
    return {p: (e.epoch, e.last_sequence, e.txn_first_offset) for p, e in log.producers.entries.items()}


class Compacted:
    """A log of a compacted topic, written by transactional producers."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.disk = SimDisk(seed)
        self.disk.make_dirs("/data")
        self.disk.sync_dir("/")
        self.log = create_log(self.disk, "/data/t-0", TopicPartition("t", 0), b"i" * 16, COMPACT, 0)
        self.producers = Producers(self.rng)
        self.cleaner = LogCleaner(self.disk)
        self.now_ms = 1000

    def put(self, batch: bytearray, origin: Origin = Origin.CLIENT) -> None:
        result = self.log.append_as_leader(memoryview(batch), 0, self.now_ms, origin=origin, proof=NOT_REQUIRED)
        assert result.error == 0, result.error_message
        self.log.update_high_watermark(self.log.log_end_offset)

    def step(self) -> None:
        self.now_ms += 10
        value = None if self.rng.random() < 0.2 else b"%d" % self.log.log_end_offset
        record = RecordData(self.rng.choice(KEYS), value, self.now_ms)
        choice = self.rng.random()
        if choice < 0.55:
            self.put(self.producers.data([record]))
        elif choice < 0.8:
            self.put(self.producers.marker(self.now_ms), Origin.COORDINATOR)
        else:
            self.put(build_batch([record]))

    def clean(self) -> None:
        """One round, if anything is to be cleaned."""
        self.log.roll(self.now_ms)
        self.log.flush()
        cleaning = self.cleaner.begin([self.log], self.now_ms)
        if cleaning is not None:
            stable = self.log.last_stable_offset
            run(cleaning, self.now_ms)
            assert cleaning.range.first_uncleanable_offset <= stable
            self.log.check()

    def rebuilt(self) -> UnifiedLog:
        """The same log as a node finds it that has lost all producer snapshots."""
        self.log.flush()
        disk = self.disk.crash(1)
        for name in disk.listdir("/data/t-0"):
            if name.endswith(SNAPSHOT_SUFFIX):
                disk.remove(f"/data/t-0/{name}")
        return load_from(disk)


def load_from(disk: SimDisk) -> UnifiedLog:
    request = LoadRequest("/data/t-0", TopicPartition("t", 0), COMPACT, False, recovery_point=0)
    return load_log(disk, request, 5000)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_compaction_changes_nothing_that_readers_of_committed_records_end_up_with(seed: int) -> None:
    world = Compacted(seed)
    for _ in range(8):
        for _ in range(25):
            world.step()
        before, states = latest(world.log), state_of(world.log)
        world.clean()
        assert latest(world.log) == before
        assert state_of(world.log) == states
        # Time passes: tombstones and markers come of age.
        world.now_ms += world.rng.choice([0, HORIZON_MS + 1])
        reloaded = world.rebuilt()
        assert latest(reloaded) == before
        assert reloaded.producers.first_undecided_offset() == world.log.producers.first_undecided_offset()
        for producer, (epoch, sequence, first) in state_of(reloaded).items():
            assert (epoch, sequence, first) == states[producer]


@pytest.mark.parametrize("seed", range(SEEDS))
def test_all_that_was_aborted_goes_and_markers_go_after_their_horizon(seed: int) -> None:
    world = Compacted(100 + seed)
    for _ in range(150):
        world.step()
    for producer in sorted(world.producers.open):
        world.put(world.producers.marker(world.now_ms, producer, commit=False), Origin.COORDINATOR)
    before = latest(world.log)
    for _ in range(4):
        # Each round needs something new to clean.
        world.put(build_batch([RecordData(b"z", b"z", world.now_ms)]))
        world.clean()
        world.now_ms += HORIZON_MS + 1
    assert latest(world.log) == {**before, b"z": b"z"}
    cleaned = world.log.segments[0]
    headers = list(iter_headers(cleaned.file.read(0, cleaned.size)))
    for entry in (entry for segment in world.log.segments for entry in segment.transactions()):
        left = [each for each in headers if each.producer_id == entry.producer_id and not each.is_control]
        assert not any(each.records_count for each in left if entry.first_offset <= each.base_offset <= entry.last_offset)
    data = [header for header in headers if header.is_transactional and not header.is_control]
    for number, header in enumerate(headers):
        if not header.is_control or not header.records_count:
            continue
        # A marker is there for the sake of a batch before it, even if only its header is left, or of its producer's last epoch.
        former = [other.base_offset for other in headers[:number] if other.is_control and other.producer_id == header.producer_id]
        own = [each for each in data if each.producer_id == header.producer_id and each.base_offset < header.base_offset]
        entry = world.log.producers.entries[header.producer_id]
        is_newest = not entry.batches and header.producer_epoch == entry.epoch
        assert is_newest or any(each.base_offset > max(former, default=-1) for each in own), header
