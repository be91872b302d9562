from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sim.workload import NOW_MS, TOPIC_ID, append, batch
from tidelog.cli.tools.storage import command
from tidelog.model.ids import TopicPartition, Uuid, uuid_to_text
from tidelog.server.disk import DiskFileSystem
from tidelog.storage.log_config import LogConfig
from tidelog.storage.log_creation import create_log

FIRST, SECOND = f"orders-0.{'a' * 32}-stray", f"orders-1.{'b' * 32}-stray"


@pytest.fixture
def properties(tmp_path: Path) -> Path:
    """Of a node with two stray directories, one in each log dir."""
    fs = DiskFileSystem()
    for number, (log_dir, name) in enumerate((("a", FIRST), ("b", SECOND))):
        partition = TopicPartition("orders", number)
        log = create_log(fs, f"{tmp_path}/{log_dir}/{partition}", partition, TOPIC_ID, LogConfig(), NOW_MS)
        append(log, batch(3))
        log.flush()
        log.close()
        fs.rename(f"{tmp_path}/{log_dir}/{partition}", f"{tmp_path}/{log_dir}/{name}")
    file = tmp_path / "server.properties"
    file.write_text(f"node.id=7\nlog.dirs={tmp_path}/a,{tmp_path}/b,{tmp_path}/none\n")
    return file


def run(properties: Path, *words: str) -> Result:
    return CliRunner().invoke(command, ["stray", "-c", str(properties), *words])


def test_each_is_shown_with_its_partition_its_size_and_the_reason(properties: Path, tmp_path: Path) -> None:
    shown = run(properties)
    size = (tmp_path / "a" / FIRST / f"{0:020d}.log").stat().st_size
    assert shown.exit_code == 0, shown.stderr
    lines = shown.stdout.splitlines()
    assert lines[0] == f"{tmp_path}/a/{FIRST}"
    assert lines[1].startswith(
        f"  orders-0, topic id {uuid_to_text(Uuid(TOPIC_ID))}: {size} B in 1 segment from offset 0, last written "
    )
    assert "the metadata placed no such partition" in lines[2]
    assert lines[3] == f"{tmp_path}/b/{SECOND}"


def test_programs_get_json(properties: Path, tmp_path: Path) -> None:
    first, second = json.loads(run(properties, "--output", "json").stdout)
    assert (first["directory"], first["topic"], first["partition"]) == (f"{tmp_path}/a/{FIRST}", "orders", 0)
    assert (second["segments"], second["firstOffset"]) == (1, 0)


def test_nothing_is_removed_without_a_yes(properties: Path, tmp_path: Path) -> None:
    refused = run(properties, "--delete")
    assert refused.exit_code == 1
    assert "give --yes" in refused.stderr
    assert (tmp_path / "a" / FIRST).is_dir()


def test_those_that_are_named_are_removed(properties: Path, tmp_path: Path) -> None:
    removed = run(properties, "--delete", "--yes", SECOND)
    assert removed.exit_code == 0
    assert removed.stderr == f"removed {tmp_path}/b/{SECOND}\n"
    assert (tmp_path / "a" / FIRST).is_dir()
    assert not (tmp_path / "b" / SECOND).exists()
    assert run(properties, "--delete", "--yes", f"{tmp_path}/a/{FIRST}").exit_code == 0
    assert run(properties).stdout == "no stray directories\n"


def test_a_name_that_is_no_stray_directory_removes_nothing(properties: Path, tmp_path: Path) -> None:
    refused = run(properties, "--delete", "--yes", FIRST, "orders-0")
    assert refused.exit_code == 1
    assert "orders-0 is no stray directory" in refused.stderr
    assert (tmp_path / "a" / FIRST).is_dir()
