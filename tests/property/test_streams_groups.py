"""Streams groups under churn, seeded: threads of several processes join, miss answers, die and come back, topics and the count of
standbys change, the coordinator crashes and loads.

Promises held at every step: an active task runs on one thread at a time, as the clients see it; a process has a task once; epochs
never go back; the log says what the machine holds. And once the trouble ends: all members are stable, every task is active on one
of them, and every task with a store has its standbys, as far as there are processes for them.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field

import pytest

from tests.unit.coordinator.group.streams.streams_driver import AT_ONCE, COUNTS, IN, WORDS, StreamsDriver
from tidelog.coordinator.group.streams.streams_group import StreamsGroup
from tidelog.coordinator.group.streams.streams_state import StreamsGroupState
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.streams_group_heartbeat import ResponseTaskIds

SEEDS = 2_000 if os.environ.get("TIDELOG_LONG") else 60
Tasks = dict[str, list[int]]


@dataclass
class Thread:
    """A member as its client sees it: what it runs now, and the epoch that it knows."""

    name: str
    process: str
    epoch: int = 0
    active: Tasks = field(default_factory=dict)
    standby: Tasks = field(default_factory=dict)

    def held(self) -> set[tuple[str, int]]:
        return {(key, one) for tasks in (self.active, self.standby) for key, found in tasks.items() for one in found}

    def running(self) -> set[tuple[str, int]]:
        return {(key, one) for key, found in self.active.items() for one in found}


class World:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.driver = StreamsDriver(AT_ONCE)
        self.threads: dict[str, Thread] = {}
        self.names = 0

    def step(self) -> None:
        chance = self.rng.random()
        if chance < 0.12 and len(self.threads) < 6:
            self.names += 1
            thread = Thread(f"m{self.names}", self.rng.choice("pqr"))
            self.threads[thread.name] = thread
            self.beat(thread)
        elif chance < 0.17 and self.threads:
            thread = self.threads.pop(self.rng.choice(sorted(self.threads)))
            if self.rng.random() < 0.5:
                self.driver.streams_beat(thread.name, -1)
            else:
                self.driver.run(self.driver.machine.end_session("g", thread.name, self.driver.now))
        elif chance < 0.2:
            self.driver.restart()
        elif chance < 0.23:
            count = self.rng.choice((2, 4))
            self.driver.set_topics({IN: count, WORDS: count, COUNTS: count})
        elif chance < 0.26:
            self.driver.configure("g", streams_num_standby_replicas=str(self.rng.randrange(3)))
        elif self.threads:
            self.beat(self.threads[self.rng.choice(sorted(self.threads))], answered=self.rng.random() < 0.9)
        self.check()

    def beat(self, thread: Thread, *, answered: bool = True) -> None:
        owns = (thread.active, thread.standby)
        before = self.epochs()
        if thread.epoch == 0:
            answer = self.driver.enter_streams(thread.name, thread.process)
        else:
            answer = self.driver.streams_beat(thread.name, thread.epoch, owns)
        if answer.error_code in (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.INVALID_REQUEST):
            # Also when its tasks are gone from the topology: it gives up everything and joins again.
            thread.epoch, thread.active, thread.standby = 0, {}, {}
            return
        assert answer.error_code == 0, answer
        assert all(epoch >= before[key] for key, epoch in self.epochs().items() if key in before)
        if answered:
            thread.epoch = answer.member_epoch
            if answer.active_tasks is not None:
                thread.active, thread.standby = _tasks(answer.active_tasks), _tasks(answer.standby_tasks)

    def epochs(self) -> dict[str, int]:
        found = self.driver.machine.groups.get("g")
        return {key: each.epoch for key, each in found.members.items()} if isinstance(found, StreamsGroup) else {}

    def check(self) -> None:
        self.driver.machine.check()
        running: set[tuple[str, int]] = set()
        for thread in self.threads.values():
            assert running.isdisjoint(thread.running()), (thread, running)
            running |= thread.running()
        for process in "pqr":
            held: set[tuple[str, int]] = set()
            for thread in self.threads.values():
                if thread.process == process:
                    assert held.isdisjoint(thread.held()), (process, thread, held)
                    held |= thread.held()

    def settle(self) -> None:
        """Every member is heard, and hears, until nothing changes."""
        if not self.threads:
            self.step()
        for _ in range(20):
            for thread in list(self.threads.values()):
                self.beat(thread)
                self.check()

    def verdict(self) -> None:
        if not self.threads:
            return
        group = self.driver.streams()
        assert group.state is StreamsGroupState.STABLE, group.state
        assert group.configured is not None
        every = {(task.subtopology, task.partition) for task in group.configured.tasks()}
        assert {task for thread in self.threads.values() for task in thread.running()} == every
        wanted = int(group.assignment_configs["num.standby.replicas"])
        processes = len({thread.process for thread in self.threads.values()})
        for subtopology, partition in every:
            copies = sum(partition in thread.standby.get(subtopology, ()) for thread in self.threads.values())
            assert copies == (min(wanted, processes - 1) if subtopology == "1" else 0), (subtopology, partition)
        members, target = group.members, group.target
        self.driver.restart()
        assert (self.driver.streams().members, self.driver.streams().target) == (members, target)


def _tasks(told: list[ResponseTaskIds] | None) -> Tasks:
    return {each.subtopology_id: list(each.partitions) for each in told or ()}


@pytest.mark.parametrize("block", range(6))
def test_streams_groups_keep_their_promises_under_churn(block: int) -> None:

    for seed in range(block, SEEDS, 6):
        world = World(seed)
        try:
            for _ in range(150):
                world.step()
            world.settle()
            world.verdict()
        except AssertionError as broken:
            raise AssertionError(f"seed {seed}: {broken}") from broken
