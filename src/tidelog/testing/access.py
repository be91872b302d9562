"""``Broker.access``: how a test's clients log in, and what they may do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from tidelog.security.authority import Identity
    from tidelog.testing.certificates import Certificates
    from tidelog.testing.permissions import Rule
    from tidelog.testing.users import Users

DEFAULT_MECHANISM = "SCRAM-SHA-256"
NO_TLS = "the broker speaks plain text: ask for Broker(tls=True)"


class _Client(NamedTuple):
    """What a client needs to know, whatever its settings are called."""

    address: str
    protocol: str
    authority: str | None
    certificate: Identity | None
    login: tuple[str, str, str] | None
    """Mechanism, user, password."""


class Access:
    """The users, certificates and ACLs of one broker, which were given to ``Broker``. Since 0.2.

    Three methods give the same settings under the names of different clients. ``user`` and ``mechanism`` (SCRAM-SHA-256,
    SCRAM-SHA-512 or PLAIN) say how the client logs in. With ``tls="mutual"`` the client shows the certificate called
    ``certificate``, or else ``user``; without either it shows none, and is refused. All raise ValueError for a user or a
    certificate that the broker was not given.
    """

    def __init__(
        self,
        users: Users | None,
        certificates: Certificates | None,
        address: Callable[[], str],
        replace: Callable[[Sequence[Rule]], None],
    ) -> None:
        self._users = users
        self._certificates = certificates
        self._address = address
        self._replace = replace

    def client_settings(
        self, user: str | None = None, mechanism: str = DEFAULT_MECHANISM, certificate: str | None = None
    ) -> dict[str, str]:
        """For librdkafka and what is built on it: ``Producer(broker.access.client_settings("alice"))``."""
        client = self._client(user, mechanism, certificate)
        found = {"bootstrap.servers": client.address}
        if client.protocol != "PLAINTEXT":
            found["security.protocol"] = client.protocol
        if client.login is not None:
            found["sasl.mechanism"], found["sasl.username"], found["sasl.password"] = client.login
        if client.authority is not None:
            found["ssl.ca.pem"] = client.authority
        if client.certificate is not None:
            found |= {"ssl.certificate.pem": client.certificate.certificate, "ssl.key.pem": client.certificate.key}
        return found

    def java_settings(
        self, user: str | None = None, mechanism: str = DEFAULT_MECHANISM, certificate: str | None = None
    ) -> dict[str, str]:
        """For Java's clients, Kafka's tools and tidelog's own: no file is needed beside them."""
        client = self._client(user, mechanism, certificate)
        found = {"bootstrap.servers": client.address}
        if client.protocol != "PLAINTEXT":
            found["security.protocol"] = client.protocol
        if client.login is not None:
            from tidelog.testing.users import jaas_entry

            found |= {"sasl.mechanism": client.login[0], "sasl.jaas.config": jaas_entry(*client.login)}
        if client.authority is not None:
            found |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": client.authority}
        if client.certificate is not None:
            found |= {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.certificate.chain": client.certificate.certificate,
                "ssl.keystore.key": client.certificate.key,
            }
        return found

    def python_settings(
        self, user: str | None = None, mechanism: str = DEFAULT_MECHANISM, certificate: str | None = None
    ) -> dict[str, Any]:
        """For kafka-python and aiokafka: ``KafkaProducer(**broker.access.python_settings("alice"))``. The certificates are in
        its ``ssl_context``."""
        client = self._client(user, mechanism, certificate)
        found: dict[str, Any] = {"bootstrap_servers": client.address, "security_protocol": client.protocol}
        if client.login is not None:
            names = ("sasl_mechanism", "sasl_plain_username", "sasl_plain_password")
            found |= dict(zip(names, client.login, strict=True))
        if self._certificates is not None:
            found["ssl_context"] = self._certificates.context(client.certificate)
        return found

    @property
    def ca_pem(self) -> str:
        """The certificate of the broker's authority, which clients trust. ValueError without ``tls``."""
        return self._with_tls().authority

    @property
    def ca_file(self) -> str:
        """The path of a file with ``ca_pem``, which is deleted with the broker. ValueError without ``tls``."""
        return self._with_tls().authority_file

    def certificate(self, name: str) -> tuple[str, str]:
        """A client's certificate and its key, both in PEM; its principal is ``User:CN=name``. ValueError without ``tls``."""
        identity = self._with_tls().client(name)
        return identity.certificate, identity.key

    def set_acls(self, acls: Sequence[Rule]) -> None:
        """These ACLs instead of those that there are, from the next request on.

        ValueError for a broker without ``acls``, whose clients may do everything, or for one that is refused.
        """
        if self._users is None:
            raise ValueError("the broker has no authorizer: give it ACLs from the start, Broker(acls=[])")
        self._replace(acls)

    def _with_tls(self) -> Certificates:
        if self._certificates is None:
            raise ValueError(NO_TLS)
        return self._certificates

    def _client(self, user: str | None, mechanism: str, certificate: str | None) -> _Client:
        tls, users = self._certificates, self._users
        mutual = tls is not None and tls.mutual
        logs_in = user is not None and users is not None and bool(users.names)
        if user is not None and not logs_in and not mutual:
            raise ValueError("the broker has no users: give it some, Broker(users={...})")
        if certificate is not None and tls is None:
            raise ValueError(NO_TLS)
        login = None
        if logs_in:
            assert user is not None
            assert users is not None
            login = mechanism, user, users.password(user, mechanism)
        name = certificate or (user if mutual else None)
        return _Client(
            self._address(),
            ("SASL_" if logs_in else "") + ("PLAINTEXT" if tls is None else "SSL"),
            None if tls is None else tls.authority,
            None if tls is None or name is None else tls.client(name),
            login,
        )
