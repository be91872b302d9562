"""One row of the API table; the table itself is ``broker.table``.

A row is the only place for these facts. The dispatcher, ApiVersions, quotas, the envelope, refusals, the faults that tests inject
and the reference page read it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple, TypeAlias

from tidelog.broker.answer_types import Answer, Later
from tidelog.broker.ports import VersionRange
from tidelog.broker.quotas.limits import Kind
from tidelog.broker.refusals import REGULAR, Refusal
from tidelog.broker.request import RequestContext
from tidelog.metadata.image import ClusterImage
from tidelog.model.acl import AclOperation, ResourceType
from tidelog.model.errors import ErrorCode
from tidelog.protocol.api_keys import ApiKey

Handler: TypeAlias = Callable[[RequestContext[Any], Any], Answer | Later]
"""(context, request) -> answer."""
Reader: TypeAlias = Callable[[memoryview, int, int], Any]
"""(frame, start of the body, version) -> request."""
Applied: TypeAlias = Callable[[ClusterImage, Any, Any], bool]
"""(image, request, response) -> whether the image has what the response says is done."""


class Need(NamedTuple):
    """A permission: an operation on a kind of resource."""

    operation: AclOperation
    resource: ResourceType


@dataclass(frozen=True, slots=True)
class Needs:
    """The permissions that an API requires, the same as Apache Kafka's brokers require."""

    permissions: tuple[Need, ...] = ()
    in_handler: bool = False
    """True: the handler checks each resource and reports each error. False: the whole request needs the permission on the
    cluster before the handler runs."""

    @property
    def on_cluster(self) -> AclOperation | None:
        """The operation that the whole request needs on the cluster, if the dispatcher asks for it."""
        return self.permissions[0].operation if self.permissions and not self.in_handler else None


NOTHING = Needs()
"""Open to every client that may connect."""


def on_cluster(operation: AclOperation) -> Needs:
    """The whole request needs this permission on the cluster; CLUSTER_AUTHORIZATION_FAILED without it."""
    return Needs((Need(operation, ResourceType.CLUSTER),))


def by_resource(*permissions: tuple[AclOperation, ResourceType]) -> Needs:
    """The handler checks each resource that the request names."""
    return Needs(tuple(Need(*each) for each in permissions), in_handler=True)


@dataclass(frozen=True, slots=True)
class Api:
    """One API: all of its properties outside its handlers."""

    key: ApiKey
    versions: VersionRange
    """Fully implemented versions; any other closes the connection."""
    _: KW_ONLY
    broker: Handler | None = None
    """Handler on brokers' listeners."""
    controller: Handler | None = None
    """Handler on controllers' listeners; may be the same function."""
    needs: Needs
    controller_needs: Needs | None = None
    """Permissions on controllers' listeners, where they differ."""
    forwarded: bool = False
    """Whether the active controller decides: brokers forward the request, controllers accept it in an Envelope (KIP-590)."""
    forwards_itself: bool = False
    """Whether the broker's handler decides a part of the request and passes on the rest (``broker.forwarding``)."""
    applied: Applied | None = None
    """A broker that forwarded the request answers when this is true of its own image, so that clients read what they wrote."""
    not_active: ErrorCode = ErrorCode.NOT_CONTROLLER
    """The error of a controller that is not active."""
    quota: Kind = Kind.REQUEST
    """The quota that it counts against, besides request time."""
    between_brokers_from: int | None = None
    """From this version on only brokers send it to each other, and no client quota counts."""
    refuse: Refusal = REGULAR
    """Builds the response for an error that a handler raised."""
    advertised: VersionRange | None = None
    """The range in ApiVersions, where it is not ``versions``; clients take the highest version that both sides know."""
    read: Reader | None = None
    """Replaces the generated decoder on brokers where that is too slow; raises the same errors."""

    @property
    def told(self) -> VersionRange:
        """The range that ApiVersions reports."""
        return self.advertised or self.versions

    def is_between_brokers(self, version: int) -> bool:
        """Whether only brokers send this version."""
        return self.between_brokers_from is not None and version >= self.between_brokers_from


@dataclass(frozen=True, slots=True)
class Route:
    """An API as served by one kind of node."""

    api: Api
    handler: Handler
    read: Reader | None
    needs: Needs
    forwards: bool = False
    """Whether the whole request goes to the active controller, where that is another process and there is an authorizer."""


def on_brokers(table: Iterable[Api]) -> dict[int, Route]:
    """Routes of brokers, by API key."""
    return {
        row.key: Route(row, row.broker, row.read, row.needs, row.forwarded and not row.forwards_itself)
        for row in table
        if row.broker is not None
    }


def on_controllers(table: Iterable[Api]) -> dict[int, Route]:
    """Routes of controllers, by API key."""
    return {
        row.key: Route(row, row.controller, None, row.needs if row.controller_needs is None else row.controller_needs)
        for row in table
        if row.controller is not None
    }
