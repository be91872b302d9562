"""Drives a ShareCoordinator as its runner does: records are replayed before answers leave; a restart reads the log as bytes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tidelog.coordinator.share.coordinator import Answer, ShareCoordinator, Written
from tidelog.coordinator.share.records import ShareKey
from tidelog.coordinator.share.settings import ShareCoordinatorSettings
from tidelog.model.ids import Uuid
from tidelog.model.machine import Outcome, Token
from tidelog.records.builder import RecordData
from tidelog.records.record import Record
from tidelog.replication.share.record_state import RecordState, StateBatch

T1, T2 = Uuid(b"1" * 16), Uuid(b"2" * 16)
KEY = ShareKey("g", T1, 0)


def accepted(first: int, last: int, count: int = 1) -> StateBatch:
    return StateBatch(first, last, RecordState.ACKNOWLEDGED, count)


class Driver:
    """One coordinator with its log, the time, and a cluster of two topics with two partitions."""

    def __init__(self, settings: ShareCoordinatorSettings | None = None) -> None:
        self.settings = settings or ShareCoordinatorSettings()
        self.now = 1_000
        self.log: list[RecordData] = []
        self.topics: dict[Uuid, Any] = {each: SimpleNamespace(partitions=(0, 1)) for each in (T1, T2)}
        self.machine = self._load()

    def _load(self) -> ShareCoordinator:
        image: Any = SimpleNamespace(topics=SimpleNamespace(by_id=self.topics))
        machine = ShareCoordinator(self.settings, self.now, lambda: image)
        for offset, one in enumerate(self.log):
            machine.replay_stored(Record(offset, one.timestamp, one.key, one.value), self.now)
        machine.loaded(self.now)
        machine.check()
        return machine

    def restart(self) -> None:
        self.machine = self._load()

    def run(self, outcome: Outcome) -> Answer | None:
        """The answer, after the records were replayed."""
        self.machine.appending(len(self.log))
        for record in outcome.records:
            self.log.append(self.machine.to_record(record, self.now))
            self.machine.replay(record, self.now)
        self.machine.check()
        answers = [reply.response for reply in outcome.replies]
        return answers[0] if answers else None

    def initialize(self, epoch: int = 1, start: int = -1, key: ShareKey = KEY) -> Answer:
        return self._answer(self.machine.initialize(Token(1), key, epoch, start, self.now))

    def read(self, leader_epoch: int = 0, key: ShareKey = KEY) -> Answer:
        return self._answer(self.machine.read(Token(1), key, leader_epoch, self.now))

    def write(
        self, *batches: StateBatch, start: int = 0, state: int = 1, leader: int = 0, count: int = 0, key: ShareKey = KEY
    ) -> Answer:
        return self._answer(self.machine.write(Token(1), key, Written(state, leader, start, count, batches), self.now))

    def delete(self, key: ShareKey = KEY) -> Answer:
        return self._answer(self.machine.delete(Token(1), key, self.now))

    def summary(self, key: ShareKey = KEY) -> Answer:
        return self._answer(self.machine.summary(Token(1), key, self.now))

    def _answer(self, outcome: Outcome) -> Answer:
        answer = self.run(outcome)
        assert answer is not None
        return answer
