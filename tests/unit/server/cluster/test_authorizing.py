from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.unit.server.several_nodes import SeveralNodes
from tests.unit.server.test_node import with_node
from tidelog.broker.authorization import allows
from tidelog.broker.node import Broker
from tidelog.broker.request import RequestContext, Session
from tidelog.config.authorizer import STANDARD_AUTHORIZER
from tidelog.controller.quorum_controller import QuorumController
from tidelog.model.acl import AclOperation as Op
from tidelog.model.acl import PatternType, PermissionType, ResourceType
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from tidelog.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from tidelog.security.principal import KafkaPrincipal
from tidelog.server.node import Node

ON = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:ANONYMOUS"}


def reads(node: Node, topic: str, name: str = "alice") -> bool:
    ctx: RequestContext[Broker] = RequestContext(
        node.broker, Session("PLAINTEXT", "127.0.0.1", KafkaPrincipal("User", name)), ApiKey.FETCH, 18
    )
    return allows(ctx, Op.READ, ResourceType.TOPIC, topic)


def creation(topic: str) -> AclCreation:
    return AclCreation(ResourceType.TOPIC, topic, PatternType.LITERAL, "User:alice", "*", Op.READ, PermissionType.ALLOW)


async def create(node: Node, *topics: str) -> list[int]:
    request = CreateAclsRequest(creations=[creation(each) for each in topics])
    response: Any = await node.controller.submit(QuorumController.create_acls, request)
    return [each.error_code for each in response.results]


def test_a_node_decides_by_the_acls_in_its_metadata_and_finds_them_again(tmp_path: Path) -> None:
    async def write(node: Node) -> None:
        assert not reads(node, "t")
        assert reads(node, "t", "ANONYMOUS")
        assert await create(node, "t", "u") == [0, 0]
        assert reads(node, "t") and reads(node, "u") and not reads(node, "t", "bob")

    async def look(node: Node) -> None:
        assert reads(node, "t") and reads(node, "u") and not reads(node, "v")
        everything = DeleteAclsFilter(ResourceType.ANY, None, PatternType.ANY, None, None, Op.ANY, PermissionType.ANY)
        await node.controller.submit(QuorumController.delete_acls, DeleteAclsRequest(filters=[everything]))
        assert not reads(node, "t")

    settings = {name.replace(".", "_"): value for name, value in ON.items()}
    with_node(tmp_path, write, **settings)
    with_node(tmp_path, look, **settings)


def test_a_node_without_an_authorizer_allows_everything_and_loads_nothing_of_one(tmp_path: Path) -> None:
    async def look(node: Node) -> None:
        assert node.broker.access is None
        assert reads(node, "t", "somebody")

    with_node(tmp_path, look)
    script = (
        "import sys\n"
        "import tidelog.server.node, tidelog.server.cluster.controller_node\n"
        "of_it = ('authorizer', 'access_control', 'acl_index', 'acl_filter', 'controller.acls', 'authorizer_log')\n"
        "of_it += ('auditing', 'audit_log', 'dry_run')\n"
        "print([name for name in sys.modules if name.startswith('tidelog.') and name.endswith(of_it)])"
    )
    assert subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout == "[]\n"


def test_every_node_of_a_cluster_follows_the_acls_and_its_controllers_decide_too(tmp_path: Path) -> None:
    world = SeveralNodes(tmp_path, controllers=1, brokers=1, given=ON)

    async def main() -> None:
        await world.start()
        assert await create(world.nodes[2], "t") == [0]
        await world.everywhere(lambda node: reads(node, "t"))
        assert all(not reads(node, "u") for node in world.nodes.values())
        for node in world.nodes.values():
            assert node.broker.access is node.replica.access
        await world.stop(2)
        await create(world.nodes[1], "u")
        await world.start(2)
        assert reads(world.nodes[2], "u"), "its listeners opened with the ACLs known"

    world.run(main)
    world.close()


def test_a_broker_whose_principal_is_no_super_user_cannot_join(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The dispatcher of the controllers' listener asks as well, and both sides say what is missing."""
    world = SeveralNodes(tmp_path, controllers=1, brokers=1, given=ON | {"super.users": "User:root"})

    async def main() -> None:
        await world.start(1)
        joining = asyncio.ensure_future(world.start(2))
        access = world.nodes[1].replica.access
        assert access is not None
        await world.until(lambda: access.denied >= 3)
        await world.until(lambda: any("in super.users, on every node" in each.getMessage() for each in caplog.records))
        assert sum("in super.users, on every node" in each.getMessage() for each in caplog.records) == 1
        assert not joining.done()
        joining.cancel()
        await asyncio.wait([joining])
        del world.nodes[2]

    world.run(main)
    world.close()


def test_a_dry_run_denies_nothing_and_says_so_from_the_start(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def talk(node: Node) -> None:
        assert reads(node, "t") and reads(node, "t", "ANONYMOUS")
        access = node.replica.access
        assert access is not None and access.dry_run is not None
        assert access.dry_run.denials == 1
        (warning,) = [each for each in caplog.records if "the authorizer is in a dry run" in each.getMessage()]
        assert warning.levelname == "WARNING"

    with_node(tmp_path, talk, **{name.replace(".", "_"): value for name, value in ON.items()}, tidelog_authorizer_dry_run="true")
