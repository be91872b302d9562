"""Dead letters as a broker writes them."""

from __future__ import annotations

from tidelog.dead_letters.letter import Letter, letter_of
from tidelog.records.record import Headers, Record

REJECTED = "Offset rejected by client."
EXHAUSTED = "Offset delivery count exceeded the threshold."


def headers(topic: str, partition: int, offset: int, group: str = "workers", count: int = 3, why: str = REJECTED) -> Headers:
    return (
        ("__dlq.errors.topic", topic.encode()),
        ("__dlq.errors.partition", str(partition).encode()),
        ("__dlq.errors.offset", str(offset).encode()),
        ("__dlq.errors.group", group.encode()),
        ("__dlq.errors.delivery.count", str(count).encode()),
        ("__dlq.errors.message", why.encode()),
    )


def letter(
    offset: int = 0,
    *,
    at: int = 1000,
    source: tuple[str, int, int] = ("jobs", 1, 40),
    group: str = "workers",
    why: str = REJECTED,
    key: bytes | None = b"k",
    value: bytes | None = b"v",
) -> Letter:
    found = letter_of(0, Record(offset, at, key, value, headers(*source, group=group, why=why)))
    assert found is not None
    return found
