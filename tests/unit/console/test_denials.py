"""The calls that read an audit; a whole one is read in tests/causes."""

from __future__ import annotations

import pytest

from tidelog.client.calls import Ask, Locate
from tidelog.console.denials import denials
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from tidelog.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic


def test_a_broker_without_an_audit_is_asked_nothing_more() -> None:
    call = denials("g", ["orders"], 0)
    assert isinstance(next(call), Locate)
    asked = call.send((1, "h", 9))
    assert isinstance(asked, Ask)
    with pytest.raises(StopIteration) as end:
        call.send(DescribeConfigsResponse(results=[DescribeConfigsResult()]))
    assert end.value.value == ()


def test_one_who_may_not_read_the_audit_gets_no_denials() -> None:
    call = denials("g", ["orders"], 0)
    next(call)
    call.send((1, "h", 9))
    setting = DescribeConfigsResourceResult(name="tidelog.audit.topic", value="__audit")
    asked = call.send(DescribeConfigsResponse(results=[DescribeConfigsResult(configs=[setting])]))
    assert isinstance(asked, Ask) and [each.name for each in asked.request.topics] == ["__audit"]
    hidden = MetadataResponseTopic(name="__audit", error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(StopIteration) as end:
        call.send(MetadataResponse(topics=[hidden]))
    assert end.value.value == ()


def test_a_refusal_ends_it_quietly() -> None:
    call = denials("g", ["orders"], 0)
    next(call)
    with pytest.raises(StopIteration) as end:
        call.throw(KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    assert end.value.value == ()
