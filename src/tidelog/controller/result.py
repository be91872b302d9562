"""The input and the outcome of a controller decision."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from tidelog.controller.heartbeats import BrokerHeartbeats
from tidelog.controller.leader_election import Election
from tidelog.controller.partition_change import ChangeRules, Wanted, change_partition
from tidelog.controller.partition_index import PartitionIndex
from tidelog.controller.partition_rules import change_rules, elr_enabled, online_leader_check, unclean_allowed
from tidelog.metadata.image import BrokerImage, ClusterImage, TopicImage
from tidelog.metadata.records import MetadataRecord
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ports import Rng
from tidelog.protocol.messages.create_topics import CreatableTopicConfigs
from tidelog.protocol.messages.partition_change_record import PartitionChangeRecord

if TYPE_CHECKING:
    from tidelog.security.delegation_tokens import TokenRules

MAX_RECORDS_PER_REQUEST = 10_000
"""Kafka's limit on records per request; more is answered with POLICY_VIOLATION."""


class ConfigRules(Protocol):
    """Questions about options that the controller asks (``controller.config_validation`` implements them)."""

    def problem(self, resource_type: int, resource_name: str, settings: Mapping[str, str]) -> tuple[ErrorCode, str] | None:
        """Why these settings cannot be combined on the resource; None when they can."""
        ...

    def is_list(self, resource_type: int, name: str) -> bool:
        """Whether the option is a list, so that APPEND and SUBTRACT apply."""
        ...

    def default(self, resource_type: int, name: str) -> str:
        """The effective value without an override, which APPEND and SUBTRACT start from. Empty when there is none."""
        ...

    def topic_rows(self, overrides: Mapping[str, str], image: ClusterImage) -> list[CreatableTopicConfigs]:
        """Every topic config with its value and source, for a topic with these overrides."""
        ...


class Quota(Protocol):
    """A client's quota on controller mutations (KIP-599)."""

    def take(self, partitions: int) -> bool:
        """Whether this many partitions may be created or deleted; if so, they are counted."""
        ...


class NoQuota:
    """No quota applies."""

    def take(self, partitions: int) -> bool:
        return True


NO_QUOTA = NoQuota()


class ControllerSettings(NamedTuple):
    """The static options that decisions depend on."""

    num_partitions: int = 1
    default_replication_factor: int = 1
    delete_topic_enable: bool = True
    unclean_leader_election_enable: bool = False
    min_insync_replicas: int = 1
    broker_session_timeout_ms: int = 9_000
    auto_leader_rebalance_enable: bool = True
    leader_imbalance_check_interval_ms: int = 300_000
    unclean_leader_election_interval_ms: int = 300_000
    tokens: TokenRules | None = None
    """None where delegation tokens are off."""


class KRaftVersion(NamedTuple):
    """The metadata quorum's ``kraft.version``. ``refusal`` says why it cannot be raised now; None when it can."""

    level: int = 1
    refusal: str | None = None


class Decision(NamedTuple):
    """The state that one decision sees: an image with all records appended so far, committed or not.

    ``next_offset`` is the offset of its first record, which becomes the epoch of a broker registered by it. ``partitions`` is the
    image's index by broker; ``heartbeats`` is the soft state beside the image.
    """

    image: ClusterImage
    next_offset: int
    rng: Rng
    rules: ConfigRules
    settings: ControllerSettings
    partitions: PartitionIndex
    heartbeats: BrokerHeartbeats
    kraft: KRaftVersion = KRaftVersion()

    @property
    def elr_enabled(self) -> bool:
        """Whether partitions keep eligible leader replicas (KIP-966)."""
        return elr_enabled(self.image)

    def change_rules(self, topic: TopicImage) -> ChangeRules:
        """What changes of the topic's partitions depend on."""
        return change_rules(self.image, topic, self.settings.min_insync_replicas)

    def election(self, topic: TopicImage) -> Election:
        """How a leader is elected where one is needed: UNCLEAN where ``unclean.leader.election.enable`` is set."""
        unclean = unclean_allowed(self.image, topic.name, self.settings.unclean_leader_election_enable)
        return Election.UNCLEAN if unclean else Election.ONLINE

    def change(self, topic: TopicImage, number: int, wanted: Wanted) -> PartitionChangeRecord | None:
        """The change that makes the partition as wanted, as far as possible; None when nothing changes."""
        partition = topic.partitions[number]
        acceptable = online_leader_check(self.image, partition)
        return change_partition(topic.id, number, partition, wanted, self.change_rules(topic), acceptable)

    def known_broker(self, broker_id: int, epoch: int) -> BrokerImage:
        """The registration of the broker that sent the request. KafkaError STALE_BROKER_EPOCH when it is not the current one."""
        broker = self.image.brokers.get(broker_id)
        if broker is None:
            raise KafkaError(ErrorCode.STALE_BROKER_EPOCH, f"Broker {broker_id} is not registered")
        if broker.epoch != epoch:
            raise KafkaError(
                ErrorCode.STALE_BROKER_EPOCH,
                f"Broker {broker_id} is registered with epoch {broker.epoch}; the request is of epoch {epoch}",
            )
        return broker


class ControllerResult(NamedTuple):
    """Records to append as one atomic group, and the response once they are committed."""

    response: Any
    records: tuple[MetadataRecord, ...] = ()
    raises_kraft_version: bool = False
    """Whether it raises the quorum's ``kraft.version`` to 1."""

    @staticmethod
    def of(response: Any, records: Iterable[MetadataRecord]) -> ControllerResult:
        return ControllerResult(response, tuple(records))
