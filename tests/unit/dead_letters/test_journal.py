from __future__ import annotations

import pytest

from tidelog.dead_letters.journal import Journal, Replayed, entry_for, entry_of, journal_topic, transactional_id
from tidelog.dead_letters.letter import Source
from tidelog.records.record import Record

ID, OTHER = b"i" * 16, b"j" * 16
SOURCE = Source("wörkers", "jobs", 1, 40)
DONE = Replayed(SOURCE, ID, 2, 1, 95, 1234)


def test_what_is_written_is_what_is_read() -> None:
    assert entry_of(Record(0, 0, DONE.key(), DONE.value())) == entry_for(DONE)


def test_a_record_is_found_by_group_topic_id_partition_and_offset() -> None:
    journal = Journal([entry_for(DONE)])
    assert journal.has(SOURCE, ID)
    assert not journal.has(SOURCE, OTHER), "the topic was deleted and made again"
    for other in (SOURCE._replace(group="g"), SOURCE._replace(partition=0), SOURCE._replace(offset=41)):
        assert not journal.has(other, ID)


def test_the_next_life_of_a_record_knows_its_replays() -> None:
    journal = Journal([entry_for(DONE)])
    assert journal.count(SOURCE._replace(offset=95), ID) == 2
    assert journal.count(SOURCE._replace(offset=95, group="another"), ID) == 2, "the count is the record's, not the group's"
    assert journal.count(SOURCE, ID) == 0
    assert journal.count(SOURCE._replace(offset=95), OTHER) == 0


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"{}"),
        (DONE.key(), None),
        (DONE.key(), b"[]"),
        (DONE.key(), b"{}"),
        (b"[1,2]", DONE.value()),
        (b"{}", DONE.value()),
        (b"\xff", DONE.value()),
        (b'["g","i","t",0,"x"]', DONE.value()),
    ],
)
def test_a_record_of_others_is_passed_over(key: bytes | None, value: bytes | None) -> None:
    assert entry_of(Record(0, 0, key, value)) is None


def test_names_follow_from_the_dead_letter_topic() -> None:
    assert (journal_topic("dlq.jobs"), transactional_id("dlq.jobs")) == ("dlq.jobs.replayed", "tidelog-replay-dlq.jobs")
    assert len(journal_topic("x" * 249)) == 249


@pytest.mark.parametrize("value", [b"[" * 100_000, b'{"count":Infinity,"partition":0,"offset":0,"at_ms":0}', b"9" * 5000])
def test_hostile_records_of_the_journal_are_passed_over(value: bytes) -> None:
    assert entry_of(Record(0, 0, DONE.key(), value)) is None
    assert entry_of(Record(0, 0, value, DONE.value())) is None
