"""The hardware of a simulated cluster: machines with formatted disks on one network and one agenda, and their clients.

``Shape`` sets the number of nodes of each kind. Brokers and controllers may join later (``join``), as with ``tidelog format`` and
``tidelog start`` on a new machine; using them is up to the simulated administrator.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tidelog.metadata.image import ClusterImage
from tidelog.metadata.supported_features import default_levels
from tidelog.model.ids import NO_BROKER, Uuid
from tidelog.raft.format import FormatRequest, format_dirs
from tidelog.raft.voters import VoterSet
from tidelog.records.control import Endpoint, Voter
from tidelog.replication.repair import damages
from tidelog.server.node import Node
from tidelog.testing.simulation.disk import SimDisk
from tidelog.testing.simulation.loop import Agenda, SimLoop, new_loop
from tidelog.testing.simulation.machines import EPOCH_MS, Machine
from tidelog.testing.simulation.network import Network

CLUSTER_ID = "5L6g3nShT-eMCtK--X86sw"
CLIENT_PORT, CONTROLLER_PORT = 9092, 9093
FIRST_CONTROLLER = 101
SETTINGS = {
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "controller.quorum.election.timeout.ms": "800",
    "controller.quorum.fetch.timeout.ms": "1500",
    "controller.quorum.election.backoff.max.ms": "400",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.heartbeat.interval.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "2000",
    "replica.lag.time.max.ms": "2000",
    "replica.fetch.backoff.ms": "200",
    "auto.create.topics.enable": "false",
    "leader.imbalance.check.interval.seconds": "10",
    "tidelog.http.listener": "",
}
"""Kafka's settings, shortened so that sessions, elections and balancing happen within a run of a minute."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of a cluster. ``controllers``: the number of nodes that are only controllers; with 0 the first three brokers
    are also controllers. ``static``: voters from ``controller.quorum.voters`` instead of a dynamic quorum. ``log_dirs``: disks
    per node. ``levels``: feature levels at format time. ``settings``: Kafka's settings on top of ``SETTINGS``."""

    brokers: int = 3
    controllers: int = 0
    static: bool = False
    log_dirs: int = 1
    levels: Mapping[str, int] = field(default_factory=default_levels)
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def broker_ids(self) -> list[int]:
        """1, 2, 3 ..."""
        return list(range(1, self.brokers + 1))

    @property
    def voter_ids(self) -> list[int]:
        """The initial voters of the metadata quorum."""
        if self.controllers:
            return list(range(FIRST_CONTROLLER, FIRST_CONTROLLER + self.controllers))
        return self.broker_ids[:3]

    @property
    def dirs(self) -> list[str]:
        """Each node's log dirs; the first one holds the metadata."""
        return ["/data", *(f"/data{number}" for number in range(2, self.log_dirs + 1))]


class SimCluster:
    """The simulated cluster. ``seed`` decides every random choice."""

    def __init__(self, shape: Shape, seed: int) -> None:
        self.shape = shape
        self.rng = random.Random(seed)
        self.agenda = Agenda(seed)
        self.network = Network(self.agenda, self.rng.getrandbits(64))
        self.machines: list[Machine] = []
        self.why = ""
        """What ``healthy`` or ``mended`` found wrong in its last call."""
        self.directories: dict[int, Uuid] = {}
        """The id of each node's metadata directory."""
        self._processes: list[SimLoop] = []
        replicas = str(min(shape.brokers, 3))
        self._settings = {
            **SETTINGS,
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": "2" if shape.brokers > 2 else "1",
            "default.replication.factor": replicas,
            "min.insync.replicas": "2" if shape.brokers > 2 else "1",
            **shape.settings,
        }
        self._first_voters = VoterSet.of(
            Voter(each, directory_id(each), (controller_endpoint(each),)) for each in shape.voter_ids
        )
        for node_id in sorted({*shape.broker_ids, *shape.voter_ids}):
            self._make(node_id, node_id in shape.broker_ids, node_id in shape.voter_ids)

    @property
    def brokers(self) -> list[Machine]:
        """The nodes that clients connect to."""
        return [each for each in self.machines if each.is_broker]

    @property
    def controllers(self) -> list[Machine]:
        """The nodes that may be voters."""
        return [each for each in self.machines if each.is_controller]

    @property
    def bootstrap(self) -> list[tuple[str, int]]:
        """The addresses of the initial brokers."""
        return [(host(each), CLIENT_PORT) for each in self.shape.broker_ids]

    def join(self, node_id: int, *, broker: bool = False, controller: bool = False) -> Machine:
        """Formats and starts a new machine that does not know the voters."""
        assert all(each.node_id != node_id for each in self.machines), node_id
        machine = self._make(node_id, broker, controller)
        machine.start()
        return machine

    def _make(self, node_id: int, broker: bool, controller: bool) -> Machine:
        disk = SimDisk(self.rng.getrandbits(32))
        first = node_id in self.shape.voter_ids and not self.shape.static
        initial = self._first_voters if first else None
        request = FormatRequest(self.shape.dirs, node_id, CLUSTER_ID, initial_voters=initial, levels=self.shape.levels)
        formatted = format_dirs(disk, request, rng=random.Random(node_id), now_ms=EPOCH_MS)
        self.directories[node_id] = formatted.directories[self.shape.dirs[0]]
        disk.sync_dir("/")  # the parent directory of the log dirs existed before
        properties = self._properties(node_id, broker, controller)
        seed = self.rng.getrandbits(64)
        machine = Machine(self.agenda, self.network, node_id, host(node_id), properties, seed, disk)
        self.machines.append(machine)
        return machine

    def _properties(self, node_id: int, broker: bool, controller: bool) -> dict[str, str]:
        roles, listeners = [], []
        if broker:
            roles.append("broker")
            listeners.append(f"PLAINTEXT://{host(node_id)}:{CLIENT_PORT}")
        if controller:
            roles.append("controller")
            listeners.append(f"CONTROLLER://{host(node_id)}:{CONTROLLER_PORT}")
        addresses = [(each, f"{host(each)}:{CONTROLLER_PORT}") for each in self.shape.voter_ids]
        if self.shape.static:
            quorum = {"controller.quorum.voters": ",".join(f"{each}@{address}" for each, address in addresses)}
        else:
            quorum = {"controller.quorum.bootstrap.servers": ",".join(address for _, address in addresses)}
        return {
            **self._settings,
            **quorum,
            "process.roles": ",".join(roles),
            "node.id": str(node_id),
            "listeners": ",".join(listeners),
            "controller.listener.names": "CONTROLLER",
            "log.dirs": ",".join(self.shape.dirs),
        }

    def process(self) -> SimLoop:
        """One more machine on the network, for a process that is not a node."""
        number = len(self._processes) + 1
        loop = new_loop(self.agenda, f"client {number}", seed=self.rng.getrandbits(64))
        self._processes.append(loop)
        self.network.attach(loop, f"10.1.{number // 250}.{number % 250 + 1}")
        return loop

    def start(self) -> None:
        """Starts every node that is not running."""
        for machine in self.machines:
            if not machine.running:
                machine.start()

    def serving(self) -> bool:
        """Whether every node is serving."""
        return all(each.serving for each in self.machines)

    def end(self) -> None:
        """Switches everything off."""
        for machine in self.machines:
            machine.kill()
        for loop in self._processes:
            loop.end()
        self.network.end()
        for machine in self.machines:
            machine.forget()
        for loop in self._processes:
            loop.forget()

    def problem(self, excused: Callable[[Machine], bool] = lambda _: False) -> str | None:
        """A failure that no fault explains: in a machine's log, or a node that stopped by itself."""
        for machine in self.machines:
            problems = machine.problems + (machine.loop.problems if machine.loop is not None else [])
            if problems:
                return problems[0]
            if machine.ended is not None and not excused(machine):
                return f"node {machine.node_id} ended: {machine.ended}"
        for loop in self._processes:
            if loop.problems:
                return loop.problems[0]
        return None

    def healthy(self) -> bool:
        """Whether every broker serves and knows the same topics, and every partition has a leader and all replicas in sync."""
        found = [image for image in map(image_of, self.brokers) if image is not None]
        self.why = _ailment(found) or "healthy" if len(found) == len(self.brokers) else "not every broker serves"
        return self.why == "healthy"

    def mended(self) -> bool:
        """Whether no serving broker knows of damaged batches in its replicas."""
        serving = [each.node.broker.replicas for each in self.brokers if each.serving and isinstance(each.node, Node)]
        logs = [each.log for replicas in serving for each in replicas.partitions()]
        found = [f"{log.dir}: offset {each.rotten.first_offset}" for log in logs if log is not None for each in damages(log)]
        self.why = f"damaged: {', '.join(found)}" if found else "mended"
        return not found

    def state(self) -> str:
        """The nodes' states, for the text of a violation."""

        def word(machine: Machine) -> str:
            if machine.ended is not None:
                return machine.ended
            return "serving" if machine.serving else "starting" if machine.running else "down"

        return ", ".join(f"{each.node_id}: {word(each)}" for each in self.machines)


def _ailment(images: Sequence[ClusterImage]) -> str | None:
    newest = max(images, key=lambda image: image.offset)
    for topic in newest.topics.by_id.values():
        for index, partition in enumerate(topic.partitions):
            if partition.leader == NO_BROKER or set(partition.isr) != set(partition.replicas) or partition.adding_replicas:
                return f"{topic.name}-{index}: leader {partition.leader}, isr {partition.isr} of {partition.replicas}"
    if any(image.topics.by_id.keys() != newest.topics.by_id.keys() for image in images):
        return "brokers know different topics"
    return None


def image_of(machine: Machine) -> ClusterImage | None:
    """The image of a serving broker."""
    return machine.node.broker.image if machine.serving and isinstance(machine.node, Node) else None


def newest_image(machines: Iterable[Machine]) -> ClusterImage | None:
    """The newest image of these brokers."""
    images = [image for image in map(image_of, machines) if image is not None]
    return max(images, key=lambda image: image.offset, default=None)


def host(node_id: int) -> str:
    """The address of a node."""
    return f"10.0.0.{node_id}"


def controller_endpoint(node_id: int) -> Endpoint:
    """The address of a controller's listener."""
    return Endpoint("CONTROLLER", host(node_id), CONTROLLER_PORT)


def directory_id(node_id: int) -> Uuid:
    """The directory id of an initial voter's metadata directory."""
    return Uuid(node_id.to_bytes(2, "big") * 8)
