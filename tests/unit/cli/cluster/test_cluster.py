"""The words of tidelog cluster; nodes that really run are in ``tests/node/test_local_cluster.py``."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tidelog.cli.cluster import cluster as cluster_module
from tidelog.cli.cluster.cluster import command, prepare
from tidelog.cli.cluster.local_layout import load, new_cluster
from tidelog.cli.cluster.local_nodes import NodeFolder
from tidelog.cli.refusal import CommandFailed


def run(*words: str) -> Result:
    return CliRunner().invoke(command, list(words))


def test_a_folder_is_made_once_and_grows(tmp_path: Path) -> None:
    directory = str(tmp_path / "c")
    first = prepare(directory, 3, 9092, ("x", "y"), {"num.partitions": "2"})
    assert prepare(directory, None, None, (), {}) == first == load(directory)
    more = prepare(directory, 4, None, (), {})
    assert more.nodes[:3] == first.nodes
    assert (tmp_path / "c" / "node-4" / "data" / "meta.properties").exists()
    assert "num.partitions=2" in NodeFolder(directory, more.nodes[3]).settings.read_text()
    with pytest.raises(CommandFailed, match=r"has 4 nodes.*tidelog drain 4.*tidelog cluster remove 4 --dir"):
        prepare(directory, 3, None, (), {})


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
    assert [line.split() for line in lines[1:3]] == [
        ["1", "both", "localhost:9092", "-", "-", "-", "down"],
        ["2", "broker", "localhost:9093", "-", "-", "-", "down"],
    ]
    values = json.loads(run("status", "--dir", directory, "--output", "json").stdout)
    assert (values["underReplicated"], [node["state"] for node in values["nodes"]]) == (None, ["down", "down"])


def test_the_folder_may_be_named_before_the_word(tmp_path: Path) -> None:
    directory = str(tmp_path / "c")
    prepare(directory, 1, 9092, (), {})
    for flags in (["--dir", directory, "status"], [f"--dir={directory}", "status"]):
        assert run(*flags).stdout == run("status", "--dir", directory).stdout != ""


def test_status_shows_where_metrics_are_and_a_process_that_is_suspended(tmp_path: Path) -> None:
    directory = str(tmp_path / "c")
    (node,) = prepare(directory, 1, 9092, (), {}).nodes
    folder = NodeFolder(directory, node)
    sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", str(folder.settings)])
    try:
        (folder.path / "pid").write_text(f"{sleeper.pid}\n")
        os.kill(sleeper.pid, signal.SIGSTOP)
        while not folder.suspended():
            time.sleep(0.01)
        lines = run("status", "--dir", directory).stdout.splitlines()
    finally:
        sleeper.kill()
        sleeper.wait()
    assert lines[1].split() == ["1", "both", "localhost:9092", "-", str(sleeper.pid), "-", "suspended"]
    assert lines[2] == "/metrics and /healthz: http://localhost:11092"


def test_what_does_not_count_for_nodes_that_are_there_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = str(tmp_path / "c")
    prepare(directory, 1, 9092, ("x",), {"num.partitions": "2"})
    prepare(directory, None, None, (), {"num.partitions": "2"})
    assert capsys.readouterr().err == ""
    grown = prepare(directory, 2, 7000, ("x", "y"), {"num.partitions": "3"})
    said = capsys.readouterr().err
    assert "--port 7000 is ignored: the cluster in" in said
    assert "-o num.partitions=3, --racks: not for the 1 nodes that are there" not in said
    assert "-o num.partitions=3, --racks: not for the node that is there" in said
    assert "num.partitions=3" in NodeFolder(directory, grown.nodes[1]).settings.read_text()
    assert "num.partitions=2" in NodeFolder(directory, grown.nodes[0]).settings.read_text()


@pytest.mark.parametrize(("active", "order"), [(1, [2, 3, 1]), (3, [1, 2, 3]), (None, [1, 2, 3])])
def test_a_restart_of_all_ends_with_the_active_controller(
    monkeypatch: pytest.MonkeyPatch, active: int | None, order: list[int]
) -> None:
    monkeypatch.setattr(cluster_module, "active_controller", lambda cluster: active)
    assert cluster_module.active_last(new_cluster("c", 3, 9092, (), {})) == order


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
