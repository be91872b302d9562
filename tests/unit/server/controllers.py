"""Controllers of one quorum, all in the loop of a test, with short timeouts."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from tests.unit.server.loops import finish, until
from tidelog.config.resolve import BrokerConfig
from tidelog.controller.quorum_controller import QuorumController
from tidelog.controller.result import ControllerResult
from tidelog.model.ids import Uuid
from tidelog.protocol.messages.config_record import ConfigRecord
from tidelog.raft.format import FormatRequest, format_dirs
from tidelog.raft.voters import VoterSet
from tidelog.records.control import Endpoint, Voter
from tidelog.server.cluster.controller_node import ControllerNode
from tidelog.server.disk import DiskFileSystem
from tidelog.server.runtime import LoopRuntime, new_event_loop

CLUSTER = "5L6g3nShT-eMCtK--X86sw"
NOW = 1_800_000_000_000
FS = DiskFileSystem()


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("localhost", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def directory_id(node_id: int) -> Uuid:
    return Uuid(node_id.to_bytes(2, "big") * 8)


class Controllers:
    """``voters`` first controllers of a dynamic quorum; ``spares`` that may join."""

    def __init__(self, directory: Path, voters: int = 3, spares: int = 0, **settings: str) -> None:
        self.directory = directory
        self.settings = settings
        self.ports = dict(enumerate(free_ports(voters + spares), 1))
        self.voters = VoterSet.of(
            Voter(each, directory_id(each), (Endpoint("CONTROLLER", "localhost", self.ports[each]),))
            for each in range(1, voters + 1)
        )
        for node_id in self.ports:
            first = self.voters if node_id <= voters else None
            request = FormatRequest([self.path(node_id)], node_id, CLUSTER, initial_voters=first)
            format_dirs(FS, request, rng=random.Random(node_id), now_ms=NOW)
        self.runtime = LoopRuntime(new_event_loop())
        self.nodes: dict[int, ControllerNode] = {}

    def path(self, node_id: int) -> str:
        return f"{self.directory}/d{node_id}"

    def config(self, node_id: int) -> BrokerConfig:
        return BrokerConfig.from_properties(
            {
                "process.roles": "controller",
                "node.id": str(node_id),
                "controller.listener.names": "CONTROLLER",
                "listeners": f"CONTROLLER://localhost:{self.ports[node_id]}",
                "controller.quorum.bootstrap.servers": ",".join(f"localhost:{port}" for port in self.ports.values()),
                "controller.quorum.election.timeout.ms": "300",
                "controller.quorum.fetch.timeout.ms": "1500",
                "controller.quorum.election.backoff.max.ms": "100",
                "metadata.max.idle.interval.ms": "100",
                "log.dirs": self.path(node_id),
                "tidelog.http.listener": "",
                **self.settings,
            }
        )

    async def start(self, *node_ids: int) -> None:
        for node_id in node_ids or tuple(self.ports):
            node = self.nodes[node_id] = ControllerNode(self.config(node_id), self.runtime)
            await node.start()

    async def stop(self, *node_ids: int) -> None:
        for node_id in node_ids or tuple(self.nodes):
            await self.nodes.pop(node_id).stop()

    until = staticmethod(until)

    def active(self) -> int | None:
        """The active controller, when there is exactly one."""
        found = [node_id for node_id, node in self.nodes.items() if node.runner.member.controller is not None]
        return found[0] if len(found) == 1 else None

    async def set(self, value: str) -> str:
        """A record through the active controller."""
        active = await self.until(self.active)
        answer: str = await self.nodes[active].runner.controller.submit(setting(value), None)
        return answer

    def value(self, node_id: int) -> str | None:
        return self.nodes[node_id].runner.member.image.cluster_configs.get("num.partitions")

    async def everywhere(self, value: str) -> None:
        await self.until(lambda: all(self.value(node_id) == value for node_id in self.nodes))

    def run(self, main: Callable[[], Awaitable[Any]]) -> Any:
        async def bounded() -> Any:
            try:
                return await asyncio.wait_for(main(), 60)
            finally:
                await self.stop()

        return self.runtime.loop.run_until_complete(bounded())

    def close(self) -> None:
        finish(self.runtime)


def setting(value: str) -> Callable[[QuorumController, Any, int], ControllerResult]:
    record = ConfigRecord(resource_type=4, resource_name="", name="num.partitions", value=value)
    return lambda controller, request, now_ms: ControllerResult.of(value, [record])
