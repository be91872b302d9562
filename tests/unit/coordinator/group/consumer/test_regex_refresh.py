"""Subscriptions by pattern: looked up after the heartbeat, again for new topics, not too often."""

from __future__ import annotations

import pytest

from tests.unit.coordinator.group.consumer_driver import INTERVAL, ConsumerDriver
from tidelog.coordinator.group.settings import GroupSettings
from tidelog.model.errors import ErrorCode as E

TOPICS = {"x1": 1, "x2": 1, "y": 1}


def subscribe(driver: ConsumerDriver, member: str, pattern: str) -> None:
    assert driver.enter("g", member, subscribed_topic_regex=pattern).error_code == 0


def test_a_pattern_is_looked_up_right_after_the_heartbeat_that_brought_it() -> None:
    driver = ConsumerDriver(topics=TOPICS)
    subscribe(driver, "a", "x.*")
    assert driver.types_since(0) == [5, 8]
    assert (driver.one("g", "a").epoch, driver.one("g", "a").assigned) == (1, {})
    position = len(driver.log)
    driver.advance(0)
    assert driver.types_since(position) == [16, 3]
    assert driver.consumers("g").regexes["x.*"].topics == {"x1", "x2"}
    assert driver.given(driver.beat("g", "a", 1)) == {"x1": [0], "x2": [0]}


def test_a_pattern_that_cannot_be_used_is_refused() -> None:
    driver = ConsumerDriver(topics=TOPICS)
    answer = driver.enter("g", "a", subscribed_topic_regex="[")
    assert answer.error_code == E.INVALID_REGULAR_EXPRESSION
    assert answer.error_message is not None and "SubscribedTopicRegex `[`" in answer.error_message
    assert driver.log == []


def test_a_known_pattern_is_assigned_at_once() -> None:
    driver = ConsumerDriver(topics=TOPICS)
    driver.configure("g", consumer_assignment_interval_ms="0")
    subscribe(driver, "a", "x.*")
    driver.advance(0)
    subscribe(driver, "b", "x.*")
    assert (driver.consumers("g").epoch, driver.consumers("g").assignment_epoch) == (3, 3)
    assert sorted(len(target) for target in driver.consumers("g").target.values()) == [1, 1]


def test_new_topics_are_found_when_the_last_look_is_ten_seconds_old() -> None:
    driver = ConsumerDriver(topics=TOPICS)
    subscribe(driver, "a", "x.*")
    driver.advance(0)
    driver.beat("g", "a", 1)
    driver.set_topics({**TOPICS, "x3": 1})
    driver.advance(INTERVAL)
    driver.beat("g", "a", 2)
    driver.advance(0)
    assert driver.consumers("g").regexes["x.*"].topics == {"x1", "x2"}, "looked up a second ago"
    driver.advance(10_000)
    driver.beat("g", "a", 2)
    driver.advance(0)
    assert driver.consumers("g").regexes["x.*"].topics == {"x1", "x2", "x3"}
    assert driver.given(driver.beat("g", "a", 2)) == {"x1": [0], "x2": [0], "x3": [0]}


def test_an_old_look_up_is_repeated_and_changes_nothing_when_topics_are_as_they_were() -> None:
    driver = ConsumerDriver(topics=TOPICS)
    subscribe(driver, "a", "x.*")
    driver.advance(0)
    driver.beat("g", "a", 1)
    for _ in range(16):
        driver.advance(40_000)
        driver.beat("g", "a", 2)
    position = len(driver.log)
    driver.advance(0)
    looked_up = driver.consumers("g").regexes["x.*"].timestamp_ms
    assert driver.now - looked_up < 600_000
    assert 3 not in driver.types_since(position) and driver.consumers("g").epoch == 2


def test_the_last_subscribers_pattern_is_taken_back() -> None:
    driver = ConsumerDriver(topics=TOPICS)
    subscribe(driver, "a", "x.*")
    driver.advance(0)
    subscribe(driver, "b", "x.*")
    position = len(driver.log)
    driver.beat("g", "b", -1)
    assert -16 not in driver.types_since(position)
    position = len(driver.log)
    driver.beat("g", "a", 1, subscribed_topic_regex="", subscribed_topic_names=["y"])
    assert driver.types_since(position)[:3] == [5, -16, 3]
    assert driver.consumers("g").regexes == {}


def test_a_member_that_leaves_takes_its_pattern_along() -> None:
    driver = ConsumerDriver(topics=TOPICS)
    subscribe(driver, "a", "x.*")
    driver.advance(0)
    position = len(driver.log)
    driver.beat("g", "a", -1)
    assert driver.types_since(position) == [-8, -7, -5, -16, 3]


def test_patterns_of_a_group_that_is_gone_are_not_looked_up() -> None:
    driver = ConsumerDriver(topics=TOPICS)
    subscribe(driver, "a", "x.*")
    driver.beat("g", "a", -1)
    position = len(driver.log)
    driver.advance(0)
    assert driver.types_since(position) == []


def test_topics_that_do_not_fit_into_a_record_match_none_and_stop_no_other_group(caplog: pytest.LogCaptureFixture) -> None:
    driver = ConsumerDriver(GroupSettings(max_record_bytes=500), topics={f"x{n}{'y' * 200}": 1 for n in range(3)})
    subscribe(driver, "a", "x.*")
    driver.advance(0)
    assert driver.consumers("g").regexes["x.*"].topics == frozenset()
    assert max(record.size for record in driver.log) <= 500, "a larger one would stop the coordinator, again and again"
    assert "the 3 topics that the pattern x.* matches take" in caplog.text
    driver.beat("g", "a", 1)
    position = len(driver.log)
    driver.advance(1_000)
    driver.beat("g", "a", 1)
    driver.advance(0)
    assert driver.types_since(position) == [], "it is not looked up with each heartbeat"


def test_a_pattern_that_a_member_left_behind_as_it_became_another_is_taken_back() -> None:
    driver = ConsumerDriver(topics=TOPICS)
    assert driver.enter("g", "s", ["y"], instance_id="i").error_code == 0
    subscribe(driver, "a", "x1")
    driver.advance(0)
    driver.beat("g", "s", -2, instance_id="i")
    driver.advance(11_000)
    assert driver.enter("g", "a", instance_id="i", subscribed_topic_regex="x.*").error_code == 0
    driver.advance(0)
    assert list(driver.consumers("g").regexes) == ["x.*"]
    driver.restart()
    assert list(driver.consumers("g").regexes) == ["x.*"]
