"""The target of a streams group: which member is to have which tasks.

The first target of a group that was empty waits for more members (``streams.initial.rebalance.delay.ms``), and there is at most
one target in each assignment interval; until then members reconcile with the last one and learn why (status 5). A topology
whose topics are not all there has no tasks. Only members whose target changes get records; that of the epoch comes last.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tidelog.coordinator.group.consumer.consumer_heartbeat import check_sizes
from tidelog.coordinator.group.group_registry import Coordination
from tidelog.coordinator.group.records import GroupRecord
from tidelog.coordinator.group.streams.sticky_assignor import MemberState, assign
from tidelog.coordinator.group.streams.streams_group import StreamsGroup, StreamsMember
from tidelog.coordinator.group.streams.streams_records import target_epoch_record, target_record
from tidelog.coordinator.group.streams.streams_settings import STANDBYS, assignment_interval_ms
from tidelog.coordinator.group.streams.tasks import NO_TASKS, Tasks
from tidelog.coordinator.group.streams.topology import ConfiguredTopology
from tidelog.coordinator.partition_for_key import map_order
from tidelog.model.errors import ErrorCode, KafkaError

INITIAL_DELAY = "The first assignment waits for more members: streams.initial.rebalance.delay.ms."
TASK_BYTES = 4
"""Of a task in the record of a member's target, at least."""
INTERVAL = "The next assignment waits for its turn: streams.assignment.interval.ms."


class NextTarget(NamedTuple):
    """The target that members reconcile with now: its epoch, the tasks of each member, the records that store it, and why a newer
    one is delayed."""

    epoch: int
    tasks: Mapping[str, Tasks]
    records: tuple[GroupRecord, ...] = ()
    delayed: str | None = None


class Plan(NamedTuple):
    """What a target is computed for: a group epoch, the members, the topology, and the settings."""

    epoch: int
    members: Mapping[str, StreamsMember]
    configured: ConfiguredTopology
    configs: Mapping[str, str]


def next_target(c: Coordination, group: StreamsGroup, plan: Plan, now_ms: int, *, waits: bool) -> NextTarget:
    """A new target if the group's epoch has risen and neither delay holds. ``waits``: the group waits for its first members.
    KafkaError UNKNOWN_SERVER_ERROR for tasks that no records can hold."""
    if waits:
        return NextTarget(group.assignment_epoch, {}, delayed=INITIAL_DELAY)
    if group.assignment_epoch >= plan.epoch:
        return NextTarget(group.assignment_epoch, group.target)
    interval_ms = assignment_interval_ms(c, group.group_id)
    # Another coordinator, whose clock was ahead, may have computed the last one.
    if group.assignment_ms and 0 <= now_ms - group.assignment_ms < interval_ms:
        return NextTarget(group.assignment_epoch, group.target, delayed=INTERVAL)
    return _computed(c, group, plan, now_ms)


def _computed(c: Coordination, group: StreamsGroup, plan: Plan, now_ms: int) -> NextTarget:
    tasks: Mapping[str, Tasks] = {}
    if plan.configured.ready:
        _check_task_count(c, plan)
        specs = {member_id: _spec(member, group.target_of(member_id)) for member_id, member in plan.members.items()}
        tasks = assign(specs, plan.configured, int(plan.configs.get(STANDBYS, "0")))
    target = {member_id: tasks.get(member_id, NO_TASKS) for member_id in map_order(plan.members)}
    records = [
        target_record(group.group_id, member_id, wanted)
        for member_id, wanted in target.items()
        if group.target.get(member_id) != wanted
    ]
    records.append(target_epoch_record(group.group_id, plan.epoch, now_ms))
    return NextTarget(plan.epoch, target, tuple(records))


def _check_task_count(c: Coordination, plan: Plan) -> None:
    """A short topology may read a topic of many partitions thousands of times; what the records would refuse in the end is not
    computed first."""
    tasks = sum(each.tasks for each in plan.configured.subtopologies.values())
    if tasks * TASK_BYTES > c.settings.max_record_bytes * len(plan.members):
        text = f"The topology has {tasks} tasks; the records of {len(plan.members)} members cannot hold them."
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, text)


def _spec(member: StreamsMember, last: Tasks) -> MemberState:
    return MemberState(member.process_id, member.client_tags, last.active, last.standby, last.warmup)


def delayed_target(c: Coordination, group: StreamsGroup, now_ms: int) -> tuple[GroupRecord, ...]:
    """The first target of a group, when the wait for more members is over. Without members, or on a coordinator that has not
    configured the topology yet, the next heartbeat computes it; it also refuses a target that is too large for the log."""
    if not group.members or group.configured is None:
        return ()
    plan = Plan(group.epoch, group.members, group.configured, group.assignment_configs)
    try:
        records = next_target(c, group, plan, now_ms, waits=False).records
        check_sizes(c, records)
    except KafkaError:
        return ()
    return records
