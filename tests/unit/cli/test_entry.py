"""Signals and closed pipes, at real processes of real commands."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.cli.running_node import running_node
from tidelog import __version__
from tidelog.cli.main import module_of

WAITS = """
import click
from tidelog.cli import entry

@click.command()
def command():
    try:
        print("waiting", flush=True)
        import signal
        signal.pause()
    finally:
        print("closed", flush=True)

entry.run(command, "waits")
"""


@pytest.fixture(autouse=True)
def without_nohup() -> Iterator[None]:
    """These tests themselves may run under nohup, which children inherit."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


def test_each_of_kafkas_tools_says_its_version() -> None:
    command = [sys.executable, "-m", module_of("get-offsets"), "--version"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == f"{__version__} (tidelog)\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_each_signal_ends_a_command_in_order(number: int) -> None:
    process = subprocess.Popen([sys.executable, "-c", WAITS], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "waiting\n"
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (out, process.returncode) == ("closed\n", 1)
    assert "Traceback" not in err


def test_a_hangup_does_not_reach_a_command_under_nohup() -> None:
    command = ["nohup", sys.executable, "-c", WAITS]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "waiting\n"
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=60)[0] == "closed\n"
    assert process.returncode == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_producer_that_is_ended_delivers_what_it_has_read(number: int, tmp_path: Path) -> None:
    with running_node(tmp_path) as bootstrap:
        words = ["--bootstrap-server", bootstrap, "--topic", "t"]
        slow = ["--producer-property", "linger.ms=90000"]
        command = [sys.executable, "-m", module_of("console-producer"), *words, *slow]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdin is not None
        process.stdin.write("one\n")
        process.stdin.flush()
        read = [sys.executable, "-m", module_of("get-offsets"), "--bootstrap-server", bootstrap, "--topic", "t"]
        # The topic is there because the line was read; whether it was sent by then does not matter.
        while "t:0:0" not in subprocess.run(read, capture_output=True, text=True, check=False).stdout:
            assert process.poll() is None
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
        assert (process.returncode, "Traceback" in err) == (0, False)
        assert subprocess.run(read, capture_output=True, text=True, check=True).stdout == "t:0:1\n"


@pytest.mark.parametrize(
    "words",
    [("--help",), ("broker-api-versions",), ("configs", "--describe", "--all", "--entity-type", "brokers"), ("dump-log",)],
)
def test_a_reader_that_closes_its_end_leaves_no_traceback(words: tuple[str, ...], tmp_path: Path) -> None:
    with running_node(tmp_path) as bootstrap:
        server = [] if words[0] in {"--help", "dump-log"} else ["--bootstrap-server", bootstrap]
        if words[0] == "dump-log":
            (log,) = tmp_path.glob("data/__cluster_metadata-0/*.log")
            server = ["--cluster-metadata-decoder", "--files", str(log)]
        reading, writing = os.pipe()
        os.close(reading)
        command = [sys.executable, "-m", "tidelog.cli.main", *words, *server]
        done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
        os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")
