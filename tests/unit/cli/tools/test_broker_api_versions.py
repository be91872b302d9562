"""Which requests count as missing when a broker does not serve them."""

from tidelog.cli.tools.broker_api_versions import _of_clients
from tidelog.protocol.api_keys import ApiKey


def test_what_only_nodes_say_to_each_other_is_no_gap():
    assert not _of_clients(ApiKey.VOTE)
    assert not _of_clients(ApiKey.BROKER_HEARTBEAT)
    assert _of_clients(ApiKey.PRODUCE)
    assert _of_clients(ApiKey.DESCRIBE_QUORUM)
