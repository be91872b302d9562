"""The parked fetches of a leader, which wait for the log to grow, and their deadlines.

Hundreds of brokers observe one active controller, each with a parked fetch, so the next deadline is found without looking at all
of them after each event.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from tidelog.model.machine import Token
from tidelog.protocol.messages.fetch import FetchPartition
from tidelog.raft.effects import Inbound
from tidelog.raft.voters import ReplicaKey

SPARE = 64


class ParkedFetch(NamedTuple):
    """A long poll."""

    inbound: Inbound
    key: ReplicaKey
    partition: FetchPartition
    max_bytes: int
    deadline_ms: int


class ParkedFetches:
    """Parked fetches in order of arrival."""

    __slots__ = ("_deadlines", "_waiting")

    def __init__(self) -> None:
        self._waiting: dict[Token, ParkedFetch] = {}
        self._deadlines: list[tuple[int, Token]] = []
        """A heap that also holds deadlines of answered polls."""

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[ParkedFetch]:
        return iter(self._waiting.values())

    def park(self, fetch: ParkedFetch) -> None:
        """Parks a fetch."""
        token = fetch.inbound.token
        self._waiting[token] = fetch
        heappush(self._deadlines, (fetch.deadline_ms, token))
        if len(self._deadlines) > 2 * len(self._waiting) + SPARE:
            self._deadlines = [(each.deadline_ms, known) for known, each in self._waiting.items()]
            heapify(self._deadlines)

    def abandon(self, token: Token) -> None:
        """Drops a parked fetch, if it is still parked."""
        self._waiting.pop(token, None)

    def take_all(self) -> list[ParkedFetch]:
        """Removes and returns all parked fetches."""
        taken = list(self._waiting.values())
        self._waiting.clear()
        self._deadlines.clear()
        return taken

    def next_deadline_ms(self) -> int | None:
        """The earliest deadline; None without parked fetches."""
        deadlines = self._deadlines
        while deadlines and deadlines[0][1] not in self._waiting:
            heappop(deadlines)
        return deadlines[0][0] if deadlines else None

    def take_expired(self, now_ms: int) -> list[ParkedFetch]:
        """Removes and returns the fetches whose deadline has passed."""
        expired = []
        while (deadline_ms := self.next_deadline_ms()) is not None and deadline_ms <= now_ms:
            expired.append(self._waiting.pop(heappop(self._deadlines)[1]))
        return expired
