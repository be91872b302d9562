"""A node with one listener of each kind, and how much memory it has."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.certificates import Authority
from tests.interop.nodes import Node, free_ports, running
from tests.node.bystander import Bystander
from tidelog.config.jaas import PLAIN_MODULE
from tidelog.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialUpsertion,
)
from tidelog.security.scram import ScramMechanism, salted_password

USERS = {f"user{number:03}": f"password-of-user-{number:03}" for number in range(200)}
AUTHORITY = Authority()


class Secured:
    """The ports and the process of a node that runs."""

    def __init__(self, node: Node, plain: int, sasl: int, tls: int, sasl_tls: int) -> None:
        self.node = node
        self.plain = plain
        """Without any login, for what prepares the node."""
        self.sasl = sasl
        self.tls = tls
        self.sasl_tls = sasl_tls

    def add_scram(self, mechanism: ScramMechanism) -> None:
        """All of ``USERS``, with the iterations and the salt of the tools."""
        made = []
        for name, password in USERS.items():
            salt = os.urandom(24)
            made.append(ScramCredentialUpsertion(name, mechanism, 4096, salt, salted_password(mechanism, password, salt, 4096)))
        body = AlterUserScramCredentialsRequest(upsertions=made).encode(0)
        answer = AlterUserScramCredentialsResponse.decode(Bystander(self.plain, "").ask((51, 0), body), 0)
        assert not any(each.error_code for each in answer.results), answer

    @property
    def memory_mib(self) -> float:
        assert self.node.process is not None
        lines = Path(f"/proc/{self.node.process.pid}/status").read_text().splitlines()
        return int(next(line.split()[1] for line in lines if line.startswith("VmRSS"))) / 1024

    @property
    def descriptors(self) -> int:
        assert self.node.process is not None
        return len(list(Path(f"/proc/{self.node.process.pid}/fd").iterdir()))


@contextmanager
def secured_node(directory: Path, **more: str) -> Iterator[Secured]:
    """A node of one broker and controller. ``more``: settings, with ``_`` for each dot."""
    ports = free_ports(5)
    issued = AUTHORITY.issue("node", "localhost", "127.0.0.1")
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "node.pem").write_text(issued.both)
    accepted = " ".join(f'user_{name}="{password}"' for name, password in USERS.items())
    jaas = f"{PLAIN_MODULE} required {accepted};"
    names = ("plaintext", "sasl_plaintext", "ssl", "sasl_ssl")
    listeners = ",".join(f"{name.upper()}://127.0.0.1:{port}" for name, port in zip(names, ports, strict=False))
    properties = {
        "listeners": f"{listeners},CONTROLLER://127.0.0.1:{ports[4]}",
        "advertised.listeners": listeners,
        "inter.broker.listener.name": "PLAINTEXT",
        "controller.quorum.voters": f"1@127.0.0.1:{ports[4]}",
        "listener.security.protocol.map": ",".join(f"{name.upper()}:{name.upper()}" for name in names) + ",CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": jaas,
        "listener.name.sasl_ssl.plain.sasl.jaas.config": jaas,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(directory / "node.pem"),
        "tidelog.http.listener": "",
        "auto.create.topics.enable": "false",
        **{name.replace("_", "."): value for name, value in more.items()},
    }
    with running(Node("tidelog", directory, None, properties, ports=[ports[0], ports[4]])) as node:
        yield Secured(node, *ports[:4])
        assert not [line for line in node.complaints() if "Traceback" in line], node.log_tail()
