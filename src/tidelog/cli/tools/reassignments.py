"""Reassignments for commands: list, start, cancel, and find the log dirs of replicas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidelog.cli.refusal import check
from tidelog.cli.tools.reassignment_json import Partition, Replica
from tidelog.client.admin import replicas
from tidelog.console.moving.asking import under_way
from tidelog.console.moving.layout import Ongoing
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest

if TYPE_CHECKING:
    from tidelog.cli.admin_session import AdminSession
    from tidelog.cli.controller_session import Session


@dataclass(frozen=True, slots=True)
class Placed:
    """A replica on disk: its log dir and size; with a future replica, also its log dir."""

    log_dir: str
    size: int
    future_dir: str | None = None


def ongoing(session: Session) -> dict[Partition, Ongoing]:
    """All running reassignments."""
    return session.run(under_way(timeout_ms=session.timeout_ms))


def alter(
    session: Session, wanted: Mapping[Partition, Sequence[int] | None], *, allow_factor_change: bool = True
) -> dict[Partition, str]:
    """Starts a reassignment for each partition, or cancels the running one for None. Returns the failed ones and why."""
    call = replicas.reassign(wanted, allow_factor_change=allow_factor_change, timeout_ms=session.timeout_ms)
    return {at: str(error) for at, error in session.run(call).items()}


def replicas_of(session: AdminSession, topics: Iterable[str]) -> dict[Partition, tuple[int, ...]]:
    """The replicas of all partitions of these topics. CommandFailed when one does not exist."""
    found: dict[Partition, tuple[int, ...]] = {}
    for topic in session.metadata(sorted(set(topics))):
        check(topic.error_code, f"Topic {topic.name} not found." if topic.error_code == UNKNOWN else None)
        found |= {(topic.name or "", part.partition_index): tuple(part.replica_nodes) for part in topic.partitions}
    return found


UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def placed(session: AdminSession, partitions: Mapping[Partition, Iterable[int]]) -> dict[Replica, Placed]:
    """The log dirs of replicas, with one request per broker; brokers that are down are skipped."""
    by_broker: dict[int, dict[str, list[int]]] = {}
    for (topic, index), brokers in sorted(partitions.items()):
        for broker in brokers:
            by_broker.setdefault(broker, {}).setdefault(topic, []).append(index)
    found: dict[Replica, Placed] = {}
    futures: dict[Replica, str] = {}
    for broker, topics in sorted(by_broker.items()):
        if broker not in session.brokers():
            continue
        asked = [DescribableLogDirTopic(topic=name, partitions=indexes) for name, indexes in topics.items()]
        response = session.connection(broker).ask(DescribeLogDirsRequest(topics=asked))
        for result in response.results:
            for topic in result.topics:
                for part in topic.partitions:
                    replica = topic.name, part.partition_index, broker
                    if part.is_future_key:
                        futures[replica] = result.log_dir
                    else:
                        found[replica] = Placed(result.log_dir, part.partition_size)
    return {replica: Placed(each.log_dir, each.size, futures.get(replica)) for replica, each in found.items()}


def names(partitions: Iterable[Partition]) -> str:
    """``orders-0,orders-1``, in order."""
    return ",".join(f"{topic}-{index}" for topic, index in sorted(partitions))
