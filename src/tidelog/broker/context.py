"""What a handler may know of its request, and what it may ask the node for.

A handler takes ``(ctx, request)`` and returns its response message, an ``Encoded`` answer, or a ``Signal``; it is a plain
function, or returns a coroutine or a ``Waiting`` when it has to wait; a coroutine awaits only what is offered here. One
``Context`` lives as long as its connection: a connection has one request in flight, so the fields that belong to a request are
overwritten by the next one. A handler therefore never keeps its context beyond its answer.

Deliberately elsewhere: how waiting is done (``server.runtime``), how answers are sent (``server.sending``).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from tidelog.broker.quotas.client_quotas import ClientQuotas
from tidelog.broker.transaction_questions import TransactionQuestions
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ports import Rng

if TYPE_CHECKING:
    from tidelog.broker.api import Route
    from tidelog.broker.apis.metadata import Answers
    from tidelog.broker.producer_ids import ProducerIds
    from tidelog.broker.quotas.metering import FetchQuota
    from tidelog.config.resolve import BrokerConfig
    from tidelog.controller.quorum_controller import QuorumController
    from tidelog.controller.result import ControllerResult
    from tidelog.coordinator.group.coordinator import GroupCoordinator
    from tidelog.coordinator.shards import Shards
    from tidelog.coordinator.transaction.coordinator import TransactionCoordinator
    from tidelog.metadata.image import ClusterImage
    from tidelog.raft.description import QuorumDescription
    from tidelog.replication.delayed import Parked
    from tidelog.replication.partition import Partition
    from tidelog.replication.replica_manager import ReplicaManager

T = TypeVar("T")


ControllerHandler = Callable[["QuorumController", Any, int], "ControllerResult"]
"""A method of the controller, unbound: (controller, request, now_ms) -> records and response."""


class Runtime(Protocol):
    """The outside world, as far as handlers reach it; the server's and the simulator's forms differ."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        ...

    def even_ms(self) -> int:
        """The same without the jumps of a clock that somebody sets, for how old something is."""
        ...

    def run_blocking(self, job: Callable[[], T]) -> Awaitable[T]:
        """The result of ``job``, run in a worker thread; it may touch nothing that the loop changes."""
        ...

    def wait(self, parked: Parked) -> Awaitable[None]:
        """Returns when ``parked`` is done: finished by what it watches, or by its deadline."""
        ...

    def sleep(self, seconds: float) -> Awaitable[None]:
        """Until so much of the node's time has passed."""
        ...

    def spawn(self, coroutine: Coroutine[Any, Any, Any], name: str) -> object:
        """Run it beside the request; a failure is logged under ``name``."""
        ...


class Asker(NamedTuple):
    """The client for whom a broker asks the controller."""

    user: str
    client_id: str | None
    host: str
    """Its address."""


class Controller(Protocol):
    """The active controller, wherever it runs."""

    def submit(
        self, handler: ControllerHandler, request: Any, version: int | None = None, asker: Asker | None = None
    ) -> Awaitable[Any]:
        """The controller's response, once the records behind it are committed; this node's image may not contain them yet.

        ``version``: of a client's request, so that a controller elsewhere is asked as the client asked, and answers so.
        ``asker``: who asks, where a controller elsewhere has to know.
        KafkaError: the whole request was refused, or the controller stopped before it was committed.
        """
        ...

    def describe_quorum(self) -> QuorumDescription | None:
        """Who leads and votes, as of now; None when only another node can say so."""
        ...

    @property
    def kraft_version(self) -> int:
        """The level of that feature, which the quorum keeps by itself: 1 when its voters may change."""
        ...


class ActiveController(Controller, Protocol):
    """The same as brokers reach it: what they cannot answer they pass on."""

    def forward(self, api_key: int, version: int, request: Any) -> Awaitable[Any]:
        """Await it: the answer of the metadata quorum's leader to ``request``, as it came. KafkaError: REQUEST_TIMED_OUT while
        nobody leads."""
        ...


class OtherBrokers(Protocol):
    """The brokers of the cluster besides this one, on the listener that brokers use among themselves."""

    def ask(self, broker_id: int, purpose: str, request: Any, timeout_ms: int) -> Awaitable[Any]:
        """Await it: the response of broker ``broker_id``. Requests of one ``purpose`` are answered in their order.

        KafkaError when there is none: BROKER_NOT_AVAILABLE when the broker is not registered or not on that listener,
        NETWORK_EXCEPTION, REQUEST_TIMED_OUT, UNSUPPORTED_VERSION.
        """
        ...


class NoOtherBrokers:
    """The brokers besides the only one."""

    async def ask(self, broker_id: int, purpose: str, request: Any, timeout_ms: int) -> Any:
        raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"Broker {broker_id} is asked, and there are no other brokers here.")


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

    def __post_init__(self) -> None:
        self.transaction_questions = TransactionQuestions(self.runtime, self.others)


class Context:
    """One connection as its handlers see it, and the request in flight on it."""

    __slots__ = (
        "api_key",
        "api_version",
        "broker",
        "client_id",
        "client_software_name",
        "client_software_version",
        "correlation_id",
        "fetch_quota",
        "listener",
        "mute",
        "now_ms",
        "on_closed",
        "peer_host",
    )

    def __init__(self, broker: Broker, *, listener: str, peer_host: str) -> None:
        self.broker = broker
        self.listener = listener
        """The name of the listener that the client came in on; endpoints in answers are that listener's."""
        self.peer_host = peer_host
        """The client's address as text, without a port."""
        self.client_software_name = ""
        self.client_software_version = ""
        self.now_ms: Callable[[], int] = broker.runtime.now_ms
        self.on_closed: Callable[[], None] | None = None
        """Called when the connection is closed, whoever closed it."""
        self.client_id: str | None = None
        self.correlation_id = 0
        self.api_key = -1
        self.api_version = 0
        self.mute: Callable[[int], None] | None = None
        """Handle no further request of this connection for so many ms; set while there are quotas."""
        self.fetch_quota: FetchQuota | None = None
        """What a Fetch asks before its records are sent; set while there are quotas."""

    @property
    def image(self) -> ClusterImage:
        """The cluster as of the last committed record that this node applied."""
        return self.broker.image

    @property
    def config(self) -> BrokerConfig:
        return self.broker.config

    @property
    def replicas(self) -> ReplicaManager:
        """The partitions of this broker."""
        return self.broker.replicas

    def run_blocking(self, job: Callable[[], T]) -> Awaitable[T]:
        """Await it: the result of ``job``, run in a worker thread; it may touch nothing that the loop changes."""
        return self.broker.runtime.run_blocking(job)

    def wait(self, parked: Parked) -> Awaitable[None]:
        """Await it: parks the request with its deadline; returns when it is done. The caller finishes it when it is abandoned."""
        return self.broker.runtime.wait(parked)

    def submit(self, handler: ControllerHandler, request: Any) -> Awaitable[Any]:
        """Await it: the controller's response to ``request``, once committed; ``image`` may not show it yet. It goes to another
        node in the version of the request that is being answered, and so has to be of the same API."""
        return self.broker.controller.submit(handler, request, self.api_version)
