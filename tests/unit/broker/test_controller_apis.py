from tidelog.broker.apis import APIS
from tidelog.broker.controller_apis import CONTROLLER_API_TABLE, CONTROLLER_APIS
from tidelog.protocol import registry
from tidelog.protocol.api_keys import ApiKey
from tidelog.raft.machine import HANDLERS


def test_the_quorums_own_requests_are_served_in_all_their_versions() -> None:
    for key in HANDLERS:
        request = registry.request_class(key)
        assert CONTROLLER_APIS[key].versions == (request.MIN_VERSION, request.MAX_VERSION), key


def test_a_broker_serves_none_of_them_but_fetch_and_passes_on_what_administrators_ask() -> None:
    assert {key for key in HANDLERS if key in APIS} == {ApiKey.FETCH, ApiKey.ADD_RAFT_VOTER, ApiKey.REMOVE_RAFT_VOTER}


def test_each_api_is_there_once_and_in_order() -> None:
    keys = [row.key for row in CONTROLLER_API_TABLE]
    assert keys == sorted(set(keys))
