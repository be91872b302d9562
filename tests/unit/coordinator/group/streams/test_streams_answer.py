"""What an answer tells besides tasks: endpoints, and a shutdown."""

from __future__ import annotations

from tests.unit.coordinator.group.streams.streams_driver import (
    ANN,
    BOB,
    IN,
    WORDS,
    StreamsDriver,
    endpoint,
    statuses,
)


def test_endpoints_are_told_by_member_when_they_changed() -> None:
    driver = StreamsDriver()
    first = driver.enter_streams(ANN, "p", user_endpoint=endpoint("h", 1))
    assert first.partitions_by_user_endpoint is not None
    (entry,) = first.partitions_by_user_endpoint
    assert (entry.user_endpoint.host, entry.user_endpoint.port) == ("h", 1)
    assert {each.topic: each.partitions for each in entry.active_partitions} == {IN: [0, 1], WORDS: [0, 1]}
    known = first.endpoint_information_epoch
    assert driver.streams_beat(ANN, 2, endpoint_information_epoch=known).partitions_by_user_endpoint is None
    second = driver.enter_streams(BOB, "p", user_endpoint=endpoint("h", 1), endpoint_information_epoch=known)
    assert len(second.partitions_by_user_endpoint or ()) == 2, "one entry for each thread"


def test_a_shutdown_reaches_all_until_the_group_is_empty() -> None:
    driver = StreamsDriver()
    driver.enter_streams(ANN)
    driver.enter_streams(BOB)
    assert statuses(driver.streams_beat(ANN, 2, shutdown_application=True)) == [4]
    assert 4 in statuses(driver.streams_beat(BOB, 3))
    driver.streams_beat(ANN, -1)
    assert 4 in statuses(driver.streams_beat(BOB, 3))
    driver.streams_beat(BOB, -1)
    assert statuses(driver.enter_streams(ANN)) == []
