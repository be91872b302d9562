"""Groups that change between the protocols while their members go on."""

from __future__ import annotations

import pytest

from tests.unit.coordinator.group.classic_side import (
    assignment,
    classic_group,
    driver_with,
    metadata,
    newcomer,
    numbers,
    rejoin,
    synced,
)
from tests.unit.coordinator.group.consumer_driver import ConsumerDriver, topic_id
from tidelog.coordinator.group.classic.classic_group import ClassicGroup, GroupState
from tidelog.coordinator.group.consumer.consumer_group import ConsumerGroup
from tidelog.coordinator.group.settings import MigrationPolicy
from tidelog.model.errors import ErrorCode as E

T = topic_id("t")


def classic(driver: ConsumerDriver) -> ClassicGroup:
    group = driver.machine.groups["g"]
    assert isinstance(group, ClassicGroup)
    return group


def test_the_first_member_of_the_consumer_protocol_turns_the_group_over() -> None:
    driver = driver_with()
    old = classic_group(driver)
    position = len(driver.log)
    answer = driver.enter("g", "new")
    assert (answer.error_code, answer.member_epoch, driver.given(answer)) == (0, 2, {})
    assert driver.types_since(position) == [-2, 5, 3, 7, 6, 8, 5, 3, 7, 7, 6, 8]
    member = driver.one("g", old)
    assert (member.epoch, member.assigned) == (1, {T: {0: 1, 1: 1, 2: 1}}), "it reads on what it read"
    assert driver.heartbeat("g", old, 1) == E.REBALANCE_IN_PROGRESS
    before = driver.consumers("g").members
    driver.restart()
    assert driver.consumers("g").members == before


def test_members_that_wait_in_the_classic_group_are_told_to_join_again() -> None:
    driver = driver_with()
    old = classic_group(driver)
    _, waiting = driver.join_twice("g", protocols=(("range", metadata()),))
    assert waiting not in driver.answers
    driver.enter("g", "new")
    assert driver.answers[waiting].error_code == E.REBALANCE_IN_PROGRESS
    assert old in driver.consumers("g").members


@pytest.mark.parametrize(
    ("policy", "given", "kind", "says"),
    [
        (MigrationPolicy.DOWNGRADE, None, "consumer", "online upgrade is disabled"),
        (MigrationPolicy.DISABLED, None, "consumer", "online upgrade is disabled"),
        (MigrationPolicy.BIDIRECTIONAL, None, "connect", "does not use the consumer embedded protocol"),
        (MigrationPolicy.BIDIRECTIONAL, b"?", "consumer", "is not in the format of Kafka's consumers"),
        (MigrationPolicy.BIDIRECTIONAL, assignment()[:-4] + b"\0\0\0\1x", "consumer", "unsupported custom assignor"),
    ],
)
def test_what_cannot_be_turned_over_stays_as_it_is(policy: MigrationPolicy, given: bytes | None, kind: str, says: str) -> None:
    driver = driver_with(policy)
    old = classic_group(driver, given, kind)
    position = len(driver.log)
    answer = driver.enter("g", "new")
    assert answer.error_code == E.GROUP_ID_NOT_FOUND
    assert answer.error_message is not None and says in answer.error_message
    assert (classic(driver).state, list(classic(driver).members)) == (GroupState.STABLE, [old])
    assert len(driver.log) == position


def test_a_group_too_large_for_the_consumer_protocol_stays() -> None:
    driver = driver_with(consumer_max_size=0)
    classic_group(driver)
    assert "exceeds" in (driver.enter("g", "new").error_message or "")


def test_only_a_join_turns_a_group_over() -> None:
    driver = driver_with()
    classic_group(driver)
    assert driver.beat("g", "new", 5).error_message == "Group g is not a consumer group."


def test_when_the_last_member_of_the_consumer_protocol_goes_the_group_turns_back() -> None:
    driver = driver_with()
    driver.enter("g", "new")
    old = newcomer(driver).member_id
    position = len(driver.log)
    assert driver.beat("g", "new", -1).error_code == 0
    assert driver.types_since(position) == [-8, -8, -7, -7, -6, -5, -5, -4, -3, 2]
    assert (classic(driver).state, list(classic(driver).members)) == (GroupState.PREPARING_REBALANCE, [old])
    assert classic(driver).generation == 3
    again = rejoin(driver, old)
    assert (again.error_code, again.leader, again.generation_id) == (0, old, 4)
    driver.sync("g", old, 4, {old: assignment(t=[0, 1, 2])})
    driver.restart()
    assert list(classic(driver).members) == [old]


@pytest.mark.parametrize("policy", [MigrationPolicy.UPGRADE, MigrationPolicy.BIDIRECTIONAL])
def test_without_leave_to_turn_back_the_group_stays(policy: MigrationPolicy) -> None:
    driver = driver_with(policy, max_size=1)
    driver.enter("g", "new")
    newcomer(driver)
    newcomer(driver)
    driver.beat("g", "new", -1)
    assert isinstance(driver.machine.groups["g"], ConsumerGroup), "two members are too many, or it is not allowed"


def test_a_group_turns_back_when_the_last_ones_session_ends() -> None:
    driver = driver_with()
    driver.enter("g", "new")
    old = newcomer(driver, session=60_000).member_id
    synced(driver, old, 3)
    driver.advance(46_000)
    assert isinstance(driver.machine.groups["g"], ClassicGroup)


def test_a_static_member_that_comes_back_with_the_classic_protocol_turns_the_group_back_without_a_rebalance() -> None:
    driver = driver_with()
    driver.enter("g", "new", instance_id="i")
    joined = rejoin(driver, "", instance="i")
    assert (joined.error_code, joined.generation_id) == (0, 2)
    assert classic(driver).state is GroupState.STABLE
    token = driver.sync("g", joined.member_id, 2, protocol_type="consumer", protocol_name="range", group_instance_id="i")
    assert numbers(driver.answers[token].assignment) == [0, 1, 2]
    driver.restart()
    assert list(classic(driver).static) == ["i"]


def test_an_empty_group_begins_anew_in_either_protocol() -> None:
    driver = driver_with()
    old = classic_group(driver)
    driver.leave("g", (old, None))
    position = len(driver.log)
    assert driver.enter("g", "new").member_epoch == 2
    assert driver.types_since(position)[:2] == [-2, 5]
    driver.beat("g", "new", -1)
    position = len(driver.log)
    assert rejoin(driver, "nobody").error_code == E.UNKNOWN_MEMBER_ID
    assert isinstance(driver.machine.groups["g"], ConsumerGroup)
    assert rejoin(driver, "").error_code == E.MEMBER_ID_REQUIRED
    assert driver.types_since(position) == [-6, -4, -3, 2]
    assert isinstance(driver.machine.groups["g"], ClassicGroup)
    driver.restart()
    assert isinstance(driver.machine.groups["g"], ClassicGroup)


def garbled_pair(driver: ConsumerDriver) -> None:
    """``new`` of the consumer protocol, and two classic members that share only a protocol whose metadata are garbled."""
    driver.enter("g", "new")
    for name in ("range", "sticky"):
        newcomer(driver, protocols=((name, metadata()), ("odd", b"")), session=600_000)


def test_garbled_metadata_do_not_keep_a_group_from_turning_back() -> None:
    driver = driver_with()
    garbled_pair(driver)
    driver.advance(46_000)
    assert classic(driver).protocol == "odd", "the session of the last consumer is over"
    assert classic(driver).state is GroupState.PREPARING_REBALANCE


def test_a_group_that_would_not_fit_into_one_record_does_not_turn_back() -> None:
    driver = driver_with(max_record_bytes=3_000)
    driver.enter("g", "new")
    for _ in range(3):
        newcomer(driver, protocols=(("range", metadata() + b"x" * 1_000),))
    assert driver.beat("g", "new", -1).error_code == 0
    assert len(driver.consumers("g").members) == 3
    driver.restart()
    assert len(driver.consumers("g").members) == 3


def test_a_group_is_turned_over_while_a_member_changes_its_protocol() -> None:
    driver = driver_with()
    both = (("range", metadata()), ("sticky", metadata()))
    old, token = driver.join_twice("g", protocols=both)
    driver.advance(0)
    driver.sync("g", old, driver.answers[token].generation_id, {old: assignment(t=[0, 1, 2])})
    other, _ = driver.join_twice("g", protocols=both[1:])
    assert driver.enter("g", "new").error_code == 0
    assert driver.consumers("g").members.keys() == {old, other, "new"}
