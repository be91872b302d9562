"""Heartbeats that are refused change nothing."""

from __future__ import annotations

from tests.unit.coordinator.group.streams.streams_driver import (
    ANN,
    StreamsDriver,
)
from tidelog.model.errors import ErrorCode


def test_a_refused_heartbeat_leaves_no_group_and_no_timer() -> None:
    driver = StreamsDriver()
    answer = driver.streams_beat(ANN, 3)
    assert (answer.error_code, answer.member_id) == (ErrorCode.GROUP_ID_NOT_FOUND, "")
    assert (driver.log, dict(driver.machine.groups)) == ([], {})
    driver.enter_streams(ANN)
    before = driver.streams().members
    assert driver.streams_beat(ANN, 9).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert driver.streams().members == before
