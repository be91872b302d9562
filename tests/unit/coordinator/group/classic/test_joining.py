"""Which members may join, under which id, and what that starts."""

from __future__ import annotations

from tests.unit.coordinator.group.driver import Driver, stable_group, static_pair
from tidelog.coordinator.group.classic.classic_group import ClassicGroup, GroupState
from tidelog.coordinator.group.settings import GroupSettings
from tidelog.model.errors import ErrorCode as E


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


def test_who_shares_no_protocol_with_the_others_may_not_join() -> None:
    driver = Driver()
    stable_group(driver)
    assert driver.answers[driver.join("g", protocols=(("sticky", b""),))].error_code == E.INCONSISTENT_GROUP_PROTOCOL
    assert driver.answers[driver.join("g", kind="connect")].error_code == E.INCONSISTENT_GROUP_PROTOCOL


def test_a_full_group_takes_nobody_else() -> None:
    driver = Driver(GroupSettings(max_size=2))
    stable_group(driver)
    assert driver.answers[driver.join("g")].error_code == E.GROUP_MAX_SIZE_REACHED


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


def test_a_static_member_whose_return_the_log_would_not_take_starts_a_rebalance() -> None:
    driver = Driver(GroupSettings(max_record_bytes=2_000))
    ids = static_pair(driver)
    position = len(driver.log)
    token = driver.join("g", instance="i1", protocols=(("range", b"x" * 2_000),))
    assert token not in driver.answers and len(driver.log) == position
    assert driver.heartbeat("g", ids[0], 1, "i0") == E.REBALANCE_IN_PROGRESS


def test_a_new_member_that_repeats_its_join_is_waited_for_as_long_as_before() -> None:
    driver = Driver()
    ids = stable_group(driver)
    newcomer, _ = driver.join_twice("g", session=6_000)
    token = driver.join("g", newcomer, session=6_000)
    for _ in range(3):
        driver.advance(5_000)
        assert driver.heartbeat("g", ids[0], 1) == driver.heartbeat("g", ids[1], 1) == E.REBALANCE_IN_PROGRESS
    assert token not in driver.answers, "it cannot heartbeat while it waits"
    for member in ids:
        driver.join("g", member)
    assert driver.answers[token].generation_id == 2


def test_the_longest_name_of_a_client_makes_no_id_that_cannot_be_written() -> None:
    driver = Driver()
    leader, _ = driver.join_twice("g")
    token = driver.join("g", version=3, client="é" * 16_383)
    driver.join("g", instance="\N{GRINNING FACE}" * 8_191)
    driver.advance(9_000)
    long = driver.answers[token].member_id
    assert len(long.encode()) < 32_768 and long.startswith("é" * 1_000)
    driver.sync("g", leader, 1, {long: b"all"})
    assert driver.machine.groups["g"].state is GroupState.STABLE


def test_a_group_is_written_down_empty_when_it_is_first_named() -> None:
    """As Apache Kafka does; its formatter of group metadata is tested by it."""
    driver = Driver()
    driver.join("g")
    assert len(driver.log) == 1
    driver.restart()
    group = driver.machine.groups["g"]
    assert isinstance(group, ClassicGroup)
    assert (group.state, group.generation, group.protocol_type, group.members) == (GroupState.EMPTY, 0, None, {})
    driver.join_twice("g")
    driver.advance(3_000)
    assert len(driver.log) == 1, "the next record is that of the first generation, when its leader has assigned"


def test_a_group_that_nobody_joined_is_taken_back() -> None:
    driver = Driver()
    driver.join("g")
    driver.advance(driver.settings.offsets_retention_check_interval_ms * 2)
    assert "g" not in driver.machine.groups
    driver.restart()
    assert "g" not in driver.machine.groups
