"""A transaction coordinator among clients that lose answers, ask twice, come late, and a node that crashes: a model of the
partitions judges every marker.

The world: one coordinator machine whose log may lose what was not safe yet, transactional ids with producers of both protocols
and zombies that hold on to old epochs, partitions that remember markers as real ones do (KIP-98, KIP-890: the epoch rules), a
network that drops, doubles and delays what goes to the partitions and what comes back. Everything is drawn from one seed.

Before transaction.version 2 nothing tells a late marker from one of the next transaction (that is what KIP-890 is for), so those
are not delayed beyond a crash or beyond their own repetition here, as they are not within one process.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from tests.unit.coordinator.transaction.driver import stored
from tidelog.coordinator.transaction.coordinator import Answer, TransactionCoordinator
from tidelog.coordinator.transaction.missing_markers import MarkerAnswer, WriteMarkers
from tidelog.coordinator.transaction.settings import TransactionSettings
from tidelog.coordinator.transaction.state import TransactionState
from tidelog.coordinator.transaction.transitions import Producer
from tidelog.model.errors import ErrorCode as E
from tidelog.model.ids import TopicPartition
from tidelog.model.machine import Outcome, Token
from tidelog.records.builder import RecordData

SETTINGS = TransactionSettings(abort_check_interval_ms=200, id_expiration_ms=20_000, id_expiration_check_interval_ms=2_000)
PARTITIONS = [TopicPartition("t", index) for index in range(4)]
IDS = ("a", "b", "c")


@dataclass
class Transaction:
    """What a client began, as the judge knows it. ``told``: what EndTxn was answered with success."""

    transactional_id: str
    producer: Producer
    version: int
    partitions: dict[TopicPartition, None] = field(default_factory=dict)
    told: bool | None = None
    outcomes: dict[TopicPartition, set[bool]] = field(default_factory=dict)


class Log:
    """One partition: which producer's transaction is open, and at which epoch."""

    def __init__(self) -> None:
        self.epochs: dict[int, int] = {}
        self.open: dict[int, Transaction] = {}

    def append(self, transaction: Transaction) -> bool:
        """A batch of the transaction. False when the producer is fenced here."""
        producer = transaction.producer
        if producer.epoch < self.epochs.get(producer.producer_id, -1):
            return False
        self.epochs[producer.producer_id] = producer.epoch
        former = self.open.setdefault(producer.producer_id, transaction)
        assert former is transaction, f"{former} was never ended, and {transaction} writes"
        return True

    def marker(self, request: WriteMarkers, partition: TopicPartition) -> E:
        known, epoch = self.epochs.get(request.producer_id, -1), request.producer_epoch
        is_open = request.producer_id in self.open
        if epoch < known or (request.transaction_version >= 2 and epoch == known and is_open):
            return E.INVALID_PRODUCER_EPOCH
        self.epochs[request.producer_id] = epoch
        transaction = self.open.pop(request.producer_id, None)
        if transaction is not None:
            transaction.outcomes.setdefault(partition, set()).add(request.committed)
        return E.NONE


class Chaos:
    """One run. ``step`` does something; ``settle`` ends all disturbance and lets everything finish; ``judge`` looks."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.now = 1_000_000
        self.server_version = self.rng.choice((1, 2, 2, 2))
        self.calm = False
        self.log: list[RecordData] = []
        self.unsafe: list[tuple[int, Outcome]] = []
        self.logs = {partition: Log() for partition in PARTITIONS}
        self.wire: list[tuple[WriteMarkers, TopicPartition]] = []
        self.late: list[MarkerAnswer] = []
        self.answers: dict[int, Any] = {}
        self.next_id = 1000
        self.tokens = 0
        self.producers: dict[str, list[tuple[Producer, int]]] = {name: [] for name in IDS}
        self.transactions: list[Transaction] = []
        self.current: dict[Producer, Transaction] = {}
        self.uncertain: dict[Producer, None] = {}
        """Producers that asked for an end and have not heard of one: clients ask again before they go on."""
        self.wants_commit: dict[Producer, None] = {}
        self.epochs: dict[int, int] = {}
        self.machine = self.load()

    # -- the node ------------------------------------------------------------------------------------------------------------

    def new_id(self) -> int | None:
        if self.rng.random() < 0.05 and not self.calm:
            return None
        self.next_id += 1
        return self.next_id

    def load(self) -> TransactionCoordinator:
        machine = TransactionCoordinator(SETTINGS, self.new_id, lambda: self.server_version, self.now)
        for record in stored(self.log):
            machine.replay_stored(record, self.now)
        machine.loaded(self.now)
        machine.check()
        return machine

    def crash(self) -> None:
        """Records that are not durable may be lost from some point on; clients are not notified."""
        if self.unsafe:
            kept = self.rng.randrange(self.unsafe[0][0], len(self.log) + 1)
            del self.log[kept:]
        self.unsafe.clear()
        self.late.clear()  # a shard's answers die with it
        self.wire = [(request, partition) for request, partition in self.wire if request.transaction_version >= 2]
        self.machine = self.load()

    def run(self, outcome: Outcome) -> None:
        begin = len(self.log)
        for record in outcome.records:
            self.log.append(self.machine.to_record(record, self.now))
            self.machine.replay(record, self.now)
            known = record.metadata
            if known is not None:
                former = self.epochs.get(known.producer_id, -1)
                assert known.producer_epoch >= former, f"epoch of {known} went back from {former}"
        self.machine.check()
        self.unsafe.append((begin, outcome))
        if self.calm or self.rng.random() < 0.7:
            self.release(len(self.unsafe))

    def release(self, count: int) -> None:
        """The oldest outcomes are safe: they leave, in their order."""
        released, self.unsafe = self.unsafe[:count], self.unsafe[count:]
        for _, outcome in released:
            for record in outcome.records:
                if record.metadata is not None:
                    epoch = record.metadata.producer_epoch
                    self.epochs[record.metadata.producer_id] = max(self.epochs.get(record.metadata.producer_id, -1), epoch)
            for reply in outcome.replies:
                self.answers[reply.token] = reply.response
            for request in outcome.sends:
                if request.transaction_version < 2:
                    self.wire = [
                        (former, partition)
                        for former, partition in self.wire
                        if former.producer_id != request.producer_id or partition not in request.partitions
                    ]
                self.wire += [(request, partition) for partition in request.partitions]

    def token(self) -> Token:
        self.tokens += 1
        return Token(self.tokens)

    # -- the network ---------------------------------------------------------------------------------------------------------

    def carry(self) -> None:
        """One marker reaches its partition; its answer may be lost or come twice, the marker may come again."""
        if self.late and self.rng.random() < 0.3:
            self.run(self.machine.marker_answered(self.late.pop(0), self.now))
        if not self.wire:
            return
        # Before version 2 nothing tells a late marker from the next transaction's, so there it may only come in its order.
        places = [n for n, (request, _) in enumerate(self.wire) if request.transaction_version >= 2] or [0]
        request, partition = self.wire.pop(self.rng.choice(places) if not self.calm else 0)
        fate = self.rng.random()
        disturbed = not self.calm and request.transaction_version >= 2
        if disturbed and fate < 0.1:
            return
        if disturbed and fate < 0.2:
            self.wire.append((request, partition))
        refused = not self.calm and fate > 0.9
        error = E.NOT_LEADER_OR_FOLLOWER if refused else self.logs[partition].marker(request, partition)
        if not disturbed or fate < 0.8 or refused:
            answer = MarkerAnswer(request.transactional_id, request.round, partition, error)
            self.run(self.machine.marker_answered(answer, self.now))
            if not self.calm and self.rng.random() < 0.2:
                self.late.append(answer)

    # -- the clients ---------------------------------------------------------------------------------------------------------

    def init(self) -> None:
        name = self.rng.choice(IDS)
        expected = self.rng.choice(self.producers[name])[0] if self.producers[name] and self.rng.random() < 0.3 else None
        token = self.token()
        self.run(self.machine.init(token, name, self.rng.choice((500, 5_000)), expected, self.now))
        answer = self.answers.get(token)
        if isinstance(answer, Answer) and answer.error is E.NONE:
            producer = Producer(answer.producer_id, answer.producer_epoch)
            self.producers[name].append((producer, self.rng.choice((0, 2))))

    def pick(self) -> tuple[str, Producer, int] | None:
        """A producer, mostly the latest one; or a zombie."""
        name = self.rng.choice(IDS)
        if not self.producers[name]:
            return None
        producer, version = self.producers[name][-1] if self.rng.random() < 0.8 else self.rng.choice(self.producers[name])
        return name, producer, version

    def write(self) -> None:
        """Partitions are added, and on success written to."""
        picked = self.pick()
        if picked is None:
            return
        name, producer, version = picked
        if producer in self.uncertain:
            return
        partitions = self.rng.sample(PARTITIONS, self.rng.randrange(1, 4))
        token = self.token()
        outcome = self.machine.add_partitions(
            token, name, producer, partitions, client_version=version, now_ms=self.now, patience_ms=self.rng.choice((0, 0, 50))
        )
        self.run(outcome)
        if self.answers.get(token) is not E.NONE:
            return
        known = self.machine.transactions[name]
        still = known.state is TransactionState.ONGOING and known.producer_epoch == producer.epoch
        if not still or known.producer_id != producer.producer_id:
            return
        transaction = self.current.get(producer)
        if transaction is None:
            transaction = self.current[producer] = Transaction(name, producer, version)
            self.transactions.append(transaction)
        for partition in partitions:
            if partition in known.partitions and self.logs[partition].append(transaction):
                transaction.partitions[partition] = None

    def end(self) -> None:
        picked = self.pick()
        if picked is None:
            return
        name, producer, version = picked
        commit = self.rng.random() < 0.6
        self.uncertain[producer] = None
        if commit:
            self.wants_commit[producer] = None
        transaction = self.current.get(producer)
        for _ in range(self.rng.choice((1, 1, 2, 3))):
            token = self.token()
            self.run(self.machine.end(token, name, producer, commit=commit, client_version=version, now_ms=self.now))
            answer = self.answers.get(token)
            if not isinstance(answer, Answer) or answer.error is not E.NONE:
                continue
            if transaction is not None:
                assert transaction.told in {None, commit}, f"told {commit} after all: {transaction}"
                transaction.told = commit
            if version < 2:
                self.current.pop(producer, None)
                self.uncertain.pop(producer, None)
            elif self.rng.random() < 0.9:
                following = Producer(answer.producer_id, answer.producer_epoch)
                if all(following != known for known, _ in self.producers[name]):
                    self.producers[name].append((following, version))

    def pass_time(self) -> None:
        self.now += self.rng.choice((1, 10, 100, 700, 35_000 if self.rng.random() < 0.1 else 1))
        if self.machine.next_deadline() <= self.now:
            self.run(self.machine.expire(self.now))

    # -- the run -------------------------------------------------------------------------------------------------------------

    def step(self) -> None:
        if self.unsafe and self.rng.random() < 0.4:
            self.release(self.rng.randrange(1, len(self.unsafe) + 1))
        action = self.rng.random()
        if action < 0.03:
            self.crash()
        elif action < 0.12:
            self.init()
        elif action < 0.40:
            self.write()
        elif action < 0.55:
            self.end()
        elif action < 0.90:
            self.carry()
        else:
            self.pass_time()

    def settle(self) -> None:
        """Nothing is lost any more; whatever was decided has to be complete in the end."""
        self.calm = True
        self.release(len(self.unsafe))
        for _ in range(200):
            while self.wire:
                self.carry()
            self.now += 1_000
            if self.machine.next_deadline() <= self.now:
                self.run(self.machine.expire(self.now))
            if not self.wire and not any(not known.at_rest for known in self.machine.transactions.values()):
                return
        raise AssertionError(f"never complete: {self.machine.transactions}")

    def judge(self) -> None:
        for transaction in self.transactions:
            outcomes = {outcome for found in transaction.outcomes.values() for outcome in found}
            assert len(outcomes) <= 1, f"both committed and aborted: {transaction}"
            missing = [partition for partition in transaction.partitions if not transaction.outcomes.get(partition)]
            assert not missing, f"never ended in {missing}: {transaction}"
            assert outcomes != {True} or transaction.producer in self.wants_commit, f"nobody asked for it: {transaction}"
            if transaction.told is not None:
                assert outcomes <= {transaction.told}, f"told {transaction.told}: {transaction}"
