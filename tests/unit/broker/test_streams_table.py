"""The rows of streams groups."""

from __future__ import annotations

from tidelog.broker.streams_table import STREAMS_APIS
from tidelog.broker.table import BROKER_APIS, CONTROLLER_APIS
from tidelog.protocol.api_keys import ApiKey


def test_brokers_serve_both_requests_at_version_0_and_controllers_neither() -> None:
    assert {row.key: row.versions for row in STREAMS_APIS} == {
        ApiKey.STREAMS_GROUP_HEARTBEAT: (0, 0),
        ApiKey.STREAMS_GROUP_DESCRIBE: (0, 0),
    }
    for row in STREAMS_APIS:
        assert row.key in BROKER_APIS
        assert row.key not in CONTROLLER_APIS
