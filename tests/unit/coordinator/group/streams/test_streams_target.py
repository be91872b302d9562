"""When a streams group gets a new target."""

from __future__ import annotations

import pytest

from tests.unit.coordinator.group.streams.streams_driver import (
    ANN,
    AT_ONCE,
    BOB,
    COUNTS,
    IN,
    WORDS,
    StreamsDriver,
    active,
    at_interval,
    kinds,
    statuses,
)
from tidelog.coordinator.group.settings import GroupSettings
from tidelog.coordinator.group.streams import streams_target
from tidelog.coordinator.group.streams.streams_state import StreamsGroupState
from tidelog.model.errors import ErrorCode


def test_the_first_assignment_waits_for_more_members() -> None:
    driver = StreamsDriver(GroupSettings())
    first = driver.enter_streams(ANN)
    assert (first.member_epoch, active(first), statuses(first)) == (1, {}, [5])
    assert driver.streams().state is StreamsGroupState.ASSIGNING
    driver.advance(2_000)
    assert statuses(driver.enter_streams(BOB)) == [5]
    written = len(driver.log)
    driver.advance(1_000)
    assert kinds(driver.log[written:]) == [21, 21, 20], "one target for both"
    told = driver.streams_beat(ANN, 1), driver.streams_beat(BOB, 1)
    assert [answer.member_epoch for answer in told] == [3, 3]
    assert sorted(len(tasks) for answer in told for tasks in (active(answer) or {}).values()) == [1, 1, 1, 1]


def test_the_wait_ends_without_a_target_when_the_member_left_meanwhile() -> None:
    driver = StreamsDriver(GroupSettings())
    driver.enter_streams(ANN)
    driver.streams_beat(ANN, -1)
    written = len(driver.log)
    driver.advance(5_000)
    assert driver.log[written:] == []
    assert statuses(driver.enter_streams(BOB)) == [5], "the next member of the empty group waits again"


def test_targets_are_an_interval_apart() -> None:
    driver = StreamsDriver(at_interval(1_000))
    driver.enter_streams(ANN)
    later = driver.enter_streams(BOB)
    assert (later.member_epoch, statuses(later)) == (2, [5])
    driver.advance(1_000)
    after = driver.streams_beat(BOB, 2)
    assert (after.member_epoch, statuses(after)) == (3, [])


def test_a_change_of_the_groups_standbys_raises_the_epoch_once() -> None:
    driver = StreamsDriver()
    driver.enter_streams(ANN)
    driver.configure("g", streams_num_standby_replicas="1")
    assert driver.streams_beat(ANN, 2).member_epoch == 3
    assert driver.streams_beat(ANN, 3).member_epoch == 3
    driver.restart()
    assert driver.streams_beat(ANN, 3).member_epoch == 3


MANY = {IN: 200, WORDS: 200, COUNTS: 200}


def test_a_delayed_target_that_fits_into_no_record_is_not_written() -> None:
    driver = StreamsDriver(GroupSettings(max_record_bytes=1_000), topics=MANY)
    driver.enter_streams(ANN)
    driver.advance(3_000)
    assert max(record.size for record in driver.log) <= 1_000, "the log would refuse it, and the coordinator load again"
    assert driver.streams_beat(ANN, 1).error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_more_tasks_than_fit_into_the_records_of_all_members_are_not_assigned(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = StreamsDriver(AT_ONCE._replace(max_record_bytes=1_000), topics=MANY)
    monkeypatch.setattr(streams_target, "assign", None)
    refused = driver.enter_streams(ANN)
    assert refused.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert "400 tasks" in (refused.error_message or "")
    assert driver.log == []


def test_a_target_of_a_coordinator_whose_clock_was_ahead_delays_no_other() -> None:
    driver = StreamsDriver(at_interval(1_000))
    driver.enter_streams(ANN)
    driver.now -= 3_600_000
    driver.restart()
    assert statuses(driver.enter_streams(BOB)) == []
