"""The admin client on a real node: every method, and what it raises."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.unit.client.net.servers import tls_in_front_of
from tidelog.client import (
    AccessControlEntry,
    AclFilter,
    AclOperation,
    AclResourceType,
    AdminClient,
    ErrorCode,
    KafkaError,
    NoConnection,
    NotAuthenticated,
    PatternType,
    PermissionType,
    ResourceType,
)
from tidelog.config.authorizer import STANDARD_AUTHORIZER
from tidelog.testing import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as found:
        yield found


def admin(broker: Broker, job: Callable[[AdminClient], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        async with AdminClient(f"127.0.0.1:1,{broker.bootstrap_servers}") as client:
            return await job(client)

    return asyncio.run(run())


def test_topics_from_beginning_to_end(broker: Broker) -> None:
    async def job(client: AdminClient) -> None:
        created = await client.topics.create("life", 2, configs={"retention.ms": "1000"})
        assert len(created) == 16
        with pytest.raises(KafkaError) as again:
            await client.topics.create("life")
        assert again.value.code == ErrorCode.TOPIC_ALREADY_EXISTS
        await client.topics.create_partitions("life", 3)
        (topic,) = await client.topics.describe(["life"])
        assert (topic.name, topic.topic_id, topic.internal, len(topic.partitions)) == ("life", created, False, 3)
        assert {part.leader for part in topic.partitions} == {1}
        assert await client.topics.offsets({("life", 0): -1}) == {("life", 0): 0}
        assert "life" in await client.topics.names()
        await client.topics.delete("life")
        with pytest.raises(KafkaError) as gone:
            await client.topics.delete("life")
        assert gone.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        with pytest.raises(KafkaError, match="Topic life"):
            await client.topics.describe(["life"])

    admin(broker, job)


def test_configurations_and_quotas(broker: Broker) -> None:
    async def job(client: AdminClient) -> None:
        await client.topics.create("set")
        await client.configs.alter(ResourceType.TOPIC, "set", {"retention.ms": "7"}, ["cleanup.policy"])
        assert (await client.configs.describe(ResourceType.TOPIC, "set"))["retention.ms"].value == "7"
        assert "log.dirs" in await client.configs.describe(ResourceType.BROKER, "1")
        await client.quotas.alter({"user": "ann"}, {"producer_byte_rate": 5})
        (quota,) = await client.quotas.describe({"user": "ann"})
        assert (quota.entity, quota.limits) == ({"user": "ann"}, {"producer_byte_rate": 5.0})
        await client.quotas.alter({"user": "ann"}, remove=["producer_byte_rate"])
        assert await client.quotas.describe() == []

    admin(broker, job)


def test_groups_and_their_offsets(broker: Broker) -> None:
    async def job(client: AdminClient) -> None:
        await client.topics.create("read", 2)
        assert await client.groups.commit("g", {("read", 0): 0, ("read", 1): 0}) == {}
        assert {at: each.offset for at, each in (await client.groups.committed("g")).items()} == {("read", 0): 0, ("read", 1): 0}
        assert (await client.groups.describe("g")).members == ()
        assert "g" in [group.group_id for group in await client.groups.all()]
        assert await client.groups.delete_offsets("g", [("read", 0)]) == {}
        await client.groups.delete("g")
        with pytest.raises(KafkaError, match="GROUP_ID_NOT_FOUND"):
            await client.groups.describe("g")

    admin(broker, job)


def test_the_cluster_its_quorum_replicas_and_transactions(broker: Broker) -> None:
    async def job(client: AdminClient) -> None:
        await client.topics.create("here")
        cluster = await client.cluster.describe()
        assert [(node.node_id, node.fenced) for node in cluster.nodes] == [(1, False)]
        assert (await client.cluster.quorum()).leader_id == 1
        assert (await client.cluster.features())["metadata.version"] > 0
        dirs = await client.replicas.log_dirs(1)
        assert any(("here", 0) in each.replicas for each in dirs)
        assert await client.replicas.elect_leaders([("here", 0)]) == {}
        assert await client.replicas.reassignments() == {}
        failed = await client.replicas.reassign({("here", 0): None})
        assert failed["here", 0].code == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
        assert await client.transactions.all() == []
        for refused in (client.transactions.describe("nope"), client.transactions.force_terminate("nope")):
            with pytest.raises(KafkaError, match="TRANSACTIONAL_ID_NOT_FOUND"):
                await refused

    admin(broker, job)


def test_many_calls_at_once_share_a_connection(broker: Broker) -> None:
    async def job(client: AdminClient) -> None:
        found = await asyncio.gather(*(client.cluster.describe() for _ in range(50)))
        assert len({each.cluster_id for each in found}) == 1

    admin(broker, job)


def test_where_no_broker_answers_all_are_named() -> None:
    async def run() -> None:
        async with AdminClient("127.0.0.1:1,[::1]:1") as client:
            with pytest.raises(NoConnection, match=r"No broker answers at 127\.0\.0\.1:1 \(.*\), \[::1\]:1 \(.*\)"):
                await client.topics.names()

    asyncio.run(run())


def test_tls_is_checked_and_spoken(broker: Broker, certificate: Path) -> None:
    async def run(port: int, **settings: str) -> list[str]:
        given = {name.replace("_", "."): text for name, text in settings.items()} | {"security.protocol": "SSL"}
        async with AdminClient(f"127.0.0.1:{port}", given) as client:
            return await client.topics.names()

    with tls_in_front_of(broker, certificate) as port, pytest.raises(NotAuthenticated, match="is not trusted"):
        asyncio.run(run(port))
    with tls_in_front_of(broker, certificate) as port:
        asyncio.run(run(port, ssl_ca_location=str(certificate), ssl_endpoint_identification_algorithm=""))


def test_a_closed_client_is_closed(broker: Broker) -> None:
    async def job(client: AdminClient) -> None:
        await client.topics.names()
        await client.close()
        with pytest.raises(NoConnection, match="closed"):
            await client.topics.names()

    admin(broker, job)


def test_every_public_name_is_there_and_no_other() -> None:
    import tidelog.client

    assert all(getattr(tidelog.client, name) is not None for name in tidelog.client.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = tidelog.client.Nothing


def test_acls_are_created_found_and_deleted() -> None:
    config = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:ANONYMOUS"}
    entry = AccessControlEntry(
        AclResourceType.TOPIC, "t", PatternType.LITERAL, "User:ann", "*", AclOperation.READ, PermissionType.ALLOW
    )
    nameless = replace(entry, resource_name="")

    async def job(client: AdminClient) -> None:
        refused = await client.acls.create(entry, nameless)
        assert list(refused) == [nameless]
        assert await client.acls.describe() == [entry]
        assert await client.acls.describe(AclFilter(AclResourceType.GROUP)) == []
        assert await client.acls.delete(AclFilter(principal="User:ann"), AclFilter(principal="User:bob")) == [[entry], []]
        assert await client.acls.describe() == []

    with Broker(config=config) as guarded:
        admin(guarded, job)
