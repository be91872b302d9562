from __future__ import annotations

from pathlib import Path

import pytest

from tidelog.cli.tools.dump_indexes import Problems, dump_offset_index, dump_snapshot, dump_time_index, dump_transaction_index
from tidelog.records.builder import RecordData, build_batch
from tidelog.storage.index import AbortedTransaction


def write_log(directory: Path) -> int:
    """Two batches, offsets 0 to 1 and 2; where the second starts."""
    first = build_batch([RecordData(None, b"a", 100, ()), RecordData(None, b"b", 200, ())])
    second = build_batch([RecordData(None, b"c", 150, ())], base_offset=2)
    (directory / "00000000000000000000.log").write_bytes(first + second)
    return len(first)


def test_an_offset_without_a_batch_at_its_position_is_a_problem(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    position = write_log(tmp_path)
    path = tmp_path / "00000000000000000000.index"
    path.write_bytes((2).to_bytes(4, "big") + position.to_bytes(4, "big"))
    good = Problems()
    dump_offset_index(str(path), good, verify_only=False, sanity_only=False)
    assert not good
    path.write_bytes((2).to_bytes(4, "big") + (position + 1).to_bytes(4, "big"))
    bad = Problems()
    dump_offset_index(str(path), bad, verify_only=False, sanity_only=False)
    bad.print()
    assert f"Index offset: 2, and no batch at position {position + 1} of the log" in capsys.readouterr().err


def test_a_time_index_holds_the_largest_timestamp_so_far(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_log(tmp_path)
    path = tmp_path / "00000000000000000000.timeindex"
    path.write_bytes((200).to_bytes(8, "big") + (2).to_bytes(4, "big"))
    good = Problems()
    dump_time_index(str(path), good, verify_only=True, sanity_only=False)
    assert not good
    path.write_bytes((200).to_bytes(8, "big") + (9).to_bytes(4, "big"))
    bad = Problems()
    dump_time_index(str(path), bad, verify_only=True, sanity_only=False)
    bad.print()
    assert "Index offset: 9, and no such offset in the log" in capsys.readouterr().err


def test_an_index_without_its_log_is_shown_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "00000000000000000010.index"
    path.write_bytes((5).to_bytes(4, "big") + (99).to_bytes(4, "big"))
    problems = Problems()
    dump_offset_index(str(path), problems, verify_only=False, sanity_only=False)
    assert capsys.readouterr().out == "offset: 15 position: 99\n"
    assert not problems


def test_aborted_transactions_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "00000000000000000000.txnindex"
    path.write_bytes(AbortedTransaction(7, 1, 5, 6).encode())
    dump_transaction_index(str(path), Problems())
    assert capsys.readouterr().out == "version: 0 producerId: 7 firstOffset: 1 lastOffset: 5 lastStableOffset: 6\n"
    path.write_bytes(b"short")
    problems = Problems()
    dump_transaction_index(str(path), problems)
    assert problems


def test_a_snapshot_with_a_wrong_checksum_is_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.snapshot"
    path.write_bytes(b"\0\1" + bytes(8) + b"\1")
    problems = Problems()
    dump_snapshot(str(path), problems)
    assert problems
