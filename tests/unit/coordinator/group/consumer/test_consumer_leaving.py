"""Members that leave, for good or for a while."""

from __future__ import annotations

from tests.unit.coordinator.group.consumer_driver import INTERVAL, ConsumerDriver, settled_pair, topic_id
from tidelog.coordinator.group.consumer.consumer_group import ConsumerGroupState
from tidelog.coordinator.group.settings import GroupSettings
from tidelog.model.errors import ErrorCode as E

T = topic_id("t")


def test_a_member_that_leaves_is_taken_back_and_the_rest_gets_its_partitions() -> None:
    driver = ConsumerDriver()
    settled_pair(driver)
    position = len(driver.log)
    answer = driver.beat("g", "a", -1)
    assert (answer.error_code, answer.member_id, answer.member_epoch) == (0, "a", -1)
    assert driver.types_since(position) == [-8, -7, -5, 3]
    driver.advance(INTERVAL)
    assert driver.given(driver.beat("g", "b", 3)) == {"t": [0, 1, 2]}
    assert driver.beat("g", "a", -1).error_code == E.UNKNOWN_MEMBER_ID


def test_the_last_member_leaves_an_empty_group_that_is_deleted_or_expires() -> None:
    driver = ConsumerDriver(GroupSettings(offsets_retention_check_interval_ms=100_000))
    for group in ("deleted", "expired"):
        driver.enter(group, "a")
        driver.beat(group, "a", -1)
        assert driver.consumers(group).state is ConsumerGroupState.EMPTY
    token = driver.token()
    driver.run(driver.machine.offsets.delete_group(token, "deleted", lambda error: error))
    assert driver.answers[token] is E.NONE
    position = len(driver.log)
    driver.advance(100_000)
    assert driver.types_since(position) == [-6, -4, -3]
    driver.restart()
    assert driver.machine.groups == {}


def test_a_group_with_members_is_not_deleted() -> None:
    driver = ConsumerDriver()
    driver.enter("g", "a")
    token = driver.token()
    driver.run(driver.machine.offsets.delete_group(token, "g", lambda error: error))
    assert driver.answers[token] is E.NON_EMPTY_GROUP


def test_a_static_member_leaves_for_a_while_and_finds_its_partitions_again() -> None:
    driver = ConsumerDriver()
    driver.enter("g", "a", instance_id="i")
    assert driver.enter("g", "b", instance_id="i").error_code == E.UNRELEASED_INSTANCE_ID
    position = len(driver.log)
    away = driver.beat("g", "a", -2, instance_id="i")
    assert (away.error_code, away.member_epoch, driver.types_since(position)) == (0, -2, [8])
    assert driver.one("g", "a").assigned == {T: {0: 0, 1: 0, 2: 0}}
    position = len(driver.log)
    back = driver.enter("g", "b", instance_id="i")
    assert (back.member_epoch, driver.given(back)) == (2, {"t": [0, 1, 2]})
    assert driver.types_since(position) == [-8, -7, -5, 5, 7, 8, 8]
    assert driver.consumers("g").epoch == 2, "nobody else notices"
    assert driver.beat("g", "a", 2, instance_id="i").error_code == E.FENCED_INSTANCE_ID


def test_leaving_what_is_not_there() -> None:
    driver = ConsumerDriver()
    assert driver.beat("g", "a", -1).error_message == "Group g not found."
    driver.join("classic", protocols=(("range", b"x"),))
    assert driver.beat("classic", "a", -1).error_message == "Group classic is not a consumer group."
    driver.enter("g", "a", instance_id="i")
    assert driver.beat("g", "a", -1, instance_id="other").error_code == E.UNKNOWN_MEMBER_ID


def test_a_test_can_put_a_member_out() -> None:
    driver = ConsumerDriver()
    driver.enter("g", "a")
    driver.run(driver.machine.end_session("g", "a", driver.now))
    assert driver.machine.member_ids("g") == []
