"""Voter sets and kraft.version by log offset: the latest takes effect, committed or not (KIP-853).

A truncation restores the set before the cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from tidelog.raft.voters import VoterSet
from tidelog.records.control import ControlType, parse_kraft_version, parse_voters

BEFORE_THE_LOG = -1
"""The offset of the configuration or the 0-0 checkpoint."""


class _Entry(NamedTuple):
    offset: int
    kraft_version: int
    voters: VoterSet


class VoterSetsView(Protocol):
    """A read-only ``VoterSets``."""

    @property
    def voters(self) -> VoterSet: ...
    @property
    def kraft_version(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def before(self) -> VoterSet | None: ...
    def voters_in_log(self) -> bool: ...
    def at(self, offset: int) -> tuple[VoterSet, int]: ...


class VoterSets:
    """The history since the oldest snapshot."""

    def __init__(self, voters: VoterSet, kraft_version: int, offset: int = BEFORE_THE_LOG) -> None:
        self._entries = [_Entry(offset, kraft_version, voters)]

    @property
    def voters(self) -> VoterSet:
        """The latest set."""
        return self._entries[-1].voters

    @property
    def kraft_version(self) -> int:
        return self._entries[-1].kraft_version

    @property
    def offset(self) -> int:
        """The offset of the latest set."""
        return self._entries[-1].offset

    @property
    def before(self) -> VoterSet | None:
        """The set before the latest one; None when it is no longer known."""
        return self._entries[-2].voters if len(self._entries) > 1 else None

    def voters_in_log(self) -> bool:
        """Whether the voters come from the log or a snapshot of it."""
        return self.offset != BEFORE_THE_LOG

    def note_kraft_version(self, offset: int, level: int) -> None:
        self._add(_Entry(offset, level, self.voters))

    def note_voters(self, offset: int, voters: VoterSet) -> None:
        self._add(_Entry(offset, self.kraft_version, voters))

    def _add(self, entry: _Entry) -> None:
        assert entry.offset > self.offset, (entry.offset, self.offset)
        self._entries.append(entry)

    def truncate(self, offset: int) -> None:
        """Drops the entries at or above ``offset``."""
        while len(self._entries) > 1 and self._entries[-1].offset >= offset:
            self._entries.pop()

    def reset(self, offset: int, voters: VoterSet, kraft_version: int) -> None:
        """A snapshot's voter set replaces all earlier ones."""
        self._entries = [_Entry(offset, kraft_version, voters)]

    def at(self, offset: int) -> tuple[VoterSet, int]:
        """Set and kraft.version below ``offset``, for a snapshot there."""
        found = self._entries[0]
        for entry in self._entries:
            if entry.offset < offset:
                found = entry
        return found.voters, found.kraft_version


def note_control(sets: VoterSets, base_offset: int, records: Sequence[tuple[int, bytes | None]]) -> None:
    """Applies the voters and kraft.version in control records at ``base_offset``."""
    for offset, (kind, value) in enumerate(records, base_offset):
        if kind == ControlType.KRAFT_VERSION:
            sets.note_kraft_version(offset, parse_kraft_version(value))
        elif kind == ControlType.KRAFT_VOTERS:
            sets.note_voters(offset, VoterSet.of(parse_voters(value)))
