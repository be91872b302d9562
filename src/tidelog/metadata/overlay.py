"""A dictionary of an image under change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Overlay(Generic[K, V]):
    """A dictionary of the image, copied on the first write."""

    __slots__ = ("_base", "_copy", "touched")

    def __init__(self, base: Mapping[K, V]) -> None:
        self._base = base
        self._copy: dict[K, V] | None = None
        self.touched: dict[K, None] = {}
        """Keys written or removed, in order."""

    def get(self, key: K) -> V | None:
        return self.now.get(key)

    def put(self, key: K, value: V) -> None:
        self._writable()[key] = value
        self.touched[key] = None

    def discard(self, key: K) -> None:
        self._writable().pop(key, None)
        self.touched[key] = None

    @property
    def now(self) -> Mapping[K, V]:
        """The dictionary with all writes so far."""
        return self._base if self._copy is None else self._copy

    def _writable(self) -> dict[K, V]:
        if self._copy is None:
            base = self._base
            # copy() is ten times as fast as dict() for a dictionary from which keys were removed.
            self._copy = base.copy() if isinstance(base, dict) else dict(base)
        return self._copy
