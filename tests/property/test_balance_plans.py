"""Plans for random clusters: what every plan keeps, what it reaches, and that it moves no more than it has to.

``TIDELOG_LONG=1`` tries many more.
"""

from __future__ import annotations

import os
import random
from collections import Counter

import pytest

from tidelog.console.moving.balance_plan import SMALL_BYTES, CannotPlan, Held, applied, drain, loads, plan

SEEDS = 5_000 if os.environ.get("TIDELOG_LONG") else 250


class World:
    """Partitions on brokers as the seed has it: sizes alike or far apart, racks or none, replicas spread or heaped."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        self.rng = rng
        self.brokers = sorted(rng.sample(range(20), rng.randint(1, 8)))
        racks = rng.choice([0, 0, 2, 3, len(self.brokers)])
        self.racks = {broker: f"r{rng.randrange(racks)}" if racks else None for broker in self.brokers}
        used = rng.sample(self.brokers, rng.randint(1, len(self.brokers)))
        alike = rng.random() < 0.4
        self.held = []
        for topic in range(rng.randint(1, 4)):
            factor = rng.randint(1, min(3, len(used)))
            for index in range(rng.randint(1, 12)):
                size = 7_000_000 if alike else rng.choice([0, rng.randrange(1 << 20), rng.randrange(1 << 30)])
                self.held.append(Held((f"t{topic}", index), tuple(rng.sample(used, factor)), size))

    def rack_count(self, replicas: tuple[int, ...], stay: list[int]) -> tuple[int, int]:
        """On how many racks these replicas are, and on how many they could be."""
        known = all(self.racks[broker] is not None for broker in stay)
        name = {broker: self.racks[broker] if known else str(broker) for broker in stay}
        return len({name[broker] for broker in replicas}), min(len(replicas), len(set(name.values())))


@pytest.mark.parametrize("part", range(5))
def test_every_plan_keeps_replicas_apart_and_their_number_and_racks(part: int) -> None:
    for seed in range(part, SEEDS, 5):
        world = World(seed)
        after = applied(world.held, plan(world.held, world.racks))
        for old, new in zip(world.held, after, strict=True):
            assert len(set(new.replicas)) == len(new.replicas) == len(old.replicas), seed
            assert set(new.replicas) <= set(world.brokers), seed
            here, possible = world.rack_count(new.replicas, world.brokers)
            assert here == possible, (seed, new)


@pytest.mark.parametrize("part", range(5))
def test_without_racks_brokers_differ_by_one_replica_at_most_and_no_plan_moves_fewer(part: int) -> None:
    for seed in range(part, SEEDS, 5):
        world = World(seed)
        racks = dict.fromkeys(world.brokers)
        held = [Held(each.partition, each.replicas, 1) for each in world.held]
        moves = plan(held, racks)
        before = sorted((load.replicas for load in loads(held, world.brokers).values()), reverse=True)
        after = [load.replicas for load in loads(applied(held, moves), world.brokers).values()]
        assert max(after) - min(after) <= 1, seed
        low, more = divmod(sum(before), len(before))
        fewest = sum(max(0, count - low - (place < more)) for place, count in enumerate(before))
        assert sum(len(move.coming) for move in moves) == fewest, seed


@pytest.mark.parametrize("part", range(5))
def test_a_plan_that_was_carried_out_leaves_nothing_to_do(part: int) -> None:
    for seed in range(part, SEEDS, 5):
        world = World(seed)
        assert plan(applied(world.held, plan(world.held, world.racks)), world.racks) == [], seed


def test_a_plan_that_was_stopped_halfway_goes_on_without_moving_more() -> None:
    for seed in range(SEEDS):
        world = World(seed)
        held = [Held(each.partition, each.replicas, 1) for each in world.held]
        racks = dict.fromkeys(world.brokers)
        moves = plan(held, racks)
        world.rng.shuffle(moves)
        done = moves[: len(moves) // 2]
        rest = plan(applied(held, done), racks)
        assert sum(len(move.coming) for move in [*done, *rest]) <= sum(len(move.coming) for move in moves), seed


def test_bytes_come_no_further_apart_and_leaders_neither() -> None:
    for seed in range(SEEDS):
        world = World(seed)
        racks = dict.fromkeys(world.brokers)
        counts_even = applied(world.held, plan(world.held, racks, tolerance=1e9))
        full = applied(world.held, plan(world.held, racks))
        spread = [
            max(load.size for load in found.values()) - min(load.size for load in found.values())
            for found in (loads(counts_even, world.brokers), loads(full, world.brokers))
        ]
        assert spread[1] <= max(spread[0], SMALL_BYTES), seed
        leaders = Counter(each.replicas[0] for each in full)
        for each in full:
            for other in each.replicas[1:]:
                assert leaders[each.replicas[0]] - leaders[other] <= 1, (seed, "one order changed would be better")


def test_a_drained_broker_has_nothing_and_others_keep_what_they_had() -> None:
    for seed in range(SEEDS):
        world = World(seed)
        leaving = world.rng.choice(world.brokers)
        stay = [broker for broker in world.brokers if broker != leaving]
        try:
            moves = drain(world.held, world.racks, [leaving])
        except CannotPlan:
            assert any(len(each.replicas) > len(stay) for each in world.held), seed
            continue
        for old, new in zip(world.held, applied(world.held, moves), strict=True):
            assert leaving not in new.replicas, seed
            assert len(set(new.replicas)) == len(old.replicas), seed
            assert set(old.replicas) - {leaving} <= set(new.replicas), (seed, "only the leaving broker's replica moves")
            if leaving in old.replicas:
                before = {self_rack(world, broker, stay) for broker in old.replicas if broker != leaving}
                here, possible = world.rack_count(new.replicas, stay)
                assert here >= min(possible, len(before) + 1), (seed, "a rack without a replica is chosen first")


def self_rack(world: World, broker: int, stay: list[int]) -> str:
    known = all(world.racks[each] is not None for each in stay)
    return str(world.racks[broker]) if known else str(broker)
