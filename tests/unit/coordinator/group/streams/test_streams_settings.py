"""A streams group's own settings, within the bounds of the broker."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.coordinator.group.streams.streams_driver import (
    ANN,
    BOB,
    StreamsDriver,
    at_interval,
    statuses,
)
from tidelog.coordinator.group.settings import GroupSettings
from tidelog.metadata.image import BROKER_RESOURCE


def test_the_broker_decides_the_times_within_which_a_group_may_set_its_own() -> None:
    driver = StreamsDriver(GroupSettings())
    driver.configure("g", streams_heartbeat_interval_ms="7000", streams_initial_rebalance_delay_ms="0")
    answer = driver.enter_streams(ANN)
    assert (answer.heartbeat_interval_ms, answer.status) == (7_000, [])


def test_the_assignment_interval_of_the_cluster_can_be_changed_at_run_time() -> None:
    driver = StreamsDriver(at_interval(60_000))
    cluster = {(BROKER_RESOURCE, ""): {"group.streams.assignment.interval.ms": "0"}}
    driver.image = replace(driver.image, configs=cluster)
    driver.enter_streams(ANN)
    assert statuses(driver.enter_streams(BOB)) == []
    driver.configure("g", streams_assignment_interval_ms="15000")
    assert statuses(driver.enter_streams("cid")) == [5], "the group's own counts first"
