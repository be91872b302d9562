"""Tasks that a member has or reports."""

from __future__ import annotations

from tidelog.coordinator.group.streams.owned_tasks import OwnedTasks, is_part_of, overlap, read_tasks
from tidelog.coordinator.group.streams.tasks import Tasks
from tidelog.protocol.messages.streams_group_heartbeat import RequestTaskIds

ZERO = {"0": frozenset({0, 1})}


def test_entries_of_one_subtopology_are_merged_and_empty_ones_left_out() -> None:
    sent = [RequestTaskIds("0", [0]), RequestTaskIds("1", []), RequestTaskIds("0", [1])]
    assert read_tasks(sent) == ZERO


def test_roles_are_compared_each_with_its_own() -> None:
    active, standby = Tasks(ZERO), Tasks({}, ZERO)
    assert overlap(active, Tasks({"0": frozenset({1, 2})}))
    assert not overlap(active, standby)
    assert is_part_of(Tasks({"0": frozenset({1})}), active)
    assert not is_part_of(active, standby)
    assert is_part_of(Tasks(), standby)


def test_owned_tasks_without_epochs() -> None:
    owned = OwnedTasks({"0": {0: 5, 1: 6}}, {"1": frozenset({2})})
    assert owned.plain() == Tasks(ZERO, {"1": frozenset({2})})
    assert owned
    assert not OwnedTasks()
