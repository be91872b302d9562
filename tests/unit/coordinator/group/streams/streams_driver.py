"""The driver of a GroupCoordinator with members of streams groups. Topic ``in`` has two partitions; the topology counts words: a
subtopology that reads ``in`` and writes ``app-words-repartition``, and one that reads this and keeps a store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.unit.coordinator.group.consumer_driver import ConsumerDriver
from tidelog.coordinator.group.records import GroupRecord
from tidelog.coordinator.group.settings import Bounded, GroupSettings
from tidelog.coordinator.group.streams.streams_answer import Answered
from tidelog.coordinator.group.streams.streams_group import StreamsGroup, StreamsMember
from tidelog.coordinator.group.streams.streams_heartbeat import StreamsBeat
from tidelog.coordinator.group.streams.streams_state import StreamsGroupState
from tidelog.protocol.messages.streams_group_heartbeat import (
    KeyValue,
    RequestEndpoint,
    RequestTaskIds,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    Subtopology,
    TopicInfo,
    Topology,
)

ANN, BOB, CID = "ann", "bob", "cid"
DAY = 24 * 3_600_000
IN, WORDS, COUNTS = "in", "app-words-repartition", "app-counts-changelog"
ALL_TOPICS = {IN: 2, WORDS: 2, COUNTS: 2}
Held = Mapping[str, list[int]]
AT_ONCE = GroupSettings(
    streams_initial_rebalance_delay=Bounded(0, 0, 1, "streams.initial.rebalance.delay.ms"),
    streams_assignment_interval=Bounded(0, 0, 15_000, "streams.assignment.interval.ms"),
)
"""Targets are computed with the heartbeat that needs them."""


def word_count(epoch: int = 0, source: str = IN) -> Topology:
    """The topology of these tests."""
    return Topology(
        epoch,
        [
            Subtopology("0", source_topics=[source], repartition_sink_topics=[WORDS]),
            Subtopology(
                "1",
                repartition_source_topics=[TopicInfo(WORDS, topic_configs=[KeyValue("retention.ms", "-1")])],
                state_changelog_topics=[TopicInfo(COUNTS, topic_configs=[KeyValue("cleanup.policy", "compact")])],
            ),
        ],
    )


def task_ids(tasks: Held) -> list[RequestTaskIds]:
    return [RequestTaskIds(subtopology, list(partitions)) for subtopology, partitions in tasks.items()]


class StreamsDriver(ConsumerDriver):
    """The internal topics exist, unless ``topics`` says otherwise."""

    def __init__(self, settings: GroupSettings | None = None, topics: dict[str, int] | None = None, **fields: Any) -> None:
        super().__init__(settings or AT_ONCE, topics=ALL_TOPICS if topics is None else topics, **fields)
        self.missing: list[str] = []
        """The internal topics that the last answer ordered."""

    def streams_beat(
        self, member: str, epoch: int, owns: tuple[Held, Held] | None = None, group: str = "g", **fields: Any
    ) -> StreamsGroupHeartbeatResponse:
        """A heartbeat; ``owns`` are active and standby tasks that the member reports."""
        token = self.token()
        if owns is not None:
            fields |= {"active_tasks": task_ids(owns[0]), "standby_tasks": task_ids(owns[1]), "warmup_tasks": []}
        request = StreamsGroupHeartbeatRequest(group_id=group, member_id=member, member_epoch=epoch, **fields)
        self.run(self.machine.streams.heartbeat(StreamsBeat(token, "c", "/127.0.0.1", request), self.now))
        answer = self.answers[token]
        assert isinstance(answer, Answered)
        self.missing = sorted(answer.missing_topics)
        return answer.response

    def enter_streams(
        self, member: str, process: str | None = None, topology: Topology | None = None, group: str = "g", **fields: Any
    ) -> StreamsGroupHeartbeatResponse:
        """The first heartbeat of a member, in a process of its own unless one is named."""
        return self.streams_beat(
            member,
            0,
            ({}, {}),
            group,
            process_id=process or f"process-{member}",
            topology=word_count() if topology is None else topology,
            rebalance_timeout_ms=fields.pop("rebalance_timeout_ms", 60_000),
            **fields,
        )

    def streams(self, group: str = "g") -> StreamsGroup:
        """The group, which must be a streams group."""
        found = self.machine.groups[group]
        assert isinstance(found, StreamsGroup)
        return found

    def runner(self, member: str, group: str = "g") -> StreamsMember:
        """A member as it is recorded."""
        return self.streams(group).members[member]


def active(answer: StreamsGroupHeartbeatResponse) -> dict[str, list[int]] | None:
    """The active tasks that an answer tells; None when it says nothing of tasks."""
    return None if answer.active_tasks is None else {each.subtopology_id: list(each.partitions) for each in answer.active_tasks}


def standby(answer: StreamsGroupHeartbeatResponse) -> dict[str, list[int]] | None:
    """The standby tasks that an answer tells."""
    return None if answer.standby_tasks is None else {each.subtopology_id: list(each.partitions) for each in answer.standby_tasks}


def statuses(answer: StreamsGroupHeartbeatResponse) -> list[int]:
    """The codes of an answer's statuses."""
    return [each.status_code for each in answer.status or ()]


def kinds(records: list[GroupRecord]) -> list[int]:
    """The types of records; tombstones are negative."""
    return [(1 if each.value is not None else -1) * int.from_bytes(each.key[:2], "big") for each in records]


def endpoint(host: str, port: int) -> RequestEndpoint:
    return RequestEndpoint(host, port)


def pair(driver: StreamsDriver) -> None:
    """``ann`` and ``bob`` have one partition of each subtopology, both at epoch 3."""
    driver.enter_streams(ANN)
    driver.enter_streams(BOB)
    driver.streams_beat(ANN, 2)
    kept = driver.runner(ANN).assigned.plain().active
    driver.streams_beat(ANN, 2, ({key: sorted(found) for key, found in kept.items()}, {}))
    driver.streams_beat(BOB, 3)
    assert {driver.runner(each).epoch for each in (ANN, BOB)} == {3}
    assert driver.streams().state is StreamsGroupState.STABLE


def at_interval(interval_ms: int) -> GroupSettings:
    """``AT_ONCE``, but for the time between two targets."""
    return AT_ONCE._replace(streams_assignment_interval=AT_ONCE.streams_assignment_interval._replace(value=interval_ms))
