"""The layout of a cluster, as its brokers report it: the input for plans."""

from __future__ import annotations

from collections.abc import Iterable

from tidelog.cli.admin_session import AdminSession
from tidelog.cli.refusal import CommandFailed, check
from tidelog.cli.tools.reassignments import ongoing, placed
from tidelog.console.moving.balance_plan import Partition
from tidelog.console.moving.layout import ALL_DIRS, CORDONED, Layout, Seen
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_BROKER
from tidelog.protocol.messages.describe_cluster import DescribeClusterRequest
from tidelog.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from tidelog.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

FENCED_FROM = 2
"""From this version on DescribeCluster includes fenced brokers."""
TOPIC, BROKER = 2, 4
MIN_ISR = "min.insync.replicas"


def read_layout(session: AdminSession) -> Layout:
    """Reads the whole layout. CommandFailed when brokers do not provide it."""
    newer = session.version_of(DescribeClusterRequest.API_KEY) >= FENCED_FROM
    cluster = session.ask(DescribeClusterRequest(include_fenced_brokers=True) if newer else DescribeClusterRequest())
    check(cluster.error_code, cluster.error_message)
    under_way = ongoing(session)
    seen = see(session)
    placements = placed(session, {each.partition: each.replicas for each in seen})
    sizes: dict[Partition, int] = {}
    for (topic, index, _), replica in placements.items():
        sizes[topic, index] = max(sizes.get((topic, index), 0), replica.size)
    racks = {broker.broker_id: broker.rack for broker in cluster.brokers if not broker.is_fenced}
    return Layout(
        cluster.cluster_id,
        racks,
        {broker.broker_id: broker.rack for broker in cluster.brokers if broker.is_fenced},
        seen,
        sizes,
        under_way,
        tuple(broker for broker in sorted(racks) if cordon_of(session, broker) == ALL_DIRS),
        {broker.broker_id: broker.host for broker in cluster.brokers},
    )


def see(session: AdminSession, topics: Iterable[str] | None = None) -> tuple[Seen, ...]:
    """All partitions of these topics, or of all, in order; deleted topics are left out."""
    found = []
    for topic in session.metadata(topics):
        if topic.error_code != ErrorCode.NONE:
            if topics is None:
                raise CommandFailed(f"Topic {topic.name} cannot be read: {ErrorCode(topic.error_code).name}")
            continue
        found += [
            Seen(
                (topic.name or "", part.partition_index),
                None if part.leader_id == NO_BROKER else part.leader_id,
                tuple(part.replica_nodes),
                tuple(part.isr_nodes),
            )
            for part in topic.partitions
        ]
    return tuple(sorted(found, key=lambda each: each.partition))


def min_isr_of(session: AdminSession, topics: Iterable[str]) -> dict[str, int]:
    """``min.insync.replicas`` of each topic."""
    names = sorted(set(topics))
    if not names:
        return {}
    asked = [DescribeConfigsResource(resource_type=TOPIC, resource_name=name, configuration_keys=[MIN_ISR]) for name in names]
    response = session.ask(DescribeConfigsRequest(resources=asked))
    return {
        result.resource_name: int(row.value or 1)
        for result in response.results
        for row in result.configs
        if result.error_code == ErrorCode.NONE and row.name == MIN_ISR
    }


def cordon_of(session: AdminSession, broker: int) -> str:
    """The log dirs of a broker that take no new replicas; empty also when brokers do not support cordoning."""
    asked = [DescribeConfigsResource(resource_type=BROKER, resource_name=str(broker), configuration_keys=[CORDONED])]
    response = session.connection(broker).ask(DescribeConfigsRequest(resources=asked))
    rows = [row for result in response.results if result.error_code == ErrorCode.NONE for row in result.configs]
    return next((row.value or "" for row in rows if row.name == CORDONED), "")


def set_cordon(session: AdminSession, broker: int, dirs: str | None) -> None:
    """Sets the log dirs that take no new replicas; None restores the broker's file. CommandFailed when cordoning is not
    supported."""
    change = AlterableConfig(name=CORDONED, config_operation=int(dirs is None), value=dirs)
    resource = AlterConfigsResource(resource_type=BROKER, resource_name=str(broker), configs=[change])
    for result in session.connection(broker).ask(IncrementalAlterConfigsRequest(resources=[resource])).responses:
        check(result.error_code, result.error_message)
