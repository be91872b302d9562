"""Sets of tasks."""

from __future__ import annotations

from tidelog.coordinator.group.streams.tasks import TaskId, task_ids, task_set


def test_a_set_of_tasks_is_its_ids() -> None:
    tasks = {"0": frozenset({2, 1}), "1": frozenset({0})}
    assert list(task_ids(tasks)) == [TaskId("0", 1), TaskId("0", 2), TaskId("1", 0)]
    assert task_set(reversed(list(task_ids(tasks)))) == tasks
    assert list(task_set([TaskId("b", 0), TaskId("a", 0)])) == ["a", "b"]
