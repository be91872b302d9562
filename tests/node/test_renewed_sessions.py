"""Brokers and controllers whose sessions among each other end every two seconds: they log in again and lose no connection."""

from __future__ import annotations

import json
from pathlib import Path

from tests.interop.nodes import free_ports
from tests.node.cluster import Cluster
from tests.node.test_cluster import create
from tidelog.config.jaas import PLAIN_MODULE
from tidelog.model.errors import ErrorCode

SESSION_MS = 2000
TIMES = 2
"""Later logins on one connection or more; one of them could be that of a session that began twice."""


class ShortSessions(Cluster):
    """Two nodes: a broker and a controller each; the test itself comes in without a login."""

    def __init__(self, directory: Path) -> None:
        self._inside = dict(zip((1, 2), free_ports(2), strict=True))
        super().__init__(directory, 2)

    def settings(self, node_id: int) -> dict[str, str]:
        settings = super().settings(node_id)
        settings["listeners"] += f",INSIDE://127.0.0.1:{self._inside[node_id]}"
        entry = f'{PLAIN_MODULE} required username="node" password="n0de" user_node="n0de";'
        for name in ("inside", "controller"):
            settings[f"listener.name.{name}.sasl.enabled.mechanisms"] = "PLAIN"
            settings[f"listener.name.{name}.plain.sasl.jaas.config"] = entry
            settings[f"listener.name.{name}.connections.max.reauth.ms"] = str(SESSION_MS)
        return settings | {
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INSIDE:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
            "inter.broker.listener.name": "INSIDE",
            "offsets.topic.replication.factor": "2",
            "tidelog.audit.file": str(self.audit(node_id)),
        }

    def audit(self, node_id: int) -> Path:
        return self.directory / f"audit-{node_id}.jsonl"

    def later_logins(self, listener: str) -> int:
        """How often a node logged in again on a listener of either node."""
        lines = [line for each in self.brokers for line in self.audit(each).read_text().splitlines()]
        events = [json.loads(line) for line in lines]
        return sum(each.get("again", False) for each in events if each.get("listener") == listener)


def test_nodes_log_in_again_before_a_session_ends(tmp_path: Path) -> None:
    with ShortSessions(tmp_path) as cluster:
        # Replication of this topic's partitions keeps connections between the brokers busy.
        cluster.until(lambda: create(cluster, 1, "t", 4, 2) in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS), "a topic")
        for listener in ("INSIDE", "CONTROLLER"):
            cluster.until(lambda: cluster.later_logins(listener) >= TIMES, f"later logins on {listener}")  # noqa: B023
        for each in cluster.brokers:
            assert "did not authenticate again" not in cluster.log(each)
            assert "cannot log in" not in cluster.log(each)
