"""Staying and leaving."""

from __future__ import annotations

from tests.unit.coordinator.group.driver import Driver, stable_group, static_pair
from tidelog.coordinator.group.classic.classic_group import GroupState
from tidelog.model.errors import ErrorCode as E


def test_a_member_without_heartbeats_is_out_and_the_rest_share() -> None:
    driver = Driver()
    ids = stable_group(driver)
    for _ in range(6):
        driver.advance(2_000)
        driver.heartbeat("g", ids[0], 1)
    assert list(driver.machine.groups["g"].members) == [ids[0]]
    assert driver.heartbeat("g", ids[0], 1) == E.REBALANCE_IN_PROGRESS


def test_the_last_member_leaves_an_empty_group_behind_in_the_log() -> None:
    driver = Driver()
    ids = stable_group(driver, 1)
    answer = driver.leave("g", (ids[0], None))
    assert [m.error_code for m in answer.members] == [0]
    group = driver.machine.groups["g"]
    assert (group.state, group.generation, group.protocol) == (GroupState.EMPTY, 2, None)
    driver.restart()
    assert driver.machine.groups["g"].state is GroupState.EMPTY


def test_leaving_in_a_batch_answers_each_member() -> None:
    driver = Driver()
    ids = stable_group(driver)
    answer = driver.leave("g", (ids[0], None), ("nobody", None), ("", "no-instance"))
    assert [m.error_code for m in answer.members] == [0, E.UNKNOWN_MEMBER_ID, E.UNKNOWN_MEMBER_ID]


def test_who_leaves_by_its_instance_alone_is_answered_without_an_id() -> None:
    driver = Driver()
    static_pair(driver)
    answer = driver.leave("g", ("", "i1"))
    assert [(m.member_id, m.group_instance_id, m.error_code) for m in answer.members] == [("", "i1", 0)]
    assert list(driver.machine.groups["g"].static) == ["i0"]


def test_old_generations_and_strangers_are_refused() -> None:
    driver = Driver()
    ids = stable_group(driver)
    assert driver.heartbeat("g", ids[0], 0) == E.ILLEGAL_GENERATION
    assert driver.heartbeat("g", "stranger", 1) == E.UNKNOWN_MEMBER_ID
    assert driver.heartbeat("other", ids[0], 1) == E.UNKNOWN_MEMBER_ID
    assert driver.answers[driver.sync("g", ids[0], 7)].error_code == E.ILLEGAL_GENERATION
    assert driver.answers[driver.join("other", "stranger")].error_code == E.UNKNOWN_MEMBER_ID
    wrong = driver.answers[driver.sync("g", ids[0], 1, protocol_type="connect", protocol_name="range")]
    assert wrong.error_code == E.INCONSISTENT_GROUP_PROTOCOL
