"""The sticky assignor over streams groups that live: members come and go, topologies grow, each result is the next start."""

from __future__ import annotations

import os
import random
from collections import Counter

import pytest

from tidelog.coordinator.group.streams.sticky_assignor import MemberState, assign
from tidelog.coordinator.group.streams.tasks import TaskId, Tasks, task_ids
from tidelog.coordinator.group.streams.topology import ConfiguredSubtopology, ConfiguredTopology, InternalTopic

SEEDS = 4_000 if os.environ.get("TIDELOG_LONG") else 250
STEPS = 8


class Life:
    """A group, its topology, and the last assignment."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.standbys = self.rng.choice([0, 0, 1, 2, 3])
        self.subtopologies = {str(number): self.subtopology() for number in range(self.rng.randint(1, 4))}
        self.members: dict[str, MemberState] = {}
        for _ in range(self.rng.randint(1, 7)):
            self.join()

    def subtopology(self) -> ConfiguredSubtopology:
        changelogs = (InternalTopic("log", 1, -1),) if self.rng.random() < 0.6 else ()
        return ConfiguredSubtopology(self.rng.randint(1, self.rng.choice([3, 12])), ("in",), (), (), changelogs)

    def join(self) -> None:
        self.members[f"m{self.rng.randrange(10**9)}"] = MemberState(f"p{self.rng.randint(0, 4)}")

    def change(self) -> None:
        roll = self.rng.random()
        if roll < 0.4:
            self.join()
        elif roll < 0.8 and len(self.members) > 1:
            del self.members[self.rng.choice(list(self.members))]
        elif roll < 0.9:
            self.subtopologies[self.rng.choice(list(self.subtopologies))] = self.subtopology()
        else:
            self.standbys = self.rng.randint(0, 3)

    def topology(self) -> ConfiguredTopology:
        return ConfiguredTopology(0, self.subtopologies)

    def live(self, found: dict[str, Tasks]) -> None:
        self.members = {
            member: MemberState(state.process_id, {}, found[member].active, found[member].standby)
            for member, state in self.members.items()
        }


@pytest.mark.parametrize("seed", range(0, SEEDS, 25))
def test_every_task_has_one_owner_and_copies_are_in_different_processes(seed: int) -> None:
    for each in range(seed, seed + 25):
        life = Life(each)
        for _ in range(STEPS):
            topology = life.topology()
            found = assign(life.members, topology, life.standbys)
            check(life, topology, found)
            life.live(found)
            life.change()


def check(life: Life, topology: ConfiguredTopology, found: dict[str, Tasks]) -> None:
    tasks = set(topology.tasks())
    assert found.keys() == life.members.keys()
    active = Counter(task for each in found.values() for task in task_ids(each.active))
    assert active == dict.fromkeys(tasks, 1)
    copies = Counter[tuple[str, TaskId]]()
    for member, each in found.items():
        copies.update((life.members[member].process_id, task) for role in (each.active, each.standby) for task in task_ids(role))
        assert not each.warmup
    assert all(count == 1 for count in copies.values())
    processes = len({state.process_id for state in life.members.values()})
    standby = Counter(task for each in found.values() for task in task_ids(each.standby))
    for task in tasks:
        stateful = topology.subtopologies[task.subtopology].stateful
        assert standby[task] == (min(life.standbys, processes - 1) if stateful else 0)
    least, most = len(tasks) // len(found), -(-len(tasks) // len(found))
    for member, each in found.items():
        now = set(task_ids(each.active))
        assert len(now) <= most
        lost = set(task_ids(life.members[member].active)) & tasks - now
        assert not lost or len(now) >= least
    assert assign(dict(sorted(life.members.items(), reverse=True)), topology, life.standbys) == found


@pytest.mark.parametrize("seed", range(0, SEEDS, 25))
def test_an_even_assignment_of_active_tasks_stays(seed: int) -> None:
    stayed = 0
    for each in range(seed, seed + 25):
        life = Life(each)
        for _ in range(STEPS):
            found = assign(life.members, life.topology(), 0)
            life.live(found)
            counts = [len(list(task_ids(tasks.active))) for tasks in found.values()]
            if max(counts) - min(counts) <= 1:
                assert assign(life.members, life.topology(), 0) == found
                stayed += 1
            life.change()
    assert stayed > 25 * STEPS // 2
