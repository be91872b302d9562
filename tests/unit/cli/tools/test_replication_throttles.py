"""Throttles of moves: which brokers and topics get the limits."""

from tests.unit.cli.cluster_stand_in import StandIn
from tidelog.cli.tools.replication_throttles import clear, set_log_dir_rate, set_rate
from tidelog.console.moving.throttles import Transfer
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


def alterations(session: StandIn) -> list[tuple[int | None, int, str, dict[str, str | None]]]:
    return [
        (at, each.resource_type, each.resource_name, {config.name: config.value for config in each.configs})
        for at, request in session.requests(IncrementalAlterConfigsRequest)
        for each in request.resources
    ]


MOVES = {("foo", 0): Transfer(frozenset({0}), frozenset({2}))}


def test_topics_go_to_any_broker_and_rates_to_the_broker_that_they_are_of():
    session = StandIn({IncrementalAlterConfigsRequest: IncrementalAlterConfigsResponse()})
    set_rate(session, MOVES, 500)
    rates = {"leader.replication.throttled.rate": "500", "follower.replication.throttled.rate": "500"}
    assert alterations(session) == [
        (None, 2, "foo", {"leader.replication.throttled.replicas": "0:0", "follower.replication.throttled.replicas": "0:2"}),
        (0, 4, "0", rates),
        (2, 4, "2", rates),
    ]


def test_limits_are_taken_away_also_where_a_broker_or_topic_is_gone():
    gone = AlterConfigsResourceResponse(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    session = StandIn({IncrementalAlterConfigsRequest: IncrementalAlterConfigsResponse(responses=[gone])})
    clear(session, [1, 9], ["foo"])
    assert [(at, kind, name) for at, kind, name, _ in alterations(session)] == [(None, 2, "foo"), (1, 4, "1")]
    assert all(value is None for *_, configs in alterations(session) for value in configs.values())


def test_copies_between_log_dirs_have_a_limit_of_their_own():
    session = StandIn({IncrementalAlterConfigsRequest: IncrementalAlterConfigsResponse()})
    set_log_dir_rate(session, [1], 7)
    assert alterations(session) == [(1, 4, "1", {"replica.alter.log.dirs.io.max.bytes.per.second": "7"})]
