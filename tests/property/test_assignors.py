"""Assignors over groups that live: members and partitions come and go, subscriptions change, each result is the next start."""

from __future__ import annotations

import os
import random
from collections import Counter

import pytest

from tidelog.coordinator.group.consumer.assignors.registry import ASSIGNORS, assign
from tidelog.coordinator.group.consumer.assignors.spec import GroupAssignment, GroupSpec, MemberSpec, TopicSpec

SEEDS = 4_000 if os.environ.get("TIDELOG_LONG") else 200
STEPS = 8


class Life:
    """A group, its topics, and who owned what after the last assignment."""

    def __init__(self, seed: int, assignor: str, *, homogeneous: bool) -> None:
        self.rng = random.Random(seed)
        self.assignor = assignor
        self.homogeneous = homogeneous
        self.topics = {self.topic_id(): self.rng.randint(0, 9) for _ in range(self.rng.randint(1, 6))}
        self.members: dict[str, MemberSpec] = {}
        self.joined = 0
        for _ in range(self.rng.randint(1, 7)):
            self.join()

    def topic_id(self) -> bytes:
        return self.rng.randbytes(16)

    def subscription(self) -> frozenset[bytes]:
        if self.homogeneous:
            return frozenset(self.topics)
        return frozenset(topic for topic in self.topics if self.rng.random() < 0.6)

    def join(self) -> None:
        self.joined += 1
        instance = f"i{self.joined}" if self.rng.random() < 0.2 else None
        self.members[f"{self.rng.randrange(10**6)}-{self.joined}"] = MemberSpec(instance, None, self.subscription(), {})

    def change(self) -> None:
        roll = self.rng.random()
        member_id = self.rng.choice(list(self.members))
        if roll < 0.25:
            self.join()
        elif roll < 0.45 and len(self.members) > 1:
            del self.members[member_id]
        elif roll < 0.6:
            self.topics[self.rng.choice(list(self.topics))] += self.rng.randint(1, 4)
        elif roll < 0.7:
            self.topics[self.topic_id()] = self.rng.randint(0, 9)
        elif roll < 0.75 and len(self.topics) > 1:
            del self.topics[self.rng.choice(list(self.topics))]
        for key in self.members if self.homogeneous else [member_id]:
            spec = self.members.get(key)
            if spec is not None:
                self.members[key] = MemberSpec(spec.instance_id, None, self.subscription(), spec.owned)
        for key, spec in self.members.items():
            wanted = frozenset(topic for topic in spec.subscribed_topic_ids if topic in self.topics)
            self.members[key] = MemberSpec(spec.instance_id, None, wanted, spec.owned)

    def spec(self) -> GroupSpec:
        topics = {topic: TopicSpec(topic.hex(), count) for topic, count in self.topics.items()}
        return GroupSpec(dict(self.members), self.homogeneous, topics)

    def assign(self) -> GroupAssignment:
        return assign(self.assignor, self.spec())

    def adopt(self, result: GroupAssignment) -> None:
        self.members = {
            key: MemberSpec(spec.instance_id, None, spec.subscribed_topic_ids, result[key]) for key, spec in self.members.items()
        }


def load(mine: dict[bytes, frozenset[int]]) -> int:
    return sum(map(len, mine.values()))


def check_each_partition_once(life: Life, result: GroupAssignment) -> None:
    assert set(result) == set(life.members)
    given = Counter((topic, partition) for mine in result.values() for topic, part in mine.items() for partition in part)
    wanted = {topic for spec in life.members.values() for topic in spec.subscribed_topic_ids}
    assert given == Counter((topic, partition) for topic in wanted for partition in range(life.topics[topic]))
    for key, mine in result.items():
        assert set(mine) <= life.members[key].subscribed_topic_ids
        assert all(mine.values()), "a topic without partitions is left out"


def check_balance(life: Life, result: GroupAssignment) -> None:
    if life.assignor == "uniform" and life.homogeneous:
        loads = [load(mine) for mine in result.values()]
        assert max(loads) - min(loads) <= 1
        return
    for topic in life.topics:
        subscribers = [key for key, spec in life.members.items() if topic in spec.subscribed_topic_ids]
        if not subscribers:
            continue
        if life.assignor == "range":
            counts = [len(result[key].get(topic, ())) for key in subscribers]
            assert max(counts) - min(counts) <= 1
        else:
            least = min(load(result[key]) for key in subscribers)
            assert all(load(result[key]) <= least + 1 for key in subscribers if topic in result[key])


@pytest.mark.parametrize("homogeneous", [True, False])
@pytest.mark.parametrize("assignor", list(ASSIGNORS))
def test_every_partition_has_one_owner_loads_are_even_and_a_second_run_changes_nothing(assignor: str, homogeneous: bool) -> None:
    for seed in range(SEEDS):
        life = Life(seed, assignor, homogeneous=homogeneous)
        for _ in range(STEPS):
            result = life.assign()
            check_each_partition_once(life, result)
            check_balance(life, result)
            life.adopt(result)
            assert life.assign() == result, (seed, "a second run moves something")
            life.change()


@pytest.mark.parametrize("homogeneous", [True, False])
@pytest.mark.parametrize("assignor", list(ASSIGNORS))
def test_the_order_in_which_members_and_topics_are_given_does_not_matter(assignor: str, homogeneous: bool) -> None:
    for seed in range(SEEDS // 10):
        life = Life(seed, assignor, homogeneous=homogeneous)
        life.adopt(life.assign())
        life.change()
        spec = life.spec()
        reversed_spec = GroupSpec(dict(reversed(spec.members.items())), homogeneous, dict(reversed(spec.topics.items())))
        assert assign(assignor, spec) == assign(assignor, reversed_spec), seed


def test_who_stays_keeps_everything_when_another_member_leaves() -> None:
    for seed in range(SEEDS):
        life = Life(seed, "uniform", homogeneous=True)
        life.join()
        before = life.assign()
        life.adopt(before)
        del life.members[life.rng.choice(list(life.members))]
        after = life.assign()
        for key in life.members:
            assert all(after[key][topic] >= partitions for topic, partitions in before[key].items()), seed


def test_who_joins_is_given_its_share_and_nobody_else_gains_from_another() -> None:
    for seed in range(SEEDS):
        life = Life(seed, "uniform", homogeneous=True)
        before = life.assign()
        life.adopt(before)
        life.join()
        after = life.assign()
        for key, mine in before.items():
            assert all(partitions <= mine[topic] for topic, partitions in after[key].items()), seed
