"""Several nodes of one cluster, all in the loop of a test, with short timeouts."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.unit.server.controllers import CLUSTER, FS, NOW, directory_id, free_ports
from tests.unit.server.loops import finish, until
from tidelog.config.resolve import BrokerConfig
from tidelog.controller.quorum_controller import QuorumController
from tidelog.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tidelog.protocol.messages.user_scram_credential_record import UserScramCredentialRecord
from tidelog.raft.format import FormatRequest, format_dirs
from tidelog.raft.voters import VoterSet
from tidelog.records.control import Endpoint, Voter
from tidelog.server.node import Node
from tidelog.server.runtime import LoopRuntime, new_event_loop
from tidelog.server.serving.connection_states import State
from tidelog.server.serving.listener import Listener


class SeveralNodes:
    """``controllers`` are brokers and controllers, the first nodes; ``brokers`` more are brokers only."""

    def __init__(
        self,
        directory: Path,
        controllers: int = 3,
        brokers: int = 0,
        *,
        scram: Sequence[UserScramCredentialRecord] = (),
        given: Mapping[str, str] | None = None,
        **settings: str,
    ) -> None:
        """``scram``: the first users; ``given``: settings as they are written, beside those with ``_`` for ``.``."""
        self.directory = directory
        self.settings = {name.replace("_", "."): value for name, value in settings.items()} | dict(given or {})
        self.ids = tuple(range(1, controllers + brokers + 1))
        self.controllers = self.ids[:controllers]
        ports = free_ports(len(self.ids) + controllers)
        self.ports = dict(zip(self.ids, ports, strict=False))
        self.controller_ports = dict(zip(self.controllers, ports[len(self.ids) :], strict=True))
        voters = VoterSet.of(
            Voter(each, directory_id(each), (Endpoint("CONTROLLER", "localhost", port),))
            for each, port in self.controller_ports.items()
        )
        for node_id in self.ids:
            first = voters if node_id in self.controllers else None
            request = FormatRequest([self.path(node_id)], node_id, CLUSTER, initial_voters=first, scram=scram)
            format_dirs(FS, request, rng=random.Random(node_id), now_ms=NOW)
        self.runtime = LoopRuntime(new_event_loop())
        self.nodes: dict[int, Node] = {}

    def path(self, node_id: int) -> str:
        return f"{self.directory}/d{node_id}"

    def config(self, node_id: int) -> BrokerConfig:
        votes = node_id in self.controllers
        listeners = f"PLAINTEXT://localhost:{self.ports[node_id]}"
        return BrokerConfig.from_properties(
            {
                "process.roles": "broker,controller" if votes else "broker",
                "node.id": str(node_id),
                "controller.listener.names": "CONTROLLER",
                "listeners": f"{listeners},CONTROLLER://localhost:{self.controller_ports[node_id]}" if votes else listeners,
                "controller.quorum.bootstrap.servers": ",".join(f"localhost:{each}" for each in self.controller_ports.values()),
                "controller.quorum.election.timeout.ms": "300",
                "controller.quorum.fetch.timeout.ms": "1500",
                "controller.quorum.election.backoff.max.ms": "100",
                "broker.heartbeat.interval.ms": "200",
                "broker.session.timeout.ms": "1500",
                "tidelog.http.listener": "",
                "log.dirs": self.path(node_id),
                **self.settings,
            }
        )

    async def start(self, *node_ids: int) -> None:
        """Together: none of them is unfenced before there is a quorum."""
        for node_id in node_ids or self.ids:
            self.nodes[node_id] = Node(self.config(node_id), self.runtime)
        await asyncio.gather(*(self.nodes[node_id].start() for node_id in node_ids or self.ids))

    async def stop(self, *node_ids: int) -> None:
        for node_id in node_ids or tuple(self.nodes):
            await self.nodes.pop(node_id).stop()

    until = staticmethod(until)

    def active(self) -> int | None:
        """The active controller, when there is exactly one."""
        found = [node_id for node_id, node in self.nodes.items() if node.controller.is_here]
        return found[0] if len(found) == 1 else None

    def passive(self) -> int:
        """A node that is not the active controller."""
        return next(node_id for node_id, node in self.nodes.items() if not node.controller.is_here)

    async def create(self, via: int, name: str, partitions: int = 1, replicas: int = 1) -> int:
        """A topic; the error code."""
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=replicas)
        request = CreateTopicsRequest(topics=[topic], timeout_ms=30_000)
        response = await self.nodes[via].controller.submit(QuorumController.create_topics, request)
        return int(response.topics[0].error_code)

    async def everywhere(self, what: Callable[[Node], Any]) -> None:
        await self.until(lambda: all(what(node) for node in self.nodes.values()))

    async def in_sync(self, name: str, replicas: int) -> None:
        """Until every node knows that so many replicas of the topic's first partition are in sync."""

        def there(node: Node) -> bool:
            topic = node.parts.broker.image.topics.by_name.get(name)
            return topic is not None and len(topic.partitions[0].isr) == replicas

        await self.everywhere(there)

    def listeners(self) -> list[Listener]:
        """Of all nodes, the controllers' too."""
        parts = [node.parts for node in self.nodes.values()]
        return [listener for each in parts for listener in (*each.listeners, *each.membership.replica.listeners)]

    def users(self) -> set[str]:
        """The principals of all open connections."""
        machines = [each.machine for listener in self.listeners() for each in listener.connections]
        return {str(each.session.principal) for each in machines if each.state is State.OPEN}

    def run(self, main: Callable[[], Awaitable[Any]]) -> Any:
        async def bounded() -> Any:
            try:
                return await asyncio.wait_for(main(), 60)
            finally:
                await asyncio.gather(*(node.stop() for node in self.nodes.values()))

        return self.runtime.loop.run_until_complete(bounded())

    def close(self) -> None:
        finish(self.runtime)
