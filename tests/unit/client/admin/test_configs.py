from __future__ import annotations

import pytest

from tests.unit.client.scripted import Table, answered
from tidelog.client.admin.configs import alter, describe
from tidelog.client.admin.results import ConfigEntry, ResourceType
from tidelog.client.calls import Node
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from tidelog.protocol.messages.incremental_alter_configs import AlterConfigsResourceResponse, IncrementalAlterConfigsResponse


def test_a_broker_answers_for_itself_and_any_broker_for_the_rest() -> None:
    row = DescribeConfigsResourceResult(name="retention.ms", value="5", config_source=1)
    table = Table(DescribeConfigsResponse(results=[DescribeConfigsResult(configs=[row])]))
    found = answered(describe(ResourceType.TOPIC, "t"), table)
    assert found == {"retention.ms": ConfigEntry("retention.ms", "5", 1, False, False)}
    answered(describe(ResourceType.BROKER, "3"), table)
    answered(describe(ResourceType.BROKER, ""), table)
    assert [step.to for step in table.asked] == [None, Node(3), None]


def test_settings_are_set_and_removed_in_one_request() -> None:
    table = Table(IncrementalAlterConfigsResponse(responses=[AlterConfigsResourceResponse()]))
    answered(alter(ResourceType.TOPIC, "t", {"a": "1"}, ["b"]), table)
    (resource,) = table.asked[0].request.resources
    assert [(each.name, each.config_operation, each.value) for each in resource.configs] == [("a", 0, "1"), ("b", 1, None)]


def test_a_refusal_has_the_brokers_words() -> None:
    refused = AlterConfigsResourceResponse(error_code=ErrorCode.INVALID_CONFIG, error_message="a is no number")
    with pytest.raises(KafkaError, match="INVALID_CONFIG: a is no number"):
        answered(alter(ResourceType.TOPIC, "t", {"a": "x"}), Table(IncrementalAlterConfigsResponse(responses=[refused])))
