"""The administration tools against a node."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.node.console_tools import run
from tidelog.testing import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as started:
        started.create_topic("orders", partitions=2)
        started.produce("orders", "a", "b", "c")
        yield started


def output(broker: Broker, tool: str, *flags: str) -> tuple[int, str]:
    """Exit code, and what the tool printed on stdout or, where that is nothing, on stderr."""
    done = run(tool, "--bootstrap-server", broker.bootstrap_servers, *flags)
    return done.returncode, (done.stdout or done.stderr).decode()


def test_offsets_are_printed_by_topic_and_partition(broker: Broker) -> None:
    assert output(broker, "get-offsets", "--topic", "orders") == (0, "orders:0:3\norders:1:0\n")
    assert output(broker, "get-offsets", "--topic-partitions", "or.*:0-1", "--time", "earliest") == (0, "orders:0:0\n")
    code, text = output(broker, "get-offsets", "--topic", "nosuch")
    assert (code, text) == (1, "Error occurred: No partition fits --topic, --partitions or --topic-partitions\n")


def test_settings_are_made_shown_and_taken_back(broker: Broker) -> None:
    changed = output(
        broker, "configs", "--alter", "--topic", "orders", "--add-config", "retention.ms=5000,cleanup.policy=[compact,delete]"
    )
    assert changed == (0, "Completed updating config for topic orders.\n")
    _, shown = output(broker, "configs", "--describe", "--entity-type", "topics", "--entity-name", "orders")
    assert shown.splitlines()[0] == "Dynamic configs for topic orders are:"
    assert "  retention.ms=5000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=5000" in shown
    output(broker, "configs", "--alter", "--topic", "orders", "--delete-config", "retention.ms,cleanup.policy")
    assert output(broker, "configs", "--describe", "--topic", "orders")[1] == "Dynamic configs for topic orders are:\n"
    _, everything = output(broker, "configs", "--describe", "--topic", "orders", "--all")
    assert "  retention.ms=604800000 " in everything


def test_a_setting_that_cannot_be_is_refused_in_a_line(broker: Broker) -> None:
    code, text = output(broker, "configs", "--alter", "--topic", "orders", "--add-config", "bogus=1")
    assert code == 1
    assert text.splitlines() == ["Error while executing config command: INVALID_CONFIG: Unknown topic config name: bogus."]


def test_quotas_are_made_shown_and_taken_back(broker: Broker) -> None:
    both = ("--entity-type", "users", "--entity-name", "alice", "--entity-type", "clients", "--entity-default")
    made = output(broker, "configs", "--alter", *both, "--add-config", "producer_byte_rate=1048576,request_percentage=12.5")
    assert made == (0, "Completed updating config for user alice.\n")
    limits = "request_percentage=12.5, producer_byte_rate=1048576.0"  # in the order that Kafka answers in
    shown = (0, f"Quota configs for user-principal 'alice', the default client-id are {limits}\n")
    assert output(broker, "configs", "--describe", "--user", "alice", "--client-defaults") == shown
    assert output(broker, "configs", "--describe", "--user", "alice") == (0, "")
    output(broker, "configs", "--alter", *both, "--delete-config", "producer_byte_rate,request_percentage")
    assert output(broker, "configs", "--describe", "--entity-type", "users", "--entity-type", "clients") == (0, "")
    code, text = output(broker, "configs", "--alter", "--ip", "no.address", "--add-config", "connection_creation_rate=5")
    assert (code, "INVALID_REQUEST: 'no.address' is not a valid IP address" in text) == (1, True)


def test_records_are_deleted_up_to_the_offsets_of_a_file(broker: Broker, tmp_path: Path) -> None:
    broker.produce("shrinking", "a", "b", "c")
    wanted = [{"topic": "shrinking", "partition": 0, "offset": 2}, {"topic": "shrinking", "partition": 7, "offset": 0}]
    (tmp_path / "offsets.json").write_text(json.dumps({"partitions": wanted, "version": 1}))
    code, text = output(broker, "delete-records", "--offset-json-file", str(tmp_path / "offsets.json"))
    assert code == 1
    assert "partition: shrinking-0\tlow_watermark: 2" in text
    assert "partition: shrinking-7\terror: UNKNOWN_TOPIC_OR_PARTITION" in text
    assert [message.text for message in broker.messages("shrinking")] == ["c"]


def test_log_dirs_are_described_as_json(broker: Broker) -> None:
    code, text = output(broker, "log-dirs", "--describe", "--topic-list", "orders")
    assert code == 0
    document = json.loads(text.splitlines()[-1])
    (log_dir,) = document["brokers"][0]["logDirs"]
    assert sorted(row["partition"] for row in log_dir["partitions"]) == ["orders-0", "orders-1"]
    assert output(broker, "log-dirs", "--describe", "--broker-list", "99")[0] == 1


def test_api_versions_are_listed_for_each_broker(broker: Broker) -> None:
    code, text = output(broker, "broker-api-versions")
    assert code == 0
    assert f":{broker.port} (id: " in text.splitlines()[0]
    assert "\tApiVersions(18): 0 to 5 [usable: 5]" in text


def test_groups_of_a_type_that_nobody_has_are_a_title_only(broker: Broker) -> None:
    assert output(broker, "groups", "--list", "--share")[1].split() == ["GROUP", "TYPE", "PROTOCOL"]


@pytest.mark.parametrize(
    "tool", ["get-offsets", "groups", "configs", "delete-records", "log-dirs", "broker-api-versions", "consumer-groups"]
)
def test_a_tool_without_a_broker_says_what_is_missing(tool: str) -> None:
    flags = ["--list"] if tool in {"groups", "consumer-groups"} else []
    done = run(tool, *flags)
    assert done.returncode != 0
    assert b'Missing required argument "[bootstrap-server]"' in done.stderr
    done = run(tool, "--bootstrap-server", "localhost:1", *flags, *NEEDED.get(tool, ()))
    assert done.returncode == 1
    assert b"No broker answers at localhost:1" in done.stderr


NEEDED = {
    "configs": ("--describe", "--topic", "t"),
    "log-dirs": ("--describe",),
    "delete-records": ("--offset-json-file", str(Path(__file__).parents[1] / "golden" / "clients" / "delete_records.json")),
}


def test_the_quorum_shows_its_leader(broker: Broker) -> None:
    where = ("--bootstrap-server", broker.bootstrap_servers)
    status = run("metadata-quorum", *where, "describe", "--status").stdout.decode()
    leader = status.splitlines()[1].split()
    assert leader[0] == "LeaderId:"
    rows = run("metadata-quorum", *where, "describe", "--replication").stdout.decode().splitlines()
    assert rows[1].split("\t")[0].strip() == leader[1]
    assert rows[1].split("\t")[6] == "Leader"
    assert run("metadata-quorum", *where, "describe").returncode != 0
