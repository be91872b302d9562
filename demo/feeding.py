"""The city's records into topics, tick by tick, in the forms that the company agreed on: bookings in Avro, the rest in JSON."""

from __future__ import annotations

import io
import json
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import fastavro
from confluent_kafka import Producer

from demo.city import OPENING_TICKS, City, Record

BOOKING = {
    "type": "record",
    "name": "Booking",
    "fields": [
        {"name": "booking_id", "type": "string"},
        {"name": "rider_id", "type": "string"},
        {"name": "zone", "type": "string"},
        {"name": "destination", "type": "string"},
        {"name": "estimate", "type": "double"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}
SUBJECT = "bookings-value"
_HEADER = struct.Struct(">bI")
_PARSED = fastavro.parse_schema(BOOKING)
FLUSH_S = 60.0


def encoded(record: Record, schema_id: int) -> bytes:
    """The bytes of a value. Avro has the header of Confluent's serializers in front: a zero and the schema's id."""
    if isinstance(record.value, bytes):
        return record.value
    if record.topic == "bookings":
        out = io.BytesIO()
        out.write(_HEADER.pack(0, schema_id))
        fastavro.schemaless_writer(out, _PARSED, record.value)
        return out.getvalue()
    when = datetime.fromtimestamp(record.at_ms / 1000, UTC).isoformat(timespec="milliseconds")
    return json.dumps({**record.value, "at": when}).encode()


def booking_of(value: bytes) -> dict[str, Any] | None:
    """What a consumer makes of a booking; None for one that is none."""
    if len(value) < _HEADER.size or value[0] != 0:
        return None
    try:
        found = fastavro.schemaless_reader(io.BytesIO(value[_HEADER.size :]), _PARSED, _PARSED)
    except (EOFError, ValueError, IndexError):
        return None
    return found if isinstance(found, dict) else None


class Feeder(threading.Thread):
    """Sends a tick every ``pause_s`` seconds. ``may_go_on(tick)``: asked before the first ticks until it says yes.

    A tick is acknowledged whole before the next one is sent: that bounds how much out of order anybody can read them.
    """

    def __init__(
        self, city: City, ticks: int, pause_s: float, bootstrap: str, schema_id: int, may_go_on: Callable[[int], bool]
    ) -> None:
        super().__init__(name="feeder", daemon=True)
        self._city, self._ticks, self._pause_s, self._schema_id = city, ticks, pause_s, schema_id
        self._may_go_on = may_go_on
        self._halt = threading.Event()
        self._settings = {
            "bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5, "compression.type": "lz4",
            "partitioner": "murmur2_random",
        }  # fmt: skip
        self.acknowledged: Counter[str] = Counter()
        self.failure: Exception | None = None

    def halt(self) -> None:
        """End after the tick that is on its way."""
        self._halt.set()

    def run(self) -> None:
        """All ticks; ``failure`` has what went wrong."""
        try:
            self._feed()
        except Exception as error:  # reported by the thread that joins this one
            self.failure = error

    def _feed(self) -> None:
        producer = Producer(self._settings)
        due = time.monotonic()
        for tick in range(self._ticks):
            while tick <= OPENING_TICKS and not self._may_go_on(tick):
                due = time.monotonic()
                if self._halt.wait(0.1):
                    return
            for record in self._city.tick():
                value = encoded(record, self._schema_id)
                producer.produce(record.topic, value, record.key, on_delivery=self._delivered)
                producer.poll(0)
            if left := producer.flush(FLUSH_S):
                raise TimeoutError(f"{left} records were not acknowledged within {FLUSH_S:.0f} s")
            due += self._pause_s
            if self._halt.wait(max(0.0, due - time.monotonic())):
                return

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self.failure = self.failure or RuntimeError(f"a record of {message.topic()} was refused: {error}")
            return
        self.acknowledged[message.topic()] += 1
