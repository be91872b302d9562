"""``--output json`` of the tools that describe something, against a broker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from click.testing import CliRunner

from tidelog.cli.main import module_of
from tidelog.testing import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as started:
        started.create_topic("orders", partitions=2, retention_ms=5000)
        started.produce("orders", "a", "b", "c")
        yield started


def values(broker: Broker, tool: str, *flags: str) -> Any:
    command = import_module(module_of(tool)).command
    done = CliRunner().invoke(command, ["--bootstrap-server", broker.bootstrap_servers, *flags, "--output", "json"])
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def test_topics(broker: Broker) -> None:
    assert values(broker, "topics", "--list", "--exclude-internal") == ["orders"]
    (orders,) = values(broker, "topics", "--describe", "--topic", "orders")
    assert orders["configs"]["retention.ms"] == "5000"
    assert orders["partitions"][1] == {"partition": 1, "leader": 1, "replicas": [1], "isr": [1]}
    assert (orders["topic"], orders["partitionCount"], orders["replicationFactor"]) == ("orders", 2, 1)
    (orders,) = values(broker, "topics", "--describe", "--topic", "orders", "--unavailable-partitions")
    assert orders["partitions"] == []
    assert values(broker, "topics", "--describe", "--topic", "nosuch", "--if-exists") == []


def test_offsets(broker: Broker) -> None:
    found = values(broker, "get-offsets", "--topic", "orders")
    assert found == [{"topic": "orders", "partition": 0, "offset": 3}, {"topic": "orders", "partition": 1, "offset": 0}]


def test_settings(broker: Broker) -> None:
    (orders,) = values(broker, "configs", "--describe", "--topic", "orders")
    assert (orders["entityType"], orders["entityName"]) == ("topics", "orders")
    (retention,) = orders["configs"]
    assert (retention["name"], retention["value"], retention["source"]) == ("retention.ms", "5000", "DYNAMIC_TOPIC_CONFIG")
    assert retention["synonyms"][0] == {"source": "DYNAMIC_TOPIC_CONFIG", "name": "retention.ms", "value": "5000"}
    everybody = values(broker, "configs", "--describe", "--entity-type", "brokers")
    assert [each["entityName"] for each in everybody] == ["1", None]


def test_versions(broker: Broker) -> None:
    (node,) = values(broker, "broker-api-versions")
    produce = next(api for api in node["apis"] if api["name"] == "Produce")
    assert produce["key"] == 0
    assert produce["usable"] == produce["max"]
    assert (node["id"], node["port"]) == (1, broker.port)


def test_the_quorum(broker: Broker) -> None:
    status = values(broker, "metadata-quorum", "describe", "--status")
    assert status["LeaderId"] == 1
    assert status["CurrentVoters"][0]["id"] == 1
    (leader,) = values(broker, "metadata-quorum", "describe", "--replication")
    assert (leader["NodeId"], leader["Lag"], leader["Status"]) == (1, 0, "Leader")
