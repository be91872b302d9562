"""A streams group of two processes, as Kafka Streams would join it: by heartbeats until each has the tasks that it is given."""

from __future__ import annotations

from typing import Any

from tidelog.client.admin import configs
from tidelog.client.admin.results import ResourceType
from tidelog.client.calls import Ask, Call, Coordinator
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.streams_group_heartbeat import (
    RequestTaskIds,
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TopicInfo,
    Topology,
)

MEMBERS = ("AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg")
STANDBY = {
    "streams.num.standby.replicas": "1",
    "streams.initial.rebalance.delay.ms": "0",
    "streams.assignment.interval.ms": "0",
}
MOST_ROUNDS = 1000
"""Of heartbeats, while the group's changelog topic is created."""


def join_with_a_standby(group: str, source: str, partitions: int) -> Call[dict[str, Any]]:
    """Two processes; each task of the one subtopology, as many as the source has partitions, keeps a store, and has a standby
    copy in the other process. The last answer to each member."""
    yield from configs.alter(ResourceType.GROUP, group, STANDBY)
    answers: dict[str, Any] = {}
    for _ in range(MOST_ROUNDS):
        for process, member in enumerate(MEMBERS):
            found = yield from _beat(group, source, member, f"process-{process}", answers.get(member))
            before = answers.get(member)
            if before is not None and found.active_tasks is None:  # unchanged
                found.active_tasks, found.standby_tasks = before.active_tasks, before.standby_tasks
            answers[member] = found
        epochs = {each.member_epoch for each in answers.values()}
        standby = [part for each in answers.values() for tasks in each.standby_tasks or () for part in tasks.partitions]
        if len(epochs) == 1 and len(standby) == partitions:
            yield from stay(group, source, answers)
            return answers
    raise AssertionError(f"the group did not settle: {answers}")


def stay(group: str, source: str, answers: dict[str, Any]) -> Call[None]:
    """Each member says that it has its tasks, and keeps its session."""
    for process, member in enumerate(MEMBERS):
        yield from _beat(group, source, member, f"process-{process}", answers[member])


def _beat(group: str, source: str, member: str, process: str, before: Any) -> Call[Any]:
    def own(tasks: Any) -> list[RequestTaskIds]:
        return [RequestTaskIds(each.subtopology_id, each.partitions) for each in tasks or ()]

    changelog = TopicInfo(name=f"{group}-store-changelog", replication_factor=1)
    topology = Topology(3, [Subtopology("0", [source], state_changelog_topics=[changelog])])
    request = StreamsGroupHeartbeatRequest(
        group_id=group,
        member_id=member,
        member_epoch=0 if before is None else before.member_epoch,
        rebalance_timeout_ms=60_000,
        topology=topology if before is None else None,
        active_tasks=own(None if before is None else before.active_tasks),
        standby_tasks=own(None if before is None else before.standby_tasks),
        warmup_tasks=[],
        process_id=process,
    )
    found = yield Ask(request, Coordinator(group), code_of=lambda answer: int(answer.error_code))
    assert found.error_code == ErrorCode.NONE, (found.error_code, found.error_message)
    return found
