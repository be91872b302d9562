"""A blocking socket around ``client.connection``: connect, TLS, SASL, then requests, one or several at a time.

Plain blocking sockets are right here: a Spark task reads one partition and has nothing else to do while it waits. Requests that
are sent ahead are answered in order. Every wait has an end: the timeouts of the client's settings.
"""

from __future__ import annotations

import secrets
import socket
import ssl
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from tidelog.client.connection import ClientConnection, UnsupportedByBroker
from tidelog.client.sasl import conversation
from tidelog.client.settings import ClientSettings, Sasl, Tls
from tidelog.config.listeners import address_text
from tidelog.model.errors import ConfigError, ErrorCode, ProtocolViolation
from tidelog.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from tidelog.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tidelog.protocol.structure import Message

_SASL_ROUNDS = 4


class NoConnection(Exception):
    """A broker cannot be reached, or the connection ended; worth trying another one, or this one later."""


class NotAuthenticated(Exception):
    """The broker refuses who we say we are: trying again would not help."""


class BrokerSocket:
    """A connection to one broker, ready for requests."""

    def __init__(self, settings: ClientSettings, host: str, port: int, tls: ssl.SSLContext | None) -> None:
        """NoConnection when nobody answers there, NotAuthenticated when the broker refuses us."""
        self._settings = settings
        self.address = address_text(host, port)
        # A Fetch answer has at most fetch.max.bytes, or one batch that is larger; what surrounds it is small.
        limit = max(2 * settings.fetch_max_bytes, 1 << 28)
        self._machine = ClientConnection(settings.client_id, _our_version(), limit)
        self._responses: list[Any] = []
        self._socket = self._open(host, port, tls)
        try:
            again = self._machine.welcomed(self._exchange(self._machine.hello()))
            if again is not None:
                self._machine.welcomed(self._exchange(again))
            if settings.sasl is not None:
                self._authenticate(settings.sasl)
        except BaseException:
            self._socket.close()
            raise

    @property
    def features(self) -> dict[str, int]:
        """Levels of the cluster's finalized features."""
        return self._machine.features

    def ask(self, request: Message, highest: int | None = None) -> Any:
        """The response to ``request``, sent at version ``highest`` at most."""
        self.send(request, highest)
        return self.receive()

    def send(self, request: Message, highest: int | None = None) -> None:
        """Send without waiting for the response."""
        self._sendall(self._machine.request(request, highest))

    def receive(self) -> Any:
        """The next response. What earlier ones hold as views is void from now on."""
        while not self._responses:
            room = self._machine.writable()
            try:
                count = self._socket.recv_into(room)
            except TimeoutError as error:
                self.close()
                raise NoConnection(
                    f"{self.address} did not answer within {self._settings.answer_timeout_ms} ms (kafka.request.timeout.ms)"
                ) from error
            except OSError as error:
                self.close()
                raise NoConnection(f"the connection to {self.address} ended: {error.strerror or error}") from error
            if not count:
                self.close()
                raise NoConnection(
                    f"{self.address} closed the connection; if that is at the first request, it speaks another protocol there "
                    "(kafka.security.protocol), or does not serve what was asked"
                )
            try:
                self._responses += self._machine.received(count)
            except ProtocolViolation as error:
                self.close()
                raise NoConnection(f"{self.address} does not answer as a Kafka broker does: {error}") from error
        return self._responses.pop(0)

    def version_of(self, api_key: int, highest: int | None = None) -> int:
        """The version at which requests of this API go out, not above ``highest``."""
        return self._machine.version_of(api_key, highest)

    def close(self) -> None:
        """End the connection."""
        self._socket.close()

    def _exchange(self, frame: bytes) -> Any:
        self._sendall(frame)
        return self.receive()

    def _sendall(self, frame: bytes) -> None:
        try:
            self._socket.sendall(frame)
        except OSError as error:
            self.close()
            raise NoConnection(f"the connection to {self.address} ended: {error.strerror or error}") from error

    def _open(self, host: str, port: int, tls: ssl.SSLContext | None) -> socket.socket:
        settings = self._settings
        try:
            plain = socket.create_connection((host, port), timeout=settings.connect_timeout_ms / 1000)
        except OSError as error:
            raise NoConnection(f"{self.address} cannot be reached: {error.strerror or error}") from error
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if settings.receive_buffer_bytes > 0:
                plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, settings.receive_buffer_bytes)
            opened = plain if tls is None else tls.wrap_socket(plain, server_hostname=host)
        except ssl.SSLCertVerificationError as error:
            plain.close()
            raise NotAuthenticated(
                f"The certificate of {self.address} is not trusted: {error.verify_message}. Set kafka.ssl.ca.location to "
                "the file with its authority, or kafka.ssl.endpoint.identification.algorithm=none if only the host name differs."
            ) from error
        except OSError as error:
            plain.close()
            raise NoConnection(f"no TLS with {self.address}: {error.strerror or error}") from error
        opened.settimeout(settings.answer_timeout_ms / 1000)
        return opened

    def _authenticate(self, sasl: Sasl) -> None:
        try:
            shake = self.ask(SaslHandshakeRequest(mechanism=sasl.mechanism))
        except UnsupportedByBroker as error:
            raise NotAuthenticated(
                f"{self.address} has no SASL there: set kafka.security.protocol to PLAINTEXT or SSL."
            ) from error
        if shake.error_code:
            offered = ", ".join(shake.mechanisms) or "none"
            raise NotAuthenticated(
                f"{self.address} does not take {sasl.mechanism}, but {offered}: set kafka.sasl.mechanism to one of them."
            )
        talk = conversation(sasl, secrets.token_urlsafe(24))
        message: bytes | None = talk.first()
        for _ in range(_SASL_ROUNDS):
            answer = self.ask(SaslAuthenticateRequest(auth_bytes=message or b""))
            if answer.error_code:
                why = answer.error_message or ErrorCode(answer.error_code).name
                raise NotAuthenticated(f"{self.address} refuses user {sasl.username!r} ({sasl.mechanism}): {why}")
            try:
                message = talk.answer(bytes(answer.auth_bytes))
            except ProtocolViolation as violation:
                raise NotAuthenticated(f"{sasl.mechanism} with {self.address} failed: {violation}") from violation
            if message is None:
                return
        raise NotAuthenticated(f"{sasl.mechanism} with {self.address} does not come to an end")


def tls_context(tls: Tls) -> ssl.SSLContext:
    """What to check and to show. ConfigError when a file or a text cannot be used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = tls.verify and tls.verify_hostname
    context.verify_mode = ssl.CERT_REQUIRED if tls.verify else ssl.CERT_NONE
    try:
        if tls.ca_file is not None or tls.ca_text is not None:
            context.load_verify_locations(cafile=tls.ca_file, cadata=tls.ca_text)
        else:
            context.load_default_certs()
        if tls.certificate_text is not None and tls.key_text is not None:
            # OpenSSL reads keys from files only; this one lives as long as the call.
            with tempfile.TemporaryDirectory() as folder:
                both = Path(folder, "pair.pem")
                both.touch(mode=0o600)
                both.write_text(tls.key_text + "\n" + tls.certificate_text)
                context.load_cert_chain(both, password=tls.key_password or "")
        elif tls.certificate_file is not None:
            context.load_cert_chain(tls.certificate_file, tls.key_file, password=tls.key_password or "")
    except (OSError, ValueError) as error:
        raise ConfigError(f"The certificates or the key of the kafka.ssl settings cannot be used: {error}.") from error
    return context


def _our_version() -> str:
    try:
        return version("tidelog")
    except PackageNotFoundError:
        return "0"
