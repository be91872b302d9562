"""The assignor of streams groups, "sticky": tasks stay where they are, or go where their state is, as far as balance allows.

Two quotas hold for each member: active tasks, and tasks of all roles. Each is the rounded-up mean; a member that reaches one
leaves the mean, which is then taken over the rest. Active tasks go to the previous owner below its quota, then to a member that
has their state, then to the process with the fewest tasks per member. Standbys of stateful tasks go to the previous active
owner, then to a member that has their state, then to the least loaded process. A process never holds two copies of a task, so
there are fewer standbys than asked for when processes run out. Source: KIP-1071; Kafka 4.4 ranks by task offsets, as here.

Members and processes are taken in the order of their ids, where Kafka's order is that of hash tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tidelog.coordinator.group.streams import load_queue
from tidelog.coordinator.group.streams.tasks import TaskId, Tasks, TaskSet, task_ids, task_set
from tidelog.coordinator.group.streams.topology import ConfiguredTopology


@dataclass(frozen=True, slots=True)
class MemberState:
    """A member, with its part of the last target assignment.

    ``task_offsets``: the sum of changelog offsets in its local state, for tasks that it reported. Client tags and warm-up tasks
    do not influence this assignor.
    """

    process_id: str
    client_tags: Mapping[str, str] = field(default_factory=dict)
    active: TaskSet = field(default_factory=dict)
    standby: TaskSet = field(default_factory=dict)
    warmup: TaskSet = field(default_factory=dict)
    task_offsets: Mapping[TaskId, int] = field(default_factory=dict)


def assign(members: Mapping[str, MemberState], configured: ConfiguredTopology, standbys: int) -> dict[str, Tasks]:
    """The tasks of each member. ``standbys``: wanted for each stateful task, besides the active one."""
    if not members:
        return {}
    active = list(configured.tasks())
    stateful = [task for task in active if configured.subtopologies[task.subtopology].stateful]
    assignment = _Assignment(members, len(active), len(active) + standbys * len(stateful))
    assignment.assign_active(active)
    if standbys:
        assignment.assign_standby(stateful, standbys)
    return assignment.result()


class _Quota:
    """Tasks that a member may take: the mean over those that are still below it, rounded up."""

    __slots__ = ("_members", "_tasks", "value")

    def __init__(self, tasks: int, members: int) -> None:
        self._tasks = tasks
        self._members = members
        self.value = 0
        self._compute()

    def _compute(self) -> None:
        self.value = -(-self._tasks // self._members) if self._members else 0

    def note(self, tasks: int) -> None:
        """A member has this many tasks now."""
        if tasks == self.value:
            self._members -= 1
            self._tasks -= tasks
            self._compute()


class _Process:
    """One process: its members and what they have so far."""

    __slots__ = ("_by_load", "_tasks", "active", "counts", "held", "standby")

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.active: dict[str, list[TaskId]] = {}
        self.standby: dict[str, list[TaskId]] = {}
        self.held: set[TaskId] = set()
        self._tasks = 0
        self._by_load: load_queue.LoadQueue[str] | None = None

    def add_member(self, member: str) -> None:
        self.counts[member] = 0
        self.active[member] = []
        self.standby[member] = []

    def load(self) -> float:
        """Tasks per member."""
        return self._tasks / len(self.counts)

    def add(self, member: str, task: TaskId, active: bool) -> int:
        """Gives a member a task; how many it has then."""
        self._by_load = None
        return self._add(member, task, active)

    def add_to_least_loaded(self, task: TaskId, active: bool) -> int:
        """Gives the member with the fewest tasks one more; how many it has then."""
        if self._by_load is None:
            self._by_load = load_queue.LoadQueue(list(self.counts), self.counts.__getitem__)
        member = self._by_load.pop()
        assert member is not None
        count = self._add(member, task, active)
        self._by_load.push(member)
        return count

    def _add(self, member: str, task: TaskId, active: bool) -> int:
        self.held.add(task)
        (self.active if active else self.standby)[member].append(task)
        self._tasks += 1
        self.counts[member] += 1
        return self.counts[member]


class _Assignment:
    def __init__(self, members: Mapping[str, MemberState], active: int, total: int) -> None:
        self._active_quota = _Quota(active, len(members))
        self._total_quota = _Quota(total, len(members))
        ordered = sorted(members)
        self._processes = {process: _Process() for process in sorted({each.process_id for each in members.values()})}
        self._process_of = {member: self._processes[members[member].process_id] for member in ordered}
        self._active_owner: dict[TaskId, str] = {}
        for member in ordered:
            self._process_of[member].add_member(member)
            self._active_owner.update(dict.fromkeys(task_ids(members[member].active), member))
        self._with_state = _members_with_state(ordered, members)

    def assign_active(self, tasks: Iterable[TaskId]) -> None:
        """Gives each task an active owner."""
        by_partition = sorted(tasks, key=lambda task: (task.partition, task.subtopology))
        moved = [task for task in by_partition if not self._keep_active(task, self._active_owner.get(task))]
        cold = [task for task in moved if not self._keep_active(task, self._best(self._with_state.get(task, ())))]
        by_load = self._by_load()
        for task in sorted(cold):
            process = by_load.pop()
            assert process is not None
            self._note_active(process.add_to_least_loaded(task, active=True))
            by_load.push(process)

    def _keep_active(self, task: TaskId, member: str | None) -> bool:
        if member is None:
            return False
        process = self._process_of[member]
        if process.counts[member] >= self._active_quota.value:
            return False
        self._note_active(process.add(member, task, active=True))
        return True

    def _note_active(self, count: int) -> None:
        self._active_quota.note(count)
        self._total_quota.note(count)

    def assign_standby(self, tasks: Iterable[TaskId], wanted: int) -> None:
        """Gives each task up to ``wanted`` standbys, in processes that do not have it."""
        left: list[tuple[TaskId, int]] = []
        for task in sorted(tasks, key=lambda task: (task.partition, task.subtopology), reverse=True):
            for given in range(wanted):
                if not (self._keep_standby(task, self._active_owner.get(task)) or self._keep_standby_with_state(task)):
                    left.append((task, wanted - given))
                    break
        by_load = self._by_load()
        for task, missing in sorted(left, reverse=True):
            for _ in range(missing):
                if not self._standby_by_load(task, by_load):
                    break

    def _keep_standby(self, task: TaskId, member: str | None) -> bool:
        if member is None:
            return False
        process = self._process_of[member]
        if task in process.held or process.counts[member] >= self._total_quota.value:
            return False
        self._total_quota.note(process.add(member, task, active=False))
        return True

    def _keep_standby_with_state(self, task: TaskId) -> bool:
        without = [each for each in self._with_state.get(task, ()) if task not in self._process_of[each].held]
        return self._keep_standby(task, self._best(without))

    def _standby_by_load(self, task: TaskId, by_load: load_queue.LoadQueue[_Process]) -> bool:
        taken = []
        process = by_load.pop()
        while process is not None and task in process.held:
            taken.append(process)
            process = by_load.pop()
        if process is not None:
            self._total_quota.note(process.add_to_least_loaded(task, active=False))
            taken.append(process)
        for each in reversed(taken):
            by_load.push(each)
        return process is not None

    def _best(self, candidates: Sequence[str]) -> str | None:
        """The first, unless a later one has less load both as a member and as a process."""
        best: str | None = None
        best_load = 0.0
        for member in candidates:
            load = self._process_of[member].load()
            if best is None or (load < best_load and self._count(member) < self._count(best)):
                best, best_load = member, load
        return best

    def _count(self, member: str) -> int:
        return self._process_of[member].counts[member]

    def _by_load(self) -> load_queue.LoadQueue[_Process]:
        return load_queue.LoadQueue(list(self._processes.values()), _Process.load)

    def result(self) -> dict[str, Tasks]:
        """What was given."""
        return {
            member: Tasks(task_set(process.active[member]), task_set(process.standby[member]))
            for member, process in self._process_of.items()
        }


def _members_with_state(ordered: Sequence[str], members: Mapping[str, MemberState]) -> dict[TaskId, list[str]]:
    """Members by the tasks whose state they have: standbys first, then by offset, the highest first."""
    found: dict[TaskId, list[tuple[bool, int, str]]] = {}
    for member in ordered:
        state = members[member]
        standby = set(task_ids(state.standby))
        for task in standby | state.task_offsets.keys():
            found.setdefault(task, []).append((task not in standby, -state.task_offsets.get(task, 0), member))
    return {task: [member for *_, member in sorted(entries)] for task, entries in found.items()}
