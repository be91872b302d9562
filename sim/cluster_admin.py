"""An administrator of a simulated cluster while it runs: topics come and go, partitions grow and move, leaders are elected."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

from sim.clients import History
from sim.cluster_growth import Growth
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from tidelog.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from tidelog.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tidelog.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tidelog.protocol.messages.elect_leaders import ElectLeadersRequest
from tidelog.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tidelog.testing.simulation.client import PASSING, Client, Later
from tidelog.testing.simulation.cluster import SimCluster

TOPIC = 2
INTERNAL = (("__consumer_offsets", 2), ("__transaction_state", 2))
REFUSALS = frozenset(
    {
        ErrorCode.TOPIC_ALREADY_EXISTS,
        ErrorCode.INVALID_PARTITIONS,
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
        ErrorCode.INVALID_REPLICATION_FACTOR,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ErrorCode.DUPLICATE_VOTER,
        ErrorCode.VOTER_NOT_FOUND,
    }
)
"""Answers that are in order, such as for something that was done by an attempt whose answer got lost."""


class Admin:
    """See the module."""

    def __init__(self, client: Client, history: History, cluster: SimCluster, seed: int) -> None:
        self.client, self.history, self.cluster = client, history, cluster
        self.rng = random.Random(seed)
        self.growth = Growth(self, seed ^ 1)
        self._extra = 0
        self._there: list[str] = []

    async def create(self, topics: Mapping[str, int]) -> None:
        """With three replicas each."""
        wanted = [CreatableTopic(name=name, num_partitions=count, replication_factor=3) for name, count in topics.items()]
        await self.client.until(lambda: self._create(wanted), lambda: False, lambda: None)

    async def _create(self, wanted: list[CreatableTopic]) -> None:
        response = await self.client.ask_any(CreateTopicsRequest(topics=wanted, timeout_ms=5000))
        for topic in response.topics:
            self.judge(topic.error_code, f"CreateTopics {topic.name}: {topic.error_message}")

    def judge(self, code: int, what: str) -> None:
        """Later for what passes; AssertionError for an answer that is not in order."""
        error = ErrorCode(code)
        if error in PASSING:
            raise Later(error.name)
        assert error is ErrorCode.NONE or error in REFUSALS, f"{what}: {error.name}"
        self.history.operations += 1

    async def run(self, stop: Callable[[], bool]) -> None:
        steps = (self._come, self._go, self._grow, self._elect, self._configure, self._move, self.growth.step)
        while not stop():
            await self.client.pause(3.0)
            try:
                await self.rng.choice(steps)()
            except Later:
                await self.client.pause(0.5)
        while not self.growth.drained:
            try:
                await self.growth.drain()
            except Later:
                await self.client.pause(0.5)

    async def _come(self) -> None:
        self._extra += 1
        name = f"extra-{self._extra}"
        self._there.append(name)
        await self._create([CreatableTopic(name=name, num_partitions=self.rng.randint(1, 3), replication_factor=-1)])

    async def _go(self) -> None:
        if not self._there:
            return
        name = self._there.pop(self.rng.randrange(len(self._there)))
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=5000)
        response = await self.client.ask_any(request)
        self.judge(response.responses[0].error_code, f"DeleteTopics {name}")

    async def _grow(self) -> None:
        if not self._there:
            return
        name = self.rng.choice(self._there)
        request = CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name=name, count=self.rng.randint(2, 6), assignments=None)], timeout_ms=5000
        )
        response = await self.client.ask_any(request)
        self.judge(response.results[0].error_code, f"CreatePartitions {name}")

    async def _elect(self) -> None:
        response = await self.client.ask_any(ElectLeadersRequest(election_type=0, topic_partitions=None, timeout_ms=5000))
        self.judge(response.error_code, "ElectLeaders")

    async def _configure(self) -> None:
        value = str(self.rng.choice((3_000, 8_000, 60_000)))
        change = AlterableConfig(name="segment.ms", config_operation=0, value=value)
        resource = AlterConfigsResource(resource_type=TOPIC, resource_name="plain", configs=[change])
        response = await self.client.ask_any(IncrementalAlterConfigsRequest(resources=[resource]))
        self.judge(response.responses[0].error_code, "IncrementalAlterConfigs")

    async def _move(self) -> None:
        """A partition gets its replicas anew: in another order, or on brokers that came later."""
        brokers = [each.node_id for each in self.cluster.brokers if each.node_id not in self.growth.leaving]
        topic, count = self.rng.choice((("plain", 4), ("plain", 4), ("tx", 3), ("shared", 4), *INTERNAL))
        await self.move(topic, self.rng.randrange(count), self.rng.sample(brokers, 3))

    async def move(self, topic: str, index: int, replicas: Sequence[int]) -> None:
        """One partition to these brokers."""
        part = ReassignablePartition(partition_index=index, replicas=list(replicas))
        topics = [ReassignableTopic(name=topic, partitions=[part])]
        response = await self.client.ask_any(AlterPartitionReassignmentsRequest(topics=topics, timeout_ms=5000))
        self.judge(response.error_code, "AlterPartitionReassignments")
        self.judge(response.responses[0].partitions[0].error_code, f"AlterPartitionReassignments of {topic}-{index}")
