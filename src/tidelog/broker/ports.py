"""What a node offers to the handlers of its requests: time, threads, the controller, the other brokers.

Protocols only: the server's and the simulator's forms stand behind them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from tidelog.broker.quotas.client_quotas import ClientQuotas
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ports import Rng
from tidelog.security.principal import KafkaPrincipal

if TYPE_CHECKING:
    from tidelog.config.resolve import BrokerConfig
    from tidelog.controller.quorum_controller import QuorumController
    from tidelog.controller.result import ControllerResult
    from tidelog.metadata.image import ClusterImage
    from tidelog.raft.description import QuorumDescription
    from tidelog.replication.delayed import Parked

T = TypeVar("T")

VersionRange = tuple[int, int]
"""First and last version, both included."""

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

    principal: KafkaPrincipal
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


class Node(Protocol):
    """What all requests of a node share, whether it is a broker or a controller."""

    @property
    def node_id(self) -> int: ...

    @property
    def cluster_id(self) -> str: ...

    @property
    def config(self) -> BrokerConfig: ...

    @property
    def image(self) -> ClusterImage:
        """The cluster as of the last committed record that this node applied; replaced with each change, never changed itself."""
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
    def advertised(self) -> Mapping[int, VersionRange]:
        """What ApiVersions says, by API key."""
        ...
