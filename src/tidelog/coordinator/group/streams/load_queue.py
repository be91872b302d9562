"""A queue of things by load, least first; equal loads in the order given at the start."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item", bound=Hashable)


class LoadQueue(Generic[Item]):
    """``load`` is asked when an item enters; an item whose load is to change is taken out and put back."""

    __slots__ = ("_heap", "_load", "_rank")

    def __init__(self, items: Sequence[Item], load: Callable[[Item], float]) -> None:
        self._load = load
        self._rank = {item: rank for rank, item in enumerate(items)}
        self._heap = [(load(item), rank, item) for item, rank in self._rank.items()]
        heapq.heapify(self._heap)

    def pop(self) -> Item | None:
        """Takes the least loaded item out; None when there is none."""
        return heapq.heappop(self._heap)[2] if self._heap else None

    def push(self, item: Item) -> None:
        """Puts one of the items back."""
        heapq.heappush(self._heap, (self._load(item), self._rank[item], item))
