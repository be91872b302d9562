"""The interfaces that handlers use: time, threads, the controller, other brokers.

Protocols only; the server and the simulator implement them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from tidelog.broker.quotas.client_quotas import ClientQuotas
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ports import Rng
from tidelog.security.principal import KafkaPrincipal

if TYPE_CHECKING:
    from tidelog.broker.version_answers import VersionAnswers
    from tidelog.config.resolve import BrokerConfig
    from tidelog.controller.quorum_controller import QuorumController
    from tidelog.controller.result import ControllerResult
    from tidelog.metadata.image import ClusterImage
    from tidelog.raft.description import QuorumDescription
    from tidelog.replication.purgatory import Parked

T = TypeVar("T")

VersionRange = tuple[int, int]
"""First and last version, inclusive."""

ControllerHandler = Callable[["QuorumController", Any, int], "ControllerResult"]
"""An unbound method of the controller: (controller, request, now_ms) -> records and response."""


class Runtime(Protocol):
    """Time, threads and tasks for handlers; the server and the simulator implement it."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        ...

    def even_ms(self) -> int:
        """Monotonic milliseconds, for measuring ages and intervals; setting the wall clock does not move them."""
        ...

    def run_blocking(self, job: Callable[[], T]) -> Awaitable[T]:
        """Run ``job`` in a worker thread and return its result; it must not touch state that the loop changes."""
        ...

    def wait(self, parked: Parked) -> Awaitable[None]:
        """Returns when ``parked`` is done: finished by a watched change, or by its deadline."""
        ...

    def sleep(self, seconds: float) -> Awaitable[None]:
        """Wait this long in the node's time."""
        ...

    def spawn(self, coroutine: Coroutine[Any, Any, Any], name: str) -> object:
        """Run a task beside the request; a failure is logged under ``name``."""
        ...


class Asker(NamedTuple):
    """The client on whose behalf a broker calls the controller."""

    principal: KafkaPrincipal
    client_id: str | None
    host: str
    """The client's address."""
    token_authenticated: bool = False
    """Whether the client logged in with a delegation token."""


class ControllerIsHere(Exception):
    """The active controller is in this process by now, so the request is decided here."""


class NotServedByController(KafkaError):
    """The active controller does not serve this version of a forwarded request."""


class Controller(Protocol):
    """The active controller, wherever it runs."""

    def submit(
        self, handler: ControllerHandler, request: Any, version: int | None = None, asker: Asker | None = None
    ) -> Awaitable[Any]:
        """The controller's response, once its records are committed; this node's image may not contain them yet.

        ``version``: that of the client's request, so that a remote controller gets the same request and gives the same answer.
        ``asker``: the client, if a remote controller has to know it. KafkaError: the whole request was refused, or the controller
        stopped before the commit.
        """
        ...

    def describe_quorum(self) -> QuorumDescription | None:
        """The current leader and voters; None when only another node knows them."""
        ...

    @property
    def kraft_version(self) -> int:
        """The level of that feature, which the quorum itself maintains: 1 when its voters may change."""
        ...


class ActiveController(Controller, Protocol):
    """The controller as brokers use it, with forwarding."""

    @property
    def is_here(self) -> bool:
        """Whether this process is the active controller."""
        ...

    def forward(self, api_key: int, version: int, request: Any, asker: Asker | None = None) -> Awaitable[Any]:
        """The answer of the metadata quorum's leader to ``request``, unchanged. KafkaError: REQUEST_TIMED_OUT while there is
        no leader."""
        ...

    def pass_on(self, version: int, request: Any, asker: Asker) -> Awaitable[Any]:
        """The answer of another process's active controller to the request of ``asker``, which it authorizes.

        ControllerIsHere; KafkaError: NotServedByController, REQUEST_TIMED_OUT, UNKNOWN_SERVER_ERROR when it refused the envelope.
        """
        ...

    def until_applied(self, what: Callable[[ClusterImage], bool]) -> Awaitable[None]:
        """Waits until this node's image has what another process's active controller has committed; not for long, because the
        image may have passed it already."""
        ...


class OtherBrokers(Protocol):
    """The other brokers of the cluster, reached on the inter-broker listener."""

    def ask(self, broker_id: int, purpose: str, request: Any, timeout_ms: int) -> Awaitable[Any]:
        """The response of broker ``broker_id``. Requests of one ``purpose`` are answered in order.

        KafkaError without a response: BROKER_NOT_AVAILABLE when the broker is not registered or not on that listener,
        NETWORK_EXCEPTION, REQUEST_TIMED_OUT, UNSUPPORTED_VERSION.
        """
        ...


class NoOtherBrokers:
    """For a cluster of one broker."""

    async def ask(self, broker_id: int, purpose: str, request: Any, timeout_ms: int) -> Any:
        raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"Broker {broker_id} is asked, and there are no other brokers here.")


class Client(Protocol):
    """The client of one request, as the access control sees it."""

    @property
    def principal(self) -> KafkaPrincipal: ...

    @property
    def peer_host(self) -> str:
        """The client's address as text, without a port."""
        ...

    @property
    def listener(self) -> str:
        """The name of the client's listener."""
        ...

    @property
    def api_key(self) -> int: ...

    @property
    def client_id(self) -> str | None: ...

    @property
    def correlation_id(self) -> int: ...


class AccessControl(Protocol):
    """Decides by the ACLs; handlers ask through ``broker.authorization``."""

    @property
    def version(self) -> int:
        """Another number after each change of the ACLs: decisions that were made before may have changed."""
        ...

    def allows(self, client: Client, operation: int, resource_type: int, name: str, quiet: bool, request: object = None) -> bool:
        """Whether the client may do the operation on the resource. ``quiet``: a "no" is no refusal yet; it is not logged.
        ``request``: what is done, for the audit: a request, or a tuple of the names in it that are changed."""
        ...

    def would_allow(self, client: Client, operation: int, resource_type: int, name: str) -> bool:
        """Whether ``allows`` would say "yes"; without a trace, and "no" where that is not certain."""
        ...

    def shows(self, client: Client, operation: int, resource_type: int, name: str) -> bool:
        """Whether the client may do the operation on the resource, for an answer that lists permissions: nothing is done."""
        ...

    def allows_by_cluster(self, client: Client, operation: int, resource_type: int, names: Iterable[str]) -> bool:
        """Whether the client may do the operation on the cluster, and so on all these resources; a "no" is no refusal yet."""
        ...

    def allows_any(self, client: Client, operation: int, resource_type: int) -> bool:
        """Whether the client may do the operation on at least one resource of the type."""
        ...


class StoreChecks(Protocol):
    """The key and trust stores of a node's listeners."""

    def check(self, dynamic: Mapping[str, str]) -> None:
        """Whether these could be this broker's dynamic settings. ConfigError. Blocks: call it in a thread."""
        ...


class Node(Protocol):
    """State shared by all requests of a broker or a controller."""

    @property
    def node_id(self) -> int: ...

    @property
    def cluster_id(self) -> str: ...

    @property
    def config(self) -> BrokerConfig: ...

    @property
    def image(self) -> ClusterImage:
        """The cluster as of the last committed record that this node applied; replaced with each change and never modified."""
        ...

    @property
    def controller(self) -> Controller: ...

    @property
    def runtime(self) -> Runtime: ...

    @property
    def rng(self) -> Rng: ...

    @property
    def quotas(self) -> ClientQuotas: ...

    @property
    def access(self) -> AccessControl | None:
        """Decides what clients may do; None allows everything."""
        ...

    @property
    def advertised(self) -> Mapping[int, VersionRange]:
        """The version ranges for ApiVersions, by API key."""
        ...

    @property
    def version_answers(self) -> VersionAnswers: ...
