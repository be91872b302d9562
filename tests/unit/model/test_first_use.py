from __future__ import annotations

from functools import partial
from typing import Any

from tidelog.model.first_use import FirstUse


class Owner:
    __slots__ = ("_part", "times")

    part: FirstUse[list[int]] = FirstUse("_part")

    def __init__(self) -> None:
        self.times = 0
        self._part: Any = partial(self.make, 7)

    def make(self, value: int) -> list[int]:
        self.times += 1
        return [value]


def test_a_part_is_made_once_for_each_object_and_only_if_it_is_used() -> None:
    one, other = Owner(), Owner()
    assert one.part is one.part
    assert (one.part, one.times, other.times) == ([7], 1, 0)


def test_the_class_has_the_attribute_itself() -> None:
    assert isinstance(Owner.part, FirstUse)
