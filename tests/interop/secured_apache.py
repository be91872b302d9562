"""An Apache Kafka node with a listener of every security protocol, and the user ``me`` with the password ``secret``."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from tests.interop.java import JavaSide
from tests.interop.nodes import Node, free_ports, running

LISTENERS = {"SSL": "SSL", "SASLSSL": "SASL_SSL", "SASLPLAIN": "SASL_PLAINTEXT"}
JAAS = "org.apache.kafka.common.security"


@dataclass(frozen=True)
class Brokers:
    """The addresses of one node, by security protocol, and the file to trust: the broker's key and certificate, for 127.0.0.1."""

    addresses: dict[str, str]
    pem: Path


@contextmanager
def secured_apache(java: JavaSide, folder: Path) -> Iterator[Brokers]:
    """The node, running."""
    pem = _certificate(folder)
    ports = free_ports(5)
    named = dict(zip(("PLAINTEXT", "CONTROLLER", *LISTENERS), ports, strict=True))
    properties = {
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in named.items()),
        "advertised.listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in named.items() if name != "CONTROLLER"),
        "listener.security.protocol.map": ",".join(f"{name}:{LISTENERS.get(name, 'PLAINTEXT')}" for name in named),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(pem),
        "log.retention.ms": "-1",
    }
    for name in ("saslssl", "saslplain"):
        prefix = f"listener.name.{name}"
        properties[f"{prefix}.sasl.enabled.mechanisms"] = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"
        properties[f"{prefix}.plain.sasl.jaas.config"] = f'{JAAS}.plain.PlainLoginModule required user_me="secret";'
        for digest in ("256", "512"):
            properties[f"{prefix}.scram-sha-{digest}.sasl.jaas.config"] = f"{JAAS}.scram.ScramLoginModule required;"
    node = Node("apache", folder / "node", java, properties, ports=ports[:2])
    with running(node):
        _create_user(node.bootstrap)
        addresses = {LISTENERS.get(name, name): f"127.0.0.1:{port}" for name, port in named.items()}
        yield Brokers(addresses, pem)


def _certificate(folder: Path) -> Path:
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key", "-out", "crt", "-days", "2"]
    subprocess.run(
        [*command, "-subj", "/CN=broker", "-addext", "subjectAltName=IP:127.0.0.1"], cwd=folder, check=True, capture_output=True
    )
    both = folder / "both.pem"
    both.write_text((folder / "key").read_text() + (folder / "crt").read_text())
    return both


def _create_user(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    kinds = (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)
    for change in [UserScramCredentialUpsertion("me", ScramCredentialInfo(kind, 8192), b"secret") for kind in kinds]:
        admin.alter_user_scram_credentials([change])["me"].result()
