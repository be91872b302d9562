"""What holds for every row."""

from __future__ import annotations

from tidelog.broker.deferred import loaded
from tidelog.broker.quotas.limits import Kind
from tidelog.broker.table import API_TABLE, BROKER_APIS, CONTROLLER_APIS, RAFT_APIS
from tidelog.protocol.api_keys import API_FACTS, ApiKey
from tidelog.raft.machine import HANDLERS


def test_every_api_has_one_row_in_order_and_no_version_beyond_the_definition() -> None:
    keys = [row.key for row in API_TABLE]
    assert keys == sorted(set(keys))
    for row in API_TABLE:
        facts = API_FACTS[row.key]
        first, last = row.versions
        assert facts.min_version <= first <= last <= facts.stable_max, row.key.name
        assert row.broker is not None or row.controller is not None, row.key.name


def test_produce_is_advertised_from_version_zero_so_that_librdkafka_compresses() -> None:
    assert BROKER_APIS[ApiKey.PRODUCE].api.told == (0, 13)
    assert [row.key.name for row in API_TABLE if row.advertised is not None] == ["PRODUCE"]


def test_every_handler_says_who_sends_it_and_what_it_may_answer() -> None:
    routes = [*BROKER_APIS.values(), *CONTROLLER_APIS.values()]
    assert [route.api.key.name for route in routes if not (loaded(route.handler).__doc__ or "").strip()] == []


def test_what_the_raft_machine_answers_are_its_own_handlers() -> None:
    assert set(HANDLERS) == RAFT_APIS


def test_what_is_forwarded_is_served_by_both_and_nothing_between_nodes_is() -> None:
    forwarded = {row.key for row in API_TABLE if row.forwarded}
    assert all(key in BROKER_APIS and key in CONTROLLER_APIS for key in forwarded)
    assert not forwarded & {ApiKey.ENVELOPE, ApiKey.BROKER_HEARTBEAT, ApiKey.VOTE, ApiKey.FETCH, ApiKey.ALTER_PARTITION}


def test_each_quota_of_bytes_and_of_changes_has_its_requests() -> None:
    kinds: dict[Kind, list[str]] = {}
    for row in API_TABLE:
        kinds.setdefault(row.quota, []).append(row.key.name)
    assert kinds[Kind.PRODUCE] == ["PRODUCE"]
    assert kinds[Kind.FETCH] == ["FETCH"]
    assert kinds[Kind.MUTATION] == ["CREATE_TOPICS", "DELETE_TOPICS", "CREATE_PARTITIONS"]


def test_a_permission_that_is_asked_for_the_whole_request_is_one_on_the_cluster() -> None:
    for row in API_TABLE:
        for needs in (row.needs, row.controller_needs):
            if needs is not None and needs.permissions and not needs.in_handler:
                assert [need.resource.name for need in needs.permissions] == ["CLUSTER"], row.key.name
