from __future__ import annotations

import stat
from pathlib import Path

import pytest

from tidelog.server.upkeep.audit_file import AuditFile


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines()


def test_only_the_owner_may_read_it_and_lines_are_appended(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    for batch in ([b"a", b"b"], [b"c"]):
        file = AuditFile(str(path), 1000, 3)
        file.append(batch)
        file.close()
    assert path.read_bytes() == b"a\nb\nc\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_full_file_is_renamed_and_the_oldest_goes(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    file = AuditFile(str(path), 10, 3)
    for number in range(9):
        file.append([b"line%d" % number])
    file.append([b"x" * 100, b"end"])
    file.close()
    assert {each.name: lines(each) for each in tmp_path.iterdir()} == {
        "audit.jsonl": [b"end"],
        "audit.jsonl.1": [b"x" * 100],
        "audit.jsonl.2": [b"line8"],
    }


def test_a_batch_is_spread_over_files_in_order(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    file = AuditFile(str(path), 8, 5)
    file.append([b"aaa", b"bbb", b"ccc", b"ddd", b"e"])
    file.close()
    assert [lines(tmp_path / name) for name in ("audit.jsonl.2", "audit.jsonl.1", "audit.jsonl")] == [
        [b"aaa", b"bbb"],
        [b"ccc", b"ddd"],
        [b"e"],
    ]


def test_a_single_file_begins_again(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    file = AuditFile(str(path), 6, 1)
    file.append([b"aaaaa", b"b"])
    file.close()
    assert [each.name for each in tmp_path.iterdir()] == ["audit.jsonl"]
    assert lines(path) == [b"b"]


def test_a_line_that_a_crash_cut_is_ended_first(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    path.write_bytes(b'{"whole":1}\n{"cut":')
    file = AuditFile(str(path), 1000, 3)
    file.append([b"next"])
    file.close()
    assert lines(path) == [b'{"whole":1}', b'{"cut":', b"next"]


def test_after_an_error_it_is_opened_again(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    path = folder / "audit.jsonl"
    file = AuditFile(str(path), 1000, 3)
    with pytest.raises(FileNotFoundError):
        file.open()
    with pytest.raises(FileNotFoundError):
        file.append([b"lost"])
    folder.mkdir()
    file.append([b"kept"])
    file.close()
    assert lines(path) == [b"kept"]
