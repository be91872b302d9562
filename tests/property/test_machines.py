"""Replicas on machines with several brokers: what every placement and every plan keeps, for random clusters.

``TIDELOG_LONG=1`` tries many more.
"""

from __future__ import annotations

import os
import random
from collections import Counter

import pytest

from tidelog.console.moving.balance_plan import Held, applied, drain, plan
from tidelog.controller.replica_placement import UsableBroker, place

SEEDS = 5_000 if os.environ.get("TIDELOG_LONG") else 300


class World:
    """Brokers on machines in racks, as the seed has it: one or several for each, fenced or not."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(seed)
        racks = rng.choice([0, 0, 1, 2, 3])
        self.brokers: list[UsableBroker] = []
        for machine in range(rng.randint(1, 6)):
            rack = f"r{rng.randrange(racks)}" if racks else None
            for _ in range(rng.choice([1, 1, 2, 4])):
                fenced = rng.random() < 0.1
                self.brokers.append(UsableBroker(len(self.brokers), rack, fenced, f"m{machine}"))
        self.brokers[0] = self.brokers[0]._replace(fenced=False)
        self.machine = {each.id: each.machine for each in self.brokers}
        self.rack = {each.id: each.rack for each in self.brokers}
        self.sizes = Counter(self.machine.values())
        self.factor = rng.randint(1, min(5, len(self.brokers)))

    def spread(self, replicas: tuple[int, ...]) -> None:
        """No machine has a replica more than another that could take one."""
        used = Counter(self.machine[each] for each in replicas)
        most = max(used.values())
        assert all(used[machine] >= min(size, most - 1) for machine, size in self.sizes.items()), (replicas, used)


@pytest.mark.parametrize("part", range(5))
def test_replicas_share_a_machine_only_where_there_is_no_other(part: int) -> None:
    for seed in range(part, SEEDS, 5):
        world = World(seed)
        fenced = {each.id for each in world.brokers if each.fenced}
        racks = len(set(world.rack.values()))
        for replicas in place(world.brokers, 30, world.factor, world.rng):
            assert len(set(replicas)) == len(replicas) == world.factor, seed
            assert replicas[0] not in fenced, seed
            assert len({world.rack[each] for each in replicas}) == min(world.factor, racks), seed
            assert len({world.machine[each] for each in replicas}) == min(world.factor, len(world.sizes)), seed
            world.spread(replicas)


@pytest.mark.parametrize("part", range(5))
def test_where_machines_say_nothing_the_placement_is_that_by_racks(part: int) -> None:
    for seed in range(part, SEEDS, 5):
        world = World(seed)
        alone = [each._replace(machine=each.id) for each in world.brokers]
        alike = [each._replace(machine=None) for each in world.brokers]
        by_machines = [place(each, 20, world.factor, random.Random(seed)) for each in (alone, alike)]
        assert by_machines[0] == by_machines[1], seed


@pytest.mark.parametrize("seed", range(20))
def test_machines_of_equal_size_get_equal_shares(seed: int) -> None:
    brokers = [UsableBroker(each, None, False, f"m{each // 4}") for each in range(12)]
    placed = place(brokers, 12, 2, random.Random(seed))
    assert set(Counter(replicas[0] for replicas in placed).values()) == {1}
    assert set(Counter(each for replicas in placed for each in replicas).values()) == {2}


@pytest.mark.parametrize("part", range(5))
def test_every_plan_takes_replicas_of_a_machine_apart(part: int) -> None:
    for seed in range(part, SEEDS, 5):
        world = World(seed)
        ids = [each.id for each in world.brokers]
        held = [
            Held(("t", index), tuple(world.rng.sample(ids, world.factor)), world.rng.randrange(1 << 30)) for index in range(20)
        ]
        machines = {each: str(machine) for each, machine in world.machine.items()}
        moves = plan(held, world.rack, machines=machines)
        racks = len(set(world.rack.values()))
        for each in applied(held, moves):
            assert len(set(each.replicas)) == len(each.replicas) == world.factor, seed
            assert len({machines[broker] for broker in each.replicas}) == min(world.factor, len(world.sizes)), (seed, each)
            if None not in world.rack.values():
                assert len({world.rack[broker] for broker in each.replicas}) == min(world.factor, racks), (seed, each)
        assert plan(applied(held, moves), world.rack, machines=machines) == [], seed


@pytest.mark.parametrize("part", range(5))
def test_a_drained_broker_s_replicas_go_to_machines_without_one(part: int) -> None:
    for seed in range(part, SEEDS, 5):
        world = World(seed)
        ids = [each.id for each in world.brokers]
        if len(ids) <= world.factor:
            continue
        machines = {each: str(machine) for each, machine in world.machine.items()}
        held = [Held(("t", index), replicas) for index, replicas in enumerate(place(world.brokers, 20, world.factor, world.rng))]
        leaving = world.rng.choice(ids)
        stay = {machines[each] for each in ids if each != leaving}
        for each in applied(held, drain(held, dict.fromkeys(ids), [leaving], machines=machines)):
            assert leaving not in each.replicas, seed
            assert len({machines[broker] for broker in each.replicas}) == min(world.factor, len(stay)), (seed, each)
