"""Who holds which task of a streams group, until it is confirmed that the member gave it up.

An active task is free when no member of the group has it. The state directory of a process admits a task once, so a task that any
member of the same process holds, in whichever role, is not free for a further role.
"""

from __future__ import annotations

from tidelog.coordinator.group.streams.owned_tasks import roles
from tidelog.coordinator.group.streams.tasks import TaskId, Tasks, task_ids


class TaskHolders:
    __slots__ = ("_active", "_all")

    def __init__(self) -> None:
        self._active: dict[TaskId, set[str]] = {}
        self._all: dict[TaskId, dict[str, str]] = {}
        """Task -> member -> its process."""

    def add(self, member_id: str, process_id: str, *owned: Tasks) -> None:
        """The member has these tasks."""
        for tasks in owned:
            for role in roles(tasks):
                for task in task_ids(role):
                    self._all.setdefault(task, {})[member_id] = process_id
            for task in task_ids(tasks.active):
                self._active.setdefault(task, set()).add(member_id)

    def drop(self, member_id: str, *owned: Tasks) -> None:
        """The member does not have these tasks any more. In a compacted log the next owner's record may have come first."""
        for tasks in owned:
            for role in roles(tasks):
                for task in task_ids(role):
                    holders = self._all.get(task, {})
                    holders.pop(member_id, None)
                    if not holders:
                        self._all.pop(task, None)
            for task in task_ids(tasks.active):
                running = self._active.get(task, set())
                running.discard(member_id)
                if not running:
                    self._active.pop(task, None)

    def is_active(self, task: TaskId) -> bool:
        """Whether a member has the active task."""
        return task in self._active

    def is_in_process(self, task: TaskId, process_id: str) -> bool:
        """Whether a member of the process has the task in any role."""
        return process_id in self._all.get(task, {}).values()
