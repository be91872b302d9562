"""State shared by all requests of a node: of a broker, or of a controller that is not a broker.

``RequestContext.node`` is one of these. A handler for both kinds takes a ``Context``, which only knows ``ports.Node``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from tidelog.broker.api import Route
from tidelog.broker.apis.topics.metadata_bytes import Answers
from tidelog.broker.ports import (
    AccessControl,
    ActiveController,
    Controller,
    Node,
    NoOtherBrokers,
    OtherBrokers,
    Runtime,
    StoreChecks,
    VersionRange,
)
from tidelog.broker.producer_ids import ProducerIds
from tidelog.broker.quotas.client_quotas import ClientQuotas
from tidelog.broker.request import RequestContext
from tidelog.broker.streams_topics import InternalStreamsTopics
from tidelog.broker.verification_requests import TransactionQuestions
from tidelog.broker.version_answers import VersionAnswers
from tidelog.model.ports import Rng

if TYPE_CHECKING:
    from tidelog.broker.shares.share_partitions import SharePartitions
    from tidelog.config.resolve import BrokerConfig
    from tidelog.coordinator.group.coordinator import GroupCoordinator
    from tidelog.coordinator.shards import Shards
    from tidelog.coordinator.share.coordinator import ShareCoordinator
    from tidelog.coordinator.transaction.coordinator import TransactionCoordinator
    from tidelog.metadata.image import ClusterImage
    from tidelog.raft.voters import VoterSet
    from tidelog.replication.partition import Partition
    from tidelog.replication.replica_manager import ReplicaManager


def advertised(apis: Mapping[int, Route]) -> dict[int, VersionRange]:
    """The version ranges for ApiVersions."""
    return {key: apis[key].api.told for key in sorted(apis)}


class ServingNode(Node, Protocol):
    """A node with the APIs that it serves."""

    @property
    def apis(self) -> Mapping[int, Route]: ...


@dataclass(slots=True)
class Broker:
    """State shared by all connections of a broker. ``image`` is replaced with each committed change and never modified."""

    node_id: int
    cluster_id: str
    config: BrokerConfig
    image: ClusterImage
    replicas: ReplicaManager
    controller: ActiveController
    runtime: Runtime
    rng: Rng
    producer_ids: ProducerIds
    apis: Mapping[int, Route]
    """The served APIs, by API key."""
    metadata_answers: Answers
    groups: Shards[GroupCoordinator]
    """The groups that this broker coordinates."""
    transactions: Shards[TransactionCoordinator]
    """The transactional ids that this broker coordinates."""
    shares: Shards[ShareCoordinator]
    """The share partitions whose state this broker stores."""
    create_share_topic: Callable[[], None] = lambda: None
    """Creates the topic of the share coordinators in the background."""
    others: OtherBrokers = field(default_factory=NoOtherBrokers)
    leads: Callable[[Partition], bool] = lambda partition: True
    """Whether it is certain that no other broker has become leader of a partition that this broker leads."""
    quotas: ClientQuotas = field(default_factory=ClientQuotas)
    access: AccessControl | None = None
    """Decides what clients may do; None allows everything."""
    tls: StoreChecks | None = None
    """None without TLS."""
    topics_being_created: dict[str, None] = field(default_factory=dict)
    """Topics that a Metadata request asked for and the controller is creating."""
    auto_creations_refused: dict[str, int] = field(default_factory=dict)
    """Topics whose auto-creation failed, with the time of the next attempt, in ``even_ms``."""
    creations_refused: dict[str, str] = field(default_factory=dict)
    """Why the last attempt to create an internal topic failed, by topic."""
    streams_topics: InternalStreamsTopics = field(default_factory=InternalStreamsTopics)
    """Internal topics of streams groups that this broker has created for clients."""
    streams_rebalances: int = 0
    """How often a heartbeat raised the epoch of a streams group."""
    transaction_questions: TransactionQuestions = field(init=False)
    hosted_shares: SharePartitions | None = field(init=False, default=None)
    """``share_partitions``, or None before the first request of a share group."""
    advertised: Mapping[int, VersionRange] = field(init=False)
    version_answers: VersionAnswers = field(init=False, default_factory=VersionAnswers)

    def __post_init__(self) -> None:
        self.advertised = advertised(self.apis)
        self.transaction_questions = TransactionQuestions(self.runtime, self.others)

    @property
    def share_partitions(self) -> SharePartitions:
        """The share partitions whose partition this broker leads; imported when a share group first needs them."""
        if self.hosted_shares is None:
            from tidelog.broker.shares.share_partitions import SharePartitions

            self.hosted_shares = SharePartitions(self)
        return self.hosted_shares


class Quorum(Protocol):
    """This node's replica of the metadata quorum."""

    @property
    def voters(self) -> VoterSet:
        """The voters, as far as this replica knows."""
        ...

    @property
    def leader_id(self) -> int:
        """-1 while unknown."""
        ...

    async def ask(self, api_key: int, version: int, listener: str, request: Any) -> Any:
        """The answer to another node's request. KafkaError when this replica has stopped."""
        ...


class Images(Protocol):
    """Holds the committed image."""

    @property
    def image(self) -> ClusterImage: ...


class Lives:
    """Receives heartbeats and closed connections of brokers; this base class ignores them."""

    def heard(self, broker_id: int) -> None:
        """The broker sent a heartbeat."""

    def hung_up(self, broker_id: int, epoch: int) -> None:
        """A connection closed on which this broker had sent heartbeats."""


@dataclass(slots=True)
class ControllerSide:
    """State shared by all connections of a process that is a controller but not a broker. It has no partitions."""

    node_id: int
    cluster_id: str
    config: BrokerConfig
    images: Images
    controller: Controller
    quorum: Quorum
    runtime: Runtime
    rng: Rng
    apis: Mapping[int, Route]
    lives: Lives = field(default_factory=Lives)
    quotas: ClientQuotas = field(default_factory=ClientQuotas)
    access: AccessControl | None = None
    """Decides what clients may do; None allows everything."""
    advertised: Mapping[int, VersionRange] = field(init=False)
    version_answers: VersionAnswers = field(init=False, default_factory=VersionAnswers)

    def __post_init__(self) -> None:
        self.advertised = advertised(self.apis)

    @property
    def image(self) -> ClusterImage:
        """The cluster as of the last committed record that this node has read."""
        return self.images.image


BrokerContext: TypeAlias = RequestContext[Broker]
"""A request to a broker."""
ControllerContext: TypeAlias = RequestContext[ControllerSide]
"""A request to a controller."""
