from __future__ import annotations

import json
from dataclasses import replace

from tests.unit.dead_letters.samples import headers
from tidelog.console.reading.letters import REASON, Letters, Replays
from tidelog.console.reading.scanning import Scan, Seen
from tidelog.dead_letters.journal import Replayed, entry_for
from tidelog.dead_letters.letter import Source
from tidelog.model.ids import uuid_to_text
from tidelog.records.builder import RecordData, build_batch
from tidelog.records.record import Headers

JOBS = Source("workers", "jobs", 1, 40)
ID = b"i" * 16


def seen(value: bytes | None, own: Headers = (), key: bytes | None = b"k") -> Seen:
    data = build_batch([RecordData(key, value, 1000, own)], base_offset=41)
    return next(iter(Scan(2, bytes(data), 41, 50, ())))


def test_a_letter_of_the_group_as_the_browser_gets_it() -> None:
    view = Letters(cut=4, group="workers")
    row = view.row(seen(b"12345", headers("jobs", 1, 40, why="x" * 2 * REASON)))
    assert row is not None
    assert (row.partition, row.offset, row.timestamp) == (2, 41, 1000)
    assert row.line["source"] == {"topic": "jobs", "partition": 1, "offset": "40"}
    assert (row.line["delivery_count"], row.line["reason"]) == (3, "x" * REASON)
    assert (row.line["value"]["size"], row.line["value"]["cut"]) == (5, True)
    assert view.source_of(row.line) == JOBS
    json.dumps(row.line)


def test_other_groups_other_records_and_open_transactions_are_passed_over() -> None:
    view = Letters(group="workers")
    letter = seen(b"v", headers("jobs", 1, 40))
    assert view.row(seen(b"v", headers("jobs", 1, 40, group="others"))) is None
    assert view.row(seen(b"v")) is None
    for state in ("open", "aborted", "control"):
        assert view.row(letter._replace(state=state)) is None
    assert view.row(letter._replace(state="committed")) is not None


def test_replays_are_found_by_source_and_topic_id() -> None:
    done = Replayed(JOBS, ID, 1, 1, 95, 1234)
    view = Replays(wanted=frozenset({(JOBS, uuid_to_text(ID))}))
    row = view.row(seen(done.value(), key=done.key()))
    assert row is not None
    assert row.line["entry"] == entry_for(done)
    again = replace(view, wanted=frozenset({(JOBS, uuid_to_text(b"j" * 16))}))
    assert again.row(seen(done.value(), key=done.key())) is None
    assert view.row(seen(b"{}")) is None
