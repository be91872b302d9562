"""A hosted share partition over a log in memory, with a share coordinator that answers when the test says so."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from typing import Any

from tests.unit.broker.shares.test_log_reading import partition
from tidelog.broker.shares.hosted_share import HostedShare
from tidelog.coordinator.share.coordinator import Answer, Found, Written
from tidelog.coordinator.share.records import ShareKey
from tidelog.model.errors import ErrorCode
from tidelog.replication.share.acquiring import Want
from tidelog.replication.share.record_state import AcquiredRange
from tidelog.replication.share.share_partition import ShareLimits


class Turn:
    """What a coroutine that is stepped by hand awaits to stop for one step."""

    def __await__(self) -> Generator[None, None, None]:
        yield


class Settings:
    reset_to: str | int = "earliest"
    lock = 100
    most = 2000

    def limits(self, group_id: str) -> ShareLimits:
        return ShareLimits(max_locks=self.most, lock_ms=self.lock)

    def reset(self, group_id: str) -> str | int:
        return self.reset_to


class Store:
    """Answers of the share coordinator, and what it was asked to write."""

    def __init__(self) -> None:
        self.stored = Answer(stored=Found(3, 0, -1, -1, ()))
        self.written: list[Written] = []
        self.error = ErrorCode.NONE
        self.broken = False
        """Whether it fails as no coordinator does."""

    async def read(self, key: ShareKey, leader_epoch: int) -> Answer:
        if self.broken:
            raise OSError("broken")
        return self.stored

    async def write(self, key: ShareKey, written: Written) -> Answer:
        if self.broken:
            raise OSError("broken")
        self.written.append(written)
        return Answer(self.error)


class Clock:
    """Tasks run when the test says so."""

    def __init__(self) -> None:
        self.now = 1_000
        self.tasks: list[Coroutine[Any, Any, Any]] = []

    def even_ms(self) -> int:
        return self.now

    now_ms = even_ms

    def spawn(self, coroutine: Coroutine[Any, Any, Any], name: str) -> None:
        self.tasks.append(coroutine)

    def run(self) -> None:
        while self.tasks:
            try:
                self.tasks.pop(0).send(None)
            except StopIteration:
                continue
            raise AssertionError("nothing here really waits")

    async def run_blocking(self, job: Any) -> Any:
        return job()


class Hosted:
    """Fifteen records in three batches."""

    def __init__(self) -> None:
        self.partition = partition(5, 5, 5)
        self.store: Any = Store()
        self.clock: Any = Clock()
        self.settings: Any = Settings()
        key = ShareKey("g", self.partition.topic_id, 0)
        self.share = HostedShare(key, self.partition, self.store, self.clock, self.settings)

    def load(self) -> Hosted:
        self.clock.spawn(self.share.load(), "load")
        self.clock.run()
        return self

    def acquire(self, most: int = 5) -> list[AcquiredRange]:
        machine = self.share.machine
        offset = machine.next_fetch_offset()
        batches = [one for one in ((0, 4), (5, 9), (10, 14)) if one[1] >= offset]
        return machine.acquire(offset, batches, Want("m", most, 500), self.clock.now)
