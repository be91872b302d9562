"""A cluster in a bad network, on disks that fail: every listener is reached through ``tests.faults.network`` alone."""

from __future__ import annotations

import contextlib
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.faults.network import CLIENTS, Network, address
from tests.interop.nodes import ROOT, environment, free_ports
from tests.matrix.placed_node import write_fault
from tests.node.cluster import CLUSTER_ID, Cluster, ClusterFailed
from tidelog.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from tidelog.protocol.messages.describe_quorum import DescribeQuorumRequest, RequestPartitionData, RequestTopicData
from tidelog.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from tidelog.protocol.messages.metadata import MetadataRequest
from tidelog.protocol.messages.user_scram_credential_record import UserScramCredentialRecord
from tidelog.raft.format import FormatRequest, format_dirs
from tidelog.raft.voters import VoterSet
from tidelog.records.control import Endpoint, Voter
from tidelog.server.disk import DiskFileSystem

DISKS = 2
REPLICAS = 3
METADATA = [RequestTopicData("__cluster_metadata", [RequestPartitionData(0)])]
TOOL_LIMIT_S = 60


class MatrixCluster(Cluster):
    """``doors``: the ports that stand for listeners of clients and brokers; ``controller_doors``: those for the quorum's."""

    def __init__(self, directory: Path, count: int = 3, *, combined: bool, properties: dict[str, str], seed: int = 0) -> None:
        self._stack = contextlib.ExitStack()
        self._seed = seed
        roles = "broker,controller" if combined else "broker"
        super().__init__(directory, count, roles=roles, properties=properties)

    def _format(self, features: dict[str, int] | None) -> None:
        """Two log dirs for each node, and the doors' addresses in the voters."""
        ports = iter(free_ports(len(self.brokers) + len(self.controllers)))
        self.doors = {node_id: next(ports) for node_id in self.brokers}
        self.controller_doors = {node_id: next(ports) for node_id in self.controllers}
        self.network = self._stack.enter_context(Network(self.ids, self._seed))
        for node_id in self.brokers:
            self.network.door(node_id, self.doors[node_id], self.ports[node_id])
        for node_id in self.controllers:
            self.network.door(node_id, self.controller_doors[node_id], self.controller_ports[node_id])
        self.directory.mkdir(parents=True, exist_ok=True)
        for node_id in self.ids:
            write_fault(self.faults(node_id), 0, 0, DISKS)
            self.format_node(node_id, self._voters() if node_id in self.controllers else None)

    def format_node(self, node_id: int, voters: VoterSet | None) -> None:
        """``voters``: the first ones of the quorum; None for who joins it later."""
        request = FormatRequest(self.dirs(node_id), node_id, CLUSTER_ID, initial_voters=voters, scram=self.first_users())
        format_dirs(DiskFileSystem(), request, rng=random.Random(node_id), now_ms=time.time_ns() // 1_000_000)

    def _voters(self) -> VoterSet:
        return VoterSet.of(
            Voter(each, self._directory_id(each), (Endpoint("CONTROLLER", "127.0.0.1", self.controller_doors[each]),))
            for each in self.controllers
        )

    def first_users(self) -> list[UserScramCredentialRecord]:
        """With SCRAM credentials from the start."""
        return []

    @property
    def client_file(self) -> Path:
        """``client_settings``, for clients in processes of their own."""
        return self.directory / "client.json"

    def dirs(self, node_id: int) -> list[str]:
        """Its log dirs; the metadata is in the first."""
        return [str(self.path(node_id)), str(self.directory / f"data-{node_id}-b")]

    def faults(self, node_id: int) -> Path:
        return self.directory / f"faults-{node_id}"

    def settings(self, node_id: int) -> dict[str, str]:
        advertised = []
        if node_id in self.brokers:
            advertised.append(f"PLAINTEXT://127.0.0.1:{self.doors[node_id]}")
        if node_id in self.controllers:
            advertised.append(f"CONTROLLER://127.0.0.1:{self.controller_doors[node_id]}")
        return {
            **super().settings(node_id),
            "log.dirs": ",".join(self.dirs(node_id)),
            "metadata.log.dir": self.dirs(node_id)[0],
            "advertised.listeners": ",".join(advertised),
            "controller.quorum.bootstrap.servers": self.bootstrap_controllers,
        }

    def command(self, node_id: int, properties: Path) -> list[str]:
        script = ROOT / "tests" / "matrix" / "placed_node.py"
        return [sys.executable, str(script), address(node_id), str(self.faults(node_id)), str(properties)]

    def launch(self, *node_ids: int, **properties: str) -> None:
        chosen = node_ids or tuple(each for each in self.ids if each not in self.running)
        for node_id in chosen:
            self.network.open(node_id)
        super().launch(*chosen, **properties)

    def kill(self, *node_ids: int) -> None:
        for node_id in node_ids:
            self.network.shut(node_id)
        super().kill(*node_ids)

    def stop(self, *node_ids: int) -> None:
        super().stop(*node_ids)
        for node_id in node_ids:
            self.network.shut(node_id)

    def address(self, node_id: int) -> str:
        return f"127.0.0.1:{self.doors[node_id]}"

    @property
    def bootstrap(self) -> str:
        """All brokers: clients of the matrix outlive each of them."""
        return ",".join(map(self.address, self.brokers))

    @property
    def bootstrap_controllers(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self.controller_doors.values())

    def close(self) -> None:
        try:
            super().close()
        finally:
            self._stack.close()

    # Faults

    @contextlib.contextmanager
    def faulty(self, change: Callable[[Network], None]) -> Iterator[None]:
        """The network as ``change`` makes it, and well again afterwards."""
        change(self.network)
        try:
            yield
        finally:
            self.network.heal()

    def peers(self, node_id: int) -> list[int]:
        """All other nodes."""
        return [each for each in self.ids if each != node_id]

    def everybody(self) -> list[object]:
        """All nodes and the clients."""
        return [*self.ids, CLIENTS]

    def spoil(self, node_id: int, log_dir: int, error: int) -> None:
        """Its disk fails with that errno from now on; 0: it is well again."""
        write_fault(self.faults(node_id), log_dir, error)

    # What is seen

    def answering(self, ids: Iterable[int]) -> list[int]:
        """Those that run and are not paused. They are asked behind the network's back."""
        return [each for each in ids if each in self.running and each not in self.paused]

    def quorum(self) -> Any:
        """What the leader of the metadata quorum says of it; None while there is no leader."""
        return self.quorum_without(-1)

    def _quorum_at(self, node_id: int) -> Any:
        with contextlib.suppress(OSError):
            told = self.ask(node_id, DescribeQuorumRequest(topics=METADATA), controller=True)
            if not told.error_code and told.topics and not told.topics[0].partitions[0].error_code:
                return told.topics[0].partitions[0]
        return None

    def leads(self, node_id: int, partition: str = "") -> bool:
        """Whether any other broker says that it leads (that partition, or any); True also without any answer."""
        for each in self.answering(self.brokers):
            if each != node_id:
                with contextlib.suppress(OSError):
                    told = self.ask(each, MetadataRequest(topics=None))
                    leaders = {f"{t.name}-{p.partition_index}": p.leader_id for t in told.topics for p in t.partitions}
                    if (not partition and node_id in leaders.values()) or leaders.get(partition) == node_id:
                        return True
                    continue
                return True
        return False

    def holds(self, node_id: int, partition: str) -> int:
        """In which of its log dirs a replica lies."""
        return next(index for index, each in enumerate(self.dirs(node_id)) if (Path(each) / partition).exists())

    def quorum_without(self, node_id: int) -> Any:
        """Whether it leads, according to the other brokers."""
        for each in self.answering(self.controllers):
            if each != node_id and (told := self._quorum_at(each)) is not None:
                return told
        return None

    def controller(self) -> int:
        """The active controller."""
        found = self.until(lambda: self.quorum() or None, "an active controller")
        return int(found.leader_id)

    def epoch(self) -> int:
        """The quorum's."""
        return int(self.until(lambda: self.quorum() or None, "an active controller").leader_epoch)

    def voters(self) -> list[int]:
        """Who votes."""
        found = self.quorum()
        return sorted(each.replica_id for each in found.current_voters) if found is not None else []

    def out_of_sync(self, everybody: bool = True) -> list[str]:
        """Partitions that are not in sync, and what each broker sees otherwise; empty is well. ``everybody``: all brokers run."""
        asked = self.brokers if everybody else self.answering(self.brokers)
        views: dict[int, dict[str, tuple[int, tuple[int, ...], tuple[int, ...]]]] = {}
        for node_id in asked:
            try:
                views[node_id] = self._view(node_id)
            except (OSError, KeyError) as error:
                return [f"broker {node_id} does not answer: {error}"]
        found = []
        for node_id, view in views.items():
            for name, (leader, replicas, isr) in view.items():
                if leader not in isr or set(isr) != set(replicas) or len(replicas) != REPLICAS:
                    found.append(f"{name}: leader {leader}, replicas {replicas}, ISR {isr}, says broker {node_id}")
        if not found and len({repr(sorted(view.items())) for view in views.values()}) > 1:
            found.append(f"brokers see different clusters: {views}")
        return found

    def _view(self, node_id: int) -> dict[str, tuple[int, tuple[int, ...], tuple[int, ...]]]:
        told = self.ask(node_id, MetadataRequest(topics=None))
        if len(told.brokers) != len(self.brokers):
            raise KeyError(f"it knows the brokers {sorted(each.node_id for each in told.brokers)} only")
        return {
            f"{topic.name}-{each.partition_index}": (each.leader_id, tuple(each.replica_nodes), tuple(sorted(each.isr_nodes)))
            for topic in told.topics
            for each in topic.partitions
        }

    def in_sync(self, bound_s: float = 90.0) -> None:
        """Wait until every partition has all its replicas in sync, as every broker sees it."""
        deadline = time.monotonic() + bound_s
        while wrong := self.out_of_sync():
            if time.monotonic() > deadline:
                said = "\n".join(wrong[:10])
                raise ClusterFailed(f"not in sync again within {bound_s:.0f} s:\n{said}\n{self.tails()}")
            time.sleep(0.2)

    def unlike(self, topics: Iterable[str], partitions: int) -> list[str]:
        """Partitions whose replicas are not the same, byte for byte. Stop all writers first."""
        found = []
        for topic in topics:
            for index in range(partitions):
                logs = {}
                for node_id in self.brokers:
                    for each in self.dirs(node_id):
                        files = sorted((Path(each) / f"{topic}-{index}").glob("*.log"))
                        if files:
                            logs[node_id] = b"".join(file.read_bytes() for file in files)
                if len(logs) != REPLICAS or len(set(logs.values())) != 1:
                    found.append(f"{topic}-{index}: { ({each: len(data) for each, data in logs.items()}) } bytes")
        return found

    # What is changed

    def move(self, wanted: dict[tuple[str, int], list[int]]) -> None:
        """Begin reassignments; any broker passes them on."""
        topics = [ReassignableTopic(topic, [ReassignablePartition(index, to)]) for (topic, index), to in wanted.items()]
        (node_id, *_) = self.answering(self.brokers)
        told = self.ask(node_id, AlterPartitionReassignmentsRequest(topics=topics))
        errors = [told.error_message] if told.error_code else []
        errors += [part.error_message for topic in told.responses for part in topic.partitions if part.error_code]
        if errors:
            raise ClusterFailed(f"reassignments were refused: {errors}")

    def moving(self) -> bool:
        """Whether reassignments are under way; True also without an answer."""
        for node_id in self.answering(self.brokers):
            with contextlib.suppress(OSError):
                told = self.ask(node_id, ListPartitionReassignmentsRequest(topics=None))
                if not told.error_code:
                    return bool(told.topics)
        return True

    def directory_id(self, node_id: int) -> str:
        """Of its metadata dir, as tools write it."""
        text = (self.path(node_id) / "meta.properties").read_text()
        return next(line.split("=", 1)[1].strip() for line in text.splitlines() if line.startswith("directory.id"))

    def tool(self, *args: str) -> None:
        """``tidelog ARGS``; ClusterFailed unless it ends with 0."""
        command = [sys.executable, "-m", "tidelog.cli.main", *args]
        done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False, timeout=TOOL_LIMIT_S)
        if done.returncode:
            raise ClusterFailed(f"tidelog {' '.join(args)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")

    def remove_controller(self, node_id: int) -> None:
        """By the tool, as voter."""
        who = ("--controller-id", str(node_id), "--controller-directory-id", self.directory_id(node_id))
        self.tool("metadata-quorum", "--bootstrap-server", self.bootstrap, "remove-controller", *who)

    def add_controller(self, node_id: int) -> None:
        """By the tool, as voter; its process runs."""
        config = ("--command-config", str(self.directory / f"{node_id}.properties"))
        self.tool("metadata-quorum", *config, "--bootstrap-server", self.bootstrap, "add-controller")
