"""The same seed makes the same evening, and the ledger says exactly what is wrong with it."""

from __future__ import annotations

from collections import Counter

from demo.city import JITTER_MS, OPENING_MS, TICK_MS, TOPICS, WATERMARK_MS, City, Record
from demo.feeding import booking_of, encoded

TICKS, PER_TICK = 60, 100


def evening(seed: int) -> tuple[City, list[list[Record]]]:
    city = City(seed, TICKS, PER_TICK)
    return city, [city.tick() for _ in range(TICKS)]


def test_a_seed_makes_one_evening() -> None:
    assert evening(1)[1] == evening(1)[1] != evening(2)[1]


def test_the_ledger_knows_what_was_sent_broken_late_or_twice() -> None:
    city, ticks = evening(1)
    sent = [record for tick in ticks for record in tick]
    ledger = city.ledger
    assert ledger.sent == Counter(record.topic for record in sent)
    for topic in TOPICS:
        good = [record for record in sent if record.topic == topic and isinstance(record.value, dict)]
        ids = Counter(str(next(iter(record.value.values()))) for record in good if isinstance(record.value, dict))
        late = {str(record.value) for record in good if record.at_ms < OPENING_MS}
        assert ledger.sent[topic] - len(good) == ledger.bad[topic] > 0
        assert sum(ids.values()) - len(ids) == ledger.twice[topic] > 0
        assert len(late) == ledger.late[topic]
        assert (ledger.late[topic] > 0) == (topic != "payments")


def test_what_is_not_late_is_within_the_watermark_and_nothing_is_late_in_the_beginning() -> None:
    _, ticks = evening(3)
    newest = OPENING_MS
    seen: set[str] = set()
    for number, tick in enumerate(ticks):
        for record in tick:
            again = str(record.value) in seen  # a second copy may come later: it is left out in any case
            if isinstance(record.value, dict) and record.at_ms >= OPENING_MS and not again:
                # Somebody who reads this tick whole may have read the next one already.
                assert record.at_ms >= newest + TICK_MS - WATERMARK_MS
            seen.add(str(record.value))
            assert number >= 2 or not 0 < record.at_ms < OPENING_MS
        newest = max([newest, *(record.at_ms for record in tick)])
    assert JITTER_MS + 2 * TICK_MS <= WATERMARK_MS


def test_a_booking_is_read_as_it_was_written_and_a_broken_one_is_none() -> None:
    _, ticks = evening(1)
    bookings = [record for tick in ticks for record in tick if record.topic == "bookings"]
    for record in bookings:
        found = booking_of(encoded(record, 1))
        if isinstance(record.value, dict):
            assert found is not None
            assert (found["booking_id"], found["zone"]) == (record.value["booking_id"], record.value["zone"])
        elif record.value[:1] != b"\0" or record.value[1:5] == b"\0\0\0\1":
            assert found is None
