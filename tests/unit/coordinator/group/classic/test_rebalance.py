"""When a join phase begins and ends, and the answers to all members."""

from __future__ import annotations

from tests.unit.coordinator.group.driver import Driver, stable_group, static_pair
from tidelog.coordinator.group.classic.classic_group import GroupState
from tidelog.coordinator.group.settings import GroupSettings
from tidelog.model.errors import ErrorCode as E


def test_the_first_rebalance_waits_longer_while_members_come() -> None:
    driver = Driver()
    _, first = driver.join_twice("g")
    driver.advance(2_000)
    _, second = driver.join_twice("g")
    driver.advance(1_500)
    assert first not in driver.answers
    driver.advance(2_500)
    assert driver.answers[first].generation_id == driver.answers[second].generation_id == 1
    assert len(driver.answers[first].members) == 2 and driver.answers[second].members == []


def test_followers_wait_for_the_leaders_assignment_and_each_gets_its_own() -> None:
    driver = Driver()
    ids = stable_group(driver)
    group = driver.machine.groups["g"]
    assert [group.members[member].assignment for member in ids] == [member.encode() for member in ids]
    again = driver.answers[driver.sync("g", ids[1], 1)]
    assert again.assignment == ids[1].encode() and again.protocol_name == "range"


def test_a_new_member_sends_everybody_back_to_join() -> None:
    driver = Driver()
    ids = stable_group(driver)
    newcomer, token = driver.join_twice("g")
    assert driver.heartbeat("g", ids[0], 1) == E.REBALANCE_IN_PROGRESS
    back = [driver.join("g", member) for member in ids]
    assert driver.answers[token].generation_id == 2
    assert {driver.answers[t].leader for t in [*back, token]} == {ids[0]}
    assert {m.member_id for m in driver.answers[back[0]].members} == {*ids, newcomer}


def test_a_member_that_does_not_come_back_in_time_is_out() -> None:
    driver = Driver()
    ids = stable_group(driver)
    newcomer, token = driver.join_twice("g", rebalance=20_000)
    for _ in range(30):
        driver.advance(2_000)
        driver.heartbeat("g", ids[0], 1)
    assert driver.answers[token].generation_id == 2
    assert list(driver.machine.groups["g"].members) == [newcomer]
    assert driver.heartbeat("g", ids[0], 1) == E.UNKNOWN_MEMBER_ID


def test_an_id_that_is_never_used_lapses_and_holds_nobody_up_for_ever() -> None:
    driver = Driver()
    ids = stable_group(driver, 1)
    driver.join("g", session=6_000)
    _newcomer, token = driver.join_twice("g")
    driver.join("g", ids[0])
    assert token not in driver.answers
    driver.advance(6_000)
    assert driver.answers[token].generation_id == 2


def test_a_leader_that_never_assigns_is_out() -> None:
    driver = Driver()
    first, a = driver.join_twice("g", rebalance=20_000, session=30_000)
    second, _b = driver.join_twice("g", rebalance=20_000, session=30_000)
    driver.advance(9_000)
    leader, follower = (first, second) if driver.answers[a].leader == first else (second, first)
    token = driver.sync("g", follower, 1)
    driver.advance(20_000)
    assert driver.answers[token].error_code == E.REBALANCE_IN_PROGRESS
    assert leader not in driver.machine.groups["g"].members


def test_static_members_that_are_late_stay_in_the_group() -> None:
    driver = Driver()
    ids = static_pair(driver)
    _newcomer, token = driver.join_twice("g", session=200_000)
    driver.join("g", ids[0], instance="i0", session=200_000)
    driver.advance(50_000)
    assert driver.heartbeat("g", ids[1], 1, "i1") == E.REBALANCE_IN_PROGRESS
    driver.advance(11_000)
    assert driver.answers[token].generation_id == 2
    assert ids[1] in driver.machine.groups["g"].members


def test_an_assignment_that_the_log_would_not_take_concerns_its_group_alone() -> None:
    driver = Driver(GroupSettings(max_record_bytes=2_000))
    ids = [driver.join_twice("g") for _ in range(2)]
    driver.advance(9_000)
    (leader, _), (follower, _) = ids
    waits = driver.sync("g", follower, 1)
    position = len(driver.log)
    brings = driver.sync("g", leader, 1, {leader: b"x" * 2_000})
    assert [driver.answers[token].error_code for token in (waits, brings)] == [E.UNKNOWN_SERVER_ERROR] * 2
    assert len(driver.log) == position, "a record too large would stop the coordinator of all groups"
    assert driver.heartbeat("g", leader, 1) == E.REBALANCE_IN_PROGRESS
    tokens = [driver.join("g", member) for member, _ in ids]
    assert [driver.answers[token].generation_id for token in tokens] == [2, 2]
    driver.sync("g", leader, 2, {leader: b"x" * 1_000})
    assert driver.machine.groups["g"].state is GroupState.STABLE


def test_static_members_with_no_time_to_come_back_are_not_looked_for_without_a_pause() -> None:
    driver = Driver()
    ids = static_pair(driver)
    driver.sync("g", ids[1], 1, group_instance_id="i1")
    driver.join("g", ids[1], instance="i1", session=60_000, rebalance=0, protocols=(("range", b"other"),))
    driver.join("g", ids[0], instance="i0", session=60_000)
    driver.sync("g", ids[0], 2, {ids[1]: b"all"}, group_instance_id="i0")
    driver.sync("g", ids[1], 2, group_instance_id="i1")
    driver.leave("g", (ids[0], "i0"))
    assert driver.heartbeat("g", ids[1], 2, "i1") == E.REBALANCE_IN_PROGRESS
    driver.run(driver.machine.expire(driver.now))
    assert driver.machine.next_deadline() > driver.now, "else the node is busy with nothing else"
