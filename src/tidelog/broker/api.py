"""What one row of the API table says; the table itself is ``broker.table``.

A row is the only place where these facts are stated. The dispatcher, ApiVersions, quotas, the envelope, refusals, planned
faults of tests and the reference page read it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple, TypeAlias

from tidelog.broker.answers import Answer, Later
from tidelog.broker.ports import VersionRange
from tidelog.broker.quotas.limits import Kind
from tidelog.broker.refusals import REGULAR, Refusal
from tidelog.broker.request import RequestContext
from tidelog.model.acl import AclOperation, ResourceType
from tidelog.model.errors import ErrorCode
from tidelog.protocol.api_keys import ApiKey

Handler: TypeAlias = Callable[[RequestContext[Any], Any], Answer | Later]
"""(context, request) -> its answer."""
Reader: TypeAlias = Callable[[memoryview, int, int], Any]
"""(frame, where its body begins, version) -> request."""


class Need(NamedTuple):
    """A permission: an operation on a kind of resource."""

    operation: AclOperation
    resource: ResourceType


@dataclass(frozen=True, slots=True)
class Needs:
    """Which permissions an API asks for, as Apache Kafka's brokers ask for them."""

    permissions: tuple[Need, ...] = ()
    in_handler: bool = False
    """The handler asks, resource by resource, and answers for each; else the whole request needs the permission on the cluster
    before a handler sees it."""


NOTHING = Needs()
"""Open to every client that may connect."""


def on_cluster(operation: AclOperation) -> Needs:
    """The whole request needs this permission on the cluster; CLUSTER_AUTHORIZATION_FAILED without it."""
    return Needs((Need(operation, ResourceType.CLUSTER),))


def by_resource(*permissions: tuple[AclOperation, ResourceType]) -> Needs:
    """Decided in the handler, for each resource that the request names."""
    return Needs(tuple(Need(*each) for each in permissions), in_handler=True)


@dataclass(frozen=True, slots=True)
class Api:
    """One API: everything that is particular to it outside of its handlers."""

    key: ApiKey
    versions: VersionRange
    """What is complete; any other version closes the connection."""
    _: KW_ONLY
    broker: Handler | None = None
    """Serves it on brokers' listeners."""
    controller: Handler | None = None
    """Serves it on controllers' listeners; the same function where both decide alike."""
    needs: Needs
    controller_needs: Needs | None = None
    """Where a controller's listener asks for another permission than a broker's."""
    forwarded: bool = False
    """Whether the active controller decides: brokers pass it on, and controllers take it in an Envelope (KIP-590)."""
    not_active: ErrorCode = ErrorCode.NOT_CONTROLLER
    """How a controller that is not the active one refuses it."""
    quota: Kind = Kind.REQUEST
    """The quota that it counts against besides the time that it takes."""
    between_brokers_from: int | None = None
    """From this version on brokers ask it of each other, and no client's quota counts."""
    refuse: Refusal = REGULAR
    """Says an error that a handler raised, as this API's answer."""
    off: bool = False
    """Belongs to a feature that this version of tidelog does not have: ApiVersions leaves it out, and it is answered with
    UNSUPPORTED_VERSION, as by a Kafka whose feature is switched off."""
    advertised: VersionRange | None = None
    """What ApiVersions says, where that is not ``versions``; clients always take the highest version both sides know."""
    read: Reader | None = None
    """Used on brokers where the generated decoder is too slow; the same errors."""

    @property
    def told(self) -> VersionRange:
        """The range in ApiVersions."""
        return self.advertised or self.versions

    def is_between_brokers(self, version: int) -> bool:
        """Whether this version is asked by brokers only."""
        return self.between_brokers_from is not None and version >= self.between_brokers_from


@dataclass(frozen=True, slots=True)
class Route:
    """An API as one kind of node serves it."""

    api: Api
    handler: Handler
    read: Reader | None
    needs: Needs


def on_brokers(table: Iterable[Api]) -> dict[int, Route]:
    """What brokers serve, by the number on the wire."""
    return {row.key: Route(row, row.broker, row.read, row.needs) for row in table if row.broker is not None}


def on_controllers(table: Iterable[Api]) -> dict[int, Route]:
    """What controllers serve, by the number on the wire."""
    return {
        row.key: Route(row, row.controller, None, row.needs if row.controller_needs is None else row.controller_needs)
        for row in table
        if row.controller is not None
    }
