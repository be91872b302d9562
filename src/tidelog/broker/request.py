"""A request and the client that sent it, as handlers see them.

A ``RequestContext`` is made for each frame and belongs to its request alone: a handler may keep it as long as it likes, and may
be at several requests of one connection at once. What lasts as long as the connection is the ``Session``. Why it is cut so:
docs/adr/0025-one-request-one-table.md.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

from tidelog.broker.ports import ControllerHandler, Node
from tidelog.security.principal import ANONYMOUS, KafkaPrincipal

if TYPE_CHECKING:
    from tidelog.config.resolve import BrokerConfig
    from tidelog.metadata.image import ClusterImage
    from tidelog.replication.delayed import Parked

T = TypeVar("T")
N_co = TypeVar("N_co", bound=Node, covariant=True)


class FetchQuota(Protocol):
    """What a consumer's Fetch asks before its records are sent."""

    def wait_ms(self, size: int) -> int:
        """``size`` bytes are to be sent: how long the client has to wait instead; 0: they are sent."""
        ...


class Session:
    """A client for as long as it is connected."""

    __slots__ = (
        "client_software_name",
        "client_software_version",
        "listener",
        "mute",
        "on_closed",
        "peer_host",
        "principal",
    )

    def __init__(self, listener: str, peer_host: str, principal: KafkaPrincipal = ANONYMOUS) -> None:
        self.listener = listener
        """The name of the listener that the client came in on; endpoints in answers are that listener's."""
        self.peer_host = peer_host
        """The client's address as text, without a port."""
        self.principal = principal
        """Who the client is, as of its last authentication."""
        self.client_software_name = ""
        self.client_software_version = ""
        self.mute: Callable[[int], None] | None = None
        """Handle no further request of this connection for so many ms; set while there are quotas."""
        self.on_closed: Callable[[], None] | None = None
        """Called when the connection is closed, by either side."""


class RequestContext(Generic[N_co]):
    """One request: its header, its client, and the node that serves it."""

    __slots__ = ("api_key", "api_version", "client_id", "correlation_id", "fetch_quota", "node", "principal", "session")

    node: N_co
    session: Session
    principal: KafkaPrincipal
    """Of the client when it asked."""
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    fetch_quota: FetchQuota | None
    """What a Fetch asks before its records are sent; set while there are quotas."""

    def __init__(
        self, node: N_co, session: Session, api_key: int, api_version: int, correlation_id: int = 0, client_id: str | None = None
    ) -> None:
        self.node = node
        self.session = session
        self.principal = session.principal
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.fetch_quota = None

    @property
    def listener(self) -> str:
        """The name of the listener that the client came in on."""
        return self.session.listener

    @property
    def peer_host(self) -> str:
        """The client's address as text, without a port."""
        return self.session.peer_host

    @property
    def image(self) -> ClusterImage:
        """The cluster as of the last committed record that this node applied."""
        return self.node.image

    @property
    def config(self) -> BrokerConfig:
        """Of this node."""
        return self.node.config

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        return self.node.runtime.now_ms()

    def run_blocking(self, job: Callable[[], T]) -> Awaitable[T]:
        """Await it: the result of ``job``, run in a worker thread; it may touch nothing that the loop changes."""
        return self.node.runtime.run_blocking(job)

    def wait(self, parked: Parked) -> Awaitable[None]:
        """Await it: parks the request with its deadline; returns when it is done. The caller finishes it when it is abandoned."""
        return self.node.runtime.wait(parked)

    def submit(self, handler: ControllerHandler, request: Any) -> Awaitable[Any]:
        """Await it: the controller's response to ``request``, once committed; ``image`` may not show it yet. It goes to another
        node in the version of the request that is being answered, and so has to be of the same API."""
        return self.node.controller.submit(handler, request, self.api_version)


Context: TypeAlias = RequestContext[Node]
"""A request that brokers and controllers serve alike."""
