"""What is measured under TLS, started: tidelog, tidelog without sendfile, Apache Kafka, and the C limit.

All have the listeners PLAINTEXT, SSL and SASL_SSL, one key on the curve P-256, TLS 1.3, and the SCRAM user of ``scram.h``.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from bench.pair.processes import free_ports, launch, run
from bench.pair.programs import program
from bench.pair.servers import CLUSTER_ID, LOOPBACK, QUIET, START_S, Server
from bench.sides import KAFKA_FLAGS
from tests.certificates import Authority
from tests.interop.java import LOG4J
from tests.interop.nodes import environment
from tools.jars import ensure

HERE = Path(__file__).parent
TIDELOG, COPYING, APACHE, LIMIT = "tidelog", "tidelog, copying", "apache", "limit"
PLAINTEXT, SSL, SASL_SSL = "PLAINTEXT", "SSL", "SASL_SSL"
LISTENERS = (PLAINTEXT, SSL, SASL_SSL)
"""In the order of a server's ports."""
_LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
_SCRAM = "SCRAM-SHA-512=[name=me,password=secret]"


def load_program() -> Path:
    """The generator. Raises NoCompiler."""
    return program("tls_load", HERE, ("ssl", "crypto", "pthread"))


def limit_program() -> Path:
    """The limit. Raises NoCompiler."""
    return program("tls_limit", HERE, ("ssl", "crypto"))


def make_certificate(folder: Path) -> Path:
    """A file with a key and a certificate for 127.0.0.1, in PEM."""
    path = folder / "node.pem"
    path.write_text(Authority("bench").issue("node", LOOPBACK).both)
    path.chmod(0o600)
    return path


def port_of(server: Server, listener: str) -> int:
    """Where a listener of the server is."""
    return server.ports[LISTENERS.index(listener)]


def _properties(home: Path, ports: Sequence[int], pem: Path) -> Path:
    """The settings, under Kafka's names, the same for both kinds of node."""
    controller, named = ports[-1], dict(zip(LISTENERS, ports, strict=False))
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{LOOPBACK}:{controller}",
        "listeners": ",".join(f"{name}://{LOOPBACK}:{port}" for name, port in {**named, "CONTROLLER": controller}.items()),
        "advertised.listeners": ",".join(f"{name}://{LOOPBACK}:{port}" for name, port in named.items()),
        "listener.security.protocol.map": ",".join(f"{name}:{name}" for name in LISTENERS) + ",CONTROLLER:PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": PLAINTEXT,
        "log.dirs": str(home / "data"),
        "log.retention.ms": "-1",
        "offsets.topic.replication.factor": "1",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(pem),
        "ssl.enabled.protocols": "TLSv1.3",
        "listener.name.sasl_ssl.sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": _LOGIN,
    }
    path = home / "server.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    return path


def _node(home: Path, pem: Path, tool: Sequence[str], start: Sequence[str], *, own: dict[str, str], seed: int) -> Server:
    home.mkdir(parents=True)
    ports = free_ports(4)
    path = _properties(home, ports, pem)
    with path.open("a") as file:
        file.writelines(f"{key}={value}\n" for key, value in own.items())
    surroundings = {**environment(), "PYTHONHASHSEED": str(seed)}
    run([*tool, "-t", CLUSTER_ID, "-c", str(path), "--add-scram", _SCRAM], surroundings, home, START_S)
    server = Server(home, ports[:3])
    server.processes.append(launch([*start, str(path)], home / "node.log", surroundings, home))
    return server


def tidelog(home: Path, pem: Path, seed: int, *, copying: bool = False) -> Server:
    """A node of this tree; ``copying``: without sendfile."""
    tool = [sys.executable, "-m", "tidelog.cli.main"]
    program_of_node = [sys.executable, str(HERE / "copying_node.py")] if copying else tool
    return _node(home, pem, [*tool, "format"], [*program_of_node, "start"], own=QUIET, seed=seed)


def apache(home: Path, pem: Path) -> Server:
    """Apache Kafka with the flags of its own start script. Raises JarsMissing."""
    java = ["java", f"-Dlog4j2.configurationFile={LOG4J}", "-Dlog.level=warn", "-cp", str(ensure() / "*")]
    start = [java[0], *KAFKA_FLAGS, *java[1:], "kafka.Kafka"]
    return _node(home, pem, [*java, "kafka.tools.StorageTool", "format"], start, own={}, seed=0)


def limit(home: Path, pem: Path) -> Server:
    """The C limit, fresh."""
    home.mkdir(parents=True)
    plain, secure = free_ports(2)
    server = Server(home, [plain, secure, secure], knows_topics=False)
    command = [str(limit_program()), str(plain), str(secure), str(pem), str(home)]
    server.processes.append(launch(command, home / "limit.log", environment(), home))
    server.await_answer()
    return server
