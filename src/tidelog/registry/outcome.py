"""What a request decides: entries to write, in order, and the answer once they are written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tidelog.registry import records
from tidelog.registry.records import Entry


@dataclass(frozen=True, slots=True)
class Outcome:
    """``answer`` becomes JSON; bytes are sent as they are; None is an empty answer (204).

    ``foreign``: keys in other forms than ours, which get a null value too.
    """

    answer: Any
    entries: tuple[Entry, ...] = ()
    foreign: tuple[bytes, ...] = ()

    @property
    def records(self) -> list[tuple[bytes, bytes | None]]:
        """Keys and values."""
        return [records.write(entry) for entry in self.entries] + [(key, None) for key in self.foreign]
