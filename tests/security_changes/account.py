"""What producers learn and consumers read while the security of a cluster changes, and what is wrong with that."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping

LIMIT_S = 90.0
"""A client that makes no progress for so long has failed; a slow machine stays below it."""
Place = tuple[str, int, int]
"""Topic, partition and offset."""


class Account:
    """Shared by all clients; each may be a thread. ``problems``: what no client may ever see.

    A consumer is allowed what Kafka allows one that commits after it has read: a record again while its commit is not
    acknowledged, and never afterwards.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.written: dict[Place, bytes] = {}
        self.refused_values: set[bytes] = set()
        self.read: dict[str, dict[Place, bytes]] = defaultdict(dict)
        self.problems: list[str] = []
        self.progress: Counter[str] = Counter()
        """Records that each client wrote or read."""
        self.refusals: Counter[str] = Counter()
        """Times that each client was refused."""
        self.notices: list[tuple[str, str, str]] = []
        """What librdkafka's error_cb reported: the client, the name of the error, its text."""
        self._committed: dict[tuple[str, str, int], int] = {}

    # Clients report

    def acknowledged(self, client: str, place: Place, value: bytes) -> None:
        """The broker has told the producer that the record is there (and its transaction committed)."""
        with self._lock:
            if place in self.written:
                self.problems.append(f"{client}: {place} was acknowledged for {self.written[place]!r} and for {value!r}")
            self.written[place] = value
            self.progress[client] += 1

    def refused(self, client: str, value: bytes | None = None) -> None:
        """The client was refused as it had to be; ``value`` must not be in the log."""
        with self._lock:
            self.refusals[client] += 1
            if value is not None:
                self.refused_values.add(value)

    def delivered(self, client: str, group: str, place: Place, value: bytes) -> None:
        """A member of the group read a record."""
        topic, partition, offset = place
        with self._lock:
            if offset < (stands := self._committed.get((group, topic, partition), 0)):
                self.problems.append(f"{client}: {place} was read again, and {group} had committed {stands}")
            self.read[group][place] = value
            self.progress[client] += 1

    def committed(self, group: str, topic: str, partition: int, offset: int) -> None:
        """A member's commit was acknowledged."""
        with self._lock:
            self._committed[group, topic, partition] = offset

    def failed(self, client: str, error: object) -> None:
        """The client saw an error that it must not see."""
        with self._lock:
            self.problems.append(f"{client}: {type(error).__name__}: {error}")

    def noticed(self, client: str, name: str, text: str) -> None:
        """librdkafka reported an error of a connection, from which it recovers by itself."""
        with self._lock:
            self.notices.append((client, name, text))

    # The test asks

    def until(self, what: Callable[[], bool], name: str) -> float:
        """Waits for it; returns the seconds that it took. AssertionError after LIMIT_S, or when a client has failed."""
        began = time.monotonic()
        while not what():
            assert not self.problems, self.problems[:5]
            assert time.monotonic() < began + LIMIT_S, f"not within {LIMIT_S:.0f} s: {name} ({dict(self.progress)})"
            time.sleep(0.02)
        return time.monotonic() - began

    def go_on(self, clients: Iterable[str], more: int = 3) -> None:
        """Every one of these clients writes or reads so much more."""
        wanted = {client: self.progress[client] + more for client in clients}
        self.until(lambda: all(self.progress[each] >= count for each, count in wanted.items()), f"progress of {list(wanted)}")

    def is_refused(self, client: str, more: int = 1) -> float:
        """The client is refused so often; the seconds until then."""
        wanted = self.refusals[client] + more
        return self.until(lambda: self.refusals[client] >= wanted, f"{client} is refused")

    def ends(self) -> dict[tuple[str, int], int]:
        """The offset after the last record that was acknowledged, by partition."""
        found: dict[tuple[str, int], int] = {}
        with self._lock:
            for topic, partition, offset in self.written:
                found[topic, partition] = max(found.get((topic, partition), 0), offset + 1)
        return found

    def verdict(self, found: Mapping[Place, bytes], groups: Iterable[str]) -> list[str]:
        """All that is wrong. ``found``: what is in the log; ``groups``: have read all of it."""
        wrong = list(self.problems)
        lost = [f"{place} {value!r}" for place, value in self.written.items() if found.get(place) != value]
        wrong += [f"{len(lost)} acknowledged records are lost: {lost[:5]}"] if lost else []
        twice = [value for value, count in Counter(found.values()).items() if count > 1]
        wrong += [f"{len(twice)} records are in the log twice: {twice[:5]}"] if twice else []
        there = self.refused_values & set(found.values())
        wrong += [f"{len(there)} refused records are in the log: {sorted(there)[:5]}"] if there else []
        for group in groups:
            missed = [place for place, value in self.written.items() if self.read[group].get(place) != value]
            wrong += [f"{group} missed {len(missed)} records: {missed[:5]}"] if missed else []
        return wrong
