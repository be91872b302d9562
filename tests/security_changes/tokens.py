"""Nodes that log in to each other with short-lived tokens of an identity provider, while clients work.

Every login among the nodes, brokers and controllers, is by OAUTHBEARER over SASL_SSL or SASL_PLAINTEXT; clients come in on a
listener of their own, so whatever they notice comes from the nodes. The provider is away for less time than a token has left,
then for longer than a token lives; it signs with another key; a node is killed, and one is started while the provider is away.
"""

from __future__ import annotations

import contextlib
import json
import random
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from tests.certificates import Authority
from tests.interop.nodes import free_ports
from tests.node.cluster import BOUND_S, Cluster
from tests.security_changes.access import Access
from tests.security_changes.account import Account
from tests.security_changes.clients import AiokafkaReader, KafkaPythonWriter, Reader, Writer
from tests.security_changes.cluster import Administrator, all_in_sync, everything
from tests.security_changes.crowd import Crowd
from tests.token_issuer import AUDIENCE, BEGINNING_OF_TOKENS, TokenIssuer
from tidelog.config.jaas import OAUTHBEARER_MODULE
from tidelog.config.listener_oauth import LOGIN_HANDLERS, VALIDATOR

TOPIC = "tokens"
LIFE_S = 24.0
SHORT_S = 6.0
"""A node replaces a token after half of its life, give or take: it holds for ten more seconds then."""
AFTER_S = 3.0
"""How long an outage goes on when all tokens have ended."""
TIMES = 3
"""Later logins on each kind of listener."""
NO_TOKEN = "it cannot log in there"
EXPIRED = "the credential has expired"
"""What nodes may say when the provider is away for long: a token ended on its way. At any other time it is a harm."""
LISTENERS = ("NODES", "CONTROLLER")


class TokenListeners:
    """What nodes on this machine need to log in to each other with tokens: a provider, certificates, and a listener NODES of each
    broker. ``PLAINTEXT`` is for clients only. ``tls``: whether the nodes' listeners have it."""

    def __init__(self, directory: Path, brokers: Iterable[int], controllers: Iterable[int], *, tls: bool = True) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        brokers = list(brokers)
        self._ports = dict(zip(brokers, free_ports(len(brokers)), strict=True))
        self._protocol = "SASL_SSL" if tls else "SASL_PLAINTEXT"
        self._authority = Authority()
        (directory / "authority.pem").write_text(self._authority.pem)
        secrets = {f"node-{each}": f"secret-of-{each}" for each in {*brokers, *controllers}}
        self.issuer = TokenIssuer(directory, secrets, LIFE_S)

    def settings(self, node_id: int, before: Mapping[str, str]) -> dict[str, str]:
        """A node's file, with what it has ``before`` and beside it."""
        client = f"node-{node_id}"
        keys = self._directory / f"{client}.pem"
        if not keys.exists():
            keys.write_text(self._authority.issue(client, "127.0.0.1").both)
        settings = {
            **before,
            **self._tokens(client),
            "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,NODES:{self._protocol},CONTROLLER:{self._protocol}",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(keys),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self._directory / "authority.pem"),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": ";".join(["User:ANONYMOUS", *(f"User:{each}" for each in self.issuer.secrets)]),
            "tidelog.audit.file": str(self.audit(node_id)),
        }
        if node_id in self._ports:
            settings["listeners"] += f",NODES://127.0.0.1:{self._ports[node_id]}"
            settings["inter.broker.listener.name"] = "NODES"
        return settings

    def _tokens(self, client: str) -> dict[str, str]:
        issuer = self.issuer
        entry = f'{OAUTHBEARER_MODULE} required ssl.truststore.type="PEM" ssl.truststore.location="{issuer.authority}";'
        settings = {
            "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
            "sasl.mechanism.controller.protocol": "OAUTHBEARER",
            "sasl.oauthbearer.token.endpoint.url": issuer.token_url,
            "sasl.oauthbearer.client.credentials.client.id": client,
            "sasl.oauthbearer.client.credentials.client.secret": issuer.secrets[client],
            "sasl.oauthbearer.jwks.endpoint.url": issuer.keys_url,
            "sasl.oauthbearer.jwks.endpoint.refresh.ms": "5000",
            "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": "1000",
            "sasl.oauthbearer.expected.issuer": issuer.issuer,
            "sasl.oauthbearer.expected.audience": AUDIENCE,
            "sasl.login.refresh.window.factor": "0.5",
            "sasl.login.retry.backoff.max.ms": "1000",
        }
        for name in LISTENERS:
            prefix = f"listener.name.{name.lower()}"
            settings[f"{prefix}.sasl.enabled.mechanisms"] = "OAUTHBEARER"
            settings[f"{prefix}.oauthbearer.sasl.jaas.config"] = entry
            settings[f"{prefix}.oauthbearer.sasl.login.callback.handler.class"] = LOGIN_HANDLERS[0]
            settings[f"{prefix}.oauthbearer.sasl.server.callback.handler.class"] = VALIDATOR
        return settings

    def audit(self, node_id: int) -> Path:
        """Where a node of ours keeps its audit."""
        return self._directory / f"audit-{node_id}.jsonl"

    def later_logins(self, *node_ids: int) -> Counter[str]:
        """How often nodes have logged in again on a connection to these, by the listener, and by the principal."""
        found: Counter[str] = Counter()
        for node_id in node_ids:
            with contextlib.suppress(FileNotFoundError):
                for line in self.audit(node_id).read_text().splitlines():
                    with contextlib.suppress(ValueError):  # The last line may not be whole yet.
                        event = json.loads(line)
                        found.update({event.get(key): 1 for key in ("listener", "principal") if event.get("again")})
        return found


class TokenCluster(Cluster):
    """Three nodes, with controllers of their own unless they are ``combined``."""

    def __init__(self, directory: Path, *, combined: bool = True, tls: bool = True) -> None:
        self.login = TokenListeners(directory, (1, 2, 3), () if combined else (101, 102, 103), tls=tls)
        super().__init__(directory, 3, roles="broker,controller" if combined else "broker")

    def settings(self, node_id: int) -> dict[str, str]:
        return self.login.settings(node_id, super().settings(node_id))

    def later_logins(self) -> Counter[str]:
        return self.login.later_logins(*self.ids)

    def access(self) -> Access:
        """Without a login."""
        return Access(",".join(self.address(each) for each in self.brokers))

    def in_sync(self) -> None:
        """Waits until all replicas are, and all brokers are there."""
        self.until(lambda: all_in_sync(self.access()), "all replicas are in sync")

    def refused_start(self, node_id: int) -> str:
        """Starts a node that cannot, and returns what it says."""
        before = len(self.log(node_id))
        self.launch(node_id)
        process = self.running[node_id]
        try:
            assert process.wait(BOUND_S) != 0, "it started"
        except subprocess.TimeoutExpired:
            raise AssertionError(f"node {node_id} neither starts nor ends") from None
        del self.running[node_id]
        return self.log(node_id)[before:]


class TokenLogins:
    """One run on a cluster that is up."""

    def __init__(self, cluster: TokenCluster, say: Callable[[str], None], seed: int) -> None:
        self.cluster, self.issuer, self.say, self.rng = cluster, cluster.login.issuer, say, random.Random(seed)
        self.account = Account()
        self.crowd = Crowd(self.account, None)
        Administrator(cluster.access()).create(TOPIC)
        cluster.in_sync()

    def run(self) -> list[str]:
        """All that is wrong."""
        account, access = self.account, self.cluster.access()
        steps = [self.sessions, self.short_outage, self.another_key, self.kill, self.long_outage]
        self.rng.shuffle(steps)
        with self.crowd as crowd:
            for kind in (Writer, KafkaPythonWriter, Reader, AiokafkaReader):
                crowd.add(kind(kind.__name__.lower(), account, access, TOPIC))
            account.go_on(crowd.names)
            for step in steps:
                step()
                account.go_on(crowd.names, more=10)
                self.cluster.in_sync()
            groups = crowd.finish()
        wrong = account.verdict(everything(access, TOPIC), groups)
        secrets = (BEGINNING_OF_TOKENS, *self.issuer.secrets.values())
        for each in self.cluster.ids:
            wrong += [f"node {each} logs a secret" for secret in secrets if secret in self.cluster.log(each)]
        return wrong

    def sessions(self) -> None:
        """All is well: nodes get new tokens, and log in again with them on their connections."""
        marks = self.marks()
        logins, tokens = self.cluster.later_logins(), dict(self.issuer.granted)
        self.account.until(
            lambda: all(self.cluster.later_logins()[each] >= logins[each] + TIMES for each in LISTENERS), "later logins"
        )
        self.account.until(
            lambda: all(self.issuer.granted[each] > tokens.get(each, 0) for each in self.issuer.secrets), "a token for each node"
        )
        self.unharmed(marks)
        now = self.cluster.later_logins()
        self.say(
            f"nodes logged in again on open connections: {', '.join(f'{each} {now[each] - logins[each]}' for each in LISTENERS)}"
        )

    def short_outage(self) -> None:
        """The provider is away, and all tokens hold: no node notices more than that."""
        marks = self.marks()
        if self.rng.random() < 0.5:
            self.issuer.broken = True
            time.sleep(SHORT_S)
            self.issuer.broken = False
        else:
            self.issuer.down()
            time.sleep(SHORT_S)
            self.issuer.up()
        self.account.go_on(self.crowd.names)
        self.unharmed(marks)
        self.say(f"the provider was away for {SHORT_S:.0f} s, and every node had a token")

    def another_key(self) -> None:
        """The provider signs with a key that no node has seen."""
        self.issuer.rotate()
        tokens = dict(self.issuer.granted)
        self.account.until(
            lambda: all(self.issuer.granted[each] >= tokens.get(each, 0) + 2 for each in self.issuer.secrets),
            "two tokens for each node",
        )
        self.say("the provider signs with another key, and every node has logged in with it")

    def kill(self) -> None:
        """kill -9; it gets a token when it starts."""
        node_id = self.rng.choice(self.cluster.ids)
        self.cluster.kill(node_id)
        self.account.go_on(self.crowd.names, more=10)
        self.cluster.start(node_id)
        self.say(f"node {node_id} was killed, and is back")

    def long_outage(self) -> None:
        """The provider is away until no node has a token. A node that starts meanwhile ends, and says why."""
        node_id = self.rng.choice(self.cluster.ids)
        self.cluster.kill(node_id)
        self.issuer.down()
        began, marks = time.monotonic(), self.marks()
        said = self.cluster.refused_start(node_id)
        if f"The keys of the token issuer cannot be fetched from {self.issuer.keys_url}" not in said:
            self.account.failed(f"node {node_id}", f"it does not say why it ends: {said[-500:]}")
        others = [each for each in self.cluster.ids if each != node_id]
        self.cluster.until(
            lambda: all(NO_TOKEN in self.cluster.log(each)[marks[each] :] for each in others), "nodes without a token"
        )
        time.sleep(AFTER_S)
        away_s = time.monotonic() - began
        self.issuer.up()
        self.cluster.start(node_id)
        self.account.go_on(self.crowd.names)
        self.say(f"the provider was away for {away_s:.0f} s, no node had a token, and all work again")

    def marks(self) -> dict[int, int]:
        """Where the logs end now."""
        return {each: len(self.cluster.log(each)) for each in self.cluster.ids}

    def unharmed(self, marks: dict[int, int]) -> None:
        """No node was refused or without a token since then."""
        for each, mark in marks.items():
            said = self.cluster.log(each)[mark:]
            for harm in (NO_TOKEN, EXPIRED, "did not authenticate again", "cannot log in"):
                for line in [line for line in said.splitlines() if harm in line][:1]:
                    self.account.failed(f"node {each}", line)
