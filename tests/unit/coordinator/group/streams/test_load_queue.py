"""The queue of things by load."""

from __future__ import annotations

from tidelog.coordinator.group.streams.load_queue import LoadQueue


def test_the_least_loaded_comes_first_and_equals_in_the_order_given() -> None:
    loads = {"c": 1, "b": 0, "a": 1}
    queue = LoadQueue(list(loads), loads.__getitem__)
    assert [queue.pop() for _ in range(4)] == ["b", "c", "a", None]


def test_an_item_comes_back_with_its_new_load() -> None:
    loads = {"a": 0, "b": 1}
    queue = LoadQueue(list(loads), loads.__getitem__)
    assert queue.pop() == "a"
    loads["a"] = 2
    queue.push("a")
    assert [queue.pop(), queue.pop()] == ["b", "a"]
