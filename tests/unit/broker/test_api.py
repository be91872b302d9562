from __future__ import annotations

from typing import Any

from tidelog.broker.api import NOTHING, Api, by_resource, on_brokers, on_cluster, on_controllers
from tidelog.model.acl import AclOperation as Op
from tidelog.model.acl import ResourceType
from tidelog.protocol.api_keys import ApiKey


def row(**facts: Any) -> Api:
    return Api(**({"key": ApiKey.METADATA, "versions": (0, 13), "needs": NOTHING} | facts))


def test_what_is_told_is_what_is_served_unless_the_row_says_otherwise() -> None:
    assert row().told == (0, 13)
    assert row(versions=(3, 13), advertised=(0, 13)).told == (0, 13)


def test_a_version_that_only_brokers_ask_is_between_brokers() -> None:
    assert [row(between_brokers_from=4).is_between_brokers(version) for version in (3, 4, 5)] == [False, True, True]
    assert not row().is_between_brokers(13)


def test_each_kind_of_node_serves_the_rows_with_a_handler_for_it() -> None:
    def brokers(ctx: Any, request: Any) -> Any: ...

    def controllers(ctx: Any, request: Any) -> Any: ...

    table = (
        row(broker=brokers, read=memoryview, controller=controllers, controller_needs=on_cluster(Op.CLUSTER_ACTION)),
        row(key=ApiKey.VOTE, controller=controllers),
        row(key=ApiKey.PRODUCE, broker=brokers),
    )
    there, here = on_brokers(table), on_controllers(table)
    assert set(there) == {ApiKey.METADATA, ApiKey.PRODUCE}
    assert set(here) == {ApiKey.METADATA, ApiKey.VOTE}
    assert (there[ApiKey.METADATA].handler, there[ApiKey.METADATA].read) == (brokers, memoryview)
    assert (here[ApiKey.METADATA].handler, here[ApiKey.METADATA].read) == (controllers, None)
    assert there[ApiKey.METADATA].needs is NOTHING
    assert here[ApiKey.METADATA].needs.permissions == ((Op.CLUSTER_ACTION, ResourceType.CLUSTER),)


def test_a_permission_is_asked_before_the_handler_or_by_it() -> None:
    assert not on_cluster(Op.ALTER).in_handler
    assert by_resource((Op.READ, ResourceType.TOPIC)).in_handler
