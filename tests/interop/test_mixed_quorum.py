"""A metadata quorum of one tidelog controller and two of Apache Kafka's: each kind leads the other, and the log is one."""

from __future__ import annotations

import json
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

from tests.interop.java import JVM_FLAGS, LOG4J
from tests.node.test_controllers import read
from tests.unit.server.controllers import Controllers
from tidelog.client.connection import ClientConnection
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tools.jars import ensure

pytestmark = pytest.mark.interop
OURS = 1
APACHE = (2, 3)
BOUND_S = 90
SRC = Path(__file__).parents[2] / "src"
SETTINGS = {
    "controller.quorum.election.timeout.ms": "1000",
    "controller.quorum.fetch.timeout.ms": "2000",
    "controller.quorum.election.backoff.max.ms": "1000",
    "metadata.max.idle.interval.ms": "500",
}


class Quorum:
    """All three are formatted by tidelog."""

    def __init__(self, directory: Path) -> None:
        self.world = Controllers(directory)
        self.world.settings = SETTINGS
        self.world.close()
        self.directory = directory
        self.running: dict[int, subprocess.Popen[bytes]] = {}

    def start(self, *node_ids: int) -> None:
        for node_id in node_ids:
            properties = self.directory / f"{node_id}.properties"
            static = self.world.config(node_id).static
            properties.write_text("".join(f"{name}={value}\n" for name, value in static.items()))
            command = [sys.executable, "-m", "tidelog.cli.main", "start", str(properties)]
            if node_id in APACHE:
                classes = ["-cp", str(ensure() / "*"), "kafka.Kafka", str(properties)]
                command = ["java", *JVM_FLAGS, f"-Dlog4j2.configurationFile={LOG4J}", "-Dlog.level=info", *classes]
            log = (self.directory / f"{node_id}.log").open("ab")
            env = {**os.environ, "PYTHONPATH": str(SRC)}
            self.running[node_id] = subprocess.Popen(command, cwd=self.directory, env=env, stdout=log, stderr=log)

    def end(self, *node_ids: int, number: int = signal.SIGKILL) -> None:
        for node_id in node_ids:
            process = self.running.pop(node_id)
            process.send_signal(number)
            process.wait(BOUND_S)

    def states(self) -> dict[int, tuple[int, int]]:
        """(epoch, leader) in the quorum-state file of each that runs."""
        found = {}
        for node_id in self.running:
            path = Path(self.world.path(node_id)) / "__cluster_metadata-0" / "quorum-state"
            if path.exists():
                state = json.loads(path.read_text())
                found[node_id] = state["leaderEpoch"], state["leaderId"]
        return found

    def leader(self, after: int = 0) -> tuple[int, int]:
        """(leader, epoch): one that runs, in a later epoch, followed by another."""
        until = time.monotonic() + BOUND_S
        while time.monotonic() < until:
            states = self.states()
            epoch = max((each[0] for each in states.values()), default=0)
            leaders = [leader for at, leader in states.values() if at == epoch]
            if epoch > after and len(leaders) >= 2 and leaders[0] in self.running and set(leaders) == {leaders[0]}:
                return leaders[0], epoch
            time.sleep(0.1)
        raise AssertionError({node_id: (self.directory / f"{node_id}.log").read_text()[-2000:] for node_id in self.world.ports})

    def lengths(self) -> dict[int, int]:
        """How many bytes each has on disk, of those that run; 0 of one that has just been started."""
        log = "__cluster_metadata-0/00000000000000000000.log"
        files = {node_id: Path(self.world.path(node_id)) / log for node_id in self.running}
        return {node_id: file.stat().st_size if file.exists() else 0 for node_id, file in files.items()}


@pytest.fixture
def quorum(tmp_path: Path) -> Iterator[Quorum]:
    made = Quorum(tmp_path)
    yield made
    made.end(*made.running)


def set_through(port: int, value: str) -> int:
    """``message.max.bytes`` for the cluster, set on a controller's listener; the error code."""
    resource = AlterConfigsResource(4, "", [AlterableConfig("message.max.bytes", 0, value)])
    with socket.create_connection(("localhost", port), 30) as connection:
        client = ClientConnection("test")

        def exchange(frame: bytes) -> Any:
            connection.sendall(frame)
            while not (found := client.receive(connection.recv(65536))):
                pass
            return found[0]

        client.welcomed(exchange(client.hello()))
        until = time.monotonic() + BOUND_S
        while True:
            code = int(exchange(client.request(IncrementalAlterConfigsRequest([resource]))).responses[0].error_code)
            # A leader is the active controller once its epoch has committed something.
            if code != ErrorCode.NOT_CONTROLLER or time.monotonic() > until:
                return code
            time.sleep(0.1)


def test_each_kind_leads_the_other_and_the_log_is_one(quorum: Quorum) -> None:
    quorum.start(OURS, *APACHE)
    leader, epoch = quorum.leader()
    for _ in range(4):
        if leader == OURS:
            break
        # Of the two that are left only one waits with an election until the leader has been silent long enough.
        quorum.end(*APACHE)
        quorum.start(APACHE[0])
        leader, epoch = quorum.leader(epoch)
        quorum.start(APACHE[1])
    assert leader == OURS, "tidelog has led"
    assert set_through(quorum.world.ports[OURS], "1000007") == 0
    until = time.monotonic() + BOUND_S
    while len(set(quorum.lengths().values())) > 1 or len(quorum.lengths()) < 3:
        assert time.monotonic() < until, quorum.lengths()
        time.sleep(0.02)
    quorum.end(OURS)
    leader, epoch = quorum.leader(epoch)
    assert leader in APACHE
    quorum.start(OURS)
    until = time.monotonic() + BOUND_S
    while quorum.states()[OURS] != (epoch, leader):
        assert time.monotonic() < until, quorum.states()
        time.sleep(0.1)
    assert set_through(quorum.world.ports[leader], "1000008") == 0
    time.sleep(2)
    quorum.end(*quorum.running)
    check(quorum)


def check(quorum: Quorum) -> None:
    """On disk: one history, and what was set last."""
    contents = {node_id: read(quorum.world.path(node_id)) for node_id in quorum.world.ports}
    shortest = min(len(batches) for batches, _ in contents.values())
    assert len({tuple(batches[:shortest]) for batches, _ in contents.values()}) == 1
    assert [image.cluster_configs["message.max.bytes"] for _, image in contents.values()] == ["1000008"] * 3
    assert all(set(image.controllers) == {1, 2, 3} for _, image in contents.values())
    for node_id in APACHE:
        said = (quorum.directory / f"{node_id}.log").read_text().splitlines()
        # It says so of itself, too, when it asks for its registration in the moment in which it becomes active.
        wrong = [line for line in said if " FATAL " in line or (" ERROR " in line and "CONTROLLER_REGISTRATION" not in line)]
        assert not wrong, wrong
