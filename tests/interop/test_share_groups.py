"""Apache Kafka's share consumer and its tool for share groups, against a node. ``--broker apache`` runs the same against Apache
Kafka."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.interop.java import JVM_FLAGS, LOG4J
from tests.interop.nodes import Node
from tests.unit.cli.dead_letters.cluster import DLQ, committed, give_up, make_topics
from tests.unit.cli.dead_letters.cluster import run as dead_letters
from tools.jars import ensure

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

TOPICS = "org.apache.kafka.tools.TopicCommand"
PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
CONSUMER = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
SHARES = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
CONFIGS = "kafka.admin.ConfigCommand"


def run(node: Node, main_class: str, *args: str, typed: str = "", status: int = 0) -> str:
    """What the tool printed."""
    java = ["java", *JVM_FLAGS, f"-Dlog4j2.configurationFile={LOG4J}", "-Dlog.level=error", "-cp", f"{ensure()}/*"]
    command = [*java, main_class, "--bootstrap-server", node.bootstrap, *args]
    done = subprocess.run(command, input=typed, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def consumed(node: Node, count: int, *flags: str) -> list[str]:
    """The lines that a share consumer of group ``workers`` prints until it has ``count``."""
    limits = ("--max-messages", str(count), "--timeout-ms", "60000")
    printed = run(node, CONSUMER, "--topic", "jobs", "--group", "workers", *limits, *flags)
    return [line for line in printed.splitlines() if line.isdigit()]


def test_jobs_are_shared_rejected_and_released(node: Node) -> None:
    run(node, TOPICS, "--create", "--topic", "jobs", "--partitions", "1", "--replication-factor", "1")
    workers = ("--entity-type", "groups", "--entity-name", "workers")
    run(node, CONFIGS, "--alter", *workers, "--add-config", "share.auto.offset.reset=earliest")
    run(node, PRODUCER, "--topic", "jobs", typed="".join(f"{number}\n" for number in range(30)))
    assert consumed(node, 10) == [str(number) for number in range(10)]
    assert consumed(node, 5, "--reject") == [str(number) for number in range(10, 15)]
    assert consumed(node, 5, "--release") == [str(number) for number in range(15, 20)]
    assert sorted(map(int, consumed(node, 15))) == list(range(15, 30)), "what was released is delivered again"
    described = run(node, SHARES, "--describe", "--group", "workers")
    assert re.search(r"workers\s+jobs\s+0\s+\d+\s+0\s", described), described
    assert "workers" in run(node, SHARES, "--list")
    reset = ("--reset-offsets", "--group", "workers", "--topic", "jobs", "--to-earliest", "--execute")
    assert re.search(r"workers\s+jobs\s+0\s+0", run(node, SHARES, *reset))
    assert consumed(node, 3) == ["0", "1", "2"]
    assert "successful" in run(node, SHARES, "--delete", "--group", "workers")
    assert "workers" not in run(node, SHARES, "--list")


def test_dead_letters_go_back_once(node: Node) -> None:
    """``tidelog share-groups dead-letters`` speaks to any cluster; the dead letters are written as a broker of 4.4 does."""
    address = node.bootstrap
    make_topics(address, "mails")
    give_up(address, range(20), topic="mails")
    assert [row["count"] for row in dead_letters(address, "count", DLQ)] == [20]
    assert dead_letters(address, "replay", DLQ)["replayed"] == 20
    assert dead_letters(address, "replay", DLQ, "--key", "k3", "--execute")["replayed"] == 1
    rest = dead_letters(address, "replay", DLQ, "--execute")
    assert (rest["replayed"], rest["left"]) == (19, {"done": 1})
    again = dead_letters(address, "replay", DLQ, "--execute")
    assert (again["replayed"], again["left"]) == (0, {"done": 20})
    found = committed(address, "mails")
    assert sorted(value for value, _ in found[20:]) == sorted(value for value, _ in found[:20])
    assert {(each["trace"], each["__dlq.replay.count"]) for _, each in found[20:]} == {(str(number), "1") for number in range(20)}
    shown = dead_letters(address, "show", f"{DLQ}:0:3")
    assert (shown["original"]["value"], shown["replayed"]["offset"]) == ("job 3", 20)
