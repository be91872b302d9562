"""A simulated cluster that grows and shrinks while it runs: a controller and a broker come; voters are added and removed; the
broker gets partitions, and in the end it is drained."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import METADATA_TOPIC
from tidelog.protocol.messages import describe_quorum as quorum_wire
from tidelog.protocol.messages.add_raft_voter import AddRaftVoterRequest, Listener
from tidelog.protocol.messages.metadata import MetadataRequest
from tidelog.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from tidelog.testing.simulation.client import Later
from tidelog.testing.simulation.cluster import CLUSTER_ID, controller_endpoint

if TYPE_CHECKING:
    from sim.cluster_admin import Admin

NEW_CONTROLLER, NEW_BROKER = 110, 9
VOTERS = 3
CHANGE_MS = 5_000


class Growth:
    """The administrator's part of it."""

    def __init__(self, admin: Admin, seed: int) -> None:
        self.admin, self.cluster = admin, admin.cluster
        self.rng = random.Random(seed)
        self.leaving: set[int] = set()
        """Brokers that get no partition any more."""
        self.drained = True
        """Whether they have none."""

    def _is_there(self, node_id: int) -> bool:
        return any(each.node_id == node_id for each in self.cluster.machines)

    async def step(self) -> None:
        """One of the things that can be done now. Later when it cannot be done yet."""
        steps = [self._broker]
        if not self.cluster.shape.static:
            steps += [self._voter, self._voter]
        await self.rng.choice(steps)()

    async def _broker(self) -> None:
        if not self._is_there(NEW_BROKER):
            self.cluster.join(NEW_BROKER, broker=True)
            self.admin.history.rare["brokers that joined"] += 1
        elif not self.leaving and self.rng.random() < 0.3:
            self.leaving.add(NEW_BROKER)
            self.drained = False
        if self.leaving:
            await self.drain()

    async def drain(self) -> None:
        """Every partition that a leaving broker holds goes to others."""
        client = self.admin.client
        response = await client.ask_any(MetadataRequest(topics=None, allow_auto_topic_creation=False))
        others = [each.node_id for each in self.cluster.brokers if each.node_id not in self.leaving]
        held = [
            (topic.name, part.partition_index, part.replica_nodes)
            for topic in response.topics
            for part in topic.partitions
            if self.leaving & set(part.replica_nodes)
        ]
        if not held and not self.drained:
            self.admin.history.rare["brokers drained"] += 1
        self.drained = not held
        for name, index, replicas in held:
            stay = [each for each in replicas if each in others]
            free = [each for each in others if each not in stay]
            # While it moves, a partition has more replicas than it is to keep.
            new = self.rng.sample(free, min(len(free), len(replicas) - len(stay)))
            try:
                await self.admin.move(name, index, [*stay, *new])
            except Later:
                await client.pause(0.5)
        if held:
            await client.pause(2.0)

    async def _voter(self) -> None:
        """One voter more, or one fewer, so that there are three or four."""
        if not self._is_there(NEW_CONTROLLER):
            self.cluster.join(NEW_CONTROLLER, controller=True)
            self.admin.history.rare["controllers that joined"] += 1
            return
        client = self.admin.client
        partition = quorum_wire.RequestPartitionData(partition_index=0)
        topics = [quorum_wire.RequestTopicData(topic_name=METADATA_TOPIC, partitions=[partition])]
        described = await client.ask_any(quorum_wire.DescribeQuorumRequest(topics=topics))
        if described.error_code:
            raise Later(ErrorCode(described.error_code).name)
        found = described.topics[0].partitions[0]
        if found.error_code:
            raise Later(ErrorCode(found.error_code).name)
        voters = {state.replica_id: bytes(state.replica_directory_id) for state in found.current_voters}
        outside = [each.node_id for each in self.cluster.controllers if each.node_id not in voters]
        if len(voters) > VOTERS:
            await self._remove(voters)
        elif outside:
            await self._add(self.rng.choice(outside))

    async def _add(self, node_id: int) -> None:
        at = controller_endpoint(node_id)
        request = AddRaftVoterRequest(
            cluster_id=CLUSTER_ID,
            timeout_ms=CHANGE_MS,
            voter_id=node_id,
            voter_directory_id=self.cluster.directories[node_id],
            listeners=[Listener(name=at.name, host=at.host, port=at.port)],
        )
        response = await self.admin.client.ask_any(request)
        self.admin.judge(response.error_code, f"AddRaftVoter {node_id}: {response.error_message}")

    async def _remove(self, voters: dict[int, bytes]) -> None:
        node_id = self.rng.choice(sorted(voters))
        request = RemoveRaftVoterRequest(cluster_id=CLUSTER_ID, voter_id=node_id, voter_directory_id=voters[node_id])
        response = await self.admin.client.ask_any(request)
        self.admin.judge(response.error_code, f"RemoveRaftVoter {node_id}: {response.error_message}")
