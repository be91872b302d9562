from __future__ import annotations

from tests.unit.console.reading.batches import batch, marker
from tidelog.console.reading.scanning import Scan


def test_records_from_an_offset_on_and_where_to_continue() -> None:
    scan = Scan(3, batch(0, "a", "b", "c") + batch(5, "d"), 1, 6, ())
    found = [(each.partition, each.offset, each.value, each.state) for each in scan]
    assert found == [(3, 1, b"b", "plain"), (3, 2, b"c", "plain"), (3, 5, b"d", "plain")]
    assert scan.next_offset == 6
    assert scan.problems == []


def test_transactions_are_committed_aborted_or_open() -> None:
    of = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
    data = batch(0, "a", **of) + marker(1, commit=False) + batch(2, "b", **of) + marker(3, commit=True) + batch(4, "c", **of)
    states = [(each.offset, each.state, each.control) for each in Scan(0, data, 0, 4, ((7, 0),))]
    assert states == [
        (0, "aborted", None),
        (1, "control", "abort"),
        (2, "committed", None),
        (3, "control", "commit"),
        (4, "open", None),
    ]


def test_another_producers_abort_changes_nothing() -> None:
    of = {"producer_id": 8, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
    assert [each.state for each in Scan(0, batch(0, "a", **of), 0, 9, ((7, 0),))] == ["committed"]


def test_a_torn_tail_is_left_for_the_next_fetch() -> None:
    scan = Scan(0, batch(0, "a") + batch(1, "b")[:-3], 0, 9, ())
    assert [each.offset for each in scan] == [0]
    assert (scan.next_offset, scan.problems) == (1, [])


def test_a_batch_with_a_wrong_checksum_is_skipped_and_named() -> None:
    broken = bytearray(batch(0, "a", "b"))
    broken[-1] ^= 1
    scan = Scan(0, bytes(broken) + batch(2, "c"), 0, 9, ())
    assert [each.offset for each in scan] == [2]
    assert scan.next_offset == 3
    assert "checksum" in scan.problems[0][1]


def test_bytes_that_are_no_batch_end_the_scan() -> None:
    scan = Scan(0, b"\0" * 100, 5, 9, ())
    assert list(scan) == []
    assert scan.next_offset == 5
    assert len(scan.problems) == 1


def test_nothing_is_read_from_the_stop_on() -> None:
    broken = bytearray(batch(6, "x"))
    broken[-1] ^= 1
    scan = Scan(0, batch(0, "a", "b", "c") + batch(3, "d", "e", "f") + bytes(broken), 1, 9, (), stop=5)
    assert [each.offset for each in scan] == [1, 2, 3, 4]
    assert scan.next_offset >= 5
    scan = Scan(0, batch(0, "a") + bytes(broken), 0, 9, (), stop=3)
    assert [each.offset for each in scan] == [0]
    assert (scan.next_offset, scan.problems) == (3, [])
