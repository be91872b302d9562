"""The classic protocol as a dialogue: what a client sends, what it is told, what the log then holds."""

from __future__ import annotations

import pytest

from tests.unit.coordinator.group.driver import Driver
from tidelog.coordinator.group.classic_group import GroupState
from tidelog.coordinator.group.settings import GroupSettings
from tidelog.model.errors import ErrorCode as E


def stable_group(driver: Driver, count: int = 2, group: str = "g") -> list[str]:
    """A group of dynamic members that all have an assignment, the leader first."""
    joins = [driver.join_twice(group) for _ in range(count)]
    driver.advance(driver.settings.initial_rebalance_delay_ms * (count + 1))
    ids = [member for member, _ in joins]
    generation = driver.answers[joins[0][1]].generation_id
    assert driver.answers[joins[0][1]].leader == ids[0]
    for member in ids[1:]:
        driver.sync(group, member, generation)
    driver.sync(group, ids[0], generation, {member: member.encode() for member in ids})
    assert driver.machine.groups[group].state is GroupState.STABLE
    return ids


def test_a_dynamic_member_is_given_an_id_first_and_joins_with_it() -> None:
    driver = Driver()
    first = driver.answers[driver.join("g", client="app")]
    assert first.error_code == E.MEMBER_ID_REQUIRED and first.member_id.startswith("app-")
    second = driver.join("g", first.member_id)
    assert second not in driver.answers
    driver.advance(3_000)
    answer = driver.answers[second]
    assert (answer.error_code, answer.generation_id, answer.leader, answer.protocol_name) == (0, 1, first.member_id, "range")
    assert [member.member_id for member in answer.members] == [first.member_id]


def test_an_old_client_joins_in_one_step() -> None:
    driver = Driver()
    token = driver.join("g", version=3)
    driver.advance(3_000)
    assert driver.answers[token].error_code == 0


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


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"session": 5_999}, E.INVALID_SESSION_TIMEOUT),
        ({"session": 1_800_001}, E.INVALID_SESSION_TIMEOUT),
        ({"kind": ""}, E.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": ()}, E.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_a_join_that_makes_no_sense_is_refused(options: dict[str, object], error: E) -> None:
    driver = Driver()
    assert driver.answers[driver.join("g", **options)].error_code == error  # type: ignore[arg-type]
    assert "g" not in driver.machine.groups


def test_a_group_without_a_name_is_refused() -> None:
    driver = Driver()
    assert driver.answers[driver.join("")].error_code == E.INVALID_GROUP_ID


def test_who_shares_no_protocol_with_the_others_may_not_join() -> None:
    driver = Driver()
    stable_group(driver)
    assert driver.answers[driver.join("g", protocols=(("sticky", b""),))].error_code == E.INCONSISTENT_GROUP_PROTOCOL
    assert driver.answers[driver.join("g", kind="connect")].error_code == E.INCONSISTENT_GROUP_PROTOCOL


def test_the_protocol_with_most_votes_among_those_that_all_support_is_used() -> None:
    driver = Driver()
    wishes = [("a", "b", "c"), ("b", "a"), ("b", "a")]
    tokens = [driver.join_twice("g", protocols=tuple((name, b"") for name in names))[1] for names in wishes]
    driver.advance(60_000)
    assert {driver.answers[token].protocol_name for token in tokens} == {"b"}


def test_a_full_group_takes_nobody_else() -> None:
    driver = Driver(GroupSettings(max_size=2))
    stable_group(driver)
    assert driver.answers[driver.join("g")].error_code == E.GROUP_MAX_SIZE_REACHED


def test_an_id_that_is_never_used_lapses_and_holds_nobody_up_for_ever() -> None:
    driver = Driver()
    ids = stable_group(driver, 1)
    driver.join("g", session=6_000)
    _newcomer, token = driver.join_twice("g")
    driver.join("g", ids[0])
    assert token not in driver.answers
    driver.advance(6_000)
    assert driver.answers[token].generation_id == 2


def test_a_follower_that_repeats_its_join_gets_the_same_generation() -> None:
    driver = Driver()
    ids = stable_group(driver)
    assert driver.answers[driver.join("g", ids[1])].generation_id == 1
    assert driver.machine.groups["g"].state is GroupState.STABLE


def test_a_leader_that_joins_again_starts_a_rebalance() -> None:
    driver = Driver()
    ids = stable_group(driver)
    token = driver.join("g", ids[0])
    assert token not in driver.answers
    assert driver.heartbeat("g", ids[1], 1) == E.REBALANCE_IN_PROGRESS


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


def static_pair(driver: Driver, version: int = 9) -> list[str]:
    tokens = [driver.join("g", instance=f"i{n}", version=version, session=60_000) for n in range(2)]
    driver.advance(9_000)
    ids = [driver.answers[token].member_id for token in tokens]
    driver.sync("g", ids[0], 1, {member: member.encode() for member in ids}, group_instance_id="i0")
    return ids


def test_a_static_member_comes_back_without_a_rebalance_and_under_a_new_id() -> None:
    driver = Driver()
    ids = static_pair(driver)
    answer = driver.answers[driver.join("g", instance="i1", session=60_000)]
    assert (answer.error_code, answer.generation_id) == (0, 1) and answer.member_id not in ids
    assert driver.heartbeat("g", ids[1], 1, "i1") == E.FENCED_INSTANCE_ID
    assert driver.answers[driver.sync("g", answer.member_id, 1, group_instance_id="i1")].assignment == ids[1].encode()
    driver.restart()
    assert answer.member_id in driver.machine.groups["g"].members


def test_a_static_leader_of_v9_is_told_to_leave_the_assignment_be() -> None:
    driver = Driver()
    ids = static_pair(driver)
    answer = driver.answers[driver.join("g", instance="i0", session=60_000)]
    assert answer.skip_assignment and answer.leader == answer.member_id and len(answer.members) == 2
    older = driver.answers[driver.join("g", instance="i0", session=60_000, version=8)]
    assert older.leader == answer.member_id != older.member_id and older.members == []
    assert ids[0] != answer.member_id


def test_a_static_member_with_other_protocols_starts_a_rebalance() -> None:
    driver = Driver()
    tokens = [driver.join("g", instance=f"i{n}", session=60_000, protocols=(("a", b""), ("b", b""))) for n in range(2)]
    driver.advance(9_000)
    ids = [driver.answers[token].member_id for token in tokens]
    driver.sync("g", ids[0], 1, {}, group_instance_id="i0")
    token = driver.join("g", instance="i1", session=60_000, protocols=(("b", b""),))
    assert token not in driver.answers
    assert driver.machine.groups["g"].state is GroupState.PREPARING_REBALANCE


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


def test_a_restart_keeps_members_and_gives_them_a_whole_session() -> None:
    driver = Driver()
    ids = stable_group(driver)
    driver.restart()
    driver.advance(9_000)
    assert driver.answers[driver.sync("g", ids[1], 1)].assignment == ids[1].encode()
    assert driver.heartbeat("g", ids[0], 1) == 0
    driver.advance(9_000)
    assert driver.heartbeat("g", ids[0], 1) == 0
    driver.advance(2_000)
    assert list(driver.machine.groups["g"].members) == [ids[0]]


def test_offsets_survive_with_metadata_and_epoch() -> None:
    driver = Driver()
    ids = stable_group(driver)
    assert driver.commit("g", {("t", 0): 42, ("t", 1): 7}, ids[0], 1, "note") == [0, 0]
    driver.restart()
    committed = driver.machine.offsets.get("g", "t", 0)
    assert committed is not None
    assert (committed.offset, committed.leader_epoch, committed.metadata) == (42, 3, "note")


def test_who_may_commit() -> None:
    driver = Driver()
    assert driver.commit("lonely", {("t", 0): 1}) == [0]
    assert driver.commit("lonely", {("t", 0): 1}, "m", 5) == [E.ILLEGAL_GENERATION]
    ids = stable_group(driver)
    assert driver.commit("g", {("t", 0): 1}) == [E.UNKNOWN_MEMBER_ID]
    assert driver.commit("g", {("t", 0): 1}, ids[0], 0) == [E.ILLEGAL_GENERATION]
    assert driver.commit("g", {("t", 0): 1}, ids[0], 1, "x" * 4_097) == [E.OFFSET_METADATA_TOO_LARGE]
    driver.leave("g", *[(member, None) for member in ids])
    assert driver.commit("g", {("t", 0): 1}) == [0]


def test_offsets_of_an_empty_group_expire_a_week_after_it_became_empty_and_the_group_with_them() -> None:
    driver = Driver()
    ids = stable_group(driver, 1)
    driver.commit("g", {("t", 0): 1}, ids[0], 1)
    driver.leave("g", (ids[0], None))
    week = driver.settings.offsets_retention_ms
    driver.advance(week - 700_000)
    assert driver.machine.offsets.get("g", "t", 0) is not None
    driver.advance(1_400_000)
    assert driver.machine.offsets.get("g", "t", 0) is None and "g" not in driver.machine.groups
    driver.restart()
    assert not driver.machine.groups and len(driver.machine.offsets) == 0


def test_a_deleted_topic_takes_its_offsets_along() -> None:
    driver = Driver()
    driver.commit("g", {("t", 0): 1, ("u", 0): 2})
    driver.run(driver.machine.forget_topics(frozenset({"t"})))
    assert driver.machine.offsets.get("g", "t", 0) is None and driver.machine.offsets.get("g", "u", 0) is not None


def test_only_a_group_without_members_is_deleted() -> None:
    driver = Driver()
    ids = stable_group(driver)
    driver.commit("g", {("t", 0): 1}, ids[0], 1)
    for expected in (E.NON_EMPTY_GROUP, E.NONE, E.GROUP_ID_NOT_FOUND):
        token = driver.token()
        driver.run(driver.machine.delete_group(token, "g", lambda error: error))
        assert driver.answers[token] == expected
        if expected is E.NON_EMPTY_GROUP:
            driver.leave("g", *[(member, None) for member in ids])
    assert len(driver.machine.offsets) == 0
