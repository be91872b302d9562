from __future__ import annotations

import pytest

from tidelog.client.admin.results import ResourceType
from tidelog.client.calls import Ask, Node
from tidelog.console.asking.configs import min_in_sync, settings
from tidelog.model.errors import KafkaError
from tidelog.protocol.messages.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)


def answered(*rows: DescribeConfigsResourceResult, error: int = 0) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(
        results=[DescribeConfigsResult(error_code=error, resource_type=2, resource_name="orders", configs=list(rows))]
    )


def synonym(value: str, source: int) -> DescribeConfigsSynonym:
    return DescribeConfigsSynonym(name="x", value=value, source=source)


def test_what_was_set_comes_first_with_what_it_would_be_otherwise() -> None:
    call = settings(ResourceType.TOPIC, "orders")
    step = next(call)
    assert isinstance(step, Ask)
    assert step.to is None
    plain = DescribeConfigsResourceResult(name="a", value="1", config_source=5, config_type=3, synonyms=[synonym("1", 5)])
    own = DescribeConfigsResourceResult(
        name="b", value="2", config_source=1, config_type=5, synonyms=[synonym("2", 1), synonym("3", 4), synonym("4", 5)]
    )
    secret = DescribeConfigsResourceResult(name="c", value=None, config_source=4, is_sensitive=True)
    with pytest.raises(StopIteration) as end:
        call.send(answered(plain, own, secret))
    found = end.value.value
    assert [(each.name, each.value, each.default, each.differs, each.source) for each in found] == [
        ("b", "2", "3", True, "topic"),
        ("a", "1", "1", False, "default"),
        ("c", None, None, False, "static"),
    ]
    assert found[0].as_json()["type"] == "long"


def test_a_brokers_settings_are_asked_of_that_broker() -> None:
    step = next(settings(ResourceType.BROKER, "7"))
    assert isinstance(step, Ask)
    assert step.to == Node(7)


def test_an_error_is_raised() -> None:
    call = settings(ResourceType.TOPIC, "orders")
    next(call)
    with pytest.raises(KafkaError):
        call.send(answered(error=3))


def test_min_isr_is_one_where_it_cannot_be_read() -> None:
    call = min_in_sync(["orders", "secret"])
    next(call)
    with pytest.raises(StopIteration) as end:
        call.send(answered(DescribeConfigsResourceResult(name="min.insync.replicas", value="2")))
    assert end.value.value == {"orders": 2, "secret": 1}
    with pytest.raises(StopIteration) as end:
        next(min_in_sync([]))
    assert end.value.value == {}


def test_a_default_in_another_unit_is_converted() -> None:
    call = settings(ResourceType.TOPIC, "orders")
    next(call)
    hours = DescribeConfigsSynonym(name="log.retention.hours", value="168", source=4)
    own = DescribeConfigsSynonym(name="retention.ms", value="1", source=1)
    with pytest.raises(StopIteration) as end:
        call.send(answered(DescribeConfigsResourceResult(name="retention.ms", value="1", config_source=1, synonyms=[own, hours])))
    assert end.value.value[0].default == "604800000"
