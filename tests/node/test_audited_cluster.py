"""The audit of three secured nodes, as real processes: files and topic agree, and no secret is in them."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer

from tests.interop.nodes import environment
from tests.node.console_tools import run
from tests.node.test_local_cluster import free_port, port_is_free
from tidelog.client import AdminClient, NotAuthenticated
from tidelog.config.properties import parse
from tidelog.model.errors import KafkaError

BOUND_S = 60
SECRET, WRONG = "canary-of-the-password", "canary-of-a-guess"
RETENTION_MS = "86399999"
"""A value of a setting, which is in no event."""
Event = dict[str, Any]


class Audited:
    """The running cluster."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        while True:
            # 4000 lower, so that the ports between brokers are below the ephemeral range, too.
            self.port = free_port() - 4000
            if all(port_is_free(self.port + offset + step) for offset in (0, 1000, 2000, 3000) for step in range(3)):
                break
        made = run("secure", str(folder), "--port", str(self.port))
        assert made.returncode == 0, made.stderr
        for number in (1, 2, 3):
            with (folder / f"node-{number}" / "server.properties").open("a") as settings:
                settings.write(f"tidelog.audit.file={folder}/node-{number}/audit.jsonl\ntidelog.audit.topic=__audit\n")
                settings.write("tidelog.audit.max.per.second=1000\n")
        self.output = folder.parent / "output"
        with self.output.open("wb") as output:
            command = [sys.executable, "-m", "tidelog.cli.main", "cluster", "--dir", str(folder)]
            self.process = subprocess.Popen(command, stdout=output, stderr=output, env=environment())
        self.until(lambda: "cluster ready: 3 nodes" in self.said())
        self.admin = parse((folder / "admin.properties").read_text())
        self.bootstrap = f"localhost:{self.port}"

    def said(self) -> str:
        return self.output.read_text(errors="replace")

    def until(self, what: Callable[[], Any]) -> Any:
        deadline = time.monotonic() + BOUND_S
        while not (found := what()):
            assert time.monotonic() < deadline, self.said()
            assert self.process.poll() is None, self.said()
            time.sleep(0.05)
        return found

    def tool(self, *words: str) -> subprocess.CompletedProcess[bytes]:
        tool, *rest = words
        connection = ("--bootstrap-server", self.bootstrap, "--command-config", str(self.folder / "admin.properties"))
        return run(tool, *connection, *rest)

    def files(self) -> list[Path]:
        return [self.folder / f"node-{number}" / "audit.jsonl" for number in (1, 2, 3)]

    def in_files(self) -> list[Event]:
        """All whole lines."""
        whole = (line for path in self.files() for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n"))
        return [json.loads(line) for line in whole]

    def find(self, **wanted: Any) -> list[Event]:
        return [event for event in self.in_files() if wanted.items() <= event.items()]


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Audited]:
    cluster = Audited(tmp_path_factory.mktemp("audit") / "cluster")
    yield cluster
    cluster.process.send_signal(signal.SIGTERM)
    assert cluster.process.wait(BOUND_S) == 0, cluster.said()


async def topics_of(bootstrap: str, settings: dict[str, str]) -> set[str]:
    async with AdminClient(bootstrap, settings) as admin:
        return set(await admin.topics.names())


def of_ann(cluster: Audited, password: str) -> dict[str, str]:
    mine = {name: text for name, text in cluster.admin.items() if name != "sasl.jaas.config"}
    return mine | {"sasl.username": "ann", "sasl.password": password}


def test_changes_logins_and_denials_are_in_the_files(audited: Audited) -> None:
    assert audited.tool("topics", "--create", "--topic", "orders").returncode == 0
    made = audited.until(lambda: audited.find(request="CreateTopics", operation="CREATE", resourceName="orders"))
    assert [(each["principal"], each["allowed"], each["rule"]) for each in made] == [("User:admin", True, "super-user")]
    change = ("--alter", "--entity-type", "users", "--entity-name", "ann", "--add-config", f"SCRAM-SHA-512=[password={SECRET}]")
    assert audited.tool("configs", *change).returncode == 0
    changed = audited.until(lambda: audited.find(request="AlterUserScramCredentials", operation="ALTER", allowed=True))
    assert changed[0]["targets"] == ["ann SCRAM-SHA-512"]
    settings = ("--alter", "--entity-type", "topics", "--entity-name", "orders", "--add-config", f"retention.ms={RETENTION_MS}")
    assert audited.tool("configs", *settings).returncode == 0
    (changed,) = audited.until(lambda: audited.find(operation="ALTER_CONFIGS", resourceName="orders"))
    assert changed["targets"] == ["retention.ms"]
    assert audited.find(type="authentication", principal="User:admin", mechanism="SCRAM-SHA-512", allowed=True)
    assert audited.find(type="authentication", principal="User:CN=node-2", mechanism="SSL", allowed=True)

    async def denied() -> None:
        async with AdminClient(audited.bootstrap, of_ann(audited, SECRET)) as ann:
            await ann.topics.create("mine")

    with pytest.raises(KafkaError):
        asyncio.run(denied())
    refusals = audited.until(lambda: audited.find(principal="User:ann", resourceName="mine", allowed=False))
    assert (refusals[0]["request"], refusals[0]["operation"], refusals[0]["host"]) == ("CreateTopics", "CREATE", "127.0.0.1")
    with pytest.raises(NotAuthenticated):
        asyncio.run(topics_of(audited.bootstrap, of_ann(audited, WRONG)))
    (failed, *_) = audited.until(lambda: audited.find(type="authentication", allowed=False, mechanism="SCRAM-SHA-512"))
    assert "'ann'" in failed["reason"]
    with socket.create_connection(("localhost", audited.port), timeout=BOUND_S) as plain:
        plain.sendall(b"GET / HTTP/1.0\r\n\r\n")
    audited.until(lambda: audited.find(type="authentication", allowed=False, mechanism="SSL"))


def consumed(cluster: Audited, wanted: set[str]) -> list[Event]:
    """The topic, until it holds these events."""
    settings = json.loads((cluster.folder / "admin.json").read_text())
    consumer = Consumer({**settings, "group.id": f"auditors-{time.monotonic_ns()}", "auto.offset.reset": "earliest"})
    consumer.subscribe(["__audit"])
    found: list[Event] = []
    deadline = time.monotonic() + BOUND_S
    while wanted - {event["id"] for event in found}:
        assert time.monotonic() < deadline, wanted - {event["id"] for event in found}
        found += [json.loads(message.value()) for message in consumer.consume(500, 0.5) if message.error() is None]
    consumer.close()
    return found


def test_the_topic_has_what_the_files_have_also_after_its_leader_was_restarted(audited: Audited) -> None:
    before = {event["id"] for event in audited.in_files()}
    events = consumed(audited, before)
    assert {event["node"] for event in events} == {1, 2, 3}
    described = audited.tool("topics", "--describe", "--topic", "__audit", "--output", "json").stdout
    leader = json.loads(described)[0]["partitions"][0]["leader"]
    restarted = run("cluster", "restart", str(leader), "--dir", str(audited.folder))
    assert restarted.returncode == 0, restarted.stderr
    assert audited.tool("topics", "--create", "--topic", "afterwards").returncode == 0
    (made,) = audited.until(lambda: audited.find(request="CreateTopics", operation="CREATE", resourceName="afterwards"))
    after = consumed(audited, {*before, made["id"]})
    assert not [event for event in after if event.get("request") == "Produce" and event.get("resourceName") == "__audit"]


def test_no_secret_is_in_a_line_and_only_the_owner_reads_them(audited: Audited) -> None:
    password = json.loads((audited.folder / "admin.json").read_text())["sasl.password"]
    for path in audited.files():
        text = path.read_text()
        assert path.stat().st_mode & 0o077 == 0
        for secret in (SECRET, WRONG, password, RETENTION_MS, "salt", "stored_key"):
            assert secret not in text


def test_acls_are_suggested_from_the_files(audited: Audited) -> None:
    words = [word for path in audited.files() for word in ("--audit", str(path))]
    done = run("acls", "suggest", "User:ann", "--denied", *words)
    assert done.returncode == 0, done.stderr
    assert b"--add --allow-principal User:ann --operation Create --topic mine" in done.stdout
