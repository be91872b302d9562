"""The sticky assignor: tasks stay, or go where their state is."""

from __future__ import annotations

from tidelog.coordinator.group.streams.sticky_assignor import MemberState, assign
from tidelog.coordinator.group.streams.tasks import TaskId, Tasks, TaskSet, task_ids
from tidelog.coordinator.group.streams.topology import ConfiguredSubtopology, ConfiguredTopology, InternalTopic

CHANGELOG = (InternalTopic("log", 1, -1),)


def topology(**tasks: int) -> ConfiguredTopology:
    """Subtopologies by id; those whose id begins with "s" have state."""
    return ConfiguredTopology(
        0,
        {key: ConfiguredSubtopology(count, ("in",), (), (), CHANGELOG if key[0] == "s" else ()) for key, count in tasks.items()},
    )


def some(subtopology: str, *partitions: int) -> TaskSet:
    return {subtopology: frozenset(partitions)} if partitions else {}


def test_a_group_without_members_has_no_assignment() -> None:
    assert assign({}, topology(a=3), 1) == {}


def test_new_members_get_ranges_of_a_subtopology() -> None:
    found = assign({"m1": MemberState("p1"), "m2": MemberState("p2")}, topology(a=2, b=2), 0)
    assert found == {
        "m1": Tasks(active={"a": frozenset({0}), "b": frozenset({0})}),
        "m2": Tasks(active={"a": frozenset({1}), "b": frozenset({1})}),
    }


def test_a_new_member_takes_only_what_others_have_too_much_of() -> None:
    members = {
        "m1": MemberState("p1", active=some("a", 0, 1, 2)),
        "m2": MemberState("p2", active=some("a", 3, 4, 5)),
        "m3": MemberState("p3"),
    }
    found = assign(members, topology(a=6), 0)
    assert found["m1"].active == some("a", 0, 1)
    assert found["m2"].active == some("a", 3, 4)
    assert found["m3"].active == some("a", 2, 5)


def test_the_standby_of_a_member_that_left_becomes_active() -> None:
    members = {
        "m1": MemberState("p1", active=some("s", 0)),
        "m2": MemberState("p2", active=some("s", 1), standby=some("s", 2)),
        "m3": MemberState("p3", active=some("s", 3)),
    }
    found = assign(members, topology(s=4), 0)
    assert found["m2"].active == some("s", 1, 2)


def test_reported_offsets_are_second_to_a_standby_and_the_highest_wins() -> None:
    task = TaskId("s", 0)
    members = {
        "m1": MemberState("p1", task_offsets={task: 10}),
        "m2": MemberState("p2", task_offsets={task: 20}),
    }
    assert assign(members, topology(s=1), 0)["m2"].active == some("s", 0)
    members["m1"] = MemberState("p1", standby=some("s", 0))
    assert assign(members, topology(s=1), 0)["m1"].active == some("s", 0)


def test_one_process_holds_no_second_copy() -> None:
    members = {"m1": MemberState("p1"), "m2": MemberState("p1"), "m3": MemberState("p2")}
    found = assign(members, topology(s=4), 2)
    in_p1_active = {task for member in ("m1", "m2") for task in task_ids(found[member].active)}
    assert set(task_ids(found["m3"].standby)) == in_p1_active
    in_p1 = [task for member in ("m1", "m2") for task in (*task_ids(found[member].active), *task_ids(found[member].standby))]
    assert len(in_p1) == len(set(in_p1)) == 4


def test_subtopologies_without_state_have_no_standbys() -> None:
    found = assign({"m1": MemberState("p1"), "m2": MemberState("p2")}, topology(a=2, s=2), 1)
    assert {task.subtopology for tasks in found.values() for task in task_ids(tasks.standby)} == {"s"}


def test_a_standby_stays_when_another_one_was_promoted() -> None:
    """Kafka 4.3 moved it when the promoted member came first."""
    members = {
        "m1": MemberState("p1", standby=some("s", 0)),
        "m2": MemberState("p2", standby=some("s", 0)),
        "m3": MemberState("p3"),
        "m4": MemberState("p4"),
    }
    found = assign(members, topology(s=1), 1)
    assert found["m1"].active == some("s", 0)
    assert found["m2"].standby == some("s", 0)


def test_tasks_of_a_bigger_process_are_shared_by_its_members() -> None:
    members = {"m1": MemberState("p1"), "m2": MemberState("p1"), "m3": MemberState("p1"), "m4": MemberState("p2")}
    found = assign(members, topology(a=8), 0)
    assert [len(list(task_ids(tasks.active))) for tasks in found.values()] == [2, 2, 2, 2]
