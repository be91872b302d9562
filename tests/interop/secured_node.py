"""A node with a listener for each way to log in and each version of TLS, and one user who has all the credentials."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient as Librdkafka
from confluent_kafka.admin import NewTopic, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion
from joserfc import jws
from joserfc.jwk import RSAKey

from tests.certificates import Authority
from tests.interop.nodes import Node, free_ports, running
from tidelog.client import AdminClient, DelegationToken

JAAS = "org.apache.kafka.common.security"
TLS_VERSIONS = ("TLSv1.2", "TLSv1.3")
SASL = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
TOKEN = "delegation token"
KINDS = ("SSL", "mutual TLS", *SASL, TOKEN)
"""The ways to connect; all but the first two are logins over SASL_SSL."""
USER, PASSWORD = "me", "wide-open-sesame"
SESSION_MS = 3000
"""Of the listeners with short sessions (``connections.max.reauth.ms``)."""
LIMIT_S = 30
_PROTOCOLS = {"OPEN": "SSL", "MUTUAL": "SSL", "LOGIN": "SASL_SSL", "SHORT": "SASL_SSL"}
_LISTENERS = [f"{name}{version[-1]}" for name in _PROTOCOLS for version in TLS_VERSIONS]
_KEY = RSAKey.generate_key(2048, {"kid": "one"})


def bearer(life_s: float = 3600) -> str:
    """A token of the issuer that the node trusts."""
    now = time.time()
    claims = {"sub": USER, "scope": "kafka", "iat": now, "exp": now + life_s, "iss": "https://issuer", "aud": "tidelog"}
    return jws.serialize_compact({"alg": "RS256", "kid": "one"}, json.dumps(claims), _KEY, algorithms=["RS256"])


class SecuredNode:
    """The node and the credentials. ``token``: a delegation token of the user."""

    def __init__(self, node: Node, ports: dict[str, int], folder: Path, token: DelegationToken) -> None:
        self.node, self.folder, self.token = node, folder, token
        self._ports = ports

    @property
    def authority(self) -> str:
        """The file to trust."""
        return str(self.folder / "authority.pem")

    @property
    def pair(self) -> str:
        """The file with the user's key and certificate."""
        return str(self.folder / "me.pem")

    @property
    def bearer_file(self) -> Path:
        """A file with a token that lasts for an hour."""
        return self.folder / "bearer.jwt"

    def address(self, kind: str, version: str, *, short: bool = False) -> str:
        """Where clients of a kind come in; ``short``: where their sessions are short."""
        name = {"SSL": "OPEN", "mutual TLS": "MUTUAL"}.get(kind, "SHORT" if short else "LOGIN")
        return f"localhost:{self._ports[name + version[-1]]}"

    def login(self, kind: str) -> tuple[str, str, str]:
        """The mechanism, the name and the password of a login; a bearer token is made by its client."""
        if kind == TOKEN:
            return "SCRAM-SHA-512", self.token.token_id, self.token.password
        return kind, USER, PASSWORD

    def create(self, topics: Iterable[str]) -> None:
        """Topics with one partition; they are there when this returns."""
        admin = Librdkafka({"bootstrap.servers": self.node.bootstrap})
        wanted = set(topics)
        for made in admin.create_topics([NewTopic(each, 1, 1) for each in wanted]).values():
            made.result(LIMIT_S)
        deadline = time.monotonic() + LIMIT_S
        while not wanted <= set(admin.list_topics(timeout=LIMIT_S).topics):
            assert time.monotonic() < deadline, "the topics are not there"


def _properties(folder: Path, ports: dict[str, int]) -> dict[str, str]:
    users = f'{JAAS}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
    protocols = {"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT"}
    protocols |= {name: _PROTOCOLS[name[:-1]] for name in _LISTENERS}
    properties = {
        "listeners": ",".join(f"{name}://localhost:{port}" for name, port in ports.items()),
        "advertised.listeners": ",".join(f"{name}://localhost:{port}" for name, port in ports.items() if name != "CONTROLLER"),
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in protocols.items()),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder / "node.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder / "authority.pem"),
        "sasl.enabled.mechanisms": ",".join(SASL),
        "sasl.oauthbearer.jwks.endpoint.url": (folder / "keys.json").as_uri(),
        "sasl.oauthbearer.expected.issuer": "https://issuer",
        "sasl.oauthbearer.expected.audience": "tidelog",
        "delegation.token.secret.key": "the-key-of-tokens",
    }
    handler = f"{JAAS}.oauthbearer.OAuthBearerValidatorCallbackHandler"
    for name in _LISTENERS:
        prefix = f"listener.name.{name.lower()}"
        properties[f"{prefix}.ssl.enabled.protocols"] = next(each for each in TLS_VERSIONS if each[-1] == name[-1])
        if name.startswith("MUTUAL"):
            properties[f"{prefix}.ssl.client.auth"] = "required"
        if protocols[name] == "SASL_SSL":
            properties[f"{prefix}.plain.sasl.jaas.config"] = users
            properties[f"{prefix}.oauthbearer.sasl.server.callback.handler.class"] = handler
        if name.startswith("SHORT"):
            properties[f"{prefix}.connections.max.reauth.ms"] = str(SESSION_MS)
    return properties


@contextmanager
def secured_node(folder: Path) -> Iterator[SecuredNode]:
    """The node, running, with its user."""
    authority = Authority()
    files = {
        "authority.pem": authority.pem,
        "node.pem": authority.issue("node", "localhost", "127.0.0.1").both,
        "me.pem": authority.issue(USER).both,
        "keys.json": json.dumps({"keys": [_KEY.as_dict(private=False)]}),
        "bearer.jwt": bearer(),
    }
    for name, text in files.items():
        (folder / name).write_text(text)
    names = ["PLAINTEXT", "CONTROLLER", *_LISTENERS]
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    node = Node("tidelog", folder / "node", None, _properties(folder, ports), ports=[ports["PLAINTEXT"], ports["CONTROLLER"]])
    with running(node):
        _create_user(node.bootstrap)
        yield SecuredNode(node, ports, folder, _token(f"localhost:{ports['LOGIN3']}", folder))


def _create_user(bootstrap: str) -> None:
    admin = Librdkafka({"bootstrap.servers": bootstrap})
    for kind in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
        change = UserScramCredentialUpsertion(USER, ScramCredentialInfo(kind, 4096), PASSWORD.encode())
        admin.alter_user_scram_credentials([change])[USER].result(LIMIT_S)


def _token(address: str, folder: Path) -> DelegationToken:
    settings: dict[str, Any] = {
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(folder / "authority.pem"),
        "sasl.mechanism": "PLAIN",
        "sasl.username": USER,
        "sasl.password": PASSWORD,
    }

    async def create() -> DelegationToken:
        async with AdminClient(address, settings) as client:
            return await client.delegation_tokens.create()

    return asyncio.run(asyncio.wait_for(create(), LIMIT_S))
