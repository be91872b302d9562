"""Members that leave a streams group, or are removed by a timeout."""

from __future__ import annotations

from tests.unit.coordinator.group.streams.streams_driver import (
    ANN,
    AT_ONCE,
    BOB,
    StreamsDriver,
    active,
    kinds,
    pair,
)


def test_a_member_that_leaves_gives_its_tasks_to_the_others() -> None:
    driver = StreamsDriver()
    pair(driver)
    written = len(driver.log)
    left = driver.streams_beat(BOB, -1)
    assert (left.error_code, left.member_epoch, left.active_tasks) == (0, -1, None)
    assert kinds(driver.log[written:]) == [-22, -21, -19, 17]
    assert active(driver.streams_beat(ANN, 3)) == {"0": [0, 1], "1": [0, 1]}


def test_silent_members_are_removed_one_after_another() -> None:
    driver = StreamsDriver()
    pair(driver)
    driver.advance(30_000)
    driver.streams_beat(ANN, 3)
    driver.advance(15_000)
    assert set(driver.streams().members) == {ANN}
    driver.advance(45_000)
    assert (driver.streams().members, driver.streams().epoch) == ({}, 5)


def test_a_new_coordinator_gives_every_member_a_full_session() -> None:
    driver = StreamsDriver()
    pair(driver)
    driver.advance(44_000)
    driver.restart()
    driver.advance(44_000)
    assert set(driver.streams().members) == {ANN, BOB}
    driver.advance(1_000)
    assert driver.streams().members == {}


def test_a_member_that_keeps_its_tasks_too_long_is_removed() -> None:
    driver = StreamsDriver()
    driver.enter_streams(ANN, rebalance_timeout_ms=10_000)
    driver.enter_streams(BOB)
    driver.streams_beat(ANN, 2)
    driver.restart()
    for _ in range(2):
        driver.advance(4_999)
        assert driver.streams_beat(ANN, 2, ({"0": [0, 1], "1": [0, 1]}, {})).error_code == 0
    driver.advance(2)
    assert set(driver.streams().members) == {BOB}


def test_a_member_put_out_by_a_test_leaves() -> None:
    driver = StreamsDriver(AT_ONCE)
    pair(driver)
    driver.run(driver.machine.end_session("g", ANN, driver.now))
    assert driver.machine.member_ids("g") == [BOB]
