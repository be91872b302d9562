"""Clusters of tidelog's and Apache Kafka's nodes that talk to each other in nothing but mutual TLS."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.certificates import Authority
from tests.interop.nodes import free_ports
from tests.interop.test_mixed_cluster import MixedCluster, leaders_move

pytestmark = pytest.mark.interop


class SecuredCluster(MixedCluster):
    """Each node has its own certificate; a listener in plain text remains for the test itself."""

    def __init__(self, directory: Path, count: int, apache: Iterable[int], **more: Any) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._authority = Authority()
        (directory / "authority.pem").write_text(self._authority.pem)
        self._inside = dict(zip(range(1, count + 1), free_ports(count), strict=True))
        super().__init__(directory, count, apache, **more)

    def settings(self, node_id: int) -> dict[str, str]:
        settings = super().settings(node_id)
        keys = self.directory / f"{node_id}.pem"
        if not keys.exists():
            keys.write_text(self._authority.issue(f"node-{node_id}", "127.0.0.1").both)
        if node_id in self._inside:
            settings["listeners"] += f",INSIDE://127.0.0.1:{self._inside[node_id]}"
            settings["inter.broker.listener.name"] = "INSIDE"
        return settings | {
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INSIDE:SSL,CONTROLLER:SSL",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(keys),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.directory / "authority.pem"),
            "ssl.client.auth": "required",
        }


def test_an_apache_broker_serves_under_our_controllers(tmp_path: Path) -> None:
    with SecuredCluster(tmp_path, 2, apache=[2]) as cluster:
        leaders_move(cluster, 1, 2)
        assert "handshake" not in cluster.log(1)


def test_our_broker_serves_under_an_apache_controller(tmp_path: Path) -> None:
    with SecuredCluster(tmp_path, 2, apache=[2, 101], controllers=1) as cluster:
        leaders_move(cluster, 1, 2)
