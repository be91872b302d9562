"""Three controllers as processes: one is killed again and again, and what was committed stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.server.controllers import Controllers
from tidelog.controller.committed import CommittedImage
from tidelog.metadata.image import ClusterImage
from tidelog.raft.log_changes import log_shape
from tidelog.raft.metadata_log import MetadataLog, MetadataLogConfig
from tidelog.server.disk import DiskFileSystem

BOUND_S = 60
SRC = Path(__file__).parents[2] / "src"


class Processes:
    """The controllers of a ``Controllers`` world, each in a process of its own."""

    def __init__(self, directory: Path) -> None:
        self.world = Controllers(directory)
        self.world.close()
        self.directory = directory
        self.running: dict[int, subprocess.Popen[bytes]] = {}
        for node_id in self.world.ports:
            static = self.world.config(node_id).static
            (directory / f"{node_id}.properties").write_text("".join(f"{name}={value}\n" for name, value in static.items()))

    def start(self, node_id: int) -> None:
        command = [sys.executable, "-m", "tidelog.cli.main", "start", f"{node_id}.properties"]
        log = (self.directory / f"{node_id}.log").open("ab")
        env = {**os.environ, "PYTHONPATH": str(SRC)}
        self.running[node_id] = subprocess.Popen(command, cwd=self.directory, env=env, stdout=log, stderr=log)

    def end(self, node_id: int, number: int) -> None:
        process = self.running.pop(node_id)
        process.send_signal(number)
        process.wait(BOUND_S)

    def said(self, node_id: int) -> str:
        return (self.directory / f"{node_id}.log").read_text()

    def leader(self, after: int = 0) -> tuple[int, int]:
        """(node, epoch) of the active controller of an epoch above ``after``, when one that runs says so."""
        until = time.monotonic() + BOUND_S
        while time.monotonic() < until:
            for node_id in self.running:
                epochs = [
                    int(line.rsplit(" ", 1)[1]) for line in self.said(node_id).splitlines() if "is the active controller" in line
                ]
                if epochs and epochs[-1] > after:
                    return node_id, epochs[-1]
            time.sleep(0.05)
        raise AssertionError({node_id: self.said(node_id) for node_id in self.world.ports})


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    made = Processes(tmp_path)
    yield made
    for node_id in list(made.running):
        made.end(node_id, signal.SIGKILL)


def test_a_killed_leader_is_followed_by_another_and_nothing_committed_is_lost(processes: Processes) -> None:
    for node_id in processes.world.ports:
        processes.start(node_id)
    leader, epoch = processes.leader()
    for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL):
        processes.end(leader, number)
        next_leader, epoch = processes.leader(epoch)
        assert next_leader != leader
        processes.start(leader)
        leader = next_leader
    for node_id in list(processes.running):
        processes.end(node_id, signal.SIGTERM)
    contents = {node_id: read(processes.world.path(node_id)) for node_id in processes.world.ports}
    shortest = min(len(batches) for batches, _ in contents.values())
    assert shortest > 5
    assert len({tuple(batches[:shortest]) for batches, _ in contents.values()}) == 1, "one history"
    assert all({1, 2, 3} & set(image.controllers) for _, image in contents.values())


def read(directory: str) -> tuple[list[tuple[int, int]], ClusterImage]:
    """(offset, epoch) of each batch on disk, and the image they make."""
    log = MetadataLog.open(DiskFileSystem(), directory, MetadataLogConfig(), 0)
    committed = CommittedImage(ClusterImage())
    committed.advance(log, log_shape(log).end_offset)
    batches = [(header.base_offset, header.leader_epoch) for header, _ in log.batches_from(0)]
    log.close()
    return batches, committed.image
