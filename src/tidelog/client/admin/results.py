"""Results of admin calls."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from tidelog.client.calls import Partition


class ResourceType(IntEnum):
    """The type of a resource with settings; Kafka's numbers."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    """A partition; ``leader`` is None without a leader, the first of ``replicas`` is the preferred leader."""

    index: int
    leader: int | None
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    offline: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic; ``topic_id`` has 16 bytes, all zero from a broker before Kafka 2.8."""

    name: str
    topic_id: bytes
    internal: bool
    partitions: tuple[PartitionDescription, ...]


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """A setting. ``value`` is None if it is sensitive; ``source`` is Kafka's number for its source (KIP-226)."""

    name: str
    value: str | None
    source: int
    read_only: bool
    sensitive: bool


@dataclass(frozen=True, slots=True)
class NodeDescription:
    """A broker or a controller."""

    node_id: int
    host: str
    port: int
    rack: str | None
    fenced: bool


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """``controller_id`` is None while no controller is active; brokers report a random broker (KIP-590)."""

    cluster_id: str
    controller_id: int | None
    nodes: tuple[NodeDescription, ...]


@dataclass(frozen=True, slots=True)
class QuorumReplica:
    """A voter or an observer of the metadata quorum; times in ms since 1970, -1 if unknown to the leader."""

    node_id: int
    log_end_offset: int
    last_fetch_ms: int
    last_caught_up_ms: int


@dataclass(frozen=True, slots=True)
class QuorumDescription:
    """The metadata quorum as seen by its leader."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]


@dataclass(frozen=True, slots=True)
class LogDir:
    """A log dir of a broker; sizes in bytes, ``total`` and ``usable`` are -1 if the broker does not report them.

    ``replicas``: the bytes of each replica. ``error``: why the dir could not be described, such as KAFKA_STORAGE_ERROR.
    """

    path: str
    total: int
    usable: int
    replicas: dict[Partition, int]
    error: str | None


@dataclass(frozen=True, slots=True)
class Reassignment:
    """A reassignment in progress."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TransactionListing:
    """A transactional id and its coordinator."""

    transactional_id: str
    coordinator: int
    producer_id: int
    state: str


@dataclass(frozen=True, slots=True)
class TransactionDescription:
    """A transaction; ``started_ms`` is None while none is open, ``timeout_ms`` is the producer's."""

    transactional_id: str
    coordinator: int
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    started_ms: int | None
    partitions: tuple[Partition, ...]


@dataclass(frozen=True, slots=True)
class Quota:
    """The quotas of one entity. ``entity``: name by type (user, client-id, ip); None is the default of that type."""

    entity: dict[str, str | None]
    limits: dict[str, float]
