"""What the node does with what no client would send: an answer or a closed connection, no memory lost, others unharmed.

``TIDELOG_LONG=1`` sends a million frames. The bystander's latencies are printed (``-s``), not judged: machines differ.
"""

from __future__ import annotations

import json
import os
import random
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.nodes import Node, answers, environment, running
from tests.node.attack import Attacker, FrameMaker
from tests.node.bystander import Bystander
from tidelog.protocol.framing import RequestHeader, encode_request_header
from tidelog.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse

FRAMES = 1_000_000 if os.environ.get("TIDELOG_LONG") else 20_000
GROWTH_MIB = 64
TOPIC = "attacked"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    properties = {"log.retention.ms": "-1", "auto.create.topics.enable": "false", "max.connections": "5000"}
    with running(Node("tidelog", tmp_path_factory.mktemp("node"), None, properties)) as started:
        create(started.ports[0], TOPIC)
        yield started
        assert not [line for line in started.complaints() if "Traceback" in line], started.log_tail()
        started.stop()


def create(port: int, topic: str) -> None:
    bystander = Bystander(port, topic)
    body = CreateTopicsRequest(topics=[CreatableTopic(name=topic, num_partitions=2, replication_factor=1)], timeout_ms=10_000)
    created = CreateTopicsResponse.decode(bystander.ask((19, 7), body.encode(7)), 7).topics[0]
    assert created.error_code == 0, created


def resident_mib(node: Node) -> float:
    assert node.process is not None
    status = Path(f"/proc/{node.process.pid}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))) / 1024


def watched(node: Node, seconds: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.node.bystander", str(node.ports[0]), TOPIC, str(seconds)]
    root = Path(__file__).resolve().parents[2]
    env = environment()
    env["PYTHONPATH"] = f"{root}{os.pathsep}{env['PYTHONPATH']}"
    return subprocess.Popen(command, cwd=root, env=env, stdout=subprocess.PIPE, text=True)


@pytest.mark.timeout(7200)
def test_wrong_frames_are_answered_or_close_their_connection_and_take_no_memory(node: Node) -> None:
    quiet = json.loads(watched(node, 2).communicate()[0])
    before = resident_mib(node)
    beside = watched(node, 4)
    tally = Attacker(node.ports[0], FrameMaker(1, TOPIC).frame, connections=256).run(FRAMES)
    disturbed = json.loads(beside.communicate()[0])
    growth = resident_mib(node) - before
    print(f"\n{tally} grew {growth:.1f} MiB; bystander without {quiet}, with the attack {disturbed}")
    assert tally.judged >= FRAMES and min(tally.kinds.values()) > FRAMES // 100
    assert disturbed["rounds"] > 0
    assert growth <= GROWTH_MIB
    assert answers(node.ports[0])


def test_a_thousand_connections_are_served_and_forgotten(node: Node) -> None:
    before = resident_mib(node)
    request = struct.pack(">ihhih", 10, 18, 0, 3, -1)
    opened = [socket.create_connection(("127.0.0.1", node.ports[0]), 10) for _ in range(1_000)]
    for connection in opened:
        connection.sendall(request)
    for connection in opened:
        connection.settimeout(10)
        assert connection.recv(8)[4:] == struct.pack(">i", 3)
    for connection in opened:
        connection.close()
    assert answers(node.ports[0])
    assert resident_mib(node) - before <= GROWTH_MIB


def test_half_sent_requests_hold_nobody_up_and_announced_sizes_take_no_memory(node: Node) -> None:
    before = resident_mib(node)
    rng = random.Random(5)
    halves = []
    for _ in range(300):
        connection = socket.create_connection(("127.0.0.1", node.ports[0]), 10)
        connection.sendall(struct.pack(">i", 100_000_000) + rng.randbytes(rng.randint(0, 2_000)))
        halves.append(connection)
    assert Bystander(node.ports[0], TOPIC).round(1) > 0
    assert resident_mib(node) - before <= GROWTH_MIB
    for connection in halves:
        connection.close()


def test_a_client_that_does_not_read_its_answers_is_not_fed_for_ever(node: Node) -> None:
    before = resident_mib(node)
    body = struct.pack(">hhih", 3, 1, 1, -1) + struct.pack(">i", -1)
    connection = socket.create_connection(("127.0.0.1", node.ports[0]), 10)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.setblocking(False)
    sent = 0
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and sent < 400_000:
        try:
            sent += connection.send((struct.pack(">i", len(body)) + body) * 100)
        except BlockingIOError:
            break
    assert Bystander(node.ports[0], TOPIC).round(2) > 0
    assert resident_mib(node) - before <= GROWTH_MIB
    connection.close()


@pytest.mark.parametrize("size", [-1, 0, 7, 104_857_601, 2**31 - 1])
def test_a_size_that_cannot_be_a_request_closes_the_connection(node: Node, size: int) -> None:
    connection = socket.create_connection(("127.0.0.1", node.ports[0]), 10)
    connection.settimeout(10)
    connection.sendall(struct.pack(">i", size) + b"\0" * 16)
    assert connection.recv(100) == b""


@pytest.mark.parametrize(("key", "version"), [(0, 0), (0, 99), (3, 14), (4, 0), (999, 0), (52, 0), (-1, 0), (1, -1)])
def test_what_is_not_served_closes_the_connection(node: Node, key: int, version: int) -> None:
    connection = socket.create_connection(("127.0.0.1", node.ports[0]), 10)
    connection.settimeout(10)
    request = struct.pack(">hhih", key, version, 1, -1) + b"\0" * 8
    connection.sendall(struct.pack(">i", len(request)) + request)
    assert connection.recv(100) == b""


def test_only_api_versions_is_answered_at_a_version_from_the_future(node: Node) -> None:
    connection = socket.create_connection(("127.0.0.1", node.ports[0]), 10)
    connection.settimeout(10)
    request = encode_request_header(RequestHeader(18, 4, 11, "future")) + b"\0" * 3
    request = struct.pack(">hh", 18, 99) + request[4:]
    connection.sendall(struct.pack(">i", len(request)) + request)
    answer = connection.recv(4096)
    correlation, error, count = struct.unpack_from(">ihi", answer, 4)
    assert (correlation, error) == (11, 35) and count >= 1
    assert struct.unpack_from(">hhh", answer, 14)[0] in {0, 18}
