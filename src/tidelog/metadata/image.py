"""The cluster as its metadata log describes it: immutable values, one image per committed offset.

An image is never changed. ``metadata.delta.ClusterDelta`` applies records to one and builds the next, copying only the
dictionaries it changes (one copy per dictionary and delta, however many entries change). An image may be kept and read for any
time; its dictionaries must not be written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tidelog.model.acl import AccessControlEntry
from tidelog.model.ids import NO_BROKER, Uuid

TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4
BROKER_LOGGER_RESOURCE = 8
CLIENT_METRICS_RESOURCE = 16
GROUP_RESOURCE = 32
"""Config resource types, as in requests and in ConfigRecord."""

ConfigResource = tuple[int, str]
"""(resource type, name); the broker resource with an empty name holds the cluster-wide broker defaults."""

RECOVERED = 0
RECOVERING = 1
"""Leader recovery states (KIP-704): RECOVERING after an unclean election, until the leader reports that it has recovered."""


@dataclass(frozen=True, slots=True)
class PartitionImage:
    """One partition: replicas, ISR, leader, and the two epochs that order changes.

    ``directories`` is parallel to ``replicas`` (KIP-858). ``leader_epoch`` rises with each new leader, ``partition_epoch`` with
    each change.
    """

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int = 0
    partition_epoch: int = 0
    leader_recovery_state: int = RECOVERED
    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    directories: tuple[Uuid, ...] = ()

    @property
    def has_leader(self) -> bool:
        return self.leader != NO_BROKER

    def directory(self, broker_id: int) -> Uuid:
        """The log dir in which ``broker_id`` keeps its replica. KeyError when it is not a replica."""
        for replica, directory in zip(self.replicas, self.directories, strict=True):
            if replica == broker_id:
                return directory
        raise KeyError(f"broker {broker_id} is none of the replicas {self.replicas}")


@dataclass(frozen=True, slots=True)
class TopicImage:
    """A topic; ``partitions[n]`` is partition n."""

    id: Uuid
    name: str
    partitions: tuple[PartitionImage, ...]


@dataclass(frozen=True, slots=True)
class TopicsImage:
    """All topics, by id and by name; both hold the same objects."""

    by_id: Mapping[Uuid, TopicImage] = field(default_factory=dict)
    by_name: Mapping[str, TopicImage] = field(default_factory=dict)

    def partition(self, name: str, number: int) -> PartitionImage | None:
        """The partition; None when the topic or partition does not exist."""
        topic = self.by_name.get(name)
        if topic is None or not 0 <= number < len(topic.partitions):
            return None
        return topic.partitions[number]


class Endpoint(NamedTuple):
    """A listener as registered: ``security_protocol`` is Kafka's number (0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL)."""

    name: str
    host: str
    port: int
    security_protocol: int = 0


VersionRange = tuple[int, int]
"""Lowest and highest supported level of a feature."""


class BrokerImage(NamedTuple):
    """A registered broker; ``epoch`` is the offset of its registration record."""

    id: int
    epoch: int
    incarnation_id: Uuid
    endpoints: Mapping[str, Endpoint]
    features: Mapping[str, VersionRange]
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool
    directories: tuple[Uuid, ...]
    cordoned_directories: tuple[Uuid, ...] | None = None
    is_migrating_zk_broker: bool = False

    @property
    def active(self) -> bool:
        """Whether the broker may lead and get new replicas."""
        return not self.fenced and not self.in_controlled_shutdown


class ControllerImage(NamedTuple):
    """A registered controller."""

    id: int
    incarnation_id: Uuid
    endpoints: Mapping[str, Endpoint]
    features: Mapping[str, VersionRange]
    zk_migration_ready: bool = False


class ScramCredential(NamedTuple):
    """What SCRAM needs to verify a password without storing it (mechanism 1 SHA-256, 2 SHA-512)."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        """Without the keys: with them and the salt, passwords can be guessed offline."""
        return f"ScramCredential(iterations={self.iterations})"


class DelegationToken(NamedTuple):
    """A delegation token without its secret, which is derived from the id; times in ms since the epoch."""

    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_timestamp: int
    max_timestamp: int
    expiration_timestamp: int


QuotaEntity = tuple[tuple[str, str | None], ...]
"""(entity type, entity name or None for the default) pairs, sorted by type."""


def quota_entity(parts: Iterable[tuple[str, str | None]]) -> QuotaEntity:
    """The entity named by these pairs in a record or request."""
    return tuple(sorted(parts, key=lambda pair: pair[0]))


@dataclass(frozen=True, slots=True)
class ClusterImage:
    """The state of the metadata log up to and including ``offset``.

    ``offset`` is -1 for the empty image; ``epoch`` is the leader epoch of the last batch, ``timestamp_ms`` its append time.
    ``next_producer_id`` is the first producer id not handed out yet, -1 if unknown.
    """

    cluster_id: str = ""
    offset: int = -1
    epoch: int = 0
    timestamp_ms: int = 0
    features: Mapping[str, int] = field(default_factory=dict)
    brokers: Mapping[int, BrokerImage] = field(default_factory=dict)
    controllers: Mapping[int, ControllerImage] = field(default_factory=dict)
    topics: TopicsImage = field(default_factory=TopicsImage)
    configs: Mapping[ConfigResource, Mapping[str, str]] = field(default_factory=dict)
    quotas: Mapping[QuotaEntity, Mapping[str, float]] = field(default_factory=dict)
    next_producer_id: int = -1
    acls: Mapping[Uuid, AccessControlEntry] = field(default_factory=dict)
    scram: Mapping[tuple[str, int], ScramCredential] = field(default_factory=dict)
    tokens: Mapping[str, DelegationToken] = field(default_factory=dict)

    @property
    def metadata_version(self) -> int:
        """The finalized ``metadata.version``; 0 if there is none yet."""
        return self.features.get("metadata.version", 0)

    def topic_configs(self, name: str) -> Mapping[str, str]:
        """The configuration set on the topic itself."""
        return self.configs.get((TOPIC_RESOURCE, name), NO_CONFIGS)

    def broker_configs(self, broker_id: int) -> Mapping[str, str]:
        """The dynamic configuration set on this broker itself."""
        return self.configs.get((BROKER_RESOURCE, str(broker_id)), NO_CONFIGS)

    @property
    def cluster_configs(self) -> Mapping[str, str]:
        """The dynamic cluster-wide broker defaults."""
        return self.configs.get((BROKER_RESOURCE, ""), NO_CONFIGS)


NO_CONFIGS: Mapping[str, str] = {}
"""The configuration of a resource without settings; shared, read-only."""

EMPTY_IMAGE = ClusterImage()
