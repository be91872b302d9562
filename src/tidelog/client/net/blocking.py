"""Calls on blocking sockets: connect, TLS, SASL, then requests, one or several at a time.

Blocking sockets suit tools and Spark tasks, which have nothing else to do while they wait. Pipelined requests are answered in
order. Every wait is bounded by the timeouts of the client's settings.
"""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from tidelog import __version__
from tidelog.client.calls import Call
from tidelog.client.connection import ClientConnection
from tidelog.client.connection_opening import Opening, SessionClock, versions
from tidelog.client.failures import NoConnection, NotAuthenticated, before_the_first_answer
from tidelog.client.routing import Exchange, Moves, Routing, Sleep, Together, VersionAt
from tidelog.client.settings import ClientSettings
from tidelog.config.listeners import address_text
from tidelog.model.errors import ProtocolViolation
from tidelog.protocol.structure import Message

if TYPE_CHECKING:
    import ssl

    from tidelog.client.net.credentials import Credentials

T = TypeVar("T")
Address = tuple[str, int]
TICKET_SHARE = 0.8
"""Of the time for connecting: how long a login waits for a Kerberos ticket. The rest is for the error that names the KDC."""


class BrokerSocket:
    """A connection to one broker, ready for requests."""

    def __init__(
        self,
        settings: ClientSettings,
        host: str,
        port: int,
        tls: ssl.SSLContext | None,
        credentials: Credentials | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """NoConnection when no broker answers there, NotAuthenticated when it rejects the client.

        ``credentials``: those of the client, if it keeps some. ``now``: monotonic seconds.
        """
        self._settings = settings
        self._credentials, self._now = credentials or credentials_of(settings), now
        self._session = SessionClock()
        self._host, self.address = host, address_text(host, port)
        # A Fetch response has at most fetch.max.bytes, or one larger batch; the rest of it is small.
        limit = max(2 * settings.fetch_max_bytes, 1 << 28)
        self._machine = ClientConnection(settings.client_id, __version__, limit, settings.prefix)
        self._responses: list[Any] = []
        self._hint = " " + before_the_first_answer(settings.prefix, tls=tls is not None)
        """For the error, until the broker has answered."""
        self._socket = self._open(host, port, tls)
        try:
            self._converse(versions(self._machine))
            self._hint = ""
            self._log_in()
        except NoConnection as error:
            self.close()
            error.sent = False  # the request itself was not sent
            raise
        except BaseException:
            self.close()
            raise

    @property
    def features(self) -> dict[str, int]:
        """Levels of the cluster's finalized features."""
        return self._machine.features

    @property
    def session_ends(self) -> bool:
        """Whether the client has to log in again before it sends more: with ``renew``, once all is answered."""
        return self._session.is_due(self._now())

    def renew(self) -> None:
        """Log in again if the session ends soon. Views in earlier responses may become invalid; nothing may be unanswered.

        NotAuthenticated when the broker refuses the client now; NoConnection.
        """
        if self.session_ends:
            try:
                self._log_in()
            except NoConnection as error:
                self.close()
                error.sent = False
                raise
            except NotAuthenticated:
                self.close()
                raise

    def ask(self, request: Message, highest: int | None = None) -> Any:
        """The response to ``request``, sent in version ``highest`` at most."""
        self.renew()
        self.send(request, highest)
        return self.receive()

    def send(self, request: Message, highest: int | None = None) -> None:
        """Send without waiting for the response."""
        self._sendall(self._machine.request(request, highest))

    def receive(self) -> Any:
        """The next response. Views in earlier responses become invalid."""
        prefix = self._settings.prefix
        while not self._responses:
            room = self._machine.writable()
            try:
                count = self._socket.recv_into(room)
            except TimeoutError as error:
                raise self._ended(
                    f"did not answer within {self._settings.answer_timeout_ms} ms ({prefix}request.timeout.ms)"
                ) from error
            except OSError as error:
                raise self._lost(error) from error
            if not count:
                raise self._ended(
                    "closed the connection; if that is at the first request, it speaks another protocol there "
                    f"({prefix}security.protocol), or does not serve what was asked"
                )
            try:
                self._responses += self._machine.received(count)
            except ProtocolViolation as error:
                raise self._ended(f"does not answer as a Kafka broker does: {error}") from error
        return self._responses.pop(0)

    def version_of(self, api_key: int, highest: int | None = None) -> int:
        """The version in which requests of this API are sent, at most ``highest``."""
        return self._machine.version_of(api_key, highest)

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def _log_in(self) -> None:
        if self._credentials is not None:
            asked_s = self._now()
            lifetime_ms = self._converse(self._credentials.login(self._machine, self.address, self._host))
            self._session.began(lifetime_ms, asked_s, self._now(), random.random())

    def _converse(self, conversation: Opening) -> int:
        try:
            frame = next(conversation)
            while True:
                self._sendall(frame)
                frame = conversation.send(self.receive())
        except StopIteration as end:
            return int(end.value)
        except ProtocolViolation as error:
            raise self._ended(f"does not answer as a Kafka broker does: {error}") from error

    def _sendall(self, frame: bytes) -> None:
        try:
            self._socket.sendall(frame)
        except OSError as error:
            raise self._lost(error) from error

    def _lost(self, error: OSError) -> NoConnection:
        self.close()
        reason = str(error.strerror or error)
        reason = f"ended{self._hint}: {reason}"
        return NoConnection(
            f"the connection to {self.address} {reason}", reason=f"the connection {reason}", reached=True, sent=True
        )

    def _ended(self, reason: str) -> NoConnection:
        self.close()
        return NoConnection(f"{self.address} {reason}", reason=reason, reached=True, sent=True)

    def _open(self, host: str, port: int, tls: ssl.SSLContext | None) -> socket.socket:
        settings = self._settings
        try:
            plain = socket.create_connection((host, port), timeout=settings.connect_timeout_ms / 1000)
        except (OSError, UnicodeError) as error:
            reason = str(getattr(error, "strerror", None) or error)
            raise NoConnection(f"{self.address} cannot be reached: {reason}", reason=reason) from error
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if settings.receive_buffer_bytes > 0:
                plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, settings.receive_buffer_bytes)
            opened = plain if tls is None else secured(plain, host, tls, self.address, settings.prefix)
            opened.settimeout(settings.answer_timeout_ms / 1000)
        except BaseException:
            plain.close()
            raise
        return opened


def credentials_of(settings: ClientSettings) -> Credentials | None:
    """What the client logs in with; None without SASL. ConfigError."""
    if settings.sasl is None:
        return None
    from tidelog.client.net.credentials import Credentials  # Only for clients that log in.

    return Credentials(settings.sasl, settings.prefix, TICKET_SHARE * settings.connect_timeout_ms / 1000)


def secured(plain: socket.socket, host: str, tls: ssl.SSLContext, address: str, prefix: str) -> socket.socket:
    """TLS on a connected socket. NotAuthenticated when the certificate is not trusted, NoConnection for any other failure."""
    import ssl

    try:
        return tls.wrap_socket(plain, server_hostname=host)
    except ssl.SSLCertVerificationError as error:
        raise not_trusted(error, address, prefix) from error
    except OSError as error:
        reason = f"no TLS with {address}: {error.strerror or error}. Is it a listener without TLS ({prefix}security.protocol)?"
        raise NoConnection(reason, reason=reason, reached=True) from error


def not_trusted(error: ssl.SSLCertVerificationError, address: str, prefix: str) -> NotAuthenticated:
    """Why a broker's certificate is rejected, and the setting to change."""
    return NotAuthenticated(
        f"The certificate of {address} is not trusted: {error.verify_message}. Set {prefix}ssl.ca.location (or "
        f"{prefix}ssl.truststore.location) to the file with its authority, or leave "
        f"{prefix}ssl.endpoint.identification.algorithm empty if only the host name differs."
    )


class Connections:
    """The connections of one client by address: opened on first use, kept until they close."""

    def __init__(self, settings: ClientSettings) -> None:
        """ConfigError for unusable certificates or keys, or without the library for tickets."""
        self.settings = settings
        self._tls: ssl.SSLContext | None = None
        if settings.tls is not None:
            from tidelog.client.net.tls import tls_context

            self._tls = tls_context(settings.tls, settings.prefix)
        self._credentials = credentials_of(settings)
        self._open: dict[Address, BrokerSocket] = {}

    @property
    def addresses(self) -> list[Address]:
        """The addresses with a connection."""
        return list(self._open)

    def at(self, address: Address) -> BrokerSocket:
        """The connection to this host and port. Raises what ``BrokerSocket`` raises."""
        found = self._open.get(address)
        if found is None:
            found = self._open[address] = BrokerSocket(self.settings, *address, self._tls, self._credentials)
        return found

    def ask(self, connection: BrokerSocket, request: Message, highest: int | None = None) -> Any:
        """The response to ``request``. After a failure the connection is dropped: the next attempt opens another."""
        try:
            return connection.ask(request, highest)
        except (NoConnection, NotAuthenticated):
            self.forget(connection)
            raise

    def forget(self, connection: BrokerSocket) -> None:
        """Close a connection; the next request to its broker opens another."""
        connection.close()
        self._open = {address: kept for address, kept in self._open.items() if kept is not connection}

    def close(self) -> None:
        """Close all."""
        for connection in self._open.values():
            connection.close()
        self._open.clear()


class BlockingClient:
    """Runs calls on a cluster, one after the other. A context manager. Not thread-safe.

    ``controllers``: the bootstrap servers are controllers (KIP-919).
    """

    def __init__(self, settings: ClientSettings, *, controllers: bool = False, now: Callable[[], float] = time.monotonic) -> None:
        self.settings = settings
        self.connections = Connections(settings)
        self.routing = Routing(settings, now, random.Random(), controllers=controllers)

    def run(self, call: Call[T]) -> T:
        """Run ``call`` and return its result. NoConnection, NotAuthenticated, KafkaError, UnsupportedByBroker, depending on
        the call."""
        return self._drive(self.routing.run(call))

    def _drive(self, moves: Moves[T]) -> T:
        try:
            move = next(moves)
            while True:
                try:
                    result = self._do(move)
                except Exception as error:
                    move = moves.throw(error)
                else:
                    move = moves.send(result)
        except StopIteration as end:
            done: T = end.value
            return done

    def _do(self, move: Any) -> Any:
        match move:
            case Exchange():
                return self.connections.ask(self.connections.at(move.address), move.request, move.highest)
            case VersionAt():
                return self.connections.at(move.address).version_of(move.api_key)
            case Sleep():
                time.sleep(move.seconds)
                return None
            case Together():
                return [self._drive(each) for each in move.parts]
        raise TypeError(f"{move!r} is no move of a call")

    def close(self) -> None:
        """Close all connections."""
        self.connections.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
