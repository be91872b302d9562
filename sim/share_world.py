"""Share groups under simulated faults: the shipped share partitions, sessions, persister and share coordinator, on virtual
time.

Three brokers, a partition that one of them leads, a partition of ``__share_group_state`` that one of them leads, members of
one or two groups. Leaders move, and the former ones learn of it late; brokers are killed; requests between brokers are
lost, late, arrive after their time is over; members crash, lose connections and answers, and let locks time out; the log is
compacted and its start moves; offsets are reset. Then all is well, and everything has to be finished.

Checked (``share_ledger``): a record that was reported as durably acknowledged is not delivered again; one member holds a
record at a time, until its lock times out; counts rise with each delivery and never beyond the limit, but for what a leader
knew alone; no more records are in flight than may be; nothing is skipped; the stored start never goes back; a fetch that
waits is woken; every request is answered; and what sessions leave behind is dropped.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from sim.share_broker import TOPIC_ID, SimShareBroker
from sim.share_ledger import GroupLedger, Ledger
from sim.share_log import ABORTED, BYTES_EACH, SimLog
from sim.share_members import LARGE_MIN_BYTES, SimMember
from sim.share_state import StateLog
from tidelog.broker.shares import acquisition
from tidelog.broker.shares.acquisition import ParkedShareFetch
from tidelog.broker.shares.hosted_share import HostedShare, Phase
from tidelog.coordinator.share.records import ShareKey
from tidelog.coordinator.share.settings import ShareCoordinatorSettings
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_BROKER
from tidelog.replication.share.record_state import RecordState
from tidelog.replication.share.share_partition import SharePartition
from tidelog.testing.simulation.patching import patched

BROKERS = (1, 2, 3)
START_MS = 1_700_000_000_000
STORM_MS, CALM_MS = 60_000, 110_000
PATIENCE_MS = 60_000
STEP_MS = 20_000
"""In which at least one record has to be finished while some are left."""
"""How long a request may take once all is well: one that was lost before is given up after 30 s, and asked again."""


class Violation(AssertionError):
    """A promise was broken."""


class ShareWorld:
    """One run. ``run`` ends quietly or with a Violation."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = rng = random.Random(seed)
        self.now = START_MS
        self.counts: Counter[str] = Counter()
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._sequence = 0
        self.calm = self.leaving = False
        self.log = SimLog(rng)
        self.state = StateLog()
        self.leader = (1, 0)
        """Broker and leader epoch of the partition."""
        self.state_leader = (rng.choice(BROKERS), 0)
        self.coordinator_settings = ShareCoordinatorSettings(rng.choice([0, 1, 5, 500]), rng.choice([2_000, 20_000, 300_000]))
        self.group_configs = {f"g{number}": self._configs() for number in range(rng.choice([1, 1, 2]))}
        self.ledger = Ledger(self)
        self.ledger.groups = {group: GroupLedger() for group in self.group_configs}
        self.state_epochs: dict[str, int] = {}
        self._ordered_epochs = dict.fromkeys(self.group_configs, 1)
        self.impatient = rng.random() < 0.8
        """Whether no member waits for more than one byte."""
        self._looks_from = self.now
        """Other limits wake no fetch, as in Apache Kafka: for a while it may wait although it need not."""
        self.loss = rng.choice([0.0, 0.05, 0.2, 0.4])
        self.brokers: dict[int, SimShareBroker] = {}
        self.members: list[SimMember] = []

    def _configs(self) -> dict[str, str]:
        rng = self.rng
        return {
            "share.auto.offset.reset": "earliest",
            "share.record.lock.duration.ms": str(rng.choice([1_000, 3_000, 10_000, 30_000, 60_000])),
            "share.delivery.count.limit": str(rng.choice([2, 3, 5, 10])),
            "share.partition.max.record.locks": str(rng.choice([100, 100, 300, 2_000])),
            "share.isolation.level": rng.choice(["read_committed", "read_uncommitted"]),
        }

    # -- time and chance ------------------------------------------------------------------------------------------------------

    def at(self, delay_ms: int, event: Callable[[], None]) -> None:
        self._sequence += 1
        heapq.heappush(self._events, (self.now + delay_ms, self._sequence, event))

    def note(self, what: str) -> None:
        self.counts[what] += 1

    def violated(self, what: str) -> None:
        raise Violation(f"seed {self.seed} at {self.now - START_MS} ms: {what}")

    def loses(self) -> bool:
        return not self.calm and self.rng.random() < self.loss

    def loses_of_members(self) -> bool:
        return not self.calm and self.rng.random() < 0.02

    def replication_ms(self) -> int:
        """How long the followers take to copy a record of share state."""
        slow = not self.calm and self.rng.random() < 0.05
        return self.rng.randint(1, 8_000) if slow else self.rng.choice([0, 1, 5, 30])

    def lock_ms(self, group: str) -> int:
        return int(self.group_configs[group]["share.record.lock.duration.ms"])

    def aborted(self, group: str) -> set[int]:
        """Offsets that the group must not see."""
        if self.group_configs[group]["share.isolation.level"] != "read_committed":
            return set()
        return {o for batch in self.log.batches if batch.kind == ABORTED for o in range(batch.first, batch.last + 1)}

    # -- what the code asks ---------------------------------------------------------------------------------------------------

    def hosted(self) -> list[tuple[SimShareBroker, HostedShare]]:
        return [(broker, each) for broker in self.brokers.values() if broker.up for each in broker.shares]

    def owner_of(self, machine: SharePartition) -> HostedShare:
        for _, each in self.hosted():
            if each._machine is machine:
                return each
        raise AssertionError("a machine without a share partition")

    def commit(self, end: int) -> None:
        """Records of share state up to ``end`` are safe."""
        state = self.state
        for offset, data in state.entries:
            if state.committed <= offset < end:
                self.ledger.committed(bytes(data.key or b""), data.value)
        state.committed = max(state.committed, end)

    # -- leaders and brokers --------------------------------------------------------------------------------------------------

    def start(self, broker_id: int) -> None:
        """Begins a life, unless it has begun already."""
        if broker_id in self._up():
            return
        broker = self.brokers[broker_id] = SimShareBroker(self, broker_id)
        self._learn(broker)

    def _learn(self, broker: SimShareBroker) -> None:
        late = not self.calm and self.rng.random() < 0.4
        broker.runtime.later(self.rng.randint(100, 6_000) if late else self.rng.randint(0, 50), broker.catch_up)

    def _tell_all(self) -> None:
        for broker in self.brokers.values():
            if broker.up:
                self._learn(broker)

    def _up(self) -> list[int]:
        return [each for each, broker in self.brokers.items() if broker.up]

    def move_leader(self) -> None:
        self.note("leader moved")
        up = self._up()
        self.leader = (self.rng.choice(up) if up else NO_BROKER, self.leader[1] + 1)
        self._tell_all()

    def move_state_leader(self) -> None:
        self.note("coordinator moved")
        up = self._up()
        self.state_leader = (self.rng.choice(up) if up else NO_BROKER, self.state_leader[1] + 1)
        self.state.cut(self.rng.randint(self.state.committed, self.state.end))
        self._tell_all()

    def kill(self, broker_id: int) -> None:
        if not self.brokers[broker_id].up:
            return
        self.note("killed")
        self.brokers[broker_id].kill()

        def noticed() -> None:
            if self.leader[0] == broker_id:
                self.move_leader()
            if self.state_leader[0] == broker_id:
                self.move_state_leader()

        self.at(self.rng.randint(100, 3_000), noticed)
        self.at(self.rng.randint(3_000, 9_000), lambda: self.start(broker_id))

    def _fault(self) -> None:
        if self.calm:
            return
        rng = self.rng
        faults = {
            "leader": 5,
            "coordinator": 4,
            "away": 1,
            "kill": 2,
            "compact": 4,
            "start": 2,
            "limits": 1,
            "reset": 1,
            "quiet": 2,
        }
        kind = rng.choices(list(faults), list(faults.values()))[0]
        if kind == "leader":
            self.move_leader()
        elif kind == "coordinator":
            self.move_state_leader()
        elif kind == "away":
            self.note("no coordinator")
            self.state_leader = NO_BROKER, self.state_leader[1] + 1
            self._tell_all()
            self.at(rng.choice([rng.randint(1_000, 30_000), 35_000]), self.move_state_leader)
        elif kind == "kill":
            self.kill(rng.choice(BROKERS))
        elif kind == "compact" and self.log.compact():
            self.note("compacted")
        elif kind == "start" and rng.random() < 0.4 and self.log.move_start():
            self.note("log start moved")
            self._log_changed()
        elif kind == "limits":
            group = rng.choice(list(self.group_configs))
            self.group_configs[group]["share.partition.max.record.locks"] = str(rng.choice([100, 300, 2_000]))
            self._looks_from = self.now + 10_000
            self._tell_all()
        elif kind == "reset":
            self._reset(rng.choice(list(self.group_configs)))
        self.at(rng.randint(200, 6_000), self._fault)

    def _log_changed(self) -> None:
        for broker in self.brokers.values():
            if broker.up:
                broker.partition.changed()

    def _produce(self) -> None:
        if not self.calm:
            self.log.append()
            self._log_changed()
            self.at(self.rng.choice([5, 50, 200, 1_500]), self._produce)

    def _prune(self) -> None:
        for broker in self.brokers.values():
            if broker.up and broker.shards.shard is not None:
                broker.shards.shard.prune()
        self.at(5_000, self._prune)

    # -- the group coordinator ------------------------------------------------------------------------------------------------

    def _initialize(self, group: str, epoch: int, start: int) -> None:
        """Ordered, and ordered again, as after a lost answer."""
        up = self._up()
        if not up:
            self.at(500, lambda: self._initialize(group, epoch, start))
            return
        broker = self.brokers[self.rng.choice(up)]

        async def ask() -> None:
            answer = await broker.shares.store.initialize(ShareKey(group, TOPIC_ID, 0), epoch, start)
            if answer.error is ErrorCode.NONE and not self.calm and self.rng.random() < 0.5:
                self.note("ordered twice")
                self.at(self.rng.randint(0, 20_000), lambda: self._initialize(group, epoch, start))

        def look() -> None:
            """It was lost with the broker, or refused."""
            if self.state_epochs.get(group, -1) < epoch:
                self._initialize(group, epoch, start)

        broker.runtime.spawn(ask(), "initialize")
        self.at(5_000, look)

    def _reset(self, group: str) -> None:
        self.note("offsets reset")
        self._ordered_epochs[group] += 1
        start = self.rng.randint(self.log.log_start_offset, self.log.high_watermark)
        self._initialize(group, self._ordered_epochs[group], start)

    # -- promises that are looked at now and then -----------------------------------------------------------------------------

    def _look(self) -> None:
        """A fetch that waits for anything has nothing to acquire, or is about to look again."""
        suspects = self._sleepers() if self.now >= self._looks_from else []
        if suspects:
            self.at(5, lambda: self._look_again(suspects))
        self._look_at_locks()
        self.at(200, self._look)

    def _look_at_locks(self) -> None:
        """Each lock ends in time."""
        for _, each in self.hosted():
            for span in each.machine._spans if each.phase is Phase.ACTIVE else ():
                if span.state is RecordState.ACQUIRED and span.deadline_ms < self.now - 1_000:
                    self.violated(f"{each.key.group_id}: the lock of {span.first} ended {self.now - span.deadline_ms} ms ago")

    def _sleepers(self) -> list[tuple[ParkedShareFetch, HostedShare, int]]:
        return [
            (parked, each, each.machine.next_fetch_offset())
            for broker, each in self.hosted()
            if each.phase is Phase.ACTIVE and each.is_current and not each._is_read and each.machine.can_acquire
            for parked in broker.runtime.parked
            if isinstance(parked, ParkedShareFetch) and each in parked._watched and self._is_for_more(parked, each)
        ]

    def _is_for_more(self, parked: ParkedShareFetch, hosted: HostedShare) -> bool:
        enough = 1 if self.impatient else 2 * LARGE_MIN_BYTES
        there = self.log.high_watermark - hosted.machine.next_fetch_offset()
        return BYTES_EACH * there >= enough and parked.deadline_ms > self.now

    def _look_again(self, suspects: list[tuple[ParkedShareFetch, HostedShare, int]]) -> None:
        still = self._sleepers()
        for parked, hosted, offset in suspects:
            if (parked, hosted, offset) in still:
                self.violated(f"{hosted.key.group_id}: a fetch waits while {offset} can be acquired")

    # -- a run ----------------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        reads: Any = SimpleNamespace(
            may_block=lambda *_, **__: self.rng.random() < 0.1, warm_up=lambda *_, **__: self.note("read that blocks")
        )

        def read_log(partition: Any, offset: int, max_bytes: int, **how: Any) -> Any:
            return self.log.read(offset, max_bytes, **how)

        with patched([*self.ledger.patches(), (acquisition, "reading", reads), (acquisition, "read_log", read_log)]):
            self._run()

    def _run(self) -> None:
        for each in BROKERS:
            self.start(each)
        for group in self.group_configs:
            self._initialize(group, 1, -1)
            known = len(self.members)
            self.members += [SimMember(self, group, known + number) for number in range(self.rng.randint(1, 4))]
        for member in self.members:
            self.at(self.rng.randint(500, 2_000), member.step)
        self.at(0, self._produce)
        self.at(3_000, self._fault)
        self.at(5_000, self._prune)
        self.at(500, self._look)
        self._until(self.now + STORM_MS)
        self.calm = True
        for broker in BROKERS:
            self.start(broker)
        if self.leader[0] == NO_BROKER or not self.brokers[self.leader[0]].up:
            self.move_leader()
        if self.state_leader[0] == NO_BROKER or not self.brokers[self.state_leader[0]].up:
            self.move_state_leader()
        self._tell_all()
        self._until(self.now + CALM_MS)
        self._wait_while_records_are_finished()
        self._check_finished("when all was well")
        self.move_leader()
        self._until(self.now + 10_000)
        self._check_finished("after another leader took over")
        self.leaving = True
        self._until(self.now + 10_000)
        self._check_empty()

    def _wait_while_records_are_finished(self) -> None:
        """Records near their last delivery are handed out one by one, so a lone member with short locks may need minutes for
        hundreds. It goes on as long as each step finishes some."""
        left = self._unfinished_count()
        while left:
            self._until(self.now + STEP_MS)
            before, left = left, self._unfinished_count()
            if left >= before:
                return
            self.note("slow to finish")

    def _unfinished_count(self) -> int:
        return sum(len(self._unfinished(group)) for group in self.ledger.groups)

    def _wanted(self, group: str) -> set[int]:
        """Offsets that the group has to be given."""
        committed = self.group_configs[group]["share.isolation.level"] == "read_committed"
        return {each for each in self.log.offsets(committed=committed) if each >= self.ledger.groups[group].first}

    def _unfinished(self, group: str) -> list[int]:
        ledger = self.ledger.groups[group]
        return sorted(each for each in self._wanted(group) if not ledger.is_durable(each) and each not in ledger.worn_out)

    def _check_finished(self, when: str) -> None:
        for member in self.members:
            if member.busy_since is not None and member.busy_since < self.now - PATIENCE_MS:
                self.violated(f"{when} a request of {member.member_id} has waited {self.now - member.busy_since} ms")
        for group, ledger in self.ledger.groups.items():
            wanted = self._wanted(group)
            skipped = sorted(wanted - ledger.delivered)
            if skipped:
                self.violated(f"{when} {group} has not got {brief(skipped)}")
            left = self._unfinished(group)
            if left:
                self.violated(f"{when} {brief(left)} are not finished in {group}")
            odd = sorted(wanted - ledger.acknowledged.keys() - ledger.tried - ledger.worn_out)
            if odd:
                self.violated(f"{when} {brief(odd)} are finished in {group}, and no member said so")

    def _check_empty(self) -> None:
        for broker in self.brokers.values():
            if len(broker.shares.sessions) or list(broker.shares):
                self.violated(f"broker {broker.id} keeps {len(broker.shares.sessions)} sessions and {list(broker.shares)}")

    def _until(self, end: int) -> None:
        while self._events and self._events[0][0] <= end:
            self.now, _, event = heapq.heappop(self._events)
            event()
        self.now = end


def brief(offsets: list[int]) -> str:
    """The first of them, and how many there are."""
    return f"{offsets[:10]} ({len(offsets)} in all)"
