from __future__ import annotations

import pytest

from tests.unit.broker.apis.live import Talk
from tidelog import testing
from tidelog.broker.node import advertised
from tidelog.broker.table import BROKER_APIS
from tidelog.model.errors import ErrorCode
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.messages.metadata import MetadataRequest
from tidelog.protocol.messages.share_group_describe import ShareGroupDescribeRequest
from tidelog.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tidelog.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest


def test_a_feature_that_is_not_there_is_answered_and_the_connection_goes_on() -> None:
    with testing.Broker() as broker:
        talk = Talk(broker.port)
        heartbeat = talk.ask(ShareGroupHeartbeatRequest(group_id="g", member_id="m"), 1)
        assert (heartbeat.error_code, "share groups" in heartbeat.error_message) == (ErrorCode.UNSUPPORTED_VERSION, True)
        described = [
            talk.ask(ShareGroupDescribeRequest(group_ids=["g"]), 1),
            talk.ask(StreamsGroupDescribeRequest(group_ids=["g"]), 0),
        ]
        assert [each.groups[0].error_code for each in described] == [ErrorCode.UNSUPPORTED_VERSION] * 2
        assert talk.ask(MetadataRequest(topics=[]), 12).brokers
        talk.close()


@pytest.mark.parametrize("key", [key for key, route in BROKER_APIS.items() if route.api.off])
def test_what_is_off_is_not_advertised(key: int) -> None:
    assert key not in set(advertised(BROKER_APIS))
    assert ApiKey(key).name.startswith(("SHARE", "STREAMS", "DESCRIBE_SHARE", "ALTER_SHARE", "DELETE_SHARE"))
