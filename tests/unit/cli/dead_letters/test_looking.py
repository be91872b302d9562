from __future__ import annotations

from typing import Any

import pytest

from tests.unit.cli.dead_letters.log_stand_in import IDS, StandIn
from tests.unit.dead_letters.samples import EXHAUSTED, REJECTED, headers
from tidelog.cli.dead_letters.log_reading import LogReader
from tidelog.cli.dead_letters.looking import as_output, counted, listed, shown, shown_text
from tidelog.cli.refusal import CommandFailed
from tidelog.dead_letters.choice import Choice
from tidelog.dead_letters.journal import Replayed
from tidelog.dead_letters.letter import Source
from tidelog.records.record import Record

DONE = Replayed(Source("workers", "jobs", 0, 1), IDS["jobs"], 1, 0, 2, 4000)


def cluster() -> Any:
    letters = [
        Record(0, 3000, b"k", b"one", headers("jobs", 0, 1)),
        Record(1, 1000, None, b"two", headers("jobs", 0, 7, why=EXHAUSTED)),
        Record(2, 2000, b"no dead letter", None),
    ]
    other = [Record(0, 2000, None, None, headers("mails", 0, 3))]
    jobs = [Record(1, 900, b"k", b"one", (("trace", b"7"),)), Record(2, 4000, b"k", b"one")]
    journal = [Record(0, 4000, DONE.key(), DONE.value()), Record(1, 4000, b"?", b"?")]
    return StandIn({"dlq": [letters, other], "jobs": [jobs], "dlq.replayed": [journal]})


def test_the_newest_are_listed_oldest_first() -> None:
    rows = listed(LogReader(cluster()), "dlq", Choice(), 0)
    assert [(row["source"], row["replayed"]) for row in rows] == [("jobs:0:7", "no"), ("mails:0:3", "no"), ("jobs:0:1", "yes")]
    assert [row["offset"] for row in listed(LogReader(cluster()), "dlq", Choice(), 2)] == [0, 0]
    first = as_output(rows)[2]
    assert (first["replayed"], first["key"], "source" in first) == (True, "k", False)


def test_a_topic_without_a_journal_has_no_replays() -> None:
    session = cluster()
    del session.topics["dlq.replayed"]
    assert {row["replayed"] for row in listed(LogReader(session), "dlq", Choice(), 0)} == {"no"}


def test_counts_are_by_group_topic_and_reason() -> None:
    rows = counted(LogReader(cluster()), "dlq", Choice())
    assert [(row["topic"], row["reason"], row["count"]) for row in rows] == [
        ("jobs", EXHAUSTED, 1),
        ("jobs", REJECTED, 1),
        ("mails", REJECTED, 1),
    ]
    assert rows[0]["oldest"] == "1970-01-01T00:00:01.000Z"
    assert [row["topic"] for row in counted(LogReader(cluster()), "dlq", Choice(topics={"mails": None}))] == ["mails"]


def test_one_letter_is_shown_with_its_record_and_its_replay() -> None:
    found = shown(LogReader(cluster()), "dlq", 0, 0)
    assert found["original"]["headers"] == [{"name": "trace", "value": "7"}]
    assert found["replayed"] == {"time": "1970-01-01T00:00:04.000Z", "partition": 0, "offset": 2, "replays": 1}
    lines = list(shown_text(found))
    assert lines[:3] == ["dlq:0:0, written 1970-01-01T00:00:03.000Z", "group       workers", "source      jobs:0:1"]
    assert "  trace: 7" in lines
    assert lines[-1] == "replayed    1970-01-01T00:00:04.000Z to partition 0, offset 2 (replay 1)"


def test_the_record_of_a_letter_may_be_gone() -> None:
    for partition, offset in ((0, 1), (1, 0)):
        found = shown(LogReader(cluster()), "dlq", partition, offset)
        assert (found["original"], found["replayed"]) == (None, None)
        assert list(shown_text(found))[-2:] == ["original    not in its topic any more", "replayed    no"]


@pytest.mark.parametrize(("at", "message"), [((0, 9), "offsets 0 to 2"), ((0, 2), "headers"), ((5, 0), "offsets")])
def test_what_is_no_dead_letter_is_refused(at: tuple[int, int], message: str) -> None:
    with pytest.raises(CommandFailed, match=message):
        shown(LogReader(cluster()), "dlq", *at)
