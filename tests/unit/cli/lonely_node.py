"""A node of a cluster of one that wants three replicas of its internal topics, as Kafka's defaults do."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.unit.cli.running_node import running_node
from tests.unit.server.controllers import CLUSTER, FS, NOW, directory_id, free_ports
from tidelog.raft.format import FormatRequest, format_dirs
from tidelog.raft.voters import VoterSet
from tidelog.records.control import Endpoint, Voter


@contextmanager
def lonely_node(directory: Path) -> Iterator[str]:
    """Its ``host:port``, until the block ends."""
    with lonely_addresses(directory) as (address, _):
        yield address


@contextmanager
def lonely_addresses(directory: Path) -> Iterator[tuple[str, str]]:
    """``host:port`` of its listeners for clients and for controllers, until the block ends."""
    (port,) = free_ports(1)
    voters = VoterSet.of([Voter(1, directory_id(1), (Endpoint("CONTROLLER", "localhost", port),))])
    request = FormatRequest([str(directory / "data")], 1, CLUSTER, initial_voters=voters)
    format_dirs(FS, request, rng=random.Random(1), now_ms=NOW)
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://127.0.0.1:0,CONTROLLER://localhost:{port}",
        "controller.quorum.bootstrap.servers": f"localhost:{port}",
    }
    with running_node(directory, **settings) as address:
        yield address, f"localhost:{port}"
