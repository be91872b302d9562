"""The books: what was sent, what is in the tables and in the topic of surges, and whether it adds up.

Every number on the right comes from somewhere else than the one on the left: the generator's ledger, acknowledgements, rows in
Delta tables, records in a topic, what a consumer group read. ``Line.right`` is what the demo's exit status rests on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from demo.city import MINUTE_MS, OPENING_MS, TOPICS, WATERMARK_MS, Ledger

IDS = {"bookings": "booking_id", "positions": "position_id", "payments": "payment_id"}
Surges = Mapping[tuple[str, int], tuple[int, int]]
"""Bookings and free drivers by zone and minute (its beginning, milliseconds since 1970)."""


@dataclass(frozen=True, slots=True)
class Tables:
    """Rows as they were counted. ``silver``: rows, and those of before the opening; ``ids``: different ones."""

    bronze: Mapping[str, int]
    letters: Mapping[str, int]
    silver: Mapping[str, tuple[int, int]]
    ids: Mapping[str, int]
    activity: Surges


@dataclass(frozen=True, slots=True)
class Line:
    """A statement of the books: ``left`` and ``right`` are to be the same."""

    said: str
    left: int
    right: int

    @property
    def holds(self) -> bool:
        """Whether they are."""
        return self.left == self.right


@dataclass(frozen=True, slots=True)
class Row:
    """A topic's way, for people."""

    topic: str
    produced: int
    bronze: int
    silver: int
    duplicates: int
    letters: int
    late: int


def count(spark: Any, lake: str) -> Tables:
    """Count the tables, with Spark."""
    from pyspark.sql import functions as F

    def table(name: str) -> Any:
        return spark.read.format("delta").load(f"{lake}/{name}")

    def by_topic(frame: Any, column: str) -> dict[str, int]:
        return {row[0]: int(row[1]) for row in frame.groupBy(column).count().collect()}

    opening = F.timestamp_millis(F.lit(OPENING_MS))
    silver, ids = {}, {}
    for topic in TOPICS:
        late = F.count_if(F.col("at") < opening)
        row = table(f"silver/{topic}").agg(F.count(F.lit(1)), late, F.count_distinct(IDS[topic])).first()
        silver[topic], ids[topic] = (int(row[0]), int(row[1])), int(row[2])
    booked = table("silver/bookings").select("zone", "at", F.lit(1).alias("booked"), F.lit(0).alias("free"))
    drivers = table("silver/positions").select("zone", "at", F.lit(0).alias("booked"), F.col("free").cast("int"))
    minute = F.unix_millis(F.date_trunc("minute", "at"))
    grouped = booked.unionAll(drivers).groupBy("zone", minute).agg(F.sum("booked"), F.sum("free"))
    activity = {(row[0], int(row[1])): (int(row[2]), int(row[3])) for row in grouped.collect()}
    return Tables(by_topic(table("bronze"), "_topic"), by_topic(table("dead_letters"), "topic"), silver, ids, activity)


def rows(ledger: Ledger, tables: Tables) -> list[Row]:
    """The table of what became of each topic's records."""
    found = []
    for topic in TOPICS:
        silver, late = tables.silver[topic]
        bronze, letters = tables.bronze.get(topic, 0), tables.letters.get(topic, 0)
        found.append(Row(topic, ledger.sent[topic], bronze, silver, ledger.twice[topic], letters, late))
    return found


def lines(
    ledger: Ledger, acknowledged: Mapping[str, int], tables: Tables, surges: list[tuple[str, int, int, int]], logged: int | None
) -> list[Line]:
    """Everything that has to hold. ``surges``: (zone, minute, bookings, drivers) of each record; ``logged``: read by a group."""
    found = []
    for row in rows(ledger, tables):
        found += [
            Line(f"{row.topic}: sent = acknowledged", row.produced, acknowledged.get(row.topic, 0)),
            Line(f"{row.topic}: produced = bronze", row.produced, row.bronze),
            Line(f"{row.topic}: bronze = silver + duplicates + dead letters", row.bronze,
                 row.silver + row.duplicates + row.letters),
            Line(f"{row.topic}: bad records = dead letters", ledger.bad[row.topic], row.letters),
            Line(f"{row.topic}: rows in silver = different ids", row.silver, tables.ids[row.topic]),
            Line(f"{row.topic}: late records = rows of before the opening", ledger.late[row.topic], row.late),
        ]  # fmt: skip
    if logged is not None:
        found.append(Line("all: produced = read by analytics-logger", ledger.sent.total(), logged))
    return found + surge_lines(ledger, tables.activity, surges)


def surge_lines(ledger: Ledger, activity: Surges, surges: list[tuple[str, int, int, int]]) -> list[Line]:
    """The topic of surges beside silver: every minute that is over, each once, with the same counts; nothing of what was late."""
    known = {(zone, minute): (bookings, drivers) for zone, minute, bookings, drivers in surges}
    over = {at: counts for at, counts in activity.items() if at[1] >= OPENING_MS and is_over(at[1], ledger)}
    late = sum(booked for at, (booked, _) in activity.items() if at[1] < OPENING_MS)
    still_open = sum(booked for at, (booked, _) in activity.items() if at[1] >= OPENING_MS and not is_over(at[1], ledger))
    in_topic = sum(bookings for bookings, _ in known.values())
    booked = sum(booked for booked, _ in activity.values())
    return [
        Line("surge: rows = zones and minutes that are over", len(surges), len(over)),
        Line("surge: rows that say what silver says", len(surges), sum(known.get(at) == counts for at, counts in over.items())),
        Line("surge: bookings in silver = counted + late + minutes not over yet", booked, in_topic + late + still_open),
    ]


def is_over(minute_ms: int, ledger: Ledger) -> bool:
    """Whether the window of a minute is closed: the watermark (a minute behind the newest event) has passed its end."""
    return minute_ms + MINUTE_MS <= ledger.last_ms - WATERMARK_MS
