from __future__ import annotations

import random
from typing import Any

from tests.unit.controller.conftest import Cluster
from tests.unit.controller.test_elect_leaders import create
from tidelog.controller.partition_index import PartitionIndex, PartitionSet
from tidelog.controller.quorum_controller import QuorumController
from tidelog.model.ids import Uuid
from tidelog.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState

A, B = Uuid(b"a" * 16), Uuid(b"b" * 16)


def contents(index: PartitionIndex, brokers: tuple[int, ...]) -> dict[str, Any]:
    """Everything the index says, without its order."""
    return {
        "leaderless": sorted(index.without_leader),
        "unbalanced": sorted(index.without_preferred_leader),
        "reassigning": sorted(index.reassigning),
        "isr": {each: sorted(index.with_in_isr(each)) for each in brokers},
        "elr": {each: sorted(index.with_in_elr(each)) for each in brokers},
        "leads": {each: index.leads(each) for each in brokers},
    }


def test_a_set_of_partitions_forgets_topics_that_are_empty() -> None:
    partitions = PartitionSet()
    assert not partitions
    for topic, number in ((A, 1), (B, 0), (A, 0), (A, 1)):
        partitions.add(topic, number)
    assert list(partitions) == [(A, 1), (A, 0), (B, 0)]
    assert len(partitions) == 3
    partitions.discard(B, 0)
    partitions.discard(B, 7)
    assert [(topic, list(numbers)) for topic, numbers in partitions.topics()] == [(A, [1, 0])]


def test_the_index_that_follows_deltas_is_the_one_made_from_the_image(make_cluster: Any) -> None:
    rng = random.Random(7)
    brokers = (1, 2, 3, 4)
    cluster: Cluster = make_cluster(*brokers)
    for step in range(150):
        action = rng.randrange(6)
        up = [each for each in brokers if cluster.image.brokers[each].active]
        if action == 0 or not cluster.image.topics.by_name:
            first = rng.choice(up)
            others = rng.sample([each for each in brokers if each != first], rng.randrange(3))
            create(cluster, f"t{step}", *[[first, *others]] * rng.randint(1, 3))
        elif action == 1:
            name = rng.choice(sorted(cluster.image.topics.by_name))
            cluster.ask(QuorumController.delete_topics, DeleteTopicsRequest(topics=[DeleteTopicState(name=name)]))
        else:
            chosen = rng.choice(brokers)
            if chosen in up and len(up) > 1:
                cluster.heartbeat(chosen, want_fence=True)
            else:
                cluster.heartbeat(chosen)
        fresh = PartitionIndex(cluster.image.topics)
        assert contents(cluster.controller.partitions, brokers) == contents(fresh, brokers), step
