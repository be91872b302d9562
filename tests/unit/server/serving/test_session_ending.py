"""Sessions of users whose SCRAM credential changes, on several nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.unit.server.secured_nodes import SALT, secured_nodes
from tests.unit.server.several_nodes import SeveralNodes
from tidelog.client.connection import ClientConnection
from tidelog.client.connection_opening import authentication, versions
from tidelog.client.failures import NotAuthenticated
from tidelog.client.net.async_connection import Asked, Line
from tidelog.client.settings import Sasl
from tidelog.controller.quorum_controller import QuorumController
from tidelog.metadata.image import ClusterImage
from tidelog.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from tidelog.protocol.messages.describe_cluster import DescribeClusterRequest
from tidelog.security.scram import ScramMechanism, credential_of, salted_password
from tidelog.server.serving.session_ending import LATEST_S, SessionEnding

KIND = ScramMechanism.SHA_256
ON = {"tidelog.scram.changes.end.sessions": "true"}
USERS = {"carol": "pencil", "dave": "pencil"}


async def login(world: SeveralNodes, via: int, user: str, password: str = "pencil") -> Line:
    line = Line(ClientConnection("me"), Line.close)
    await world.runtime.loop.create_connection(lambda: line, "127.0.0.1", world.ports[via])
    await line.converse(versions(line.machine), world.runtime.loop)
    await line.converse(
        authentication(line.machine, Sasl(KIND.title, user, password), "here", f"{user}{via}"), world.runtime.loop
    )
    return line


def sessions(world: SeveralNodes, user: str) -> list[int]:
    """The nodes on which the user has open sessions."""
    return [
        node_id
        for node_id, node in world.nodes.items()
        for listener in node.listeners
        for each in listener.connections
        if each.machine.session.principal.name == user
    ]


async def alter(world: SeveralNodes, **changes: Any) -> None:
    handler = QuorumController.alter_user_scram_credentials
    answer = await world.nodes[world.passive()].controller.submit(handler, AlterUserScramCredentialsRequest(**changes))
    assert [each.error_code for each in answer.results] == [0]


def new_password(user: str, password: str) -> ScramCredentialUpsertion:
    return ScramCredentialUpsertion(user, KIND, 4096, SALT, salted_password(KIND, password, SALT, 4096))


async def served(world: SeveralNodes, line: Line) -> bool:
    asked = Asked(DescribeClusterRequest(), False, world.runtime.loop.create_future())
    line.send(asked)
    return bool((await asked.answer).error_code == 0)


@pytest.mark.parametrize("removed", [True, False])
def test_they_end_on_every_node_and_those_of_others_stay(tmp_path: Path, removed: bool) -> None:
    world = secured_nodes(tmp_path, USERS, ON)

    async def main() -> None:
        await world.start()
        lines = [await login(world, via, user) for via in world.ids for user in USERS]
        assert sessions(world, "carol") == sessions(world, "dave") == list(world.ids)
        if removed:
            await alter(world, deletions=[ScramCredentialDeletion("carol", KIND)])
        else:
            await alter(world, upsertions=[new_password("carol", "new")])
        await world.until(lambda: not sessions(world, "carol"))
        assert sessions(world, "dave") == list(world.ids)
        for line in lines[1::2]:
            assert await served(world, line)
        with pytest.raises(NotAuthenticated):
            await login(world, 1, "carol")
        if not removed:
            assert await served(world, await login(world, 1, "carol", "new"))
        for line in lines:
            line.close(ConnectionAbortedError())

    world.run(main)
    world.close()


def test_without_the_option_they_stay(tmp_path: Path) -> None:
    world = secured_nodes(tmp_path, USERS, controllers=1)

    async def main() -> None:
        await world.start()
        assert world.nodes[1].replica.session_ending is None
        line = await login(world, 1, "carol")
        handler = QuorumController.alter_user_scram_credentials
        deletion = AlterUserScramCredentialsRequest(deletions=[ScramCredentialDeletion("carol", KIND)])
        await world.nodes[1].controller.submit(handler, deletion)
        await world.until(lambda: ("carol", KIND) not in world.nodes[1].broker.image.scram)
        assert await served(world, line)
        line.close(ConnectionAbortedError())

    world.run(main)
    world.close()


class Connection:
    """Records that it is drained."""

    def __init__(self, user: str | None, title: str = KIND.title) -> None:
        self.credential = None if user is None else (user, title)
        self.peer_host = "10.0.0.1"
        self.machine = self.authentication = self
        self.drained = self.closed = False

    def drain(self) -> None:
        self.drained = True

    def close(self) -> None:
        self.closed = True


class Timers:
    """Keeps what was put off."""

    def __init__(self) -> None:
        self.later: list[tuple[float, Callable[[], object]]] = []

    def call_later(self, delay_s: float, callback: Callable[[], object]) -> None:
        self.later.append((delay_s, callback))


def test_after_a_snapshot_only_credentials_that_differ_count() -> None:
    stored = credential_of(KIND, salted_password(KIND, "pencil", SALT, 4096), SALT, 4096)
    old = ClusterImage(cluster_id="c", scram={(name, int(KIND)): stored for name in ("changed", "removed", "kept")})
    changed = stored._replace(iterations=5000)
    new = replace(old, scram={("changed", 1): changed, ("kept", 1): stored._replace(), ("added", 1): stored})
    connections = {name: Connection(name) for name in ("changed", "removed", "kept", "added")}
    connections["other mechanism"] = Connection("changed", ScramMechanism.SHA_512.title)
    connections["not scram"] = Connection(None)
    ending, timers = SessionEnding(), Timers()
    listener: Any = type("Listening", (), {"name": "L", "connections": dict.fromkeys(connections.values()), "runtime": timers})
    ending.add(listener)
    ending.follow(old, old, None)
    assert not any(each.drained for each in connections.values())
    ending.follow(old, new, None)
    assert [name for name, each in connections.items() if each.drained] == ["changed", "removed"]
    for delay_s, callback in timers.later:
        assert delay_s == LATEST_S
        callback()
    assert [name for name, each in connections.items() if each.closed] == ["changed", "removed"], "whatever they still do"
