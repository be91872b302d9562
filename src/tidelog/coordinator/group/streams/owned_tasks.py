"""The tasks that a member of a streams group has, and those that it reports.

Active tasks are kept with the epoch of the target in which the member got them: a commit of an older member epoch is fine for a
task that the member has had since then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from tidelog.coordinator.group.streams.tasks import Tasks, TaskSet

TaskEpochs: TypeAlias = Mapping[str, Mapping[int, int]]
"""Subtopology id -> partition -> the target's epoch in which the member got the task."""


@dataclass(frozen=True, slots=True)
class OwnedTasks:
    """Tasks by role; a subtopology without tasks is absent."""

    active: TaskEpochs = field(default_factory=dict)
    standby: TaskSet = field(default_factory=dict)
    warmup: TaskSet = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.active or self.standby or self.warmup)

    def plain(self) -> Tasks:
        """The same without epochs."""
        active = {subtopology: frozenset(partitions) for subtopology, partitions in self.active.items()}
        return Tasks(active, self.standby, self.warmup)


NOTHING_OWNED = OwnedTasks()


class SentTasks(Protocol):
    """An entry of a list of tasks in a message."""

    subtopology_id: str
    partitions: list[int]


def read_tasks(sent: Iterable[SentTasks]) -> TaskSet:
    """A list of tasks as a message has it; entries of one subtopology are merged."""
    found: dict[str, set[int]] = {}
    for entry in sent:
        found.setdefault(entry.subtopology_id, set()).update(entry.partitions)
    return {subtopology: frozenset(partitions) for subtopology, partitions in found.items() if partitions}


def roles(tasks: Tasks) -> tuple[TaskSet, TaskSet, TaskSet]:
    """Active, standby and warm-up tasks."""
    return tasks.active, tasks.standby, tasks.warmup


def overlap(first: Tasks, second: Tasks) -> bool:
    """Whether both have a task in the same role."""
    return any(
        not partitions.isdisjoint(theirs.get(subtopology, ()))
        for ours, theirs in zip(roles(first), roles(second), strict=True)
        for subtopology, partitions in ours.items()
    )


def is_part_of(some: Tasks, known: Tasks) -> bool:
    """Whether ``known`` has all tasks of ``some``, each in its role."""
    return all(
        partitions <= theirs.get(subtopology, frozenset())
        for ours, theirs in zip(roles(some), roles(known), strict=True)
        for subtopology, partitions in ours.items()
    )
