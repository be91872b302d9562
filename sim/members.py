"""Members of groups, of the classic and of the consumer protocol: they own partitions, and commit offsets for what they own.

Checked as it happens: in one generation (or at one member epoch, for what is owned under it) a partition has one owner. Offsets
grow with time, so what is found in the end must not lie below what was acknowledged.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sim.clients import History
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicPartition
from tidelog.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, RequestTopicPartitions
from tidelog.protocol.messages.heartbeat import HeartbeatRequest
from tidelog.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tidelog.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tidelog.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from tidelog.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tidelog.testing.simulation.client import GROUP, PASSING, Client, Later

SESSION_MS = 6_000
REBALANCE_MS = 6_000


class _Member(ABC):
    """What both kinds have in common."""

    def __init__(self, client: Client, history: History, group: str, topic: str, partitions: int) -> None:
        self.client, self.history, self.group, self.topic, self.partitions = client, history, group, topic, partitions
        self.member_id = ""
        self.epoch = -1

    async def coordinator(self, request: Any, timeout_ms: int = 5_000) -> Any:
        where = await self.client.coordinator(GROUP, self.group)
        # A channel of its own: JoinGroup waits long.
        return await self.client.ask(where, request, timeout_ms, f"group of {self.client.loop.name}")

    def passing(self, code: int) -> None:
        """Later, with a new look for the coordinator, for what passes."""
        if ErrorCode(code) in PASSING:
            self.client.forget(GROUP, self.group)
            raise Later(ErrorCode(code).name)

    async def commit(self, owned: Iterable[TopicPartition]) -> bool:
        """The time, as the offset of each partition that is owned. Whether this member is still one."""
        offset = int(self.client.now * 1000)
        parts = [OffsetCommitRequestPartition(partition_index=at.partition, committed_offset=offset) for at in sorted(owned)]
        if not parts:
            return True
        topics = [OffsetCommitRequestTopic(name=self.topic, topic_id=self._topic_id(), partitions=parts)]
        request = OffsetCommitRequest(
            group_id=self.group, generation_id_or_member_epoch=self.epoch, member_id=self.member_id, topics=topics
        )
        response = await self.coordinator(request)
        for part in response.topics[0].partitions:
            self.passing(part.error_code)
            if part.error_code:
                return False
            key = (self.group, TopicPartition(self.topic, part.partition_index))
            self.history.offsets[key] = max(self.history.offsets.get(key, -1), offset)
            self.history.operations += 1
        return True

    def claim(self, owned: set[TopicPartition]) -> None:
        owners = self.history.owned.setdefault((self.group, self.epoch), {})
        for at in sorted(owned):
            other = owners.setdefault(at, self.member_id)
            if other != self.member_id:
                self.history.wrong.append(f"{at} has two owners in generation {self.epoch} of {self.group}")

    def _topic_id(self) -> bytes:
        found = self.client.metadata.topics.get(self.topic)
        if found is None:
            raise Later("the topic is not known yet")
        return found.topic_id

    async def run(self, stop: Callable[[], bool], pace_s: float) -> None:
        while not stop():
            try:
                if self.topic not in self.client.metadata.topics:
                    await self.client.refresh(self.topic)
                await self.turn(stop, pace_s)
            except Later:
                self.client.forget(GROUP, self.group)
            await self.client.pause(pace_s)

    @abstractmethod
    async def turn(self, stop: Callable[[], bool], pace_s: float) -> None:
        """One step of a member's life; Later when the coordinator is not to be had."""


class ClassicMember(_Member):
    """JoinGroup, SyncGroup, and then heartbeats and commits until the generation ends."""

    async def turn(self, stop: Callable[[], bool], pace_s: float) -> None:
        metadata = struct.pack(">hih", 0, 1, len(self.topic)) + self.topic.encode() + struct.pack(">i", -1)
        join = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=metadata)],
        )
        joined = await self.coordinator(join, timeout_ms=REBALANCE_MS + 5_000)
        if joined.error_code:
            self._refused(joined.error_code, joined.member_id)
            return
        self.member_id, self.epoch = joined.member_id, joined.generation_id
        plan = self._plan([member.member_id for member in joined.members]) if joined.leader == self.member_id else {}
        sync = SyncGroupRequest(
            group_id=self.group,
            generation_id=self.epoch,
            member_id=self.member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[SyncGroupRequestAssignment(member_id=who, assignment=what) for who, what in plan.items()],
        )
        synced = await self.coordinator(sync, timeout_ms=REBALANCE_MS + 5_000)
        if synced.error_code:
            self._refused(synced.error_code, "")
            return
        owned = {TopicPartition(self.topic, index) for index in _read_plan(bytes(synced.assignment))}
        self.claim(owned)
        while not stop():
            await self.client.pause(pace_s)
            beat = HeartbeatRequest(group_id=self.group, generation_id=self.epoch, member_id=self.member_id)
            response = await self.coordinator(beat)
            if response.error_code:
                self._refused(response.error_code, "")
                return
            if not await self.commit(owned):
                return

    def _refused(self, code: int, member_id: str) -> None:
        error = ErrorCode(code)
        if error is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = member_id
        elif error is ErrorCode.UNKNOWN_MEMBER_ID:
            self.history.rare["members of a group put out"] += 1
            self.member_id = ""
        elif error not in (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION):
            self.passing(code)
            raise AssertionError(f"group {self.group}: {error.name}")

    def _plan(self, members: Sequence[str]) -> dict[str, bytes]:
        parts: dict[str, list[int]] = {member: [] for member in sorted(members)}
        names = sorted(members)
        for index in range(self.partitions):
            parts[names[index % len(names)]].append(index)
        return {
            member: struct.pack(">hih", 0, 1, len(self.topic))
            + self.topic.encode()
            + struct.pack(f">i{len(found)}i", len(found), *found)
            + struct.pack(">i", -1)
            for member, found in parts.items()
        }


def _read_plan(data: bytes) -> list[int]:
    if not data:
        return []
    (length,) = struct.unpack_from(">h", data, 6)
    (count,) = struct.unpack_from(">i", data, 8 + length)
    return list(struct.unpack_from(f">{count}i", data, 12 + length))


class ConsumerMember(_Member):
    """KIP-848: one heartbeat for everything. What it was given under a member epoch, nobody else is given under the same."""

    def __init__(self, client: Client, history: History, group: str, topic: str, partitions: int) -> None:
        super().__init__(client, history, group, topic, partitions)
        self.owned: set[int] = set()

    async def turn(self, stop: Callable[[], bool], pace_s: float) -> None:
        if not self.member_id:
            self.member_id = f"{self.client.rng.getrandbits(128):032x}"
            self.epoch = 0
        joining = self.epoch == 0
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=self.epoch,
            rebalance_timeout_ms=REBALANCE_MS if joining else -1,
            subscribed_topic_names=[self.topic] if joining else None,
            topic_partitions=self._reported(),
        )
        response = await self.coordinator(request)
        error = ErrorCode(response.error_code)
        if error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH):
            self.history.rare["members of a group put out"] += 1
            self.owned, self.epoch = set(), 0
            return
        if error is not ErrorCode.NONE:
            self.passing(response.error_code)
            raise AssertionError(f"group {self.group}: {error.name} {response.error_message}")
        self.epoch = response.member_epoch
        if response.assignment is not None:
            self.owned = {index for topic in response.assignment.topic_partitions for index in topic.partitions}
            self.claim({TopicPartition(self.topic, index) for index in self.owned})
        await self.commit({TopicPartition(self.topic, index) for index in self.owned})

    def _reported(self) -> list[RequestTopicPartitions]:
        if not self.owned:
            return []
        return [RequestTopicPartitions(topic_id=self._topic_id(), partitions=sorted(self.owned))]


async def committed_offsets(client: Client, group: str) -> dict[TopicPartition, int]:
    """What the group's coordinator says. Later when it cannot."""
    where = await client.coordinator(GROUP, group)
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=None)])
    response = await client.ask(where, request)
    (found,) = response.groups
    if ErrorCode(found.error_code) in PASSING:
        client.forget(GROUP, group)
        raise Later(ErrorCode(found.error_code).name)
    assert not found.error_code, ErrorCode(found.error_code).name
    names = {bytes(topic.topic_id): name for name, topic in client.metadata.topics.items()}
    return {
        TopicPartition(topic.name or names[bytes(topic.topic_id)], part.partition_index): part.committed_offset
        for topic in found.topics
        for part in topic.partitions
    }
