"""The company's departments: consumer groups that each do something small with what they read, and how far behind they are."""

from __future__ import annotations

import json
import threading
from collections import Counter
from pathlib import Path
from typing import Any, Protocol

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from demo.city import TOPICS
from demo.feeding import booking_of

ASK_S = 10.0


class Department(Protocol):
    """What a group is for. ``take`` is called by one thread at a time."""

    @property
    def group(self) -> str:
        """The group's name."""

    @property
    def topics(self) -> tuple[str, ...]:
        """What it reads."""

    @property
    def members(self) -> int:
        """How many consumers it has."""

    def take(self, message: Any) -> None:
        """A record that was not read before."""

    def says(self) -> str:
        """What it knows now, for the view."""


class RecommendationEngine:
    """Where riders of a zone want to go: what an app offers first."""

    group, topics, members = "recommendation-engine", ("bookings",), 1

    def __init__(self) -> None:
        self._rides: Counter[tuple[str, str]] = Counter()

    def take(self, message: Any) -> None:
        """A booking, or something that is none."""
        booking = booking_of(message.value() or b"")
        if booking is not None:
            self._rides[booking["zone"], booking["destination"]] += 1

    def says(self) -> str:
        """The most wanted ride."""
        best = self._rides.most_common(1)
        return f"most wanted: {best[0][0][0]} to {best[0][0][1]}" if best else ""


class SurgeForecaster:
    """The next minute of each zone, from its last two. ``latest``: surge by zone; ``rows``: all that came."""

    group, topics, members = "surge-forecaster", ("surge",), 1

    def __init__(self) -> None:
        self.latest: dict[str, tuple[int, float]] = {}
        self.forecast: dict[str, float] = {}
        self.rows = 0

    def take(self, message: Any) -> None:
        """The surge of a zone in a minute."""
        row = json.loads(message.value())
        self.rows += 1
        minute, before = self.latest.get(row["zone"], (0, float(row["surge"])))
        if row["minute"] > minute:
            self.latest[row["zone"]] = row["minute"], float(row["surge"])
            self.forecast[row["zone"]] = max(1.0, row["surge"] + (row["surge"] - before) / 2)

    def says(self) -> str:
        """Where drivers should go."""
        best = max(self.forecast, key=lambda zone: self.forecast[zone], default="")
        return f"next minute: {best} {self.forecast[best]:.1f}x" if best else ""


class AnalyticsLogger:
    """Counts everything, and keeps a line for each thousand records."""

    group, topics, members = "analytics-logger", TOPICS, 2

    def __init__(self, file: Path) -> None:
        self._file = file
        self.counted: Counter[str] = Counter()

    def take(self, message: Any) -> None:
        """Any record."""
        self.counted[message.topic()] += 1
        if self.counted.total() % 1000 == 0:
            with self._file.open("a", encoding="utf-8") as out:
                out.write(json.dumps(dict(sorted(self.counted.items()))) + "\n")

    def says(self) -> str:
        """How much."""
        return f"{self.counted.total():,} records logged"


class Staff:
    """A department at work: its members, each a consumer in a thread. A record that is delivered again is taken once."""

    def __init__(self, department: Department, bootstrap: str) -> None:
        self.department = department
        self._guard = threading.Lock()
        self._next: dict[tuple[str, int], int] = {}
        self._halt = threading.Event()
        self.failure: Exception | None = None
        self._threads = [
            threading.Thread(target=self._work, args=(bootstrap,), name=f"{department.group}-{number}", daemon=True)
            for number in range(department.members)
        ]

    def start(self) -> None:
        """All members join the group."""
        for thread in self._threads:
            thread.start()

    def halt(self) -> None:
        """They leave, with what they read committed."""
        self._halt.set()

    def join(self, seconds: float) -> None:
        """Wait for them."""
        for thread in self._threads:
            thread.join(seconds)

    def _work(self, bootstrap: str) -> None:
        consumer = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": self.department.group, "auto.offset.reset": "earliest",
             "enable.auto.offset.store": False, "auto.commit.interval.ms": 500, "enable.partition.eof": True,
             "isolation.level": "read_committed", "fetch.wait.max.ms": 100}
        )  # fmt: skip
        try:
            consumer.subscribe(list(self.department.topics))
            while not self._halt.is_set():
                for message in consumer.consume(500, 0.2):
                    self._handle(consumer, message)
        except Exception as error:  # reported by the thread that watches this department
            self.failure = error
        finally:
            consumer.close()

    def _handle(self, consumer: Consumer, message: Any) -> None:
        error, topic, partition, done = message.error(), message.topic(), message.partition(), message.offset()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            if error.fatal():
                raise KafkaException(error)
            return
        if error is None:
            done += 1
            with self._guard:
                if message.offset() >= self._next.get((topic, partition), 0):
                    self._next[topic, partition] = done
                    self.department.take(message)
        try:
            # The end of a partition is behind the marker of its last transaction: without it there would seem to be a lag.
            consumer.store_offsets(offsets=[TopicPartition(topic, partition, done)])
        except KafkaException:
            # Taken away by a rebalance meanwhile: its new owner reads it again, and it is not taken twice.
            return


class Lags(threading.Thread):
    """Asks the node once a second how far each group is behind, as any lag tool would."""

    def __init__(self, bootstrap: str, groups: dict[str, tuple[str, ...]], partitions: int) -> None:
        super().__init__(name="lags", daemon=True)
        self._servers = bootstrap
        self._groups, self._partitions = groups, partitions
        self._halt = threading.Event()
        self.lag: dict[str, int] = {}

    def halt(self) -> None:
        """Ask no more."""
        self._halt.set()

    def run(self) -> None:
        """Until halted. A question that is not answered is asked again."""
        admin = AdminClient({"bootstrap.servers": self._servers})
        while not self._halt.wait(1):
            for group in self._groups:
                try:
                    self.lag[group] = self._ask(admin, group)
                except (KafkaException, TimeoutError):
                    self.lag.pop(group, None)

    def _ask(self, admin: AdminClient, group: str) -> int:
        """Records between what the group committed and the end."""
        places = [TopicPartition(topic, number) for topic in self._groups[group] for number in range(self._partitions)]
        latest: Any = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        wanted = dict.fromkeys(places, latest)
        ends = admin.list_offsets(wanted, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=ASK_S)
        asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)], request_timeout=ASK_S)
        committed = {(found.topic, found.partition): found.offset for found in asked[group].result(ASK_S).topic_partitions}
        total = 0
        for place, future in ends.items():
            end = future.result(ASK_S).offset
            total += end - max(0, committed.get((place.topic, place.partition), 0))
        return total
