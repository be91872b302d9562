"""Members that are removed by timeout."""

from __future__ import annotations

from tests.unit.coordinator.group.consumer_driver import INTERVAL, ConsumerDriver, settled_pair, topic_id
from tidelog.coordinator.group.consumer.consumer_group import MemberState
from tidelog.model.errors import ErrorCode as E

T = topic_id("t")


def test_a_silent_member_is_out_when_its_session_is_over() -> None:
    driver = ConsumerDriver()
    settled_pair(driver)
    driver.advance(44_000)
    assert driver.beat("g", "b", 3).error_code == 0
    driver.advance(2_000)
    assert list(driver.consumers("g").members) == ["b"]
    assert driver.beat("g", "a", 3).error_code == E.UNKNOWN_MEMBER_ID


def test_members_whose_sessions_end_together_go_one_after_another() -> None:
    driver = ConsumerDriver()
    driver.configure("g", consumer_assignment_interval_ms="0")
    for member in "abc":
        driver.enter("g", member)
    epoch = driver.consumers("g").epoch
    driver.advance(46_000)
    assert driver.consumers("g").members == {}
    assert driver.consumers("g").epoch == epoch + 3


def test_who_does_not_give_up_in_time_is_out() -> None:
    driver = ConsumerDriver()
    driver.enter("g", "a", rebalance_timeout_ms=10_000)
    driver.advance(INTERVAL)
    driver.enter("g", "b")
    driver.beat("g", "a", 2)
    assert driver.one("g", "a").state is MemberState.UNREVOKED_PARTITIONS
    for _ in range(3):
        driver.advance(3_000)
        driver.beat("g", "a", 2)
    assert "a" in driver.consumers("g").members
    driver.advance(1_001)
    assert "a" not in driver.consumers("g").members


def test_who_gave_up_in_time_stays() -> None:
    driver = ConsumerDriver()
    driver.enter("g", "a", rebalance_timeout_ms=10_000)
    driver.advance(INTERVAL)
    driver.enter("g", "b")
    kept = driver.given(driver.beat("g", "a", 2))
    driver.beat("g", "a", 2, kept)
    driver.advance(11_000)
    assert "a" in driver.consumers("g").members


def test_sessions_and_rebalances_begin_anew_after_a_load() -> None:
    driver = ConsumerDriver()
    driver.enter("g", "a", rebalance_timeout_ms=10_000)
    driver.advance(INTERVAL)
    driver.enter("g", "b")
    driver.beat("g", "a", 2)
    driver.advance(9_000)
    driver.restart()
    driver.advance(9_000)
    assert list(driver.consumers("g").members) == ["a", "b"]
    driver.advance(1_001)
    assert list(driver.consumers("g").members) == ["b"]


def test_a_static_member_that_does_not_come_back_is_out_after_its_session() -> None:
    driver = ConsumerDriver()
    driver.enter("g", "a", instance_id="i")
    driver.beat("g", "a", -2, instance_id="i")
    driver.advance(46_000)
    assert driver.consumers("g").members == {}
