"""``python tools/kafka_flags.py``: records the flags of Apache Kafka's tools from their ``--help`` (needs Java).

``tests/golden/cli/flags.json`` has them by command, ``cluster.unregister`` for a command of a command; a unit test asks ours for
each. A new release of Kafka is recorded again.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

if __package__ in (None, ""):  # run by its path
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools.jars import ensure

RECORDED = Path(__file__).resolve().parent.parent / "tests" / "golden" / "cli" / "flags.json"
PACKAGE = "org.apache.kafka.tools."
CLASSES = {
    "acls": PACKAGE + "AclCommand",
    "broker-api-versions": PACKAGE + "BrokerApiVersionsCommand",
    "cluster": PACKAGE + "ClusterTool",
    "configs": "kafka.admin.ConfigCommand",
    "console-consumer": PACKAGE + "consumer.ConsoleConsumer",
    "console-producer": PACKAGE + "ConsoleProducer",
    "console-share-consumer": PACKAGE + "consumer.ConsoleShareConsumer",
    "consumer-groups": PACKAGE + "consumer.group.ConsumerGroupCommand",
    "consumer-perf-test": PACKAGE + "ConsumerPerformance",
    "delegation-tokens": PACKAGE + "DelegationTokenCommand",
    "delete-records": PACKAGE + "DeleteRecordsCommand",
    "dump-log": PACKAGE + "DumpLogSegments",
    "features": PACKAGE + "FeatureCommand",
    "get-offsets": PACKAGE + "GetOffsetShell",
    "groups": PACKAGE + "GroupsCommand",
    "leader-election": PACKAGE + "LeaderElectionCommand",
    "log-dirs": PACKAGE + "LogDirsCommand",
    "metadata-quorum": PACKAGE + "MetadataQuorumCommand",
    "producer-perf-test": PACKAGE + "ProducerPerformance",
    "reassign-partitions": PACKAGE + "reassign.ReassignPartitionsCommand",
    "server-start": "kafka.Kafka",
    "share-groups": PACKAGE + "consumer.group.ShareGroupCommand",
    "storage": "kafka.tools.StorageTool",
    "streams-groups": PACKAGE + "streams.StreamsGroupCommand",
    "topics": PACKAGE + "TopicCommand",
    "transactions": PACKAGE + "TransactionsCommand",
}
COMMANDS = {
    "cluster": ("cluster-id", "list-endpoints", "unregister"),
    "features": ("describe", "disable", "downgrade", "feature-dependencies", "upgrade", "version-mapping"),
    "metadata-quorum": ("add-controller", "describe", "remove-controller"),
    "storage": ("feature-dependencies", "format", "info", "random-uuid", "version-mapping"),
    "transactions": ("abort", "describe", "describe-producers", "find-hanging", "forceTerminateTransaction", "list"),
}
"""The commands of a command."""


def flags(text: str) -> list[str]:
    """The long flags in the left column of a help page."""
    found: set[str] = set()
    for line in re.findall(r"^ {0,2}(-.*)$", text, re.MULTILINE):
        found.update(re.findall(r"(?<![\w-])--[a-z][\w.-]*", re.split(r"\s{2,}", line)[0]))
    return sorted(found)


def helped(main_class: str, *words: str) -> str:
    """What a tool says of itself."""
    java = ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{ensure()}/*", main_class, *words, "--help"]
    done = subprocess.run(java, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout + done.stderr


def main() -> int:
    """Records all of them."""
    recorded = {name: flags(helped(main_class)) for name, main_class in CLASSES.items()}
    for name, words in COMMANDS.items():
        recorded |= {f"{name}.{word}": flags(helped(CLASSES[name], word)) for word in words}
    RECORDED.parent.mkdir(exist_ok=True)
    RECORDED.write_text(json.dumps(dict(sorted(recorded.items())), indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
