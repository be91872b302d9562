"""Which connection has to go when there are too many of unknown clients."""

from __future__ import annotations

import logging

import pytest

from tidelog.server.serving.newcomers import Newcomers
from tidelog.server.serving.violations import TOLD_PER_SECOND


class World:
    def __init__(self, most: int, most_per_ip: int) -> None:
        self.now_ms = 1_000_000
        self.closed: list[str] = []
        self.newcomers = Newcomers("OUTSIDE", lambda: self.now_ms)
        self.newcomers.allow(most, most_per_ip)

    def add(self, name: str, host: str = "10.0.0.1") -> None:
        def close() -> None:
            self.closed.append(name)
            self.newcomers.remove(name)

        self.newcomers.add(name, host, close)


def test_the_oldest_of_an_address_goes() -> None:
    world = World(100, 2)
    world.add("other", "10.0.0.2")
    for name in "abcd":
        world.add(name)
    assert world.closed == ["a", "b"]
    assert len(world.newcomers) == 3


def test_the_oldest_of_all_goes_when_the_listener_is_full() -> None:
    world = World(2, 2)
    for number, name in enumerate("abcd"):
        world.add(name, f"10.0.0.{number}")
    assert world.closed == ["a", "b"]
    assert world.newcomers.turned_away == 2


def test_a_flood_from_one_address_closes_its_own() -> None:
    world = World(3, 100)
    world.add("quiet", "10.0.0.2")
    for number in range(10):
        world.add(str(number))
    assert world.closed == [str(number) for number in range(8)]
    world.add("late", "10.0.0.3")
    assert world.closed[-1] == "quiet"


def test_clients_that_authenticate_do_not_count() -> None:
    world = World(2, 2)
    for name in "abcdef":
        world.add(name)
        world.newcomers.remove(name)
        world.newcomers.remove(name)
    assert world.closed == []
    assert len(world.newcomers) == 0


def test_limits_change_for_the_next_connection() -> None:
    world = World(10, 10)
    for name in "abc":
        world.add(name)
    world.newcomers.allow(10, 3)
    assert world.closed == []
    world.add("d")
    assert world.closed == ["a"]


def test_clients_that_do_not_authenticate_in_time_do_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    world = World(1000, 1000)
    with caplog.at_level(logging.INFO):
        for _ in range(50):
            world.newcomers.too_late("10.0.0.1", 30)
        assert caplog.messages == ["closing the connection of 10.0.0.1: it did not authenticate within 30 s"] * TOLD_PER_SECOND
        world.now_ms += 1000
        world.newcomers.too_late("10.0.0.1", 30)
    assert f"closed {50 - TOLD_PER_SECOND} more connections that had not authenticated" in caplog.text


def test_a_flood_does_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    world = World(1, 1)
    for number in range(50):
        world.add(str(number))
    assert caplog.text.count("closes a connection of 10.0.0.1 that has not authenticated") == TOLD_PER_SECOND
    assert "tidelog.max.unauthenticated.connections.per.ip" in caplog.text
    world.now_ms += 1000
    world.add("last")
    assert f"closed {49 - TOLD_PER_SECOND} more connections that had not authenticated" in caplog.text
