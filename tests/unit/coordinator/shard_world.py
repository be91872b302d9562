"""Shards of ``__consumer_offsets`` on a disk in memory, with a machine that records its calls."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from tests.unit.replication.world import World, led_by_us
from tidelog.coordinator.shard import NEVER_MS
from tidelog.coordinator.shards import Shards
from tidelog.model.ids import OFFSETS_TOPIC
from tidelog.model.machine import NOTHING, Outcome, Reply, Token
from tidelog.records.builder import RecordData
from tidelog.records.record import Record
from tidelog.replication.partition import Partition
from tidelog.storage.log_config import LogConfig


class Notebook:
    """A record machine whose state is the list of values it has replayed."""

    def __init__(self, now_ms: int) -> None:
        self.notes: list[bytes] = []
        self.loaded_at = -1
        self.deadline_ms = 1 << 60
        self.expired: list[int] = []

    def write(self, token: Token, *values: bytes) -> Outcome:
        return Outcome(records=values, replies=(Reply(token, len(self.notes) + len(values)),))

    def send(self, request: bytes, *values: bytes) -> Outcome:
        return Outcome(records=values, sends=(request,))

    def read(self, token: Token) -> Outcome:
        return Outcome(replies=(Reply(token, list(self.notes)),))

    def replay(self, record: bytes, now_ms: int) -> None:
        self.notes.append(record)

    def replay_stored(self, record: Record, now_ms: int) -> None:
        self.notes.append(bytes(record.value or b""))

    def loaded(self, now_ms: int) -> None:
        self.loaded_at = now_ms

    def to_record(self, record: bytes, now_ms: int) -> RecordData:
        return RecordData(b"key", record, now_ms)

    def next_deadline(self) -> int:
        return self.deadline_ms

    def expire(self, now_ms: int) -> Outcome:
        self.expired.append(now_ms)
        self.deadline_ms = 1 << 60
        return NOTHING


class ShardWorld:
    """What shards ask of a node, run to its end at once; the alarm rings when the test says so."""

    def __init__(
        self, *, partitions: int = 1, config: LogConfig | None = None, base_sequence: int = 0, patience_ms: int = NEVER_MS
    ) -> None:
        self.world = World()
        self.sent: list[bytes] = []
        self.alarms: dict[Callable[[], None], int] = {}
        self.held: list[Coroutine[Any, Any, Any]] = []
        self.hold = False
        self.doubtful = False
        """Whether somebody else may lead by now."""
        self.shards: Shards[Notebook] = Shards(
            OFFSETS_TOPIC,
            self.world.manager,
            Notebook,
            self,
            send=lambda _, request: self.sent.append(request),
            base_sequence=base_sequence,
            patience_ms=patience_ms,
        )
        self.world.create(OFFSETS_TOPIC, *[led_by_us() for _ in range(partitions)], config=config)
        self.shards.follow()

    def even_ms(self) -> int:
        return self.world.now_ms

    def leads(self, partition: Partition) -> bool:
        return not self.doubtful

    async def run_blocking(self, job: Callable[[], Any]) -> Any:
        return job()

    def spawn(self, coroutine: Coroutine[Any, Any, Any], name: str) -> None:
        self.held.append(coroutine)
        if not self.hold:
            self.release()

    def release(self) -> None:
        """Runs what was spawned."""
        while self.held:
            coroutine = self.held.pop()
            try:
                coroutine.send(None)
            except StopIteration:
                continue
            raise AssertionError("nothing here really waits")

    def wake_at(self, deadline_ms: int, callback: Callable[[], None]) -> None:
        self.alarms[callback] = deadline_ms

    def advance(self, ms: int) -> None:
        """Time passes; alarms that are due ring."""
        self.world.now_ms += ms
        for callback, due in list(self.alarms.items()):
            if due <= self.world.now_ms:
                del self.alarms[callback]
                callback()
