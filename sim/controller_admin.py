"""What administrators ask a simulated controller for: topics, partitions, moves, elections, settings, brokers given up."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tidelog.controller.quorum_controller import QuorumController
from tidelog.controller.result import ControllerResult
from tidelog.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from tidelog.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from tidelog.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from tidelog.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from tidelog.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tidelog.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from tidelog.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tidelog.protocol.messages.unregister_broker import UnregisterBrokerRequest

if TYPE_CHECKING:
    from sim.controller_world import World

MOST_TOPICS = 6
KINDS = (
    "move", "move", "move", "cancel", "preferred", "unclean", "grow", "delete", "minimum", "minimum", "rule", "ids", "give up",
)  # fmt: skip
Method = Callable[[QuorumController, Any, int], ControllerResult]
"""A method of QuorumController, unbound."""
Wish = tuple[Method, Any]


def random_wish(world: World) -> Wish:
    """Any of them; not each can be granted."""
    rng = world.rng
    names = sorted(world.image.topics.by_name)
    if not names or (len(names) < MOST_TOPICS and rng.random() < 0.2):
        return _create(world)
    name = rng.choice(names)
    topic = world.image.topics.by_name[name]
    number = rng.randrange(len(topic.partitions))
    kind = rng.choice(KINDS)
    world.counts[f"asked: {kind}"] += 1
    if kind in ("move", "cancel"):
        target = rng.sample(sorted(world.brokers), rng.randint(1, 3)) if kind == "move" else None
        moved = ReassignableTopic(name, [ReassignablePartition(number, target)])
        return QuorumController.alter_partition_reassignments, AlterPartitionReassignmentsRequest(topics=[moved])
    if kind in ("preferred", "unclean"):
        asked = [TopicPartitions(topic=name, partitions=[number])]
        allowed = int(kind == "unclean" and rng.random() < 0.3)
        return QuorumController.elect_leaders, ElectLeadersRequest(election_type=allowed, topic_partitions=asked)
    if kind == "grow":
        count = min(len(topic.partitions) + 1, 4)
        return QuorumController.create_partitions, CreatePartitionsRequest([CreatePartitionsTopic(name, count, None)])
    if kind == "delete":
        return QuorumController.delete_topics, DeleteTopicsRequest(topics=[DeleteTopicState(name=name)])
    if kind in ("minimum", "rule"):
        return _setting(world, name, kind)
    if kind == "ids":
        broker = rng.choice(list(world.brokers.values()))
        return QuorumController.allocate_producer_ids, AllocateProducerIdsRequest(broker.id, broker.epoch)
    return _give_up(world)


def _create(world: World) -> Wish:
    rng = world.rng
    world.counts["asked: create"] += 1
    topic = CreatableTopic(
        name=f"t{world.counts['asked: create']}", num_partitions=rng.randint(1, 3), replication_factor=rng.randint(1, 3)
    )
    if rng.random() < 0.3:
        replicas = rng.sample(sorted(world.brokers), rng.randint(1, 3))
        topic.num_partitions = topic.replication_factor = -1
        topic.assignments = [CreatableReplicaAssignment(partition_index=0, broker_ids=replicas)]
    if rng.random() < 0.6:
        topic.configs = [CreatableTopicConfig(name="min.insync.replicas", value=str(rng.randint(1, 2)))]
    return QuorumController.create_topics, CreateTopicsRequest(topics=[topic])


def _setting(world: World, name: str, kind: str) -> Wish:
    """Another minimum only where ELR is off or the cluster is whole: raising it over a smaller ISR is the operator's risk."""
    change = AlterableConfig("min.insync.replicas", 0, str(world.rng.randint(1, 2)))
    if kind == "rule":
        change = AlterableConfig("unclean.leader.election.enable", 0, world.rng.choice(("true", "false", "false")))
    request = IncrementalAlterConfigsRequest(resources=[AlterConfigsResource(2, name, [change])])
    return QuorumController.incremental_alter_configs, request


def _give_up(world: World) -> Wish:
    """A broker that is down is unregistered; its replicas stay, and it may come back as new."""
    down = [broker.id for broker in world.brokers.values() if not broker.alive]
    return QuorumController.unregister_broker, UnregisterBrokerRequest(broker_id=world.rng.choice(down) if down else 99)
