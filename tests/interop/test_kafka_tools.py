"""Apache Kafka's own command-line tools against a node, one after another, as an operator would use them.

The part of ``make compat`` that needs nothing but Kafka's jars: the other judges need programs that live outside the repository.
``--broker apache`` runs the same against Apache Kafka.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.interop.java import JVM_FLAGS, LOG4J
from tests.interop.nodes import Node
from tools.jars import ensure

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

TOPICS = "org.apache.kafka.tools.TopicCommand"
PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
ALL_GROUPS = "org.apache.kafka.tools.GroupsCommand"
OFFSETS = "org.apache.kafka.tools.GetOffsetShell"
CONFIGS = "kafka.admin.ConfigCommand"
RECORDS = "org.apache.kafka.tools.DeleteRecordsCommand"
LOG_DIRS = "org.apache.kafka.tools.LogDirsCommand"
QUORUM = "org.apache.kafka.tools.MetadataQuorumCommand"
FEATURES = "org.apache.kafka.tools.FeatureCommand"
TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"
PERFORMANCE = "org.apache.kafka.tools.ProducerPerformance"
REASSIGNMENTS = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
ELECTIONS = "org.apache.kafka.tools.LeaderElectionCommand"

Tool = Callable[..., str]
READS = {"--describe", "--list", "--verify"}
AGAIN_S = 10
"""How long a tool that reads may say something else at first: what one request changed is not everywhere at once."""


@pytest.fixture
def tool(node: Node) -> Tool:
    """Runs a tool until it ends with ``status`` and prints something that fits ``says``; what it printed."""

    def run(main_class: str, *args: str, says: str = "", status: int = 0, typed: str = "") -> str:
        address = () if main_class == PERFORMANCE else ("--bootstrap-server", node.bootstrap)
        java = ["java", *JVM_FLAGS, f"-Dlog4j2.configurationFile={LOG4J}", "-Dlog.level=error", "-cp", f"{ensure()}/*"]
        deadline = time.monotonic() + AGAIN_S
        while True:
            done = subprocess.run(
                [*java, main_class, *address, *args], input=typed, capture_output=True, text=True, timeout=60, check=False
            )
            said = done.stdout + done.stderr
            if done.returncode == status and re.search(says, said, re.S):
                return said
            if not READS.intersection(args) or time.monotonic() > deadline:
                pytest.fail(
                    f"{main_class} {' '.join(args)} ended with {done.returncode}, not {status} and {says!r}:\n{said[-1500:]}"
                )

    return run


def test_topics_are_made_described_grown_and_deleted(tool: Tool) -> None:
    tool(
        TOPICS, "--create", "--topic", "tt-a", "--partitions", "3", "--config", "retention.ms=3600000", says="Created topic tt-a"
    )
    tool(TOPICS, "--create", "--topic", "tt-a", says="already exists", status=1)
    tool(TOPICS, "--create", "--topic", "tt-a", "--if-not-exists")
    tool(TOPICS, "--create", "--topic", "tt b", says="(?i)invalid", status=1)
    tool(TOPICS, "--create", "--topic", "tt-x", "--replication-factor", "9", says="(?i)replication factor", status=1)
    tool(TOPICS, "--create", "--topic", "tt-x", "--config", "cleanup.policy=never", says="(?i)cleanup.policy", status=1)
    tool(
        TOPICS,
        "--describe",
        "--topic",
        "tt-a",
        says=r"PartitionCount: 3\s+ReplicationFactor: 1\s.*retention.ms=3600000.*Partition: 2\s",
    )
    tool(TOPICS, "--alter", "--topic", "tt-a", "--partitions", "5")
    tool(TOPICS, "--describe", "--topic", "tt-a", says="PartitionCount: 5")
    tool(TOPICS, "--alter", "--topic", "tt-a", "--partitions", "2", says="(?i)partition", status=1)
    assert "tt-a" in tool(TOPICS, "--list")
    tool(TOPICS, "--delete", "--topic", "tt-a")
    tool(TOPICS, "--describe", "--topic", "tt-a", says="does not exist", status=1)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_reads_is_described_set_back_and_deleted(tool: Tool, protocol: str) -> None:
    topic, group = f"read-{protocol}", f"readers-{protocol}"
    tool(TOPICS, "--create", "--topic", topic, "--partitions", "2", says="Created")
    lines = "".join(f"k{number}:v{number}\n" for number in range(50))
    tool(PRODUCER, "--topic", topic, "--reader-property", "parse.key=true", "--reader-property", "key.separator=:", typed=lines)
    read = tool(
        CONSUMER,
        *("--topic", topic, "--group", group, "--from-beginning", "--max-messages", "50", "--timeout-ms", "30000"),
        *("--command-property", f"group.protocol={protocol}", "--formatter-property", "print.key=true"),
        says="total of 50 messages",
    )
    assert {line for line in read.splitlines() if line.startswith("k")} == {f"k{number}\tv{number}" for number in range(50)}
    tool(ALL_GROUPS, "--list", says=rf"{group}\s+{protocol.capitalize()}\s")
    tool(GROUPS, "--list", "--state", says=rf"{group}\s+Empty")
    said = tool(GROUPS, "--describe", "--group", group, says=rf"{group}\s+{topic}\s+1")
    ends = [line.split() for line in said.splitlines() if line.startswith(group)]
    assert sum(int(row[3]) for row in ends) == 50
    assert all(row[3] == row[4] and row[5] == "0" for row in ends)
    back = ("--group", group, "--topic", topic, "--reset-offsets", "--to-earliest")
    tool(GROUPS, *back, "--dry-run", says=rf"{topic}\s+0\s+0")
    tool(GROUPS, "--describe", "--group", group, says=rf"{topic}\s+0\s+\d+\s+\d+\s+0\s")
    tool(GROUPS, *back, "--execute", says=rf"{topic}\s+0\s+0")
    tool(GROUPS, "--describe", "--group", group, says=rf"{topic}\s+0\s+0\s+[1-9]")
    tool(GROUPS, "--delete", "--group", group, says="successful")
    assert group not in tool(GROUPS, "--list")


def test_configurations_are_changed_read_and_taken_back(tool: Tool, node: Node) -> None:
    tool(TOPICS, "--create", "--topic", "set", says="Created")
    topic, broker = ("--entity-type", "topics", "--entity-name", "set"), ("--entity-type", "brokers", "--entity-default")
    tool(CONFIGS, "--alter", *topic, "--add-config", "max.message.bytes=2000000,segment.bytes=1048576", says="Completed")
    tool(CONFIGS, "--describe", *topic, says="max.message.bytes=2000000")
    tool(CONFIGS, "--describe", "--all", *topic, says="cleanup.policy=delete.*DEFAULT_CONFIG")
    tool(CONFIGS, "--alter", *topic, "--delete-config", "segment.bytes", says="Completed")
    assert "segment.bytes=1048576" not in tool(CONFIGS, "--describe", *topic, says="max.message.bytes")
    tool(CONFIGS, "--alter", *topic, "--add-config", "no.such.config=1", says="(?i)unknown|invalid", status=1)
    tool(CONFIGS, "--alter", *broker, "--add-config", "log.retention.ms=7200000", says="Completed")
    tool(CONFIGS, "--describe", *broker, says="log.retention.ms=7200000")
    tool(CONFIGS, "--describe", "--all", *topic, says="retention.ms=7200000.*DYNAMIC_DEFAULT_BROKER_CONFIG")
    tool(CONFIGS, "--alter", *broker, "--delete-config", "log.retention.ms", says="Completed")
    group = ("--entity-type", "groups", "--entity-name", "set-group")
    tool(CONFIGS, "--alter", *group, "--add-config", "consumer.session.timeout.ms=50000", says="Completed")
    tool(CONFIGS, "--describe", *group, says="consumer.session.timeout.ms=50000")


def test_offsets_log_dirs_and_records_are_found_and_records_deleted(tool: Tool, tmp_path: Path) -> None:
    tool(TOPICS, "--create", "--topic", "shrink", "--partitions", "1", says="Created")
    tool(PRODUCER, "--topic", "shrink", "--compression-codec", "zstd", typed="one\ntwo\nthree\n")
    for when, expected in (("latest", "3"), ("earliest", "0"), ("1000", "0")):
        tool(OFFSETS, "--topic", "shrink", "--time", when, says=f"shrink:0:{expected}")
    tool(LOG_DIRS, "--describe", "--topic-list", "shrink", says='"partition":"shrink-0"')
    wanted = tmp_path / "records.json"
    wanted.write_text(json.dumps({"version": 1, "partitions": [{"topic": "shrink", "partition": 0, "offset": 2}]}))
    tool(RECORDS, "--offset-json-file", str(wanted), says="low_watermark: 2")
    tool(OFFSETS, "--topic", "shrink", "--time", "earliest", says="shrink:0:2")
    read = tool(CONSUMER, "--topic", "shrink", "--from-beginning", "--max-messages", "1", "--timeout-ms", "20000")
    assert "three" in read and "two" not in read


def test_transactions_are_produced_read_and_listed(tool: Tool, node: Node) -> None:
    tool(TOPICS, "--create", "--topic", "ledger", "--partitions", "1", says="Created")
    many = (
        "--num-records",
        "2000",
        "--record-size",
        "100",
        "--throughput",
        "-1",
        "--producer-props",
        f"bootstrap.servers={node.bootstrap}",
    )
    more = ("--transactional-id", "bookkeeper", "--transaction-duration-ms", "100")
    tool(PERFORMANCE, "--topic", "ledger", *many, *more, says="2000 records sent")
    committed = ("--isolation-level", "read_committed", "--max-messages", "2000", "--timeout-ms", "30000")
    tool(CONSUMER, "--topic", "ledger", "--from-beginning", *committed, says="total of 2000 messages")
    tool(TRANSACTIONS, "list", says=r"bookkeeper\s+\d+\s+\d+\s+CompleteCommit")
    tool(TRANSACTIONS, "describe", "--transactional-id", "bookkeeper", says="CompleteCommit")
    tool(TRANSACTIONS, "describe-producers", "--topic", "ledger", "--partition", "0", says=r"ProducerId.*\n\d+\s")
    tool(TRANSACTIONS, "find-hanging", "--topic", "ledger")


def test_the_cluster_says_what_it_is(tool: Tool, tmp_path: Path) -> None:
    tool(TOPICS, "--create", "--topic", "stays", says="Created")
    tool("org.apache.kafka.tools.BrokerApiVersionsCommand", says=r"Produce\(0\): 0 to 13.*ConsumerGroupHeartbeat\(68\): 0 to 1")
    tool(QUORUM, "describe", "--status", says=r"LeaderId:\s+1.*CurrentVoters")
    tool(QUORUM, "describe", "--replication", says=r"NodeId.*\n1\s")
    tool(FEATURES, "describe", says=r"metadata.version.*FinalizedVersionLevel: 4.3-IV0")
    tool(
        ELECTIONS, "--election-type", "preferred", "--topic", "stays", "--partition", "0", says="(?i)already elected|successfully"
    )
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": [{"topic": "stays", "partition": 0, "replicas": [1]}]}))
    tool(REASSIGNMENTS, "--execute", "--reassignment-json-file", str(plan), says="Successfully started")
    tool(REASSIGNMENTS, "--verify", "--reassignment-json-file", str(plan), says="is completed")
    tool(REASSIGNMENTS, "--list", says="No partition reassignments")
