"""Assignments and patterns beside Apache Kafka's own classes: the same groups and patterns, and the same results.

Kafka goes through members and topics in the order of hash tables. Here it is given tables that keep the order of ids, so
that nothing is left to chance and the results have to be equal, not only equally good.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.interop.java import JavaSide
from tidelog.coordinator.group.consumer.assignors.registry import ASSIGNORS, assign
from tidelog.coordinator.group.consumer.assignors.spec import GroupAssignment, GroupSpec, MemberSpec, TopicSpec
from tidelog.coordinator.group.consumer.subscription_regex import InvalidRegex, resolve

GROUPS = 1_500
NAMES = ["a", "b", "ab", "orders", "orders.eu", "orders-eu", "ORDERS", "x1", "tidelog_1", "__consumer_offsets", "a.b.c", "aaa"]
PATTERNS = [
    "a", ".*", "a|b", "orders.*", "orders[.-]eu", r"\w+", "[^_].*", "(?i)orders", "(?P<n>a)b", "(?<n>a)b",
    r"\pL+", r"\p{Greek}", "[[:alpha:]]+", "a{3}", "a{2,}", "a{,2}", "^a$", r"\Aab\z", r"\Qa.b.c\E",
    "(?:a|b)+", "(?s).+", "x*", "", "a??b", "o(?U)r*.*", r"\d+", r"x\d", r"[\w.]+", "[a-z]+", "[z-a]", "[",
    "]", "(", ")", "*a", "a**", "a{1001}", "a{2,1}", r"(a)\1", "(?=a)", "(?!a).*", r"\Z", r"\bab\b",
    r"a\Bb", r"\x61", r"\x{61}b", "a++", "a*+", "(?#c)a", "(?z)a", r"\8", r"\pX", "a{", "a{1", "{1}",
    "a|*", "(?i", "\\",
]  # fmt: skip


def random_group(rng: random.Random) -> GroupSpec:
    """A group somewhere in its life: what is owned was consistent once, before partitions and subscriptions changed."""
    topics = {number: rng.randint(0, rng.choice([4, 8, 30])) for number in rng.sample(range(1, 12), rng.randint(1, 6))}
    homogeneous = rng.random() < 0.4
    everything = frozenset(topics)
    ids = sorted(rng.sample([f"m{n:02}" for n in range(20)], rng.randint(1, 8)))
    owned: dict[str, dict[int, set[int]]] = {key: {} for key in ids}
    for topic, count in topics.items():
        owners = rng.sample(ids, rng.randint(1, min(len(ids), 4)))  # few of many, so that there is something to even out
        for partition in range(count):
            if rng.random() < 0.85:
                owned[rng.choice(owners)].setdefault(topic, set()).add(partition)
    members = {}
    for key in ids:
        wanted = everything if homogeneous else frozenset(topic for topic in topics if rng.random() < 0.8)
        members[key] = MemberSpec(
            instance_id=f"i{rng.randrange(1000)}" if rng.random() < 0.3 else None,
            rack_id=None,
            subscribed_topic_ids=frozenset(map(topic_id, wanted)),
            owned={topic_id(topic): frozenset(partitions) for topic, partitions in owned[key].items()},
        )
    return GroupSpec(members, homogeneous, {topic_id(n): TopicSpec(f"t{n}", count) for n, count in topics.items()})


def topic_id(number: int) -> bytes:
    return number.to_bytes(16)


def number_of(topic: bytes) -> str:
    return str(int.from_bytes(topic))


def as_json(spec: GroupSpec) -> dict[str, Any]:
    return {
        "homogeneous": spec.subscription_homogeneous,
        "topics": {number_of(topic): known.partitions for topic, known in spec.topics.items()},
        "members": [
            {
                "id": key,
                "instance": member.instance_id,
                "topics": [number_of(topic) for topic in sorted(member.subscribed_topic_ids)],
                "owned": {number_of(topic): sorted(partitions) for topic, partitions in member.owned.items()},
            }
            for key, member in sorted(spec.members.items())
        ],
    }


def shown(result: GroupAssignment) -> dict[str, dict[str, list[int]]]:
    return {key: {number_of(topic): sorted(partitions) for topic, partitions in mine.items()} for key, mine in result.items()}


@pytest.mark.interop
@pytest.mark.parametrize("assignor", list(ASSIGNORS))
def test_assignments_are_those_of_apache_kafka(java: JavaSide, assignor: str) -> None:
    rng = random.Random(848)
    specs = [random_group(rng) for _ in range(GROUPS)]
    answers = java.ask("assign", assignor=assignor, groups=[as_json(spec) for spec in specs])["results"]
    for spec, theirs in zip(specs, answers, strict=True):
        ours = shown(assign(assignor, spec))
        # Kafka leaves everybody out when nobody subscribes to anything; here each member is named.
        assert ours == {key: theirs.get(key, {}) for key in spec.members}, as_json(spec)


@pytest.mark.interop
def test_patterns_mean_what_they_mean_to_apache_kafka(java: JavaSide) -> None:
    theirs = java.ask("match", patterns=PATTERNS, names=NAMES)["results"]
    ours: list[list[str] | None] = []
    for pattern in PATTERNS:
        try:
            matched = resolve(pattern, NAMES)
            ours.append([name for name in NAMES if name in matched])
        except InvalidRegex:
            ours.append(None)
    assert dict(zip(PATTERNS, ours, strict=True)) == dict(zip(PATTERNS, theirs, strict=True))
