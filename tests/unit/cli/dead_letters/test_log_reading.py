"""Reading through elections, lost connections, retention and open transactions."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.cli.dead_letters.log_stand_in import StandIn
from tidelog.cli.dead_letters.log_reading import LogReader, Originals, record_at
from tidelog.cli.refusal import CommandFailed
from tidelog.client.failures import NoConnection
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicPartition
from tidelog.records.record import Record

AT = TopicPartition("t", 0)


def log(*offsets: int) -> StandIn:
    return StandIn({"t": [[Record(offset, 10 * offset, None, str(offset).encode()) for offset in offsets]]})


def reader(session: StandIn) -> LogReader:
    """Its clock goes on when it sleeps or looks."""
    clock = [0.0]

    def now() -> float:
        clock[0] += 0.01
        return clock[0]

    def sleep(seconds: float) -> None:
        clock[0] += seconds

    found: Any = session
    return LogReader(found, sleep, now)


def values(session: StandIn, within: tuple[int, int]) -> list[bytes | None]:
    return [record.value for record in reader(session).scan(AT, within)]


def test_a_scan_reads_the_range_and_no_more() -> None:
    assert values(log(0, 1, 2, 5, 6), (1, 6)) == [b"1", b"2", b"5"]
    assert values(log(), (0, 0)) == []


def test_a_scan_goes_on_after_errors_that_pass() -> None:
    session = log(0, 1, 2)
    session.failures = [ErrorCode.NOT_LEADER_OR_FOLLOWER, NoConnection("gone", sent=True), ErrorCode.UNKNOWN_TOPIC_ID]
    assert values(session, (0, 3)) == [b"0", b"1", b"2"]


def test_a_scan_passes_over_what_retention_deleted() -> None:
    session = log(5, 6)
    session.starts["t", 0] = 5
    assert values(session, (0, 7)) == [b"5", b"6"]


def test_what_an_open_transaction_keeps_back_is_an_error_in_time() -> None:
    session = log(0, 1, 2, 3)
    session.stable = 2
    with pytest.raises(CommandFailed, match="from offset 2 to 4: a transaction may be open"):
        values(session, (0, 4))


def test_an_error_that_lasts_is_named() -> None:
    session = log(0)
    session.failures = [ErrorCode.LEADER_NOT_AVAILABLE] * 100
    with pytest.raises(CommandFailed, match="LEADER_NOT_AVAILABLE"):
        values(session, (0, 1))
    session.failures = [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    with pytest.raises(CommandFailed, match="TOPIC_AUTHORIZATION_FAILED"):
        values(session, (0, 1))


def test_ranges_begin_at_a_time() -> None:
    assert reader(log(3, 4, 5)).ranges("t", 35) == {AT: (4, 6)}
    assert reader(log(3, 4, 5)).ranges("t", 60) == {AT: (6, 6)}
    assert reader(log(3, 4, 5)).ranges("t") == {AT: (0, 6)}


def test_originals_near_each_other_cost_one_fetch() -> None:
    session = log(0, 1, 3)
    session.starts["t", 0] = 0
    originals = Originals(reader(session))
    assert [getattr(originals.find(AT, offset), "value", None) for offset in (0, 1)] == [b"0", b"1"]
    assert session.fetches == 1
    assert originals.find(AT, 2) is None, "compacted away"
    assert session.fetches == 2
    assert getattr(originals.find(AT, 3), "value", None) == b"3"
    assert session.fetches == 2


def test_an_original_below_the_log_or_of_no_topic_is_none() -> None:
    session = log(5)
    session.starts["t", 0] = 5
    originals = Originals(reader(session))
    assert originals.find(AT, 2) is None
    assert originals.find(TopicPartition("t", 9), 2) is None
    assert originals.find(TopicPartition("u", 0), 2) is None


def test_one_record_is_found_by_its_offset() -> None:
    found = record_at(reader(log(0, 1, 4)), AT, 1)
    assert found is not None
    assert found.value == b"1"
    assert record_at(reader(log(0, 1, 4)), AT, 2) is None


def test_a_topic_is_its_id_and_its_partitions() -> None:
    assert reader(log(0)).topic("t") == (b"t" * 16, 1)
    assert reader(log(0)).topic("u") is None
