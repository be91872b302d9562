"""A request and the client that sent it, as handlers see them.

Each frame gets its own ``RequestContext``: a handler may keep it as long as it likes, and may work on several requests of one
connection at a time. State that lasts as long as the connection is in the ``Session``. The reasons are in
docs/adr/0025-one-request-one-table.md.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from tidelog.broker.ports import Asker, ControllerHandler, Node
from tidelog.broker.usage import NO_API
from tidelog.model.errors import ErrorCode
from tidelog.security.principal import ANONYMOUS, KafkaPrincipal

if TYPE_CHECKING:
    from tidelog.config.resolve import BrokerConfig
    from tidelog.metadata.image import ClusterImage
    from tidelog.replication.purgatory import Parked


class Stopwatch(Protocol):
    """A request whose times are taken (``broker.request_times``)."""

    sending_ns: int

    def sent(self, now_ns: int) -> None: ...


T = TypeVar("T")
N_co = TypeVar("N_co", bound=Node, covariant=True)


class FetchQuota(Protocol):
    """Asked by a consumer's Fetch before its records are sent."""

    def wait_ms(self, size: int) -> int:
        """The throttle time in ms if ``size`` bytes were sent; they are sent only if it is 0."""
        ...


class TokenAnswer(NamedTuple):
    """The answer to one token of a SASL exchange; ``message`` is for the client. ``session_lifetime_ms``: 0 for no end."""

    code: ErrorCode
    message: str | None
    token: bytes
    session_lifetime_ms: int


class Authenticating(Protocol):
    """A connection's SASL exchange (``broker.authentication``)."""

    def handshake(self, version: int, mechanism: str) -> tuple[ErrorCode, list[str]]:
        """The error code and the mechanisms on offer."""
        ...

    def authenticate(self, token: bytes) -> TokenAnswer:
        """The answer to one token."""
        ...


class Session:
    """A client, for as long as it is connected."""

    __slots__ = (
        "api_key",
        "authentication",
        "bytes_in",
        "bytes_out",
        "charged_ns",
        "client_id",
        "client_software_name",
        "client_software_version",
        "forwarded",
        "listener",
        "loop_ns",
        "mute",
        "on_closed",
        "peer_host",
        "principal",
        "received_ns",
        "requests",
        "throttle_ms",
        "timed",
        "token_authenticated",
    )

    def __init__(self, listener: str, peer_host: str, principal: KafkaPrincipal = ANONYMOUS) -> None:
        self.listener = listener
        """The name of the client's listener; answers contain endpoints of that listener."""
        self.peer_host = peer_host
        """The client's address as text, without a port."""
        self.principal = principal
        """The client's principal, as of its last authentication."""
        self.token_authenticated = False
        """Whether the client logged in with a delegation token."""
        self.authentication: Authenticating | None = None
        """The client's SASL exchange; None on a listener without SASL."""
        self.forwarded = False
        """Whether a broker forwards this client's requests; the listener is then that between the nodes."""
        self.client_software_name = ""
        self.client_software_version = ""
        self.mute: Callable[[int], None] | None = None
        """Handle no further request of this connection for this many ms; set while there are quotas."""
        self.on_closed: Callable[[], None] | None = None
        """Called when either side closes the connection."""
        self.received_ns = 0
        """When the last bytes were read, by the clock of ``RequestTimes``; 0 for a request that was kept back since."""
        self.timed: list[Stopwatch] = []
        """Requests whose times are taken and whose answers have not left yet."""
        self.throttle_ms = 0
        """The throttle time of the last metered request."""
        self.api_key = NO_API
        """The API of the last request, for ``broker.usage``, as the fields below."""
        self.client_id: str | None = None
        self.requests = self.bytes_in = self.bytes_out = self.loop_ns = 0
        """What the client did since this was last added up; ``loop_ns`` is the loop's time for it."""
        self.charged_ns = 0
        """The part of ``loop_ns`` that was charged to an API."""


class RequestContext(Generic[N_co]):
    """One request: its header, its client, and the node that serves it."""

    __slots__ = ("api_key", "api_version", "client_id", "correlation_id", "fetch_quota", "node", "principal", "session")

    node: N_co
    session: Session
    principal: KafkaPrincipal
    """The client's principal at the time of the request."""
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    fetch_quota: FetchQuota | None
    """Asked by a Fetch before its records are sent; set while there are quotas."""

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
        """The name of the client's listener."""
        return self.session.listener

    @property
    def peer_host(self) -> str:
        """The client's address as text, without a port."""
        return self.session.peer_host

    @property
    def asker(self) -> Asker:
        """The client, as the active controller has to know it."""
        return Asker(self.principal, self.client_id, self.peer_host, self.session.token_authenticated)

    @property
    def forwarded_for(self) -> Asker | None:
        """The client, if a remote controller has to authorize the request; None without an authorizer."""
        return None if self.node.access is None else self.asker

    @property
    def image(self) -> ClusterImage:
        """The cluster as of the last committed record that this node applied."""
        return self.node.image

    @property
    def config(self) -> BrokerConfig:
        """The configuration of this node."""
        return self.node.config

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        return self.node.runtime.now_ms()

    def run_blocking(self, job: Callable[[], T]) -> Awaitable[T]:
        """Run ``job`` in a worker thread and return its result; it must not touch state that the loop changes."""
        return self.node.runtime.run_blocking(job)

    def wait(self, parked: Parked) -> Awaitable[None]:
        """Park the request until ``parked`` is done or its deadline passes. A caller that is cancelled must finish ``parked``."""
        return self.node.runtime.wait(parked)

    def submit(self, handler: ControllerHandler, request: Any) -> Awaitable[Any]:
        """The controller's response to ``request``, once committed; ``image`` may not contain it yet. It is forwarded in the
        version of the request being answered, so it must be of the same API."""
        return self.node.controller.submit(handler, request, self.api_version, self.forwarded_for)


Context: TypeAlias = RequestContext[Node]
"""A request that brokers and controllers serve alike."""
