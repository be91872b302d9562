"""Parts of an object that are made, and whose modules are imported, when they are first used."""

from __future__ import annotations

from functools import partial
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class FirstUse(Generic[T]):
    """An attribute of a class with ``__slots__``. The part lies in the slot ``slot``; before its first use, what makes it does, a
    ``partial`` that is called without arguments."""

    __slots__ = ("_slot",)

    def __init__(self, slot: str) -> None:
        self._slot = slot

    @overload
    def __get__(self, of: None, owner: type[object]) -> FirstUse[T]: ...
    @overload
    def __get__(self, of: object, owner: type[object]) -> T: ...
    def __get__(self, of: object | None, owner: type[object]) -> Any:
        if of is None:
            return self
        part = getattr(of, self._slot)
        if type(part) is partial:
            part = part()
            setattr(of, self._slot, part)
        return part
