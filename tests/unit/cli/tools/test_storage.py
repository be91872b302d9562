from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tidelog.cli.tools.storage import command
from tidelog.model.ids import uuid_from_text

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"


def run(*words: str) -> Result:
    return CliRunner().invoke(command, list(words))


@pytest.fixture
def properties(tmp_path: Path) -> Path:
    """Of a node with the log dirs a and b."""
    file = tmp_path / "server.properties"
    file.write_text(f"node.id=7\nlog.dirs={tmp_path}/a,{tmp_path}/b\n")
    return file


def test_info_names_dirs_that_do_not_exist(properties: Path, tmp_path: Path) -> None:
    shown = run("info", "-c", str(properties))
    assert shown.exit_code == 1
    assert shown.stdout == f"Found problems:\n  {tmp_path}/a does not exist\n  {tmp_path}/b does not exist\n\n"


def test_info_shows_what_format_made(properties: Path, tmp_path: Path) -> None:
    assert run("format", "-c", str(properties), "-t", CLUSTER).exit_code == 0
    shown = run("info", "-c", str(properties))
    assert shown.exit_code == 0
    lines = shown.stdout.splitlines()
    assert lines[:4] == ["Found log directories:", f"  {tmp_path}/a", f"  {tmp_path}/b", ""]
    assert lines[4].startswith(f"Found metadata: {{cluster.id={CLUSTER}, directory.id=")
    assert lines[4].endswith(", node.id=7, version=1}")


def test_info_names_dirs_that_are_not_formatted_or_of_another_node(properties: Path, tmp_path: Path) -> None:
    run("format", "-c", str(properties), "-t", CLUSTER)
    meta = tmp_path / "b" / "meta.properties"
    text, _, checksum = meta.read_text().partition("#")
    assert checksum.startswith("tidelog.crc32=")
    meta.unlink()
    assert run("info", "-c", str(properties)).stdout.endswith(f"Found problem:\n  {tmp_path}/b is not formatted.\n\n")
    meta.write_text(text.replace("node.id=7", "node.id=8"))
    shown = run("info", "-c", str(properties))
    assert shown.exit_code == 1
    assert f"{tmp_path}/b is of node 8 of cluster {CLUSTER}, others are of node 7" in shown.stdout
    meta.write_text("version=9\n")
    assert "meta.properties cannot be read" in run("info", "-c", str(properties)).stdout


def test_the_words_of_kafkas_tool_and_one_more_are_there() -> None:
    assert set(command.commands) == {"format", "info", "random-uuid", "version-mapping", "feature-dependencies", "stray"}
    assert len(uuid_from_text(run("random-uuid").stdout.strip())) == 16
    assert run("version-mapping", "--release-version", "4.3-IV0").stdout.startswith("metadata.version=30 (4.3-IV0)\n")
    dependencies = run("feature-dependencies", "--feature", "transaction.version=2").stdout
    assert dependencies == "transaction.version=2 has no dependencies.\n"
