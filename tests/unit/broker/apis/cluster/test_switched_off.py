from __future__ import annotations

import pytest

from tests.unit.broker.apis.live import Talk
from tidelog import testing
from tidelog.broker.node import advertised
from tidelog.broker.table import BROKER_APIS
from tidelog.model.errors import ErrorCode
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.messages.metadata import MetadataRequest
from tidelog.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from tidelog.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest


def test_a_feature_that_is_not_there_is_answered_and_the_connection_goes_on() -> None:
    with testing.Broker() as broker:
        talk = Talk(broker.port)
        heartbeat = talk.ask(StreamsGroupHeartbeatRequest(group_id="g", member_id="m"), 0)
        assert (heartbeat.error_code, "streams groups" in heartbeat.error_message) == (ErrorCode.UNSUPPORTED_VERSION, True)
        described = talk.ask(StreamsGroupDescribeRequest(group_ids=["g"]), 0)
        assert described.groups[0].error_code == ErrorCode.UNSUPPORTED_VERSION
        assert talk.ask(MetadataRequest(topics=[]), 12).brokers
        talk.close()


@pytest.mark.parametrize("key", [key for key, route in BROKER_APIS.items() if route.api.off])
def test_what_is_off_is_not_advertised(key: int) -> None:
    assert key not in set(advertised(BROKER_APIS))
    assert ApiKey(key).name.startswith("STREAMS")
