"""Drives a GroupCoordinator as its runner does: records are replayed before answers leave; time is what the test says."""

from __future__ import annotations

import random
from typing import Any

from tidelog.coordinator.group.classic.classic_group import GroupState
from tidelog.coordinator.group.classic.joining import Join
from tidelog.coordinator.group.coordinator import GroupCoordinator
from tidelog.coordinator.group.records import GroupRecord
from tidelog.coordinator.group.settings import GroupSettings
from tidelog.metadata.image import EMPTY_IMAGE, ClusterImage
from tidelog.model.machine import Outcome, Token
from tidelog.protocol.messages.heartbeat import HeartbeatRequest
from tidelog.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tidelog.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from tidelog.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from tidelog.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from tidelog.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment


class Driver:
    """One coordinator with its log, the time and the answers so far."""

    def __init__(self, settings: GroupSettings | None = None, seed: int = 1, image: ClusterImage = EMPTY_IMAGE) -> None:
        self.image = image
        self.settings = settings or GroupSettings()
        self.rng = random.Random(seed)
        self.now = 1_000_000
        self.log: list[GroupRecord] = []
        self.answers: dict[int, Any] = {}
        self._tokens = 0
        self.machine = self._load()

    def _load(self) -> GroupCoordinator:
        machine = GroupCoordinator(self.settings, self.rng, self.now, lambda: self.image)
        for record in self.log:
            machine.replay(record, self.now)
        machine.loaded(self.now)
        return machine

    def restart(self) -> None:
        """A crash: what was parked is lost, what was recorded is not."""
        self.machine = self._load()

    def token(self) -> Token:
        self._tokens += 1
        return Token(self._tokens)

    def run(self, outcome: Outcome) -> None:
        for record in outcome.records:
            self.log.append(record)
            self.machine.replay(record, self.now)
        for reply in outcome.replies:
            assert reply.token not in self.answers, "answered twice"
            self.answers[reply.token] = reply.response
        self.machine.check()

    def advance(self, ms: int) -> None:
        """Time passes; everything that falls due on the way happens when it is due."""
        end = self.now + ms
        while (due := self.machine.next_deadline()) <= end:
            self.now = max(self.now, due)
            self.run(self.machine.expire(self.now))
        self.now = end

    # -- requests ------------------------------------------------------------------------------------------------------------

    def join(
        self, group: str, member: str = "", *, instance: str | None = None, version: int = 9, session: int = 10_000,
        rebalance: int = 60_000, protocols: tuple[tuple[str, bytes], ...] = (("range", b"r"),), kind: str = "consumer",
        client: str = "c",
    ) -> Token:  # fmt: skip
        token = self.token()
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=session,
            rebalance_timeout_ms=rebalance,
            member_id=member,
            group_instance_id=instance,
            protocol_type=kind,
            protocols=[JoinGroupRequestProtocol(name=name, metadata=metadata) for name, metadata in protocols],
        )
        self.run(self.machine.join(Join(token, version, client, "/127.0.0.1", request), self.now))
        return token

    def join_twice(self, group: str, **options: Any) -> tuple[str, Token]:
        """As a client since v4 does: the first answer only brings the id."""
        first = self.answers[self.join(group, **options)]
        return first.member_id, self.join(group, first.member_id, **options)

    def sync(self, group: str, member: str, generation: int, assignment: dict[str, bytes] | None = None, **options: Any) -> Token:
        token = self.token()
        assignments = [SyncGroupRequestAssignment(member_id=key, assignment=value) for key, value in (assignment or {}).items()]
        request = SyncGroupRequest(group_id=group, member_id=member, generation_id=generation, assignments=assignments, **options)
        self.run(self.machine.sync(token, request, self.now))
        return token

    def heartbeat(self, group: str, member: str, generation: int, instance: str | None = None) -> int:
        token = self.token()
        request = HeartbeatRequest(group_id=group, generation_id=generation, member_id=member, group_instance_id=instance)
        self.run(self.machine.heartbeat(token, request, self.now))
        return int(self.answers[token].error_code)

    def leave(self, group: str, *members: tuple[str, str | None]) -> Any:
        token = self.token()
        request = LeaveGroupRequest(
            group_id=group, members=[MemberIdentity(member_id=key, group_instance_id=instance) for key, instance in members]
        )
        self.run(self.machine.leave(token, request, 5, self.now))
        return self.answers[token]

    def delete_offsets(self, group: str, topic: str) -> int:
        """The error for partition 0 of the topic."""
        token = self.token()
        topics = [OffsetDeleteRequestTopic(name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=0)])]
        self.run(self.machine.offsets.delete_offsets(token, OffsetDeleteRequest(group_id=group, topics=topics)))
        assert self.answers[token].error_code == 0
        return int(self.answers[token].topics[0].partitions[0].error_code)

    def commit(
        self, group: str, offsets: dict[tuple[str, int], int], member: str = "", generation: int = -1, metadata: str = "",
        *, version: int = 9,
    ) -> list[int]:  # fmt: skip
        token = self.token()
        topics: dict[str, OffsetCommitRequestTopic] = {}
        for (topic, partition), offset in offsets.items():
            entry = topics.setdefault(topic, OffsetCommitRequestTopic(name=topic))
            entry.partitions.append(
                OffsetCommitRequestPartition(
                    partition_index=partition, committed_offset=offset, committed_leader_epoch=3, committed_metadata=metadata
                )
            )
        request = OffsetCommitRequest(
            group_id=group, generation_id_or_member_epoch=generation, member_id=member, topics=list(topics.values())
        )
        self.run(self.machine.offsets.commit(token, request, version, self.now))
        return [int(p.error_code) for t in self.answers[token].topics for p in t.partitions]


def stable_group(driver: Driver, count: int = 2, group: str = "g") -> list[str]:
    """A group of dynamic members that all have an assignment, the leader first."""
    joins = [driver.join_twice(group) for _ in range(count)]
    driver.advance(driver.settings.initial_rebalance_delay_ms * (count + 1))
    ids = [member for member, _ in joins]
    generation = driver.answers[joins[0][1]].generation_id
    assert driver.answers[joins[0][1]].leader == ids[0]
    for member in ids[1:]:
        driver.sync(group, member, generation)
    driver.sync(group, ids[0], generation, {member: member.encode() for member in ids})
    assert driver.machine.groups[group].state is GroupState.STABLE
    return ids


def static_pair(driver: Driver, version: int = 9) -> list[str]:
    tokens = [driver.join("g", instance=f"i{n}", version=version, session=60_000) for n in range(2)]
    driver.advance(9_000)
    ids = [driver.answers[token].member_id for token in tokens]
    driver.sync("g", ids[0], 1, {member: member.encode() for member in ids}, group_instance_id="i0")
    return ids
