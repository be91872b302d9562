from __future__ import annotations

from typing import Any

import pytest

from tests.unit.cli.dead_letters.log_stand_in import StandIn
from tests.unit.cli.why_record.samples import facts
from tests.unit.dead_letters.samples import EXHAUSTED, REJECTED, headers
from tidelog.cli.dead_letters.log_reading import LogReader
from tidelog.cli.refusal import CommandFailed
from tidelog.cli.why_record import collecting
from tidelog.cli.why_record.collecting import find_letter, in_log
from tidelog.cli.why_record.facts import InLog
from tidelog.model.ids import TopicPartition
from tidelog.records.record import Record

AT = TopicPartition("jobs", 0)


class Committed(StandIn):
    """Also lists the end for readers of committed records."""

    def list_offsets(self, wanted: dict[tuple[str, int], int], *, isolation_level: int = 0) -> dict[tuple[str, int], Any]:
        found = super().list_offsets(wanted)
        if isolation_level and self.stable is not None:
            for answer in found.values():
                answer.offset = self.stable
        return found


def jobs(*offsets: int) -> Any:
    return Committed({"jobs": [[Record(offset, 70, None, b"v") for offset in offsets]]})


def test_a_record_is_looked_at_in_its_partition() -> None:
    session = jobs(0, 1, 3)
    session.stable = 2
    assert in_log(session, LogReader(session), AT, 1) == InLog(0, 4, 2, exists=True, timestamp=70)
    assert in_log(session, LogReader(session), AT, 2) == InLog(0, 4, 2, exists=False)
    assert in_log(session, LogReader(session), AT, 4) == InLog(0, 4, 2)
    with pytest.raises(CommandFailed, match="has 1 partitions, and no partition 3"):
        in_log(session, LogReader(session), TopicPartition("jobs", 3), 0)


def letters() -> Any:
    first = [Record(0, 500, None, None, headers("jobs", 0, 5)), Record(1, 500, None, None, headers("jobs", 0, 6))]
    other = [
        Record(0, 500, None, None, headers("jobs", 0, 5, group="others")),
        Record(1, 2000, None, None, headers("jobs", 0, 5, why=REJECTED)),
        Record(2, 2000, None, None, headers("jobs", 0, 5, why=EXHAUSTED)),
    ]
    return Committed({"dlq": [first, other]})


def test_the_last_letter_of_the_record_is_found_wherever_it_is() -> None:
    session = letters()
    found, all_read = find_letter(LogReader(session), "dlq", facts())
    assert found is not None
    assert (found.partition, found.offset, found.reason, all_read) == (1, 2, EXHAUSTED, True), (
        "those before the record are not its"
    )
    assert find_letter(LogReader(session), "dlq", facts(offset=9)) == (None, True)


def test_a_search_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collecting, "MOST_LETTERS", 1)
    found, all_read = find_letter(LogReader(letters()), "dlq", facts(offset=9))
    assert (found, all_read) == (None, False)
