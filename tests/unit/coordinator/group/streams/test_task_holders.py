"""The holder of each task of a streams group."""

from __future__ import annotations

from tests.unit.coordinator.group.streams.test_task_reconciliation import held, tasks
from tidelog.coordinator.group.streams.tasks import TaskId


def test_holders_forget_what_a_member_gave_up() -> None:
    holders = held(("a", "p", tasks({"0": [0]}, {"0": [1]})), ("b", "p", tasks({}, {"0": [1]})))
    holders.drop("a", tasks({"0": [0]}, {"0": [1]}))
    assert not holders.is_active(TaskId("0", 0))
    assert holders.is_in_process(TaskId("0", 1), "p"), "the other thread still has it"
