"""Reassignments as commands see them: which are under way, how one begins or is taken back, which log dirs replicas lie in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidelog.cli.refusal import check
from tidelog.cli.tools.reassignment_json import Partition, Replica
from tidelog.client.admin import replicas
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest

if TYPE_CHECKING:
    from tidelog.cli.admin_session import AdminSession
    from tidelog.cli.controller_session import Session


@dataclass(frozen=True, slots=True)
class Ongoing:
    """A reassignment under way: all replicas that there are now, those that come, those that will go."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]

    @property
    def target(self) -> tuple[int, ...]:
        """The replicas when it is over."""
        return tuple(broker for broker in self.replicas if broker not in self.removing)


@dataclass(frozen=True, slots=True)
class Placed:
    """A replica on disk: its log dir, its bytes there; with a future replica, where that lies."""

    log_dir: str
    size: int
    future_dir: str | None = None


def ongoing(session: Session) -> dict[Partition, Ongoing]:
    """All reassignments under way."""
    found = session.run(replicas.reassignments(timeout_ms=session.timeout_ms))
    return {at: Ongoing(each.replicas, each.adding, each.removing) for at, each in found.items()}


def alter(
    session: Session, wanted: Mapping[Partition, Sequence[int] | None], *, allow_factor_change: bool = True
) -> dict[Partition, str]:
    """Begin a reassignment for each partition, or end the one under way for None. Those that failed, and why."""
    call = replicas.reassign(wanted, allow_factor_change=allow_factor_change, timeout_ms=session.timeout_ms)
    return {at: str(error) for at, error in session.run(call).items()}


def replicas_of(session: AdminSession, topics: Iterable[str]) -> dict[Partition, tuple[int, ...]]:
    """The replicas of all partitions of these topics. CommandFailed when one is not there."""
    found: dict[Partition, tuple[int, ...]] = {}
    for topic in session.metadata(sorted(set(topics))):
        check(topic.error_code, f"Topic {topic.name} not found." if topic.error_code == UNKNOWN else None)
        found |= {(topic.name or "", part.partition_index): tuple(part.replica_nodes) for part in topic.partitions}
    return found


UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def placed(session: AdminSession, partitions: Mapping[Partition, Iterable[int]]) -> dict[Replica, Placed]:
    """Where the replicas of partitions lie, each of their brokers asked once; brokers that are not there are passed over."""
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
