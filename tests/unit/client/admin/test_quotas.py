from __future__ import annotations

import pytest

from tests.unit.client.scripted import Table, answered
from tidelog.client.admin.quotas import alter, describe
from tidelog.client.admin.results import Quota
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.alter_client_quotas import AlterClientQuotasResponse, ResponseEntryData
from tidelog.protocol.messages.describe_client_quotas import DescribeClientQuotasResponse, EntityData, EntryData, ValueData


def test_an_entity_is_named_by_its_types() -> None:
    entry = EntryData(
        entity=[EntityData(entity_type="user", entity_name=None)], values=[ValueData(key="producer_byte_rate", value=5.0)]
    )
    table = Table(DescribeClientQuotasResponse(entries=[entry]))
    assert answered(describe({"user": None, "client-id": "c"}, types=["ip"]), table) == [
        Quota({"user": None}, {"producer_byte_rate": 5.0})
    ]
    request = table.asked[0].request
    assert [(each.entity_type, each.match_type, each.match) for each in request.components] == [
        ("user", 1, None),
        ("client-id", 0, "c"),
        ("ip", 2, None),
    ]
    assert request.strict
    answered(describe(), table)
    assert not table.asked[1].request.strict


def test_quotas_are_set_and_removed_in_one_request() -> None:
    table = Table(AlterClientQuotasResponse(entries=[ResponseEntryData()]))
    answered(alter({"user": "ann"}, {"producer_byte_rate": 9.0}, ["consumer_byte_rate"]), table)
    (entry,) = table.asked[0].request.entries
    assert [(each.key, each.remove) for each in entry.ops] == [("producer_byte_rate", False), ("consumer_byte_rate", True)]
    refused = ResponseEntryData(error_code=ErrorCode.INVALID_REQUEST, error_message="no such key")
    with pytest.raises(KafkaError, match="no such key"):
        answered(alter({"user": "ann"}, {"x": 1}), Table(AlterClientQuotasResponse(entries=[refused])))
