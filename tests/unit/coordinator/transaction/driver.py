"""Drives a TransactionCoordinator as its runner does: records are replayed before answers and markers leave; time is what the
test says; a restart reads back what the log holds, as bytes."""

from __future__ import annotations

from typing import Any

from tidelog.coordinator.transaction.coordinator import Answer, TransactionCoordinator
from tidelog.coordinator.transaction.metadata import TransactionMetadata
from tidelog.coordinator.transaction.missing_markers import MarkerAnswer, WriteMarkers
from tidelog.coordinator.transaction.settings import TransactionSettings
from tidelog.coordinator.transaction.transitions import Producer
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicPartition
from tidelog.model.machine import Outcome, Token
from tidelog.records.batch import iter_headers
from tidelog.records.builder import RecordData, build_batch
from tidelog.records.record import Record, iter_records

P0, P1, P2 = (TopicPartition("t", index) for index in range(3))


class Driver:
    """One coordinator with its log, the time, the answers and the markers so far. Markers are answered when the test says so."""

    def __init__(self, *, server_version: int = 2, settings: TransactionSettings | None = None, next_id: int = 1000) -> None:
        self.settings = settings or TransactionSettings()
        self.server_version = server_version
        self.now = 1_000_000
        self.log: list[RecordData] = []
        self.answers: dict[int, Any] = {}
        self.sent: list[WriteMarkers] = []
        self.next_id: int | None = next_id
        self._tokens = 0
        self.machine = self._load()

    def new_id(self) -> int | None:
        if self.next_id is None:
            return None
        self.next_id += 1
        return self.next_id - 1

    def _load(self) -> TransactionCoordinator:
        machine = TransactionCoordinator(self.settings, self.new_id, lambda: self.server_version, self.now)
        for record in stored(self.log):
            machine.replay_stored(record, self.now)
        machine.loaded(self.now)
        machine.check()
        return machine

    def restart(self) -> None:
        """A crash: what was parked or under way is lost, what was recorded is not."""
        self.sent.clear()
        self.machine = self._load()

    def token(self) -> Token:
        self._tokens += 1
        return Token(self._tokens)

    def run(self, outcome: Outcome) -> None:
        for record in outcome.records:
            self.log.append(self.machine.to_record(record, self.now))
            self.machine.replay(record, self.now)
        for reply in outcome.replies:
            assert reply.token not in self.answers, "answered twice"
            self.answers[reply.token] = reply.response
        self.sent += outcome.sends
        self.machine.check()

    def advance(self, ms: int) -> None:
        """Time passes; everything that falls due on the way happens when it is due."""
        end = self.now + ms
        while (due := self.machine.next_deadline()) <= end:
            self.now = max(self.now, due)
            self.run(self.machine.expire(self.now))
        self.now = end

    def known(self, transactional_id: str = "x") -> TransactionMetadata:
        return self.machine.transactions[transactional_id]

    # -- requests ------------------------------------------------------------------------------------------------------------

    def init(self, transactional_id: str = "x", expected: Producer | None = None, timeout_ms: int = 60_000) -> Answer:
        token = self.token()
        self.run(self.machine.init(token, transactional_id, timeout_ms, expected, self.now))
        answer: Answer = self.answers[token]
        return answer

    def producer(self, transactional_id: str = "x") -> Producer:
        """Initialised, for good."""
        answer = self.init(transactional_id)
        assert answer.error is ErrorCode.NONE, answer
        return Producer(answer.producer_id, answer.producer_epoch)

    def add(self, producer: Producer, *partitions: TopicPartition, version: int = 2, transactional_id: str = "x") -> ErrorCode:
        token = self.token()
        outcome = self.machine.add_partitions(
            token, transactional_id, producer, partitions, client_version=version, now_ms=self.now
        )
        self.run(outcome)
        error: ErrorCode = self.answers[token]
        return error

    def wait_to_add(self, producer: Producer, *partitions: TopicPartition, patience_ms: int = 100) -> Token:
        token = self.token()
        outcome = self.machine.add_partitions(
            token, "x", producer, partitions, client_version=2, now_ms=self.now, patience_ms=patience_ms
        )
        self.run(outcome)
        return token

    def verify(self, producer: Producer, *partitions: TopicPartition) -> list[ErrorCode]:
        token = self.token()
        self.run(self.machine.verify_partitions(token, "x", producer, partitions))
        return list(self.answers[token].values())

    def end(self, producer: Producer, *, commit: bool, version: int = 2, transactional_id: str = "x") -> Answer:
        token = self.token()
        outcome = self.machine.end(token, transactional_id, producer, commit=commit, client_version=version, now_ms=self.now)
        self.run(outcome)
        answer: Answer = self.answers[token]
        return answer

    # -- markers -------------------------------------------------------------------------------------------------------------

    def answer(self, request: WriteMarkers, partition: TopicPartition, error: ErrorCode = ErrorCode.NONE) -> None:
        """One partition's word."""
        answer = MarkerAnswer(request.transactional_id, request.round, partition, error)
        self.run(self.machine.marker_answered(answer, self.now))

    def write_markers(self) -> None:
        """All partitions that were asked have written theirs."""
        while self.sent:
            request = self.sent.pop(0)
            for partition in request.partitions:
                self.answer(request, partition)


def stored(log: list[RecordData]) -> list[Record]:
    """The records as they come back from a file."""
    found: list[Record] = []
    for record in log:
        batch = memoryview(build_batch([record]))
        for header in iter_headers(batch):
            found += iter_records(batch, header)
    return found
