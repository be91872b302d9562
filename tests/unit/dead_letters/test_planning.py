from __future__ import annotations

from tests.unit.dead_letters.samples import letter
from tidelog.client.partitioning import partition_of
from tidelog.dead_letters.journal import Entry, Journal
from tidelog.dead_letters.letter import Letter, Source
from tidelog.dead_letters.planning import CLOCKS_MS, Outcome, Plan, Replay, Target
from tidelog.model.ids import uuid_to_text
from tidelog.records.record import Headers, Record

ID = b"i" * 16
SOURCE = Source("workers", "jobs", 1, 40)


def plan(*entries: Entry, partitions: int = 3, most: int = 3) -> Plan:
    targets = {"jobs": Target(ID, partitions), "dlq.jobs": Target(b"d" * 16, 1)}
    return Plan("dlq.jobs", targets.get, Journal(entries), most)


def entry(source: Source, count: int, offset: int) -> Entry:
    return Entry(source, uuid_to_text(ID), count, 1, offset, 0)


def original(key: bytes | None = b"k", value: bytes | None = b"v", headers: Headers = (), at: int = 900) -> Record:
    return Record(40, at, key, value, headers)


def decided(found: Letter, record: Record | None, planned: Plan | None = None) -> Replay:
    replay = (planned or plan()).decide(found, record)
    assert isinstance(replay, Replay)
    return replay


def test_a_record_goes_back_as_it_was_with_a_counter_and_its_origin() -> None:
    replay = decided(letter(), original(headers=(("trace", b"7"), ("trace", b"8"))))
    assert (replay.source, replay.topic_id, replay.partition, replay.key, replay.value) == (SOURCE, ID, 1, b"k", b"v")
    assert replay.headers == (
        ("trace", b"7"),
        ("trace", b"8"),
        ("__dlq.replay.count", b"1"),
        ("__dlq.replay.group", b"workers"),
        ("__dlq.replay.partition", b"1"),
        ("__dlq.replay.offset", b"40"),
    )
    assert replay.replays == 1


def test_the_copy_counts_when_the_record_is_gone_or_another_one() -> None:
    for record in (None, original(value=b"of another life of the topic")):
        replay = decided(letter(), record)
        assert (replay.key, replay.value, len(replay.headers)) == (b"k", b"v", 4)


def test_without_a_copy_the_record_must_be_there() -> None:
    bare = letter(key=None, value=None, at=1000)
    assert decided(bare, original(value=b"x")).value == b"x"
    assert plan().decide(bare, None) is Outcome.LOST
    assert decided(bare, original(at=1000 + CLOCKS_MS)).value == b"v"
    assert plan().decide(bare, original(at=1001 + CLOCKS_MS)) is Outcome.OTHER


def test_a_record_that_fails_again_is_counted_by_its_header_or_by_the_journal() -> None:
    again = original(headers=(("__dlq.replay.count", b"1"), ("a", b"b")))
    replay = decided(letter(), again)
    assert replay.replays == 2
    assert replay.headers[:2] == (("a", b"b"), ("__dlq.replay.count", b"2"))
    before = entry(SOURCE._replace(offset=7), 2, 40)
    assert decided(letter(), None, plan(before)).replays == 3
    assert decided(letter(), original(headers=(("__dlq.replay.count", b"many"),))).replays == 1


def test_a_cap_ends_the_circle() -> None:
    first = SOURCE._replace(offset=7)
    assert plan(entry(first, 2, 40)).before_reading(letter()) is None
    assert plan(entry(first, 3, 40)).before_reading(letter()) is Outcome.CAPPED
    assert plan(most=1).decide(letter(), original(headers=(("__dlq.replay.count", b"1"),))) is Outcome.CAPPED


def test_each_record_goes_back_once() -> None:
    planned = plan(entry(SOURCE, 1, 95))
    assert planned.before_reading(letter()) is Outcome.DONE
    planned = plan()
    assert planned.before_reading(letter(0)) is None
    assert planned.before_reading(letter(1)) is Outcome.DUPLICATE
    assert planned.before_reading(letter(2, group="another")) is None, "each group has its own dead letters"
    assert planned.before_reading(letter(3, source=("jobs", 2, 40))) is None


def test_what_has_no_way_back_is_left() -> None:
    assert plan().before_reading(letter(source=("gone", 0, 0))) is Outcome.NO_TOPIC
    assert plan().decide(letter(source=("gone", 0, 0)), None) is Outcome.NO_TOPIC
    assert plan().before_reading(letter(source=("dlq.jobs", 0, 0))) is Outcome.LOOP


def test_a_topic_with_fewer_partitions_takes_it_where_its_key_belongs() -> None:
    far = ("jobs", 7, 40)
    assert decided(letter(source=far), None).partition == partition_of(b"k", 3)
    assert decided(letter(source=far, key=None), None).partition == 1
