from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import pytest

from tidelog.cli.broker_connection import BrokerConnection
from tidelog.cli.start import DEFAULT_DATA, _settings
from tidelog.protocol.messages.describe_cluster import DescribeClusterRequest

TIDELOG = [sys.executable, "-m", "tidelog.cli.main", "start"]
QUIET = ("--override", "tidelog.http.listener=")


@contextmanager
def started(directory: Path, *args: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A node in a process of its own, once it is ready, and the line that said so."""
    process = subprocess.Popen(
        [*TIDELOG, *QUIET, *args], cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline()
    finally:
        process.kill()
        process.communicate()


def refused(directory: Path, *args: str) -> str:
    """What a start that fails says, in one line."""
    result = subprocess.run([*TIDELOG, *QUIET, *args], cwd=directory, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 1, result.stdout
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("tidelog: ")]
    assert "Traceback" not in result.stderr
    return line


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_node_serves_where_it_says_and_stops_clean_on_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    with started(tmp_path, "--port", "0") as (process, line):
        assert line.startswith("tidelog is ready: PLAINTEXT://localhost:")
        address = line.split("//")[1].split(" ")[0]
        with BrokerConnection(address) as broker:
            assert broker.ask(DescribeClusterRequest()).brokers[0].port == int(address.rpartition(":")[2])
        process.send_signal(number)
        assert process.wait(30) == 0
    assert (tmp_path / DEFAULT_DATA / ".kafka_cleanshutdown").exists()


def test_a_port_in_use_and_a_directory_in_use_are_told_in_a_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"PLAINTEXT://localhost:{port}: the port is in use" in refused(tmp_path, "--port", str(port))
    with started(tmp_path, "--port", "0"):
        assert "data is in use by another process" in refused(tmp_path, "--port", "0")


def test_a_path_that_is_a_file_is_told_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert "file/data" in refused(tmp_path, "--port", "0", "--data", "file/data")
    assert "log dir file: cannot be formatted: [Errno 20] Not a directory" in refused(tmp_path, "--port", "0", "--data", "file")


def test_a_setting_that_cannot_be_used_is_told_in_a_line(tmp_path: Path) -> None:
    assert "num.partitions" in refused(tmp_path, "-o", "num.partitions=many")


def test_the_file_counts_less_than_the_flags(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text("listeners=PLAINTEXT://:9999\nlog.dir=/from/file\nnum.partitions=2\n")
    settings = _settings(str(path), ("num.partitions=3", "a=b=c"), "/from/flag", 7)
    assert settings == {"listeners": "PLAINTEXT://localhost:7", "log.dirs": "/from/flag", "num.partitions": "3", "a": "b=c"}
    assert _settings(str(path), (), None, None)["log.dir"] == "/from/file"


def test_without_a_file_the_data_lies_beside(tmp_path: Path) -> None:
    assert _settings(None, (), None, None) == {"log.dirs": DEFAULT_DATA}
    assert _settings(None, ("log.dir=/x",), None, None) == {"log.dir": "/x"}


def test_an_override_without_a_value_is_an_error() -> None:
    with pytest.raises(click.BadParameter):
        _settings(None, ("novalue",), None, None)
