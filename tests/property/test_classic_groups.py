"""Groups under churn, seeded: members join, pause, lose answers, die and come back, the coordinator crashes and reloads.

Promises held at every step: a partition has one owner per generation; generations never go back; committed offsets never go
back and survive. And once the trouble ends: everybody who is alive is in one stable generation and all partitions are read.
"""

from __future__ import annotations

import os
import random

import pytest

from tests.unit.coordinator.group.driver import Driver
from tidelog.coordinator.group.classic.classic_group import GroupState
from tidelog.coordinator.group.settings import GroupSettings
from tidelog.model.errors import ErrorCode as E

GROUP = "g"
PARTITIONS = 7
SEEDS = 3_000 if os.environ.get("TIDELOG_LONG") else 80
REJOIN = {E.REBALANCE_IN_PROGRESS, E.ILLEGAL_GENERATION}
START_OVER = {E.UNKNOWN_MEMBER_ID, E.FENCED_INSTANCE_ID, E.COORDINATOR_NOT_AVAILABLE}


class Client:
    """A consumer as the protocol expects it, but for the answers it loses and the pauses it takes."""

    def __init__(self, world: World, instance: str | None) -> None:
        self.world = world
        self.instance = instance
        self.member = ""
        self.generation = -1
        self.owned: list[int] = []
        self.waiting: tuple[str, int] | None = None
        self.silent_until = 0

    def step(self) -> None:
        driver = self.world.driver
        if driver.now < self.silent_until:
            return
        if self.waiting is not None:
            kind, token = self.waiting
            answer = driver.answers.get(token)
            if answer is None:
                return
            self.waiting = None
            if self.world.rng.random() < self.world.loss:
                self.generation = -1  # a client that loses an answer joins again
                return
            self.joined(answer) if kind == "join" else self.synced(answer)
        elif self.generation < 0:
            self.join()
        else:
            self.beat()

    def join(self) -> None:
        self.owned = []
        self.waiting = ("join", self.world.driver.join(GROUP, self.member, instance=self.instance, rebalance=20_000))

    def joined(self, answer: object) -> None:
        error = answer.error_code  # type: ignore[attr-defined]
        if error == E.MEMBER_ID_REQUIRED:
            self.member = answer.member_id  # type: ignore[attr-defined]
        elif error in START_OVER:
            self.member = ""
        elif error == 0:
            self.member = answer.member_id  # type: ignore[attr-defined]
            self.generation = answer.generation_id  # type: ignore[attr-defined]
            assignment: dict[str, bytes] = {}
            if answer.leader == self.member and not answer.skip_assignment:  # type: ignore[attr-defined]
                members = [member.member_id for member in answer.members]  # type: ignore[attr-defined]
                assignment = {key: bytes(range(n, PARTITIONS, len(members))) for n, key in enumerate(members)}
            token = self.world.driver.sync(GROUP, self.member, self.generation, assignment, group_instance_id=self.instance)
            self.waiting = ("sync", token)

    def synced(self, answer: object) -> None:
        error = answer.error_code  # type: ignore[attr-defined]
        if error:
            self.trouble(error)
            return
        self.owned = list(answer.assignment)  # type: ignore[attr-defined]
        for partition in self.owned:
            owner = self.world.owners.setdefault((self.generation, partition), self.identity)
            assert owner == self.identity, f"partition {partition} has two owners in generation {self.generation}"

    @property
    def identity(self) -> str:
        return self.instance or self.member

    def beat(self) -> None:
        driver = self.world.driver
        error = driver.heartbeat(GROUP, self.member, self.generation, self.instance)
        if error:
            self.trouble(error)
        elif self.owned:
            place = ("t", self.world.rng.choice(self.owned))
            offset = self.world.committed.get(place, 0) + 1
            if driver.commit(GROUP, {place: offset}, self.member, self.generation) == [0]:
                self.world.committed[place] = offset

    def trouble(self, error: int) -> None:
        self.generation = -1
        if error in START_OVER:
            self.member = ""


class World:
    """Clients and a coordinator, driven by one seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.driver = Driver(GroupSettings(initial_rebalance_delay_ms=self.rng.choice([0, 3_000])), seed)
        self.loss = self.rng.choice([0.0, 0.05, 0.2])
        self.owners: dict[tuple[int, int], str] = {}
        self.committed: dict[tuple[str, int], int] = {}
        self.clients = [self.client() for _ in range(self.rng.randint(1, 6))]
        self.instances = 0

    def client(self) -> Client:
        instance = f"i{self.rng.randrange(10**9)}" if self.rng.random() < 0.3 else None
        return Client(self, instance)

    def disturb(self) -> None:
        roll = self.rng.random()
        if roll < 0.02 and len(self.clients) > 1:
            gone = self.clients.pop(self.rng.randrange(len(self.clients)))
            if self.rng.random() < 0.5 and gone.member:
                self.driver.leave(GROUP, (gone.member, gone.instance))
        elif roll < 0.05 and len(self.clients) < 8:
            self.clients.append(self.client())
        elif roll < 0.08:
            self.rng.choice(self.clients).silent_until = self.driver.now + self.rng.randint(1_000, 40_000)
        elif roll < 0.09:
            self.driver.restart()
            for client in self.clients:
                if client.waiting is not None:
                    client.waiting, client.generation = None, -1

    def check(self) -> None:
        for (topic, partition), offset in self.committed.items():
            stored = self.driver.machine.offsets.stored.get(GROUP, topic, partition)
            assert stored is not None and stored.offset >= offset, (topic, partition)

    def run(self, steps: int) -> None:
        generation = 0
        for _ in range(steps):
            self.disturb()
            for client in self.clients:
                client.step()
            self.driver.advance(self.rng.randint(1, 1_500))
            self.check()
            group = self.driver.machine.groups.get(GROUP)
            # A generation that was never recorded may come again after a crash, as in Kafka: nobody owned anything in it.
            if group is not None and group.state is GroupState.STABLE:
                assert group.generation >= generation, group.story
                generation = group.generation

    def settle(self) -> None:
        self.loss = 0.0
        for client in self.clients:
            client.silent_until = 0
        for _ in range(300):
            for client in self.clients:
                client.step()
            self.driver.advance(1_000)


@pytest.mark.parametrize("block", range(10))
def test_groups_keep_their_promises_under_churn(block: int) -> None:
    for seed in range(block, SEEDS, 10):
        world = World(seed)
        world.run(200)
        world.settle()
        group = world.driver.machine.groups[GROUP]
        assert group.state is GroupState.STABLE, (seed, group.story)
        assert {client.generation for client in world.clients} == {group.generation}, (seed, group.story)
        assert sorted(partition for client in world.clients for partition in client.owned) == list(range(PARTITIONS)), seed
