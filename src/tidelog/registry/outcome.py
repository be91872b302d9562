"""What a request decides: entries to write, in order, and the answer once they are written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tidelog.registry import records
from tidelog.registry.records import Entry


@dataclass(frozen=True, slots=True)
class Listed:
    """A list whose entries are made when they are sent: the texts of all would take too much memory at once."""

    items: Sequence[Any]
    made: Callable[[Any], Any]

    def __iter__(self) -> Iterator[Any]:
        return map(self.made, self.items)


@dataclass(frozen=True, slots=True)
class Outcome:
    """``answer`` becomes JSON; bytes are sent as they are; a ``Listed`` is sent in parts; None is an empty answer (204).

    ``foreign``: keys in other forms than ours, which get a null value too.
    """

    answer: Any
    entries: tuple[Entry, ...] = ()
    foreign: tuple[bytes, ...] = ()

    @property
    def value(self) -> Any:
        """The answer, with all entries of a list."""
        return list(self.answer) if isinstance(self.answer, Listed) else self.answer

    @property
    def records(self) -> list[tuple[bytes, bytes | None]]:
        """Keys and values."""
        return [records.write(entry) for entry in self.entries] + [(key, None) for key in self.foreign]
