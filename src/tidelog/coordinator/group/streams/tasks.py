"""Tasks of a streams group: one partition number of one subtopology, which reads that partition of all its source topics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias


class TaskId(NamedTuple):
    """Kafka writes it as ``subtopology_partition``."""

    subtopology: str
    partition: int


TaskSet: TypeAlias = Mapping[str, frozenset[int]]
"""Partition numbers by subtopology id; a subtopology without tasks is absent."""


@dataclass(frozen=True, slots=True)
class Tasks:
    """The tasks of one member, by role."""

    active: TaskSet = field(default_factory=dict)
    standby: TaskSet = field(default_factory=dict)
    warmup: TaskSet = field(default_factory=dict)


NO_TASKS = Tasks()


def task_ids(tasks: TaskSet) -> Iterator[TaskId]:
    """The tasks of a set, in order within each subtopology."""
    for subtopology, partitions in tasks.items():
        for partition in sorted(partitions):
            yield TaskId(subtopology, partition)


def task_set(tasks: Iterable[TaskId]) -> dict[str, frozenset[int]]:
    """The inverse of ``task_ids``; subtopologies in order of their ids."""
    found: dict[str, set[int]] = {}
    for subtopology, partition in sorted(tasks):
        found.setdefault(subtopology, set()).add(partition)
    return {subtopology: frozenset(partitions) for subtopology, partitions in found.items()}
