"""The sides of a row on one node: tidelog, Apache Kafka, the C limit; each listens in plaintext and has its own defaults."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from bench.pair import servers
from bench.pair.checkouts import ROOT, Checkout
from bench.pair.processes import free_ports, launch, run
from bench.pair.servers import CLUSTER_ID, LOOPBACK, START_S, Server
from bench.sides import KAFKA_FLAGS
from tests.interop.java import LOG4J
from tests.interop.nodes import environment
from tools.jars import ensure

LIMIT, TIDELOG, APACHE = "limit", "tidelog", "apache"
NAMES = {LIMIT: "C limit", TIDELOG: "tidelog", APACHE: "Kafka"}


def this_tree() -> Checkout:
    """What is measured: the tree that this harness belongs to, by the newest commit of what matters to a sample; ``+``: and what
    is not committed. A commit of results does not change it."""

    def git(*args: str) -> str:
        done = subprocess.run(["git", *args, "--", "src", "bench"], cwd=ROOT, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    commit = git("log", "-1", "--format=%h") or "unknown"
    return Checkout(commit + "+" * bool(git("status", "--porcelain", "--untracked-files=no")), ROOT, Path(sys.executable))


def tidelog(home: Path, seed: int) -> Server:
    """A node of this tree that answers."""
    server = servers.node(this_tree(), home, seed)
    return _answering(server)


def limit(home: Path) -> Server:
    """The C limit, fresh."""
    return _answering(servers.limit(home))


def apache(home: Path) -> Server:
    """Apache Kafka with the flags of its own start script. Raises JarsMissing."""
    home.mkdir(parents=True)
    broker, controller = free_ports(2)
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{LOOPBACK}:{controller}",
        "listeners": f"PLAINTEXT://{LOOPBACK}:{broker},CONTROLLER://{LOOPBACK}:{controller}",
        "advertised.listeners": f"PLAINTEXT://{LOOPBACK}:{broker}",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": str(home / "data"),
        "log.retention.ms": "-1",
        "offsets.topic.replication.factor": "1",
        # topics go between two rows; a minute later their files would be unlinked within a sample
        "log.segment.delete.delay.ms": "1000",
    }
    path = home / "server.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    java = [f"-Dlog4j2.configurationFile={LOG4J}", "-Dlog.level=warn", "-cp", str(ensure() / "*")]
    run(["java", *java, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(path)], environment(), home, START_S)
    server = Server(home, [broker])
    command = ["java", *KAFKA_FLAGS, *java, "kafka.Kafka", str(path)]
    server.processes.append(launch(command, home / "node.log", environment(), home))
    return _answering(server)


def _answering(server: Server) -> Server:
    try:
        server.await_answer()
    except BaseException:
        server.stop()
        raise
    return server
