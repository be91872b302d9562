"""What happens in the city, and what goes wrong on the way: records by the tick, the same for the same seed. Pure.

Time in the city advances in ticks of fifteen seconds from ``OPENING`` on. Records come out of order by less than the watermark
of the pipeline (a minute) holds, except those that are late on purpose: they happened before the opening.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

OPENING_MS = int(datetime(2026, 1, 31, 18, tzinfo=UTC).timestamp()) * 1000
TICK_MS = 15_000
MINUTE_MS = 60_000
JITTER_MS = 30_000
WATERMARK_MS = 60_000
HOUR_MS = 3_600_000
OPENING_TICKS = 2
"""How many ticks pass before a record can be late: Spark has to know what time it is before it can call one late."""

ZONES = ("airport", "centre", "harbour", "old town", "stadium", "university")
TOPICS = ("bookings", "positions", "payments")
WATCHED = ("bookings", "positions")
"""What the windows are made of, and what Spark's watermark follows."""
# Share of a zone in what is booked when nothing happens, how much more at its peak, and when that is, as part of the evening.
DEMAND = {
    "airport": (1.0, 2.0, 0.3), "centre": (1.4, 1.5, 0.1), "harbour": (0.7, 0.8, 0.8), "old town": (1.0, 2.5, 1.0),
    "stadium": (0.4, 7.0, 0.6), "university": (0.8, 1.0, 0.45),
}  # fmt: skip
PEAK_WIDTH = 0.08
BOOKED, REPORTED, PAID = 0.25, 0.60, 0.60  # bookings and positions among all records; bookings that are paid by card
BAD, TWICE, LATE = 0.01, 0.015, 0.006


@dataclass(frozen=True, slots=True)
class Record:
    """What a producer sends. ``value``: what it means, or bytes that mean nothing. ``at_ms``: when it happened."""

    topic: str
    key: str
    value: dict[str, Any] | bytes
    at_ms: int


@dataclass(slots=True)
class Ledger:
    """What was put into the topics, by topic: all, and those of them that are bad, second copies, or late (once each).

    ``last_ms``: when the newest of what windows are made of happened.
    """

    sent: Counter[str] = field(default_factory=Counter)
    bad: Counter[str] = field(default_factory=Counter)
    twice: Counter[str] = field(default_factory=Counter)
    late: Counter[str] = field(default_factory=Counter)
    last_ms: int = 0

    def to_json(self) -> dict[str, Any]:
        """As it is kept beside the tables."""
        counts = {name: dict(getattr(self, name)) for name in ("sent", "bad", "twice", "late")}
        return {**counts, "last_ms": self.last_ms}

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Ledger:
        """The other way round."""
        sent, bad, twice, late = (Counter(found[name]) for name in ("sent", "bad", "twice", "late"))
        return cls(sent, bad, twice, late, found["last_ms"])


class City:
    """``tick`` gives the records of the next tick and notes them in ``ledger``."""

    def __init__(self, seed: int, ticks: int, per_tick: int) -> None:
        self._random = random.Random(seed)
        self._ticks = ticks
        self._tick = 0
        self._bookings = max(1, round(per_tick * BOOKED))
        self._reports = max(1, round(per_tick * REPORTED))
        # A driver says where he is once a minute.
        self._drivers = [self._random.choice(ZONES) for _ in range(self._reports * MINUTE_MS // TICK_MS)]
        self._numbers: Counter[str] = Counter()
        self._later: dict[int, list[Record]] = {}
        self.ledger = Ledger()

    @property
    def now_ms(self) -> int:
        """The end of the last tick."""
        return OPENING_MS + self._tick * TICK_MS

    def tick(self) -> list[Record]:
        """Everything that is sent in the next quarter of a minute."""
        records = [made for record in self._true() for made in self._on_the_way(record)]
        records += self._later.pop(self._tick, [])
        self._tick += 1
        if self._tick == self._ticks:  # nothing stays unsent
            records += [record for waiting in self._later.values() for record in waiting]
        self.ledger.sent.update(record.topic for record in records)
        seen = (record.at_ms for record in records if record.topic in WATCHED)
        self.ledger.last_ms = max([self.ledger.last_ms, *seen])
        return records

    def _true(self) -> Iterator[Record]:
        """What happened, before anything goes wrong."""
        weights = [self._demand(zone) for zone in ZONES]
        for zone in self._random.choices(ZONES, weights, k=self._bookings):
            yield from self._booking(zone)
        spread = MINUTE_MS // TICK_MS
        for driver in range(self._tick % spread, len(self._drivers), spread):
            if self._random.random() < 0.1:
                self._drivers[driver] = self._random.choice(ZONES)
            free = self._random.random() < 0.6
            value = {"driver_id": f"d{driver}", "zone": self._drivers[driver], "free": free}
            yield self._made("positions", "position_id", f"d{driver}", value)

    def _booking(self, zone: str) -> Iterator[Record]:
        rider = f"r{self._random.randrange(5000)}"
        others = [(other, self._demand(other)) for other in ZONES if other != zone]
        destination = self._random.choices([name for name, _ in others], [1 / weight for _, weight in others])[0]
        estimate = round(self._random.uniform(6, 40), 2)
        value = {"rider_id": rider, "zone": zone, "destination": destination, "estimate": estimate}
        booking = self._made("bookings", "booking_id", rider, value)
        yield booking
        if self._random.random() < PAID:
            said = booking.value
            assert isinstance(said, dict)
            method = self._random.choice(("card", "wallet"))
            paid = {"booking_id": said["booking_id"], "amount": estimate, "method": method}
            yield self._made("payments", "payment_id", str(said["booking_id"]), paid)

    def _made(self, topic: str, id_name: str, key: str, value: dict[str, Any]) -> Record:
        self._numbers[topic] += 1
        at = max(OPENING_MS, self.now_ms + self._random.randrange(-JITTER_MS, TICK_MS))
        return Record(topic, key, {id_name: f"{topic[:3]}{self._numbers[topic]}", **value, "at": at}, at)

    def _demand(self, zone: str) -> float:
        usual, more, peak = DEMAND[zone]
        return usual + more * math.exp(-(((self._tick / self._ticks - peak) / PEAK_WIDTH) ** 2) / 2)

    def _on_the_way(self, record: Record) -> Iterator[Record]:
        """The record as it arrives: as it is, broken, late, or twice."""
        assert isinstance(record.value, dict)
        if self._random.random() < BAD:
            self.ledger.bad[record.topic] += 1
            yield Record(record.topic, record.key, self._broken(record), 0)
            return
        # The phone had no network: it happened long ago.
        if record.topic in WATCHED and self._tick >= OPENING_TICKS and self._random.random() < LATE:
            self.ledger.late[record.topic] += 1
            at = OPENING_MS - self._random.randrange(HOUR_MS, 2 * HOUR_MS)
            record = Record(record.topic, record.key, {**record.value, "at": at}, at)
        yield record
        # The answer was lost, and the phone sent it again.
        if self._random.random() < TWICE:
            self.ledger.twice[record.topic] += 1
            self._later.setdefault(self._tick + self._random.randrange(3), []).append(record)

    def _broken(self, record: Record) -> bytes:
        if record.topic == "bookings":
            return self._random.choice(
                (b"no header of a registry", b"\x00\x00\x00\x00\x01\x08cut", b"\x00\x00\x0f\x42\x40no such id", b"")
            )
        return self._random.choice((b'{"zone": "cent', b"{}", b'{"at": "yesterday", "zone": 7}', b"[1, 2]", b"\xff\xfe"))
