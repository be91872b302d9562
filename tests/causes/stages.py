"""Where scenarios play: nodes with the settings that they need. Each stage is opened once, for all its scenarios."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.interop.nodes import free_ports
from tests.node.cluster import Cluster
from tests.unit.cli.running_node import node_in_a_thread, running_node

NODE: Final = "node"
GUARDED: Final = "a node with ACLs and an audit"
CLUSTER: Final = "three nodes"
PATIENT: Final = "three patient nodes"
SETTINGS: Final = {
    "group.initial.rebalance.delay.ms": "0",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.heartbeat.interval.ms": "500",
    "group.share.assignment.interval.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
}
"""Kafka's names; short times, and as many replicas as there are nodes."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Running nodes. ``endpoints``: their pages."""

    servers: str
    endpoints: Sequence[str]
    directory: Path
    cluster: Cluster | None = None
    guarded: str | None = None
    """Where applications log in."""


def one_node(**settings: str) -> Callable[[Path], AbstractContextManager[Stage]]:
    """A stage of one node, with more settings (``_`` for ``.``)."""

    @contextmanager
    def opened(directory: Path) -> Iterator[Stage]:
        (port,) = free_ports(1)
        own = {name.replace("_", "."): value for name, value in settings.items()}
        page = f"127.0.0.1:{port}"
        with running_node(directory, **{**SETTINGS, "tidelog.http.listener": page, **own}) as servers:
            yield Stage(servers, [page], directory)

    return opened


@contextmanager
def guarded_node(directory: Path) -> Iterator[Stage]:
    """Administrators come in without a login, applications as the user app."""
    (port,) = free_ports(1)
    page = f"127.0.0.1:{port}"
    settings = {
        **SETTINGS,
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
            'org.apache.kafka.common.security.plain.PlainLoginModule required user_app="app-secret";'
        ),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "tidelog.audit.topic": "__audit",
        "tidelog.http.listener": page,
    }
    with node_in_a_thread(directory, **settings) as node:
        ports = {name: f"127.0.0.1:{number}" for name, number in node.ports.items()}
        yield Stage(ports["PLAINTEXT"], [page], directory, guarded=ports["SASL_PLAINTEXT"])


@contextmanager
def three_nodes(directory: Path) -> Iterator[Stage]:
    """Processes, so that one can be stopped. Topics of offsets and of share states have one replica."""
    with cluster_stage(directory) as stage:
        yield stage


@contextmanager
def patient_nodes(directory: Path) -> Iterator[Stage]:
    """The controller waits long for a node that hangs."""
    with cluster_stage(directory, broker_session_timeout_ms="60000") as stage:
        yield stage


@contextmanager
def cluster_stage(directory: Path, **settings: str) -> Iterator[Stage]:
    """Three nodes."""
    properties = {
        **SETTINGS,
        **{name.replace("_", "."): value for name, value in settings.items()},
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "3",
        "share.coordinator.state.topic.num.partitions": "1",
    }
    with PagedCluster(directory, 3, properties=properties) as cluster:
        yield Stage(cluster.bootstrap, list(cluster.pages.values()), directory, cluster)


class PagedCluster(Cluster):
    """Each node serves its pages."""

    def __init__(self, *args: Any, **named: Any) -> None:
        self.pages: dict[int, str] = {}
        super().__init__(*args, **named)
        self.pages = {each: f"127.0.0.1:{port}" for each, port in zip(self.ids, free_ports(len(self.ids)), strict=True)}

    def settings(self, node_id: int) -> dict[str, str]:
        return {**super().settings(node_id), "tidelog.http.listener": self.pages[node_id]}


STAGES: Final[Mapping[str, Callable[[Path], AbstractContextManager[Stage]]]] = {
    NODE: one_node(),
    "two workers": one_node(group_share_max_size="2"),
    GUARDED: guarded_node,
    CLUSTER: three_nodes,
    PATIENT: patient_nodes,
}
