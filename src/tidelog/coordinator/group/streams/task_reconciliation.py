"""Moves a member of a streams group from its current tasks to its target.

A member keeps its epoch until it has confirmed that it gave up the tasks outside its target (UNREVOKED_TASKS). Then it takes the
target's epoch and the free tasks, and waits for the rest (UNRELEASED_TASKS) with its next heartbeats. An active task is free when
no member has it; in whichever role, a task is free only when no member of the same process has it. What the member itself gave up
counts as held until that is recorded. Source: KIP-1071; the results match Kafka 4.3's CurrentAssignmentBuilder.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from tidelog.coordinator.group.streams.owned_tasks import NOTHING_OWNED, OwnedTasks, TaskEpochs, overlap
from tidelog.coordinator.group.streams.streams_group import MemberState, StreamsMember
from tidelog.coordinator.group.streams.task_holders import TaskHolders
from tidelog.coordinator.group.streams.tasks import NO_TASKS, TaskId, Tasks, TaskSet
from tidelog.model.errors import ErrorCode, KafkaError

IsTaken = Callable[[TaskId], bool]


class Target(NamedTuple):
    """A member's target, its epoch, and who holds which task now."""

    epoch: int
    tasks: Tasks
    holders: TaskHolders


def reconcile(member: StreamsMember, target: Target, reported: Tasks | None) -> StreamsMember:
    """The member after one step; the unchanged member when there is nothing to do. ``reported``: the tasks that it says it has;
    None when it says nothing. KafkaError FENCED_MEMBER_EPOCH when it must join again."""
    if member.is_reconciled_to(target.epoch):
        return member
    if member.state is MemberState.UNREVOKED_TASKS:
        if _still_has(member.revoking, reported):
            return member
        return _next(member, target, member.epoch + 1, reported)
    if member.state is MemberState.UNKNOWN:
        if reported != NO_TASKS:
            raise KafkaError(
                ErrorCode.FENCED_MEMBER_EPOCH,
                "The member's state was written by a newer release: it gives up its tasks and joins again.",
            )
        return _next(member, target, target.epoch, reported)
    return _next(member, target, member.epoch, reported)


def _still_has(revoking: OwnedTasks, reported: Tasks | None) -> bool:
    """Whether the member has one of these tasks; without a report it does."""
    return reported is None or overlap(revoking.plain(), reported)


class _Difference(NamedTuple):
    """One role: tasks to keep, to give up and to take, and whether some are not free."""

    kept: TaskSet
    lost: TaskSet
    taken: TaskSet
    waits: bool


def _difference(current: TaskSet, wanted: TaskSet, is_taken: IsTaken) -> _Difference:
    kept: dict[str, frozenset[int]] = {}
    lost: dict[str, frozenset[int]] = {}
    taken: dict[str, frozenset[int]] = {}
    waits = False
    for subtopology in dict.fromkeys((*wanted, *current)):
        has, wants = current.get(subtopology, frozenset()), wanted.get(subtopology, frozenset())
        missing = wants - has
        free = frozenset(partition for partition in missing if not is_taken(TaskId(subtopology, partition)))
        waits = waits or free != missing
        for found, tasks in ((kept, has & wants), (lost, has - wants), (taken, free)):
            if tasks:
                found[subtopology] = tasks
    return _Difference(kept, lost, taken, waits)


def _next(member: StreamsMember, target: Target, epoch: int, reported: Tasks | None) -> StreamsMember:
    holders, process_id = target.holders, member.process_id

    def in_process(task: TaskId) -> bool:
        return holders.is_in_process(task, process_id)

    def anywhere(task: TaskId) -> bool:
        return holders.is_active(task) or in_process(task)

    owned = member.assigned
    current = owned.plain()
    active = _difference(current.active, target.tasks.active, anywhere)
    standby = _difference(current.standby, target.tasks.standby, in_process)
    warmup = _difference(current.warmup, target.tasks.warmup, in_process)
    kept = OwnedTasks(_with_epochs(owned.active, active.kept), standby.kept, warmup.kept)
    lost = OwnedTasks(_with_epochs(owned.active, active.lost), standby.lost, warmup.lost)
    if lost and _still_has(lost, reported):
        return replace(
            member,
            state=MemberState.UNREVOKED_TASKS,
            epoch=epoch,
            previous_epoch=member.epoch,
            assigned=kept,
            revoking=lost,
        )
    fresh = {subtopology: dict.fromkeys(partitions, target.epoch) for subtopology, partitions in active.taken.items()}
    return replace(
        member,
        state=MemberState.UNRELEASED_TASKS if active.waits or standby.waits or warmup.waits else MemberState.STABLE,
        epoch=target.epoch,
        previous_epoch=member.epoch,
        assigned=OwnedTasks(
            {each: {**kept.active.get(each, {}), **fresh.get(each, {})} for each in dict.fromkeys((*kept.active, *fresh))},
            _joined(standby.kept, standby.taken),
            _joined(warmup.kept, warmup.taken),
        ),
        revoking=NOTHING_OWNED,
    )


def _with_epochs(known: TaskEpochs, tasks: TaskSet) -> TaskEpochs:
    return {
        subtopology: {partition: known[subtopology][partition] for partition in sorted(partitions)}
        for subtopology, partitions in tasks.items()
    }


def _joined(first: TaskSet, second: TaskSet) -> TaskSet:
    return {
        subtopology: first.get(subtopology, frozenset()) | second.get(subtopology, frozenset())
        for subtopology in dict.fromkeys((*first, *second))
    }
