"""The admin client on asyncio: the public API."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Self, TypeVar

from tidelog.client.admin import (
    acls,
    cluster,
    configs,
    delegation_tokens,
    groups,
    quotas,
    replicas,
    share_groups,
    streams_groups,
    topics,
    transactions,
)
from tidelog.client.admin.acls import AccessControlEntry, AclFilter
from tidelog.client.admin.delegation_tokens import DelegationToken
from tidelog.client.admin.group_results import Committed, Group, GroupListing, ShareGroup, ShareOffset, StreamsGroup
from tidelog.client.admin.results import (
    ClusterDescription,
    ConfigEntry,
    LogDir,
    QuorumDescription,
    Quota,
    Reassignment,
    ResourceType,
    TopicDescription,
    TransactionDescription,
    TransactionListing,
)
from tidelog.client.calls import Call, Partition
from tidelog.client.net.aio import AsyncClient
from tidelog.client.settings import parse_admin_settings
from tidelog.model.errors import KafkaError

T = TypeVar("T")
LATEST, EARLIEST = -1, -2


class _Part:
    """A group of methods of an ``AdminClient``."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def _run(self, call: Call[T]) -> T:
        return await self._client.run(call)


class TopicAdmin(_Part):
    """Topics, their partitions and offsets."""

    async def names(self) -> list[str]:
        """The names of all topics, internal ones too."""
        return [topic.name or "" for topic in await self._run(topics.topics(None))]

    async def describe(self, names: Iterable[str] | None = None) -> list[TopicDescription]:
        """These topics with their partitions, or all. UNKNOWN_TOPIC_OR_PARTITION if one of them does not exist."""
        return await self._run(topics.describe(names))

    async def create(
        self,
        name: str,
        partitions: int = -1,
        replication_factor: int = -1,
        configs: Mapping[str, str] | None = None,
        *,
        assignment: Sequence[Sequence[int]] | None = None,
        validate_only: bool = False,
    ) -> bytes:
        """Create a topic and return its id; -1 stands for the cluster's default. TOPIC_ALREADY_EXISTS, INVALID_CONFIG ...

        ``assignment``: the brokers of each partition, preferred leader first, instead of the two numbers.
        """
        return await self._run(
            topics.create(name, partitions, replication_factor, configs, assignment=assignment, validate_only=validate_only)
        )

    async def delete(self, name: str) -> None:
        """Delete a topic with its records. UNKNOWN_TOPIC_OR_PARTITION, TOPIC_DELETION_DISABLED."""
        await self._run(topics.delete(name))

    async def create_partitions(self, topic: str, count: int, *, assignment: Sequence[Sequence[int]] | None = None) -> None:
        """Raise a topic to ``count`` partitions in total. INVALID_PARTITIONS when it has as many or more."""
        await self._run(topics.create_partitions(topic, count, assignment=assignment))

    async def offsets(self, wanted: Mapping[Partition, int]) -> dict[Partition, int]:
        """The offset of each partition at a time in ms since 1970, or at -1 (the end) or -2 (the beginning).

        -1 where all records are older. Partitions without a leader are omitted.
        """
        found = await self._run(topics.list_offsets(wanted))
        for part in found.values():
            topics.check(part.error_code)
        return {at: part.offset for at, part in found.items()}


class ConfigAdmin(_Part):
    """Settings of topics, brokers, loggers, groups and client metrics."""

    async def describe(self, kind: ResourceType, name: str) -> dict[str, ConfigEntry]:
        """All settings of a topic, broker, logger, group or of client metrics, by name. An empty name: all brokers' defaults."""
        return await self._run(configs.describe(kind, name))

    async def alter(
        self, kind: ResourceType, name: str, change: Mapping[str, str] | None = None, remove: Iterable[str] = ()
    ) -> None:
        """Set some settings and remove others in one step; the rest is unchanged. INVALID_CONFIG, INVALID_REQUEST."""
        await self._run(configs.alter(kind, name, change, remove))


class GroupAdmin(_Part):
    """Consumer groups and their offsets."""

    async def all(self) -> list[GroupListing]:
        """All groups, of every type."""
        return await self._run(groups.list_all())

    async def describe(self, group_id: str) -> Group:
        """A consumer group with its members. GROUP_ID_NOT_FOUND."""
        return await self._run(groups.describe(group_id))

    async def delete(self, group_id: str) -> None:
        """Delete a group with its offsets. NON_EMPTY_GROUP while it has members, GROUP_ID_NOT_FOUND."""
        await self._run(groups.delete(group_id))

    async def committed(self, group_id: str) -> dict[Partition, Committed]:
        """The committed offsets of a group; empty for an unknown group."""
        return await self._run(groups.committed(group_id))

    async def commit(self, group_id: str, offsets: Mapping[Partition, int]) -> dict[Partition, KafkaError]:
        """Set offsets of a group without members. Returns the partitions that failed, with their errors (UNKNOWN_MEMBER_ID)."""
        return await self._run(groups.commit(group_id, offsets))

    async def delete_offsets(self, group_id: str, partitions: Iterable[Partition]) -> dict[Partition, KafkaError]:
        """Delete offsets of a group. Returns the partitions that failed, with their errors (GROUP_SUBSCRIBED_TO_TOPIC)."""
        return await self._run(groups.delete_offsets(group_id, partitions))


class ShareGroupAdmin(_Part):
    """Share groups and their start offsets; ``GroupAdmin`` lists and deletes groups of every type."""

    async def describe(self, group_id: str) -> ShareGroup:
        """A share group with its members. GROUP_ID_NOT_FOUND."""
        return await self._run(share_groups.describe(group_id))

    async def offsets(self, group_id: str) -> dict[Partition, ShareOffset]:
        """The start offsets of the partitions that the group has read. GROUP_ID_NOT_FOUND."""
        return await self._run(share_groups.offsets(group_id))

    async def alter_offsets(self, group_id: str, start_offsets: Mapping[Partition, int]) -> dict[Partition, KafkaError]:
        """Set start offsets of a group without members. Returns the partitions that failed. NON_EMPTY_GROUP."""
        return await self._run(share_groups.alter_offsets(group_id, start_offsets))

    async def delete_offsets(self, group_id: str, topics: Iterable[str]) -> dict[str, KafkaError]:
        """Delete the start offsets of topics. Returns the topics that failed. NON_EMPTY_GROUP."""
        return await self._run(share_groups.delete_offsets(group_id, topics))


class StreamsGroupAdmin(_Part):
    """Streams groups; their offsets are those of ``GroupAdmin``."""

    async def describe(self, group_id: str) -> StreamsGroup:
        """A streams group with its members and topology. GROUP_ID_NOT_FOUND."""
        return await self._run(streams_groups.describe(group_id))


class ClusterAdmin(_Part):
    """The cluster, its metadata quorum and its features."""

    async def describe(self, *, include_fenced: bool = False) -> ClusterDescription:
        """Id, active controller and brokers."""
        return await self._run(cluster.describe(include_fenced=include_fenced))

    async def quorum(self) -> QuorumDescription:
        """The metadata quorum: leader, voters, observers and their positions."""
        return await self._run(cluster.quorum())

    async def features(self) -> dict[str, int]:
        """The level of each finalized feature."""
        return await self._run(cluster.features())


class ReplicaAdmin(_Part):
    """Replicas: log dirs, reassignments, and leader elections."""

    async def log_dirs(self, broker_id: int) -> list[LogDir]:
        """The log dirs of a broker, and the bytes of each replica in them. BROKER_NOT_AVAILABLE."""
        return await self._run(replicas.log_dirs(broker_id))

    async def elect_leaders(
        self, partitions: Iterable[Partition] | None = None, *, unclean: bool = False
    ) -> dict[Partition, KafkaError]:
        """Elect the preferred leaders of these partitions, or of all. Returns those that failed. ``unclean`` may lose records."""
        return await self._run(replicas.elect_leaders(partitions, unclean=unclean))

    async def reassignments(self) -> dict[Partition, Reassignment]:
        """All reassignments in progress."""
        return await self._run(replicas.reassignments())

    async def reassign(self, wanted: Mapping[Partition, Sequence[int] | None]) -> dict[Partition, KafkaError]:
        """Move partitions to these brokers, or cancel a move (None). Returns those that were refused."""
        return await self._run(replicas.reassign(wanted))


class QuotaAdmin(_Part):
    """Quotas of users, client ids and IP addresses."""

    async def describe(self, entity: Mapping[str, str | None] | None = None, *, types: Iterable[str] = ()) -> list[Quota]:
        """The quotas of an entity, such as ``{"user": "ann"}`` (None: the default of a type), of all of some types, or of all."""
        return await self._run(quotas.describe(entity, types=types))

    async def alter(
        self, entity: Mapping[str, str | None], change: Mapping[str, float] | None = None, remove: Iterable[str] = ()
    ) -> None:
        """Set and remove quotas, such as ``producer_byte_rate`` in bytes a second. INVALID_REQUEST."""
        await self._run(quotas.alter(entity, change, remove))


class TransactionAdmin(_Part):
    """Open transactions."""

    async def all(self) -> list[TransactionListing]:
        """The transactional ids of all coordinators."""
        return await self._run(transactions.list_all())

    async def describe(self, transactional_id: str) -> TransactionDescription:
        """The transaction of a transactional id. TRANSACTIONAL_ID_NOT_FOUND."""
        return await self._run(transactions.describe(transactional_id))

    async def force_terminate(self, transactional_id: str) -> None:
        """Fence the producer of a transactional id, which aborts its open transaction."""
        await self._run(transactions.force_terminate(transactional_id))


class AclAdmin(_Part):
    """ACLs. SECURITY_DISABLED from a cluster without an authorizer."""

    async def describe(self, wanted: AclFilter | None = None) -> list[AccessControlEntry]:
        """The ACLs that a filter finds, or all of them."""
        return await self._run(acls.describe(wanted))

    async def create(self, *entries: AccessControlEntry) -> dict[AccessControlEntry, KafkaError]:
        """Create ACLs; one that exists is left as it is. Returns those that were refused (INVALID_REQUEST)."""
        return await self._run(acls.create(entries))

    async def delete(self, *filters: AclFilter) -> list[list[AccessControlEntry]]:
        """Delete what the filters find. Returns, for each filter, what it found."""
        return await self._run(acls.delete(filters))


class DelegationTokenAdmin(_Part):
    """Delegation tokens, for a client that logged in without one. DELEGATION_TOKEN_AUTH_DISABLED where they are off."""

    async def create(self, *renewers: str, owner: str | None = None, max_lifetime_ms: int = -1) -> DelegationToken:
        """Create a token of the client's user, or of ``owner``; principals are texts such as ``User:alice``.

        DELEGATION_TOKEN_AUTHORIZATION_FAILED, INVALID_PRINCIPAL_TYPE for a renewer that is not a user.
        """
        return await self._run(delegation_tokens.create(renewers, owner=owner, max_lifetime_ms=max_lifetime_ms))

    async def renew(self, token_hmac: bytes, period_ms: int = -1) -> int:
        """Let a token end ``period_ms`` from now; -1: as late as it may. Returns when it ends, in ms since 1970.
        DELEGATION_TOKEN_NOT_FOUND, DELEGATION_TOKEN_EXPIRED, DELEGATION_TOKEN_OWNER_MISMATCH."""
        return await self._run(delegation_tokens.renew(token_hmac, period_ms))

    async def expire(self, token_hmac: bytes, period_ms: int = -1) -> int:
        """Let a token end ``period_ms`` from now, or remove it at once (-1). Errors as for ``renew``."""
        return await self._run(delegation_tokens.expire(token_hmac, period_ms))

    async def describe(self, *owners: str) -> list[DelegationToken]:
        """The tokens that the client may see; with ``owners``, those that one of them owns or may renew."""
        return await self._run(delegation_tokens.describe(owners or None))


class AdminClient:
    """Administers any Kafka cluster; an asynchronous context manager. Calls may run concurrently.

    Its methods are in its parts: ``topics``, ``configs``, ``groups``, ``share_groups``, ``streams_groups``, ``cluster``,
    ``replicas``, ``quotas``, ``acls``, ``delegation_tokens``, ``transactions``.

    Every method raises ``NoConnection`` when no broker answers, or the connection breaks before the answer to a change (whose
    outcome is then unknown), ``NotAuthenticated`` when either side rejects the other's identity, ``UnsupportedByBroker`` when the
    broker is too old, and ``KafkaError`` (with ``code``) when the cluster refuses. Since 0.1.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        settings: Mapping[str, str] | None = None,
        *,
        controllers: bool = False,
        token: Callable[[], str] | None = None,
    ) -> None:
        """``bootstrap_servers``: ``host:port,host:port``, tried in turn. ``settings``: Kafka's names, such as
        ``security.protocol``. ``controllers``: the servers are controllers. ConfigError for an invalid setting.

        ``token``: called in a thread for each login with OAUTHBEARER; it returns a token (JWT)."""
        given = {"client.id": "tidelog-admin", "request.timeout.ms": "30000", **(settings or {})}
        self._client = AsyncClient(parse_admin_settings(given, bootstrap_servers, token), controllers=controllers)
        self.topics = TopicAdmin(self._client)
        self.configs = ConfigAdmin(self._client)
        self.groups = GroupAdmin(self._client)
        self.share_groups = ShareGroupAdmin(self._client)
        self.streams_groups = StreamsGroupAdmin(self._client)
        self.cluster = ClusterAdmin(self._client)
        self.replicas = ReplicaAdmin(self._client)
        self.quotas = QuotaAdmin(self._client)
        self.acls = AclAdmin(self._client)
        self.delegation_tokens = DelegationTokenAdmin(self._client)
        self.transactions = TransactionAdmin(self._client)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    async def run(self, call: Call[T]) -> T:
        """Run any call of ``tidelog.client.admin`` and return its result."""
        return await self._client.run(call)
