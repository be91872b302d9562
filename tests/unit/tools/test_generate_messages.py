"""The generator: its files are fresh, and what goes into them is facts only."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tidelog.protocol.schema import parse
from tools import extract_messages, generate_messages
from tools.message_code import module_text
from tools.message_shapes import condition, smallest, structs_of


def test_checked_in_files_are_what_the_definitions_give() -> None:
    stale = [path.name for path, text in generate_messages.outputs().items() if path.read_text() != text]
    assert stale == []


def test_the_check_fails_when_a_file_is_stale(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    files = {generate_messages.ROOT / "src" / "not_there.py": "text"}
    monkeypatch.setattr(generate_messages, "outputs", lambda: files)
    monkeypatch.setattr(sys, "argv", ["generate_messages.py", "--check"])
    with pytest.raises(SystemExit, match="stale"):
        generate_messages.main()


def test_definitions_hold_no_prose() -> None:
    for path in (generate_messages.PROTOCOL / "definitions").glob("*.txt"):
        for line in path.read_text().split("\n")[3:]:
            assert len(line) < 130 and "." not in line and '"' not in line, line


def test_a_class_is_generated_for_every_structure_and_works() -> None:
    (message,) = parse(
        "data Thing versions=0-2 flexible=2+\n"
        "  Name string 0+\n"
        "  Count int32 1+ default=7\n"
        "  Parts []Part 0+ null=1+\n"
        "    Id int64 0+\n"
        "  Extra int16 2+ tag=3@2+ default=-1\n"
    )
    scope: dict[str, object] = {"__name__": "generated"}
    exec(compile(module_text([message]), "thing.py", "exec"), scope)
    thing = scope["Thing"]
    value = thing(name="n", parts=[scope["Part"](id=5)], extra=4)  # type: ignore[operator]
    assert value.count == 7
    assert value.encode(2) == b"\x02n\0\0\0\x07\x02" + b"\0" * 7 + b"\x05\0" + b"\x01\x03\x02\0\x04"
    assert thing.decode(value.encode(2), 2) == value  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="extra"):
        value.encode(1)


def test_sizes_and_conditions_follow_the_versions() -> None:
    (message,) = parse("data Thing versions=0-3 flexible=3+\n  Parts []Part 0+\n    Name string 0+\n    Id uuid 1-2\n")
    part = list(structs_of(message, {"Part": "Part"}))[1]
    assert smallest(part) == (2, 2)
    assert condition((1, 2), (0, 3)) == "1 <= version <= 2"
    assert condition((0, 9), (0, 3)) == ""
    assert condition((2, 9), (0, 3)) == "version >= 2"
    assert condition((0, 2), (0, 3)) == "version <= 2"


def test_a_jar_with_another_checksum_is_refused(tmp_path: Path) -> None:
    (tmp_path / f"kafka-raft-{extract_messages.KAFKA}.jar").write_bytes(b"not it")
    with pytest.raises(SystemExit, match="SHA-256"):
        extract_messages.checked_jar(tmp_path, "kafka-raft")
    with pytest.raises(SystemExit, match="Maven Central"):
        extract_messages.checked_jar(tmp_path, "kafka-clients")


def test_the_generator_runs_from_anywhere(tmp_path: Path) -> None:
    tool = generate_messages.ROOT / "tools" / "generate_messages.py"
    done = subprocess.run([sys.executable, str(tool), "--check"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
