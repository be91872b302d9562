"""``tidelog cluster 3`` as people use it: one node killed, started again, one added, balanced, drained and removed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from tests.interop.nodes import environment, free_ports
from tests.node.console_tools import run

BOUND_S = 60
RECORDS = 500
TOPICS = ("two", "three")


def free_port() -> int:
    """The first of four ports in a row whose controllers' and metrics' ports are within range."""
    while True:
        (first,) = free_ports(1)
        if all(port_is_free(first + offset + step) for offset in (0, 1000, 2000) for step in range(4)):
            return first


def port_is_free(port: int) -> bool:
    import socket

    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


class Running:
    """The command in the foreground, and what a second terminal sees."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = free_port()
        self.output = directory.parent / "output"
        command = [sys.executable, "-m", "tidelog.cli.main", "cluster", "3", "--dir", str(directory), "--port", str(self.port)]
        command += ["-o", "offsets.topic.num.partitions=4"]
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=output, env=environment())
        self.until(lambda: "cluster ready: 3 nodes" in self.said())
        self.bootstrap = f"localhost:{self.port}"

    def said(self) -> str:
        return self.output.read_text(errors="replace")

    def until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + BOUND_S
        while not condition():
            assert time.monotonic() < deadline, self.said()
            assert self.process.poll() is None, self.said()
            time.sleep(0.05)

    def tool(self, *words: str) -> str:
        done = run(words[0], *words[1:])
        assert done.returncode == 0, (words, done.stdout.decode(), done.stderr.decode(), self.said())
        return done.stdout.decode()

    def cluster(self, *words: str) -> str:
        return self.tool("cluster", *words, "--dir", str(self.directory))

    def ask(self, tool: str, *words: str) -> str:
        return self.tool(tool, *words, "--bootstrap-server", self.bootstrap)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    made = Running(tmp_path / "c")
    yield made
    if made.process.poll() is None:
        made.process.send_signal(signal.SIGINT)
        made.process.wait(BOUND_S)
    assert made.process.returncode == 0, made.said()


def produce(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    failed: list[object] = []
    for topic in TOPICS:
        for number in range(RECORDS):
            producer.produce(topic, str(number), on_delivery=lambda error, _: failed.append(error) if error else None)
    assert producer.flush(BOUND_S) == 0
    assert not failed


def missing(bootstrap: str) -> dict[str, int]:
    """How many of the records of each topic are not read."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": os.urandom(4).hex(), "auto.offset.reset": "earliest"})
    consumer.subscribe(list(TOPICS))
    left = {topic: {str(number) for number in range(RECORDS)} for topic in TOPICS}
    deadline = time.monotonic() + BOUND_S
    while any(left.values()) and time.monotonic() < deadline:
        for message in consumer.consume(RECORDS, 0.5):
            if message.error() is None:
                left[message.topic()].discard(message.value().decode())
    consumer.close()
    return {topic: len(numbers) for topic, numbers in left.items()}


def test_nothing_is_lost_while_nodes_die_come_and_go(running: Running) -> None:
    for topic, factor in (("two", "2"), ("three", "3")):
        running.ask("topics", "--create", "--topic", topic, "--partitions", "3", "--replication-factor", factor)
    everyone = ",".join(f"localhost:{running.port + index}" for index in range(3))
    produce(everyone)
    os.kill(int((running.directory / "node-3" / "pid").read_text()), signal.SIGKILL)
    running.until(lambda: "node 3 was ended by signal 9 (SIGKILL)" in running.said())
    assert missing(everyone) == {"two": 0, "three": 0}
    assert run("safe-to-stop", "2", "--bootstrap-server", running.bootstrap).returncode == 1, "two of three are not to stop"
    running.cluster("restart", "3")

    running.cluster("add")
    running.ask("rebalance", "--yes")
    states = json.loads(running.cluster("status", "--output", "json"))
    assert [node["state"].partition(",")[0] for node in states["nodes"]] == ["serves"] * 4
    assert states["underReplicated"] == 0
    assert states["nodes"][3]["leads"] > 0
    refused = run("cluster", "remove", "4", "--dir", str(running.directory))
    assert (refused.returncode, b"tidelog drain 4" in refused.stderr) == (1, True)
    running.ask("drain", "4", "--yes")
    running.cluster("remove", "4")
    assert len(running.ask("cluster", "list-endpoints", "--include-fenced-brokers").splitlines()) == 4
    running.cluster("restart")
    assert missing(everyone) == {"two": 0, "three": 0}
