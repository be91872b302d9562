"""/facts: the facts of a node as one JSON object (``metrics.facts``), with names only for readers who may see them.

On a node with an authorizer, a reader may see names of topics, clients and principals with DESCRIBE on the cluster, as for
DescribeCluster. ``Reader.principal`` is whom the authorizer is asked about.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tidelog.metrics.facts import BY_PATH, FACTS, LONGEST_TEXT, SCHEMA
from tidelog.model.acl import CLUSTER_NAME, AclOperation, ResourceType
from tidelog.model.errors import KafkaError
from tidelog.protocol.api_keys import ApiKey
from tidelog.server.upkeep.http import Answer, Reader

if TYPE_CHECKING:
    from tidelog.broker.node import Broker
    from tidelog.broker.ports import AccessControl
    from tidelog.security.principal import KafkaPrincipal
    from tidelog.server.runtime import LoopRuntime
    from tidelog.server.upkeep.node_facts import NodeFacts

LISTENER: Final = "tidelog.http.listener"
_SECTIONS: Final = tuple(dict.fromkeys(fact.path.split(".")[0].removesuffix("[]") for fact in FACTS))


_OF_KIND: Final = {
    ResourceType.CLUSTER: ApiKey.DESCRIBE_CLUSTER,
    ResourceType.GROUP: ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
    ResourceType.TOPIC: ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
}
"""The request of a client that needs the same right, for the audit."""


class _Asker(NamedTuple):
    """A reader, as the access control sees clients."""

    principal: KafkaPrincipal
    peer_host: str
    listener: str = LISTENER
    api_key: int = ApiKey.DESCRIBE_CLUSTER
    client_id: str | None = None
    correlation_id: int = 0


class FactsPage:
    """The page of one node."""

    def __init__(
        self, facts: NodeFacts, runtime: LoopRuntime, access: AccessControl | None, broker: Broker | None = None
    ) -> None:
        """``broker``: None for a process that is only a controller."""
        self._broker = broker
        self._facts = facts
        self._runtime = runtime
        self._access = access

    async def answer(self, *, names: bool) -> Answer:
        """The page, for a reader who may see names or not."""
        sections = await self._facts.collect()
        page = {"schema": SCHEMA, "at_ms": self._runtime.now_ms(), "names": names, **sections}
        return Answer(200, await self._runtime.run_blocking(partial(self._text, page, names)), "application/json")

    async def share_record(self, reader: Reader, *, trusted: bool) -> Answer:
        """What this node knows of one record of a share group. ``trusted``: the rights of the reader were checked."""
        if self._broker is None:
            return Answer(404, b"This process is only a controller.\n")
        from tidelog.server.upkeep.share_record import share_record

        return share_record(self._broker, reader, self._shows if not trusted else _all_shown)

    def _shows(self, reader: Reader, kind: ResourceType, name: str) -> bool:
        """Whether the reader may describe a resource."""
        if self._access is None:
            return True
        asker = _Asker(reader.principal, reader.host, api_key=_OF_KIND[kind])
        try:
            return self._access.shows(asker, AclOperation.DESCRIBE, kind, name)
        except KafkaError:  # the ACLs are not known yet
            return False

    def may_see_names(self, reader: Reader) -> bool:
        """Whether the reader may see names of topics, clients and principals."""
        return self._shows(reader, ResourceType.CLUSTER, CLUSTER_NAME)

    def _text(self, page: dict[str, Any], names: bool) -> bytes:
        self._facts.in_thread(page)
        ordered = {name: bounded(page[name], name, names=names) for name in _SECTIONS if name in page}
        return json.dumps(ordered, separators=(",", ":")).encode() + b"\n"


def _all_shown(reader: Reader, kind: ResourceType, name: str) -> bool:
    return True


def bounded(value: Any, path: str, *, names: bool) -> Any:
    """A value with texts that are not too long, and with null for names that are not shown."""
    if isinstance(value, dict):
        return {key: bounded(each, f"{path}.{key}", names=names) for key, each in value.items()}
    if isinstance(value, list):
        return [bounded(each, f"{path}[]", names=names) for each in value]
    if not isinstance(value, str):
        return value
    return value[:LONGEST_TEXT] if names or not BY_PATH[path].names else None
