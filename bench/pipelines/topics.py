"""What is in the topics: rides, of about 200 bytes as JSON, and as Avro. One in a thousand cannot be decoded, one in a hundred
breaks the rule."""

from __future__ import annotations

import io
import json
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

PARTITIONS = 4
BAD_EVERY = 1000
UNFAIR_EVERY = 100
RULE = "fare > 0"
JSON_SCHEMA = "id bigint not null, rider string, zone string, fare double, at timestamp, shared boolean, stars int, note string"
AVRO_SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "Ride",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "rider", "type": ["null", "string"]},
            {"name": "zone", "type": "string"},
            {"name": "fare", "type": "double"},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "shared", "type": "boolean"},
            {"name": "stars", "type": ["null", "int"]},
            {"name": "note", "type": ["null", "string"]},
        ],
    }
)
_START_MS = 1_780_000_000_000
_NOTES = (
    "pick up at the north gate, call before",
    "two bags and a dog, no motorway please",
    "nothing to add this time, thank you",
)


def ride(number: int, keys: int) -> dict[str, Any]:
    """A ride; ``keys``: how many different ids there are."""
    millis = number * 37 % 60_000
    return {
        "id": number % keys,
        "rider": f"rider-{number * 7919 % 100_000:05}",
        "zone": f"zone {number % 97}",
        "fare": -1.5 if number % UNFAIR_EVERY == 3 else round(3 + number % 9973 / 37, 2),
        "at": f"2026-05-28T{number % 24:02}:{number % 60:02}:{millis // 1000:02}.{millis % 1000:03}Z",
        "shared": number % 3 == 0,
        "stars": None if number % 5 == 0 else number % 6,
        "note": _NOTES[number % 3],
    }


def json_record(number: int, keys: int) -> bytes:
    """One record's value; cut in the middle if it is a bad one."""
    text = json.dumps(ride(number, keys)).encode()
    return text[:100] if number % BAD_EVERY == 7 else text


def avro_writer() -> Any:
    """A function from a number to one record's value."""
    from fastavro import parse_schema, schemaless_writer

    schema = parse_schema(json.loads(AVRO_SCHEMA))

    def record(number: int, keys: int) -> bytes:
        out = io.BytesIO()
        schemaless_writer(out, schema, {**ride(number, keys), "at": _START_MS + number})
        return out.getvalue()[:20] if number % BAD_EVERY == 7 else out.getvalue()

    return record


def fill(bootstrap: str, topic: str, form: str, records: int, keys: int) -> None:
    """Write the topic, once."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result()
    settings = {"bootstrap.servers": bootstrap, "linger.ms": 20, "batch.size": 200_000, "log_level": 2, "compression.type": "lz4"}
    producer = Producer(settings)
    record = json_record if form == "json" else avro_writer()
    for number in range(records):
        value = record(number, keys)
        while True:
            try:
                producer.produce(topic, value, partition=number % PARTITIONS, timestamp=_START_MS + number)
                break
            except BufferError:
                producer.poll(0.05)
        if number % 1000 == 0:
            producer.poll(0)
    producer.flush()
