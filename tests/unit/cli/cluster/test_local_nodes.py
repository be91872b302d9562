"""Folders and processes of a local cluster's nodes."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tidelog.cli.cluster.local_layout import LocalCluster, new_cluster
from tidelog.cli.cluster.local_nodes import NodeFolder, command_line, founders, new_id
from tidelog.cli.refusal import CommandFailed


def made(count: int = 3) -> LocalCluster:
    cluster = new_cluster(new_id(), count, 9092, (), {})
    return replace(cluster, nodes=tuple(replace(node, directory_id=new_id()) for node in cluster.nodes))


def test_a_folder_is_prepared_once_and_its_settings_are_the_users_from_then_on(tmp_path: Path) -> None:
    cluster = made()
    folder = NodeFolder(str(tmp_path), cluster.nodes[0])
    folder.prepare(cluster)
    meta = (folder.path / "data" / "meta.properties").read_text()
    assert cluster.nodes[0].directory_id in meta
    assert cluster.cluster_id in meta
    folder.settings.write_text("node.id=1\n")
    folder.prepare(cluster)
    assert folder.settings.read_text() == "node.id=1\n"
    assert (folder.path / "data" / "meta.properties").read_text() == meta


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline


def test_founders_are_the_voters_of_the_quorum() -> None:
    cluster = made(4)
    assert [voter.voter_id for voter in founders(cluster).voters] == [1, 2, 3]


def test_a_data_dir_that_cannot_be_formatted_is_told(tmp_path: Path) -> None:
    cluster = made()
    folder = NodeFolder(str(tmp_path), cluster.nodes[0])
    folder.path.mkdir()
    (folder.path / "data").write_text("a file")
    with pytest.raises(CommandFailed, match="Node 1 cannot be formatted"):
        folder.prepare(cluster)


def test_a_pid_file_counts_only_while_that_process_runs_that_folder(tmp_path: Path) -> None:
    folder = NodeFolder(str(tmp_path), made().nodes[0])
    folder.path.mkdir()
    assert folder.pid() is None
    (folder.path / "pid").write_text(f"{os.getpid()}\n")
    assert folder.pid() is None, "this process runs another thing"
    assert not folder.stop()
    sleeping = [sys.executable, "-c", "import time; time.sleep(60)", str(folder.settings)]
    with subprocess.Popen(sleeping) as process:
        (folder.path / "pid").write_text(f"{process.pid}\n")
        until(lambda: folder.pid() == process.pid)  # for a moment a new process has no command line
        assert folder.stop()
        assert process.wait(30) == -15
    assert folder.pid() is None
    folder.ended()
    assert not (folder.path / "pid").exists()


def test_a_request_is_taken_once(tmp_path: Path) -> None:
    folder = NodeFolder(str(tmp_path), made().nodes[0])
    folder.path.mkdir()
    folder.ask("restart")
    assert folder.asked() == "restart"
    assert folder.asked() is None


def test_a_process_that_is_gone_has_no_command_line() -> None:
    assert sys.executable.rpartition("/")[2] in command_line(os.getpid())
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    assert command_line(process.pid) == ""
