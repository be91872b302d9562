"""Descriptions of share groups, and the steps in which offsets are reset and deleted."""

from __future__ import annotations

from tests.unit.coordinator.group.consumer_driver import topic_id
from tests.unit.coordinator.group.share.share_driver import ANN, ShareDriver, parts
from tests.unit.coordinator.group.share.test_share_kind import ask
from tidelog.coordinator.group.share.share_group import StatePartitions
from tidelog.coordinator.group.share.share_service import Ordered
from tidelog.model.errors import ErrorCode

T = topic_id("t")


def settled() -> ShareDriver:
    """The partitions of ``t`` are initialized, and the group has no members."""
    driver = ShareDriver()
    driver.join(ANN)
    driver.settle()
    driver.share_beat(ANN, -1)
    return driver


def test_a_group_is_described() -> None:
    driver = ShareDriver()
    driver.join(ANN)
    driver.settle()
    driver.now += 1_000
    driver.share_beat(ANN, 2)
    found = driver.machine.shares.describe("g")
    assert (found.group_state, found.group_epoch, found.assignment_epoch, found.assignor_name) == ("Stable", 3, 3, "simple")
    (member,) = found.members
    assert (member.member_id, member.member_epoch, member.subscribed_topic_names) == (ANN, 3, ["t"])
    assert [(each.topic_name, each.partitions) for each in member.assignment.topic_partitions] == [("t", [0, 1, 2])]
    unknown = driver.machine.shares.describe("other")
    assert (unknown.error_code, unknown.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "")


def test_offsets_are_reset_with_a_new_epoch() -> None:
    driver = settled()
    epoch = driver.shared().epoch
    topics = {T: ("t", frozenset({0}))}
    assert ask(driver, lambda token: driver.machine.shares.begin_reset(token, "g", topics, driver.now)) == Ordered(
        epoch + 1, parts(t=[0]), {T: "t"}
    )
    driver.run(driver.machine.shares.settle("g", parts(t=[0]), {}))
    assert driver.shared().state_partitions == StatePartitions({}, {T: ("t", frozenset({0, 1, 2}))})


def test_a_reset_makes_a_group_and_spares_one_with_members() -> None:
    driver = ShareDriver()
    topics = {T: ("t", frozenset({0}))}
    assert ask(driver, lambda token: driver.machine.shares.begin_reset(token, "new", topics, driver.now)) == Ordered(
        2, parts(t=[0]), {T: "t"}
    )
    assert "new" in driver.machine.groups
    driver.join(ANN)
    assert (
        ask(driver, lambda token: driver.machine.shares.begin_reset(token, "g", topics, driver.now)) is ErrorCode.NON_EMPTY_GROUP
    )
    driver.enter("consumers", "x")
    assert (
        ask(driver, lambda token: driver.machine.shares.begin_reset(token, "consumers", topics, driver.now))
        is ErrorCode.GROUP_ID_NOT_FOUND
    )


def test_states_are_deleted_in_two_steps_and_a_crash_between_them_is_repaired() -> None:
    driver = settled()
    ordered = ask(driver, lambda token: driver.machine.shares.begin_deletion(token, "g", None))
    assert ordered == Ordered(driver.shared().epoch, parts(t=[0, 1, 2]), {T: "t"})
    driver.restart()
    assert driver.shared().state_partitions == StatePartitions({}, {}, {T: "t"})
    assert ask(driver, lambda token: driver.machine.shares.begin_deletion(token, "g", [T])) == ordered
    assert ask(driver, lambda token: driver.machine.shares.forget(token, "g", [T])) is ErrorCode.NONE
    assert driver.shared().state_partitions == StatePartitions()


def test_deletion_needs_a_group_without_members() -> None:
    driver = ShareDriver()
    driver.join(ANN)
    assert ask(driver, lambda token: driver.machine.shares.begin_deletion(token, "g", None)) is ErrorCode.NON_EMPTY_GROUP
    assert ask(driver, lambda token: driver.machine.shares.begin_deletion(token, "x", None)) is ErrorCode.GROUP_ID_NOT_FOUND


def test_deleted_topics_are_forgotten() -> None:
    driver = settled()
    driver.run(driver.machine.shares.forget_topics([T]))
    assert driver.shared().state_partitions == StatePartitions()
    assert driver.machine.shares.initialized("g") == Ordered(driver.shared().epoch, {}, {})
    assert driver.machine.shares.initialized("x") is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_member_that_joins_during_a_reset_does_not_undo_it() -> None:
    driver = ShareDriver()
    topics = {T: ("t", frozenset({0}))}
    ask(driver, lambda token: driver.machine.shares.begin_reset(token, "g", topics, driver.now))
    driver.join(ANN)
    (order,) = driver.orders
    assert order.topics == {T: ("t", frozenset({1, 2}))}, "partition 0 is being reset"
