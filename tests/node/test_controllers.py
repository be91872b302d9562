"""Three controllers as processes: one is killed again and again, and what was committed stays."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.server.controllers import Controllers
from tidelog.client.connection import ClientConnection
from tidelog.controller.committed_image import CommittedImage
from tidelog.metadata.image import ClusterImage
from tidelog.protocol.messages.describe_quorum import DescribeQuorumRequest, RequestPartitionData, RequestTopicData
from tidelog.raft.log_opening import open_log
from tidelog.raft.metadata_log import MetadataLogConfig
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

    def committed_everywhere(self, leader: int) -> int:
        """A high watermark of the leader's, once every voter has the log up to it."""
        until = time.monotonic() + BOUND_S
        while time.monotonic() < until:
            found = self.quorum(leader)
            if found is not None and min(each.log_end_offset for each in found.current_voters) >= found.high_watermark > 0:
                return int(found.high_watermark)
            time.sleep(0.05)
        raise AssertionError({node_id: self.said(node_id) for node_id in self.world.ports})

    def quorum(self, leader: int) -> Any:
        """The metadata partition as ``leader`` describes it; None when it cannot."""
        topics = [RequestTopicData("__cluster_metadata", [RequestPartitionData(0)])]
        with socket.create_connection(("localhost", self.world.ports[leader]), BOUND_S) as connection:
            client = ClientConnection("test")

            def exchange(frame: bytes) -> Any:
                connection.sendall(frame)
                while not (found := client.receive(connection.recv(1 << 16))):
                    pass
                return found[0]

            frame: bytes | None = client.hello()
            while frame is not None:
                frame = client.welcomed(exchange(frame))
            (topic,) = exchange(client.request(DescribeQuorumRequest(topics=topics))).topics
        (partition,) = topic.partitions
        return partition if partition.error_code == 0 else None


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
    committed = processes.committed_everywhere(leader)
    for node_id in list(processes.running):
        processes.end(node_id, signal.SIGTERM)
    contents = {node_id: read(processes.world.path(node_id), committed) for node_id in processes.world.ports}
    histories = {tuple(batches) for batches, _ in contents.values()}
    assert len(histories) == 1, "one history"
    assert len(histories.pop()) > 5
    assert all({1, 2, 3} & set(image.controllers) for _, image in contents.values())


def read(directory: str, committed: int | None = None) -> tuple[list[tuple[int, int]], ClusterImage]:
    """(offset, epoch) of each batch on disk and the image they make: of all, or of those below ``committed``: what lies above was
    not promised: a leader that is killed leaves batches that its followers do not have."""
    log = open_log(DiskFileSystem(), directory, MetadataLogConfig(), 0)
    end = log.end_offset if committed is None else committed
    image = CommittedImage(ClusterImage())
    image.advance(log, end)
    batches = [(header.base_offset, header.leader_epoch) for header, _ in log.batches_from(0) if header.base_offset < end]
    log.close()
    return batches, image.image
