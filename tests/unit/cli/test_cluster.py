"""The words of tidelog cluster; nodes that really run are in ``tests/node/test_local_cluster.py``."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tidelog.cli.cluster import command, prepare
from tidelog.cli.local_layout import load
from tidelog.cli.local_nodes import NodeFolder
from tidelog.cli.refusal import CommandFailed


def run(*words: str) -> Result:
    return CliRunner().invoke(command, list(words))


def test_a_folder_is_made_once_and_grows(tmp_path: Path) -> None:
    directory = str(tmp_path / "c")
    first = prepare(directory, 3, 9092, ("x", "y"), {"num.partitions": "2"})
    assert prepare(directory, None, 1, (), {}) == first == load(directory)
    more = prepare(directory, 4, 1, (), {})
    assert more.nodes[:3] == first.nodes
    assert (tmp_path / "c" / "node-4" / "data" / "meta.properties").exists()
    assert "num.partitions=2" in NodeFolder(directory, more.nodes[3]).settings.read_text()
    with pytest.raises(CommandFailed, match=r"has 4 nodes.*tidelog drain 4.*tidelog cluster remove 4 --dir"):
        prepare(directory, 3, 1, (), {})


def test_other_peoples_folders_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letters").write_text("x")
    with pytest.raises(CommandFailed, match="holds other things already"):
        prepare(str(tmp_path), 3, 9092, (), {})
    with pytest.raises(CommandFailed, match="cannot be the cluster's folder"):
        prepare(str(tmp_path / "letters"), 3, 9092, (), {})


def test_status_shows_nodes_that_are_down(tmp_path: Path) -> None:
    directory = str(tmp_path / "c")
    prepare(directory, 2, 9092, (), {})
    lines = run("status", "--dir", directory).stdout.splitlines()
    assert [line.split() for line in lines[1:]] == [
        ["1", "both", "localhost:9092", "-", "-", "-", "down"],
        ["2", "broker", "localhost:9093", "-", "-", "-", "down"],
    ]
    values = json.loads(run("status", "--dir", directory, "--output", "json").stdout)
    assert (values["underReplicated"], [node["state"] for node in values["nodes"]]) == (None, ["down", "down"])


@pytest.mark.parametrize("word", ["status", "stop", "restart", "add"])
def test_what_needs_a_cluster_says_how_one_is_made(tmp_path: Path, word: str) -> None:
    result = run(word, "--dir", str(tmp_path / "none"))
    assert result.exit_code == 1
    assert "Make one: tidelog cluster 3 --dir" in result.stderr


def test_what_needs_a_running_cluster_says_so(tmp_path: Path) -> None:
    directory = str(tmp_path / "c")
    prepare(directory, 2, 9092, (), {})
    (tmp_path / "c" / "pid").write_text(f"{os.getppid()}")
    assert "is not running" in run("restart", "--dir", directory).stderr
    assert run("stop", "--dir", directory).stdout == "Stopped.\n"
    assert "There is no node 7" in run("stop", "7", "--dir", directory).stderr


def test_a_number_stands_for_run_and_an_unknown_word_for_nothing() -> None:
    assert "--racks" in run("3", "--help").stdout
    assert "No such command 'frobnicate'" in run("frobnicate").stderr
    assert {"run", "status", "stop", "restart", "add", "remove", "cluster-id", "unregister", "list-endpoints"} == set(
        command.commands
    )
