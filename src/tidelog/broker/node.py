"""What all requests of a node share: of a broker, or of a controller that is no broker.

``RequestContext.node`` is one of these. A handler that both serve takes a ``Context``, which knows of ``ports.Node`` only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from tidelog.broker.api import Route
from tidelog.broker.apis.topics.metadata_bytes import Answers
from tidelog.broker.ports import ActiveController, Controller, Node, NoOtherBrokers, OtherBrokers, Runtime, VersionRange
from tidelog.broker.producer_ids import ProducerIds
from tidelog.broker.quotas.client_quotas import ClientQuotas
from tidelog.broker.request import RequestContext
from tidelog.broker.transaction_questions import TransactionQuestions
from tidelog.model.ports import Rng

if TYPE_CHECKING:
    from tidelog.config.resolve import BrokerConfig
    from tidelog.coordinator.group.coordinator import GroupCoordinator
    from tidelog.coordinator.shards import Shards
    from tidelog.coordinator.transaction.coordinator import TransactionCoordinator
    from tidelog.metadata.image import ClusterImage
    from tidelog.raft.voters import VoterSet
    from tidelog.replication.partition import Partition
    from tidelog.replication.replica_manager import ReplicaManager


def advertised(apis: Mapping[int, Route]) -> dict[int, VersionRange]:
    """What ApiVersions says of these."""
    return {key: apis[key].api.told for key in sorted(apis) if not apis[key].api.off}


class ServingNode(Node, Protocol):
    """A node with the APIs that it serves."""

    @property
    def apis(self) -> Mapping[int, Route]: ...


@dataclass(slots=True)
class Broker:
    """What all connections of a node share. ``image`` is replaced with each committed change, never changed itself."""

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
    """What is served, by API key."""
    metadata_answers: Answers
    groups: Shards[GroupCoordinator]
    """The groups whose coordinator this broker is."""
    transactions: Shards[TransactionCoordinator]
    """The transactional ids whose coordinator this broker is."""
    others: OtherBrokers = field(default_factory=NoOtherBrokers)
    leads: Callable[[Partition], bool] = lambda partition: True
    """Whether a partition that this broker led as far as it knows cannot have got another leader meanwhile."""
    quotas: ClientQuotas = field(default_factory=ClientQuotas)
    topics_being_created: dict[str, None] = field(default_factory=dict)
    """Topics that a Metadata request asked for and the controller is making."""
    auto_creations_refused: dict[str, int] = field(default_factory=dict)
    """Topics whose auto-creation the controller refused, or never answered: when it may be tried again, in ``even_ms``."""
    creations_refused: dict[str, str] = field(default_factory=dict)
    """Why internal topics could not be created when this was last tried."""
    transaction_questions: TransactionQuestions = field(init=False)

    advertised: Mapping[int, VersionRange] = field(init=False)

    def __post_init__(self) -> None:
        self.advertised = advertised(self.apis)
        self.transaction_questions = TransactionQuestions(self.runtime, self.others)


class Quorum(Protocol):
    """This node's replica of the metadata quorum."""

    @property
    def voters(self) -> VoterSet:
        """Who votes, as far as this replica knows."""
        ...

    @property
    def leader_id(self) -> int:
        """-1 while it is not known."""
        ...

    async def ask(self, api_key: int, version: int, listener: str, request: Any) -> Any:
        """The answer to another node's request, when there is one. KafkaError when this replica has stopped."""
        ...


class Images(Protocol):
    """Where the committed image is found."""

    @property
    def image(self) -> ClusterImage: ...


class Lives:
    """What heartbeats and their connections say of brokers; here it is of no interest."""

    def heard(self, broker_id: int) -> None:
        """A heartbeat was taken."""

    def hung_up(self, broker_id: int, epoch: int) -> None:
        """A connection was closed on which this broker had told that it lives."""


@dataclass(slots=True)
class ControllerSide:
    """What all connections of a controller share, where the process is a controller and no broker. It has no partitions."""

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
    advertised: Mapping[int, VersionRange] = field(init=False)

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
