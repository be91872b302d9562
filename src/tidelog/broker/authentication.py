"""The SASL exchange of one connection: which requests are served before a client has said who it is, and what ends it.

The states and their answers are those of Apache Kafka's SaslServerAuthenticator (KIP-43, KIP-152, KIP-368):

- FIRST: ApiVersions, once with success, and SaslHandshake. Any other request closes the connection unanswered.
- TOKENS, after a handshake of version 1: SaslAuthenticate. Any other request is answered with ILLEGAL_SASL_STATE, then the
  connection closes.
- RAW, after a handshake of version 0: frames that hold a token and no header, both ways.
- OPEN: requests as on any listener. A new handshake begins a re-authentication (TOKENS again) where sessions end; mechanism and
  principal must stay the same. A request after the end of the session closes the connection.
- ENDED: the exchange failed. The answer is held back for ``failed_delay_ms``, then the connection closes.

No socket and no clock: ``server.serving`` has both.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from enum import Enum, auto
from typing import Any, NamedTuple, NoReturn, Protocol

from tidelog.broker.answer_types import CLOSE_CONNECTION, NO_RESPONSE, Farewell, Outgoing
from tidelog.broker.api import NOTHING, Route
from tidelog.broker.dispatch import Dispatcher
from tidelog.broker.ports import Node
from tidelog.broker.request import Context, Session, TokenAnswer
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ports import FileSlice
from tidelog.protocol.api_keys import ApiKey
from tidelog.security.sasl import MAX_TOKEN_BYTES, Authenticated, AuthenticationFailed, SaslServer

log = logging.getLogger(__name__)

Reply = Outgoing | Farewell | Coroutine[Any, Any, Outgoing]
Handle = Callable[[Session, memoryview], Reply]
LARGEST_REFUSED_BYTES = 16 * 1024
"""A request that is refused with an answer is decoded first; a larger one closes the connection instead."""
LARGEST_FIRST_BYTES = 8 * 1024
"""Of an ApiVersions or a SaslHandshake, and of what a request has beside its token: the header, with the client id. A listener
may hold thousands of clients that have not authenticated, hence no more."""
RECEIVE_OPTION = "sasl.server.max.receive.size"
MOST_GREETINGS = 10
"""A client that has not found a version or a name that is accepted after so many ApiVersions is disconnected."""
LEAST_BETWEEN_MS = 1000
"""From one re-authentication to the next. The first may come at once, as in Kafka: a session may be shorter than this."""


class Stage(Enum):
    """Where the exchange is; see the module's text."""

    FIRST = auto()
    TOKENS = auto()
    RAW = auto()
    OPEN = auto()
    ENDED = auto()


class Mechanism(NamedTuple):
    """One mechanism of a listener."""

    begin: Callable[[], SaslServer]
    max_reauth_ms: int = 0
    """The longest session; 0: no limit."""
    max_token_bytes: int = MAX_TOKEN_BYTES
    """The longest message of a client."""


class LoginAudit(Protocol):
    """Keeps who logged in and who failed to (``broker.audit``)."""

    def logged_in(self, session: Session, mechanism: str, again: bool) -> None:
        """A client has authenticated; ``again``: on a connection that was open."""
        ...

    def login_failed(self, listener: str, host: str, mechanism: str, reason: str) -> None:
        """A client has not authenticated, and is disconnected. ``mechanism``: empty before one was chosen."""
        ...


class SaslListener(NamedTuple):
    """What all connections of a SASL listener have in common."""

    mechanisms: Mapping[str, Mechanism]
    dispatcher: Dispatcher
    refusing: Dispatcher
    """Answers every request with ILLEGAL_SASL_STATE, in the layout of its API."""
    failed_delay_ms: int
    max_receive_bytes: int
    """The largest frame of a client that has not authenticated, whatever its mechanism needs."""
    monotonic_ms: Callable[[], int]
    now_ms: Callable[[], int]
    failed: Callable[[str, str], None] = lambda host, reason: None
    """Called with the client's address and the reason, for the log; at most once for each connection."""
    audit: LoginAudit | None = None

    def begin(
        self, session: Session, requests: Handle, on_open: Callable[[], None], on_mechanism: Callable[[str], None]
    ) -> Authentication:
        """The exchange of a new connection; see ``Authentication``."""
        return Authentication(self, session, requests, on_open, on_mechanism)

    def largest_frame(self, mechanism: str) -> tuple[int, str]:
        """The most bytes in a frame of a client that has not authenticated, and why, for the log. ``mechanism``: empty as long as
        the client has not chosen one."""
        most, why = LARGEST_FIRST_BYTES, "before a login"
        if mechanism:
            most, why = most + self.mechanisms[mechanism].max_token_bytes, f"during a login by {mechanism}"
        if self.max_receive_bytes < most:
            return self.max_receive_bytes, f"{RECEIVE_OPTION}, because the client has not authenticated"
        return most, why


def sasl_listener(
    node: Node,
    apis: Mapping[int, Route],
    mechanisms: Mapping[str, Mechanism],
    *,
    failed_delay_ms: int,
    max_receive_bytes: int,
    monotonic_ms: Callable[[], int],
    now_ms: Callable[[], int],
    failed: Callable[[str, str], None],
    audit: LoginAudit | None = None,
) -> SaslListener:
    """A listener that serves these APIs to clients that authenticate by one of these mechanisms."""
    # Nothing is asked for such a client: neither the ACLs nor, by forwarding, the active controller.
    refusing = {key: replace(route, handler=_illegal_state, needs=NOTHING, forwards=False) for key, route in apis.items()}
    return SaslListener(
        mechanisms=mechanisms,
        dispatcher=Dispatcher(node, apis),
        refusing=Dispatcher(node, refusing),
        failed_delay_ms=failed_delay_ms,
        max_receive_bytes=max_receive_bytes,
        monotonic_ms=monotonic_ms,
        now_ms=now_ms,
        failed=failed,
        audit=audit,
    )


def _illegal_state(ctx: Context, request: Any) -> NoReturn:
    raise KafkaError(ErrorCode.ILLEGAL_SASL_STATE, "a client authenticates before it sends this request")


class Authentication:
    """One connection's exchange. ``handle`` takes every frame of the connection, before and after."""

    __slots__ = (
        "_again_at_ms",
        "_expires_at_ms",
        "_greeted",
        "_greetings",
        "_listener",
        "_mechanism",
        "_on_mechanism",
        "_on_open",
        "_server",
        "_session",
        "requests",
        "stage",
    )

    def __init__(
        self,
        listener: SaslListener,
        session: Session,
        requests: Handle,
        on_open: Callable[[], None],
        on_mechanism: Callable[[str], None],
    ) -> None:
        """``requests`` handles the frames of an authenticated client; ``on_open`` is called at the first success,
        ``on_mechanism`` when a client that has not authenticated has chosen one."""
        self.stage = Stage.FIRST
        self.requests = requests
        self._listener = listener
        self._session = session
        self._on_open = on_open
        self._on_mechanism = on_mechanism
        self._greeted = False
        self._greetings = 0
        self._mechanism = ""
        self._server: SaslServer | None = None
        self._expires_at_ms: int | None = None
        self._again_at_ms = 0
        session.authentication = self

    @property
    def authenticated(self) -> bool:
        """Whether the client has said who it is, at least once."""
        return self._mechanism != "" and (self.stage is Stage.OPEN or self._expires_at_ms is not None)

    @property
    def credential(self) -> tuple[str, str] | None:
        """(user, mechanism) of the SCRAM credential by which the client logged in; None after another login and before any."""
        if self._session.token_authenticated or not self.authenticated or not self._mechanism.startswith("SCRAM-"):
            return None
        return self._session.principal.name, self._mechanism

    def handle(self, session: Session, frame: memoryview) -> Reply:
        """The answer to a frame. ProtocolViolation closes the connection."""
        if self.stage is Stage.OPEN:
            if self._expires_at_ms is None:
                return self.requests(session, frame)
            return self._in_session(session, frame)
        if self.stage is Stage.RAW:
            return self._raw(bytes(frame))
        return self._before_open(session, frame)

    def _in_session(self, session: Session, frame: memoryview) -> Reply:
        """The answer to a frame of a client whose session has an end."""
        if bytes(frame[:2]) != _HANDSHAKE:
            if self._expires_at_ms is not None and self._listener.monotonic_ms() >= self._expires_at_ms:
                return self._close("the session is over, and the client did not authenticate again")
            return self.requests(session, frame)
        outgoing = self.requests(session, frame)
        return self._farewell(outgoing) if self._failed else outgoing

    def _before_open(self, session: Session, frame: memoryview) -> Reply:
        key = int.from_bytes(frame[:2])
        wanted = key == ApiKey.SASL_AUTHENTICATE if self.stage is Stage.TOKENS else key in _FIRST_KEYS
        if self.stage is Stage.ENDED or (not wanted and self.stage is Stage.FIRST):
            return self._close(f"API key {key} before the client authenticated")
        if not wanted:
            self._fail(f"API key {key} in the middle of a SASL exchange")
            if len(frame) > LARGEST_REFUSED_BYTES:
                return CLOSE_CONNECTION
            return self._refused(session, frame)
        if key in _FIRST_KEYS and len(frame) > LARGEST_FIRST_BYTES:
            return self._close(f"API key {key} with {len(frame)} bytes before the client authenticated")
        if key == ApiKey.API_VERSIONS:
            self._greetings += 1
            if self._greeted or self._greetings > MOST_GREETINGS:
                return self._close("a second ApiVersions" if self._greeted else f"more than {MOST_GREETINGS} ApiVersions")
        outgoing = self._listener.dispatcher.handle(session, frame)
        if key == ApiKey.API_VERSIONS:
            self._greeted = _says_no_error(outgoing)
        return self._farewell(outgoing) if self._failed else outgoing

    def _refused(self, session: Session, frame: memoryview) -> Reply:
        """The answer to a request in the middle of an exchange."""
        try:
            return self._farewell(self._listener.refusing.handle(session, frame))
        except KafkaError:
            # ApiVersions of a version that is not served: its handler runs without a request to refuse.
            return CLOSE_CONNECTION

    @property
    def _failed(self) -> bool:
        """Whether a handler has just ended the exchange."""
        return self.stage is Stage.ENDED

    def _farewell(self, outgoing: object) -> Reply:
        return Farewell(outgoing, self._listener.failed_delay_ms) if isinstance(outgoing, list) else CLOSE_CONNECTION

    def _close(self, reason: str) -> Reply:
        self._fail(reason)
        return CLOSE_CONNECTION

    def _fail(self, reason: str) -> None:
        """Ends the exchange."""
        self.stage = Stage.ENDED
        session, audit = self._session, self._listener.audit
        self._listener.failed(session.peer_host, reason)
        if audit is not None:
            audit.login_failed(session.listener, session.peer_host, self._mechanism, reason)

    # -- called by the handlers of SaslHandshake and SaslAuthenticate ----------------------------------------------------

    def handshake(self, version: int, mechanism: str) -> tuple[ErrorCode, list[str]]:
        """The error code, and the mechanisms on offer unless a handshake has no place here."""
        offered = list(self._listener.mechanisms)
        if self.stage is Stage.OPEN and not self._may_begin_again(version):
            return ErrorCode.ILLEGAL_SASL_STATE, []
        found = self._listener.mechanisms.get(mechanism)
        if found is None:
            self._fail(f"it asks for the mechanism {mechanism[:50]!r}; {', '.join(offered)} are offered")
            return ErrorCode.UNSUPPORTED_SASL_MECHANISM, offered
        # A client that authenticates again keeps its mechanism; as in Kafka, another one fails with its first token.
        self._server = None if self._mechanism not in ("", mechanism) else found.begin()
        if self.stage is Stage.OPEN:
            self._again_at_ms = self._listener.monotonic_ms() + LEAST_BETWEEN_MS
        else:
            self._on_mechanism(mechanism)
        self._mechanism = self._mechanism or mechanism
        self.stage = Stage.TOKENS if version else Stage.RAW
        return ErrorCode.NONE, offered

    def _may_begin_again(self, version: int) -> bool:
        return self._expires_at_ms is not None and version > 0 and self._listener.monotonic_ms() >= self._again_at_ms

    def authenticate(self, token: bytes) -> TokenAnswer:
        """The answer to one token."""
        if self.stage is not Stage.TOKENS:
            return TokenAnswer(ErrorCode.ILLEGAL_SASL_STATE, "SaslHandshake comes before SaslAuthenticate", b"", 0)
        try:
            answer = self._take(token)
        except AuthenticationFailed as failed:
            self._fail(failed.reason)
            return TokenAnswer(ErrorCode.SASL_AUTHENTICATION_FAILED, str(failed), b"", 0)
        return TokenAnswer(ErrorCode.NONE, None, answer or b"", self._lifetime_ms())

    def _lifetime_ms(self) -> int:
        """Of the session that has just begun; 0 for one without an end, and during an exchange."""
        if self.stage is not Stage.OPEN or self._expires_at_ms is None:
            return 0
        return max(1, self._expires_at_ms - self._listener.monotonic_ms())

    def _raw(self, token: bytes) -> Reply:
        try:
            answer = self._take(token)
        except AuthenticationFailed as failed:
            self._fail(failed.reason)
            # A client of that age expects no error, only the end.
            return Farewell([], self._listener.failed_delay_ms)
        return NO_RESPONSE if answer is None else [len(answer).to_bytes(4), answer]

    def _take(self, token: bytes) -> bytes | None:
        if self._server is None:
            raise AuthenticationFailed("a connection keeps its SASL mechanism", f"another mechanism than {self._mechanism}")
        answer = self._server.answer(token)
        if self._server.outcome is not None:
            self._open(self._server.outcome)
        return answer

    def _open(self, outcome: Authenticated) -> None:
        again, session = self.authenticated, self._session
        if again and outcome.principal != session.principal:
            raise AuthenticationFailed(
                "a connection keeps its user", f"{session.principal} asks to become {outcome.principal} when it re-authenticates"
            )
        max_reauth_ms = self._listener.mechanisms[self._mechanism].max_reauth_ms
        lifetimes = [max_reauth_ms] if max_reauth_ms else []
        if outcome.expires_ms is not None:
            left = outcome.expires_ms - self._listener.now_ms()
            if left <= 0:
                raise AuthenticationFailed("the credential has expired", f"{outcome.principal}: the credential has expired")
            lifetimes.append(left)
        now_ms = self._listener.monotonic_ms()
        self._expires_at_ms = now_ms + min(lifetimes) if lifetimes else None
        self._server = None
        session.principal = outcome.principal
        session.token_authenticated = outcome.by_token
        self.stage = Stage.OPEN
        if self._listener.audit is not None:
            self._listener.audit.logged_in(session, self._mechanism, again)
        if not again:
            self._on_open()


def _says_no_error(answer: object) -> bool:
    """Whether an ApiVersions answer is a success; its error code follows the size and the correlation id."""
    if not isinstance(answer, list) or isinstance(answer[0], FileSlice):
        return False
    return bytes(answer[0][8:10]) == b"\0\0"


_FIRST_KEYS = frozenset({ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE})
_HANDSHAKE = int(ApiKey.SASL_HANDSHAKE).to_bytes(2)
