"""The nodes of a local cluster: their roles, ports and data directories.

Stored in ``cluster.json`` in the cluster's folder, with a folder for each node beside it. The settings of a node are written
once, at its creation: from then on its ``server.properties`` belongs to the user. There are three voters or one: a quorum of two
would stop when either node does.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from tidelog.cli.refusal import CommandFailed

FILE = "cluster.json"
VOTERS = 3
CONTROLLER_OFFSET = 1000
"""Difference between a node's controller port and its broker port."""
METRICS_OFFSET = 2000
"""Difference between the port of /metrics and /healthz and the broker port."""
MOST_NODES = CONTROLLER_OFFSET - 1
LAST_PORT = 65535
HOST = "localhost"


@dataclass(frozen=True, slots=True)
class LocalNode:
    """A node. ``founder``: a voter from the beginning; other controllers ask to become voters."""

    id: int
    port: int
    controller: bool
    founder: bool
    rack: str | None = None
    directory_id: str = ""

    @property
    def controller_port(self) -> int:
        """The port of its controller, if it is one."""
        return self.port + CONTROLLER_OFFSET

    @property
    def metrics_address(self) -> str:
        """The address of /metrics and /healthz for new nodes; older ones have what their file says."""
        return f"{HOST}:{self.port + METRICS_OFFSET}"

    @property
    def address(self) -> str:
        """The address for clients."""
        return f"{HOST}:{self.port}"


@dataclass(frozen=True, slots=True)
class LocalCluster:
    """All nodes, by id, and the options of their creation."""

    cluster_id: str
    port: int
    racks: tuple[str, ...]
    settings: Mapping[str, str]
    nodes: tuple[LocalNode, ...]
    client_file: str | None = None
    """The settings of a client that may do everything; None in a cluster that anyone may use."""

    @property
    def bootstrap(self) -> str:
        """``--bootstrap-server`` for all nodes."""
        return ",".join(node.address for node in self.nodes)

    def node(self, node_id: int) -> LocalNode:
        """The node. CommandFailed when there is none with that id."""
        for node in self.nodes:
            if node.id == node_id:
                return node
        known = ", ".join(str(node.id) for node in self.nodes)
        raise CommandFailed(f"There is no node {node_id}; the cluster has {known}.")


def new_cluster(cluster_id: str, count: int, port: int, racks: Sequence[str], settings: Mapping[str, str]) -> LocalCluster:
    """``count`` nodes, from id 1 and this port on. CommandFailed when there are not enough ports."""
    if not 1 <= count <= MOST_NODES:
        raise CommandFailed(f"A cluster on one machine has 1 to {MOST_NODES} nodes, not {count}.")
    voters = VOTERS if count >= VOTERS else 1
    nodes = tuple(
        LocalNode(index + 1, port + index, index < voters, index < voters, racks[index % len(racks)] if racks else None)
        for index in range(count)
    )
    if nodes[-1].port + METRICS_OFFSET > LAST_PORT:
        raise CommandFailed(
            f"--port {port} leaves no room for {count} nodes: controllers listen {CONTROLLER_OFFSET} above, metrics are "
            f"{METRICS_OFFSET} above, up to {LAST_PORT}."
        )
    return LocalCluster(cluster_id, port, tuple(racks), dict(settings), nodes)


def grown(cluster: LocalCluster, count: int) -> LocalCluster:
    """The cluster grown to ``count`` nodes. One voter becomes three as soon as there are nodes for it. CommandFailed for a
    secured one."""
    missing = count - len(cluster.nodes)
    if missing <= 0:
        return cluster
    if cluster.client_file is not None:
        raise CommandFailed(
            f"This cluster is secured, and made for {len(cluster.nodes)} nodes: a further one would need a certificate of its "
            "authority. Make one with more nodes: tidelog secure DIR --nodes N"
        )
    controllers = sum(node.controller for node in cluster.nodes)
    more_voters = VOTERS - controllers if VOTERS - controllers <= missing else 0
    first = max(node.id for node in cluster.nodes) + 1
    added = tuple(
        LocalNode(
            node_id,
            cluster.port + node_id - 1,
            index < more_voters,
            founder=False,
            rack=cluster.racks[(node_id - 1) % len(cluster.racks)] if cluster.racks else None,
        )
        for index, node_id in enumerate(range(first, first + missing))
    )
    return replace(cluster, nodes=(*cluster.nodes, *added))


def without(cluster: LocalCluster, node_id: int) -> LocalCluster:
    """The cluster without a node. CommandFailed for a voter, which must be removed from the quorum first."""
    if cluster.node(node_id).controller:
        raise CommandFailed(f"Node {node_id} is a controller of this cluster, and stays. Others can be removed.")
    return replace(cluster, nodes=tuple(node for node in cluster.nodes if node.id != node_id))


def properties(cluster: LocalCluster, node: LocalNode, data: str) -> dict[str, str]:
    """The ``server.properties`` of a node: replication of the internal topics as high as the number of nodes allows."""
    factor = min(3, len(cluster.nodes))
    listeners = [f"PLAINTEXT://{node.address}"]
    if node.controller:
        listeners.append(f"CONTROLLER://{HOST}:{node.controller_port}")
    found_at = [f"{HOST}:{each.controller_port}" for each in cluster.nodes if each.controller]
    result = {
        "process.roles": "broker,controller" if node.controller else "broker",
        "node.id": str(node.id),
        "listeners": ",".join(listeners),
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": ",".join(found_at),
        "log.dirs": data,
        "default.replication.factor": str(factor),
        "offsets.topic.replication.factor": str(factor),
        "transaction.state.log.replication.factor": str(factor),
        "transaction.state.log.min.isr": str(min(2, factor)),
        "share.coordinator.state.topic.replication.factor": str(factor),
        "share.coordinator.state.topic.min.isr": str(min(2, factor)),
        # On one machine no node is silent because of the network: a third of Kafka's timeout.
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
        "tidelog.http.listener": node.metrics_address,
    }
    if node.controller and not node.founder:
        result["controller.quorum.auto.join.enable"] = "true"
    if node.rack is not None:
        result["broker.rack"] = node.rack
    return {**result, **cluster.settings}


def load(directory: str) -> LocalCluster | None:
    """The cluster in a folder; None when there is none. CommandFailed for a malformed file."""
    path = os.path.join(directory, FILE)
    try:
        with open(path, encoding="utf-8") as file:
            values = json.load(file)
        return LocalCluster(
            values["cluster_id"],
            values["port"],
            tuple(values["racks"]),
            values["settings"],
            tuple(LocalNode(**node) for node in values["nodes"]),
            values.get("client_file"),
        )
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise CommandFailed(f"{path} is not what tidelog cluster wrote: {error!r}") from error


def save(directory: str, cluster: LocalCluster) -> None:
    """Replaces the file atomically: a reader finds the old or the new one."""
    path = os.path.join(directory, FILE)
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        json.dump(asdict(cluster), file, indent=1)
    os.replace(f"{path}.new", path)
