"""Bandwidth limits for moving replicas, as dynamic settings of brokers and topics (KIP-73).

A rate at each sending or receiving broker, and per topic the replicas that it applies to. They stay until they are cleared:
commands that set them here also clear them here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidelog.cli.admin_session import AdminSession, NodeConnection
from tidelog.cli.controller_session import Session
from tidelog.cli.refusal import check
from tidelog.console.moving.balance_plan import Partition
from tidelog.console.moving.throttles import (
    LEADER_RATE,
    Transfer,
    brokers_of,
    rates,
    replica_lists,
    resource,
    topic_lists,
)
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from tidelog.protocol.messages.incremental_alter_configs import AlterConfigsResource, IncrementalAlterConfigsRequest

DYNAMIC_BROKER_SOURCE = 2
TOPIC, BROKER = 2, 4
LOG_DIR_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"


def set_rate(session: Session, moves: Mapping[Partition, Transfer], rate: int) -> None:
    """Limits these moves to ``rate`` bytes per second at each broker, in and out."""
    lists = topic_lists(moves)
    resources = [resource(TOPIC, topic, replica_lists(giving, taking)) for topic, (giving, taking) in lists.items()]
    resources += [resource(BROKER, str(broker), rates(rate)) for broker in brokers_of(moves)]
    _alter(session, resources)


def set_log_dir_rate(session: Session, brokers: Iterable[int], rate: int) -> None:
    """Limits copies between the log dirs of these brokers to ``rate`` bytes per second."""
    _alter(session, [resource(BROKER, str(broker), {LOG_DIR_RATE: str(rate)}) for broker in sorted(set(brokers))])


def limited_brokers(session: AdminSession) -> list[int]:
    """The brokers with a rate set."""
    found = []
    for broker in session.brokers():
        asked = [DescribeConfigsResource(resource_type=BROKER, resource_name=str(broker), configuration_keys=[LEADER_RATE])]
        response = session.connection(broker).ask(DescribeConfigsRequest(resources=asked))
        rows = [row for result in response.results if result.error_code == ErrorCode.NONE for row in result.configs]
        if any(row.config_source == DYNAMIC_BROKER_SOURCE for row in rows):
            found.append(broker)
    return found


def clear(session: Session, brokers: Iterable[int], topics: Iterable[str]) -> None:
    """Clears all limits of these brokers and topics."""
    resources = [resource(BROKER, str(broker), {**rates(None), LOG_DIR_RATE: None}) for broker in sorted(set(brokers))]
    resources += [resource(TOPIC, topic, replica_lists(None, None)) for topic in sorted(set(topics))]
    _alter(session, resources)


def _alter(session: Session, resources: list[AlterConfigsResource]) -> None:
    """A broker accepts only settings of its own (those of a removed broker have no effect); controllers accept all."""
    if not isinstance(session, AdminSession):
        _ask(session, resources)
        return
    _ask(session, [each for each in resources if each.resource_type == TOPIC])
    for each in resources:
        if each.resource_type == BROKER and int(each.resource_name) in session.brokers():
            _ask(session.connection(int(each.resource_name)), [each])


def _ask(connection: Session | NodeConnection, resources: list[AlterConfigsResource]) -> None:
    if resources:
        for result in connection.ask(IncrementalAlterConfigsRequest(resources=resources)).responses:
            if result.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:  # deleted meanwhile
                check(result.error_code, result.error_message)
