"""DescribeConfigs of Apache Kafka and of tidelog side by side: the same settings, synonyms and order."""

from __future__ import annotations

import random
import time

import pytest

from tests.dynamic_configs import NEW_IN_4_4, asked, cases, on_purpose, recorded
from tests.interop.nodes import Node
from tidelog.cli.broker_connection import BrokerConnection
from tidelog.metadata.image import BROKER_RESOURCE, CLIENT_METRICS_RESOURCE, GROUP_RESOURCE, TOPIC_RESOURCE
from tidelog.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tidelog.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
)
from tidelog.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

pytestmark = pytest.mark.interop
CHANGED = (
    (TOPIC_RESOURCE, "t", {"retention.ms": "5000", "cleanup.policy": "compact", "segment.bytes": "1234567"}),
    (BROKER_RESOURCE, "", {"log.retention.ms": "500000", "background.threads": "11", "num.io.threads": "9"}),
    (BROKER_RESOURCE, "1", {"message.max.bytes": "123456"}),
    (GROUP_RESOURCE, "g", {"consumer.session.timeout.ms": "46000"}),
    (CLIENT_METRICS_RESOURCE, "m", {"interval.ms": "1000", "metrics": "a,b"}),
)


def test_a_sample_of_dynamic_changes_has_the_recorded_answers_of_apache_kafka(tidelog_node: Node, apache_node: Node) -> None:
    """First in this module: how far threads may move depends on what is set. All changes: unit tests of the handler."""
    known = [case for case in cases() if not NEW_IN_4_4 & {change.name for change in case.changes}]
    sample, theirs = random.Random(226).sample(known, 150), recorded()
    expected = [theirs[case.key].code for case in sample]
    assert [answer.code for answer in asked(apache_node.bootstrap, sample)] == expected
    ours = [answer.code for answer in asked(tidelog_node.bootstrap, sample)]
    different = [(case, code) for case, code, wanted in zip(sample, ours, expected, strict=True) if code != wanted]
    assert [each for each in different if not on_purpose(each[0])] == []


def described(connection: BrokerConnection, kind: int, name: str) -> DescribeConfigsResult:
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
    result: DescribeConfigsResult = connection.ask(DescribeConfigsRequest(resources=[resource], include_synonyms=True)).results[0]
    assert result.error_code == 0, result.error_message
    return result


def changed(connection: BrokerConnection, kind: int, name: str, settings: dict[str, str]) -> list[DescribeConfigsResourceResult]:
    """The rows, once the broker has replayed the change."""
    deadline = time.monotonic() + 30
    while True:
        rows = described(connection, kind, name).configs
        if settings.items() <= {(row.name, row.value) for row in rows}:
            return rows
        assert time.monotonic() < deadline, f"{settings} does not show"
        time.sleep(0.1)


def listed(node: Node) -> dict[tuple[int, str], list[tuple[str, list[tuple[str, int]]]]]:
    """For each resource: names, and the names and sources of their synonyms, in the order of the answer."""
    with BrokerConnection(node.bootstrap) as connection:
        topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
        assert connection.ask(CreateTopicsRequest(topics=[topic], timeout_ms=30_000)).topics[0].error_code == 0
        for kind, name, settings in CHANGED:
            changes = [AlterableConfig(name=key, config_operation=0, value=value) for key, value in settings.items()]
            resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=changes)
            assert connection.ask(IncrementalAlterConfigsRequest(resources=[resource])).responses[0].error_code == 0
        found = {}
        for kind, name, settings in CHANGED:
            rows = changed(connection, kind, name, settings)
            found[kind, name] = [
                (row.name, [(synonym.name, synonym.source) for synonym in row.synonyms])
                for row in rows
                if not row.name.startswith("tidelog.") and row.name not in NEW_IN_4_4
            ]
        return found


def test_settings_and_synonyms_come_in_the_same_order(tidelog_node: Node, apache_node: Node) -> None:
    assert listed(tidelog_node) == listed(apache_node)
