"""Which limit applies to a client, and which clients share it.

The most specific limit applies, in Kafka's order: a user with a client id, the user with any client id, the user alone; the same
three for any user; then the client id alone, and any client id. A limit for a user alone is shared by all clients of that user;
each of the others applies to one client id, or to one client id of one user. A limit for "any" is not shared: each name has its
own.

Hosts have one limit, their own or that for any host. A host is an address: names are not resolved.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from tidelog.config.quota_entities import (
    CLIENT_ID,
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    IP,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    USER,
)
from tidelog.metadata.image import QuotaEntity
from tidelog.model.addresses import ip_address


class Kind(StrEnum):
    """The limited resource, by the name of its quota."""

    PRODUCE = PRODUCER_BYTE_RATE.name
    FETCH = CONSUMER_BYTE_RATE.name
    REQUEST = REQUEST_PERCENTAGE.name
    MUTATION = CONTROLLER_MUTATION_RATE.name


LONGEST_CLIENT_ID = 1024
"""Characters that count. Usage is kept for 10,000 client ids, which clients choose, and one may have 32 KB."""
_KINDS = {kind.value: kind for kind in Kind}


class Client(NamedTuple):
    """The client of a request. ``client_id`` is empty if the request has none."""

    user: str
    client_id: str


class Limit(NamedTuple):
    """``bound`` per second, shared by all clients with the same ``shared_by``; an empty name in it stands for every name."""

    bound: float
    shared_by: Client


class Limits:
    """The quotas of an image, indexed for lookup."""

    __slots__ = ("_by_ip", "_by_kind", "_default_ip")

    def __init__(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        self._by_kind: dict[Kind, dict[QuotaEntity, float]] = {}
        self._by_ip: dict[str, float] = {}
        self._default_ip: float | None = None
        for entity, limits in quotas.items():
            for name, said in limits.items():
                # Apache Kafka's controllers accept NaN, and its brokers never throttle for it.
                bound = math.inf if math.isnan(said) else said
                if entity[0][0] == IP:
                    self._set_host(entity, name, bound)
                elif name in _KINDS:
                    self._by_kind.setdefault(_KINDS[name], {})[entity] = bound

    def _set_host(self, entity: QuotaEntity, name: str, bound: float) -> None:
        host = entity[0][1]
        if name != CONNECTION_CREATION_RATE.name:
            return
        if host is None:
            self._default_ip = bound
        else:
            self._by_ip[_plain(host)] = bound

    @property
    def any_for_clients(self) -> bool:
        """Whether there is any limit for clients."""
        return bool(self._by_kind)

    def any_of(self, kind: Kind) -> bool:
        """Whether there is a limit of this kind."""
        return kind in self._by_kind

    @property
    def any_for_hosts(self) -> bool:
        """Whether there is a limit for hosts."""
        return self._default_ip is not None or bool(self._by_ip)

    def of(self, kind: Kind, client: Client) -> Limit | None:
        """The limit for this client, or None. A client without a client id only has its user's limits."""
        bounds = self._by_kind.get(kind)
        if bounds is None:
            return None
        user, name = client
        if len(name) > LONGEST_CLIENT_ID:
            name = name[:LONGEST_CLIENT_ID]
            client = Client(user, name)
        by_user = Client(user, "")
        if name:
            by_client = Client("", name)
            order: tuple[tuple[QuotaEntity, Client], ...] = (
                (((CLIENT_ID, name), (USER, user)), client),
                (((CLIENT_ID, None), (USER, user)), client),
                (((USER, user),), by_user),
                (((CLIENT_ID, name), (USER, None)), client),
                (((CLIENT_ID, None), (USER, None)), client),
                (((USER, None),), by_user),
                (((CLIENT_ID, name),), by_client),
                (((CLIENT_ID, None),), by_client),
            )
        else:
            order = ((((USER, user),), by_user), (((USER, None),), by_user))
        for entity, shared_by in order:
            bound = bounds.get(entity)
            if bound is not None:
                return Limit(bound, shared_by)
        return None

    def of_host(self, host: str) -> float | None:
        """Connections per second allowed from this address; None without a limit."""
        return self._by_ip.get(host, self._default_ip)


def _plain(host: str) -> str:
    """The address in the form that sockets report; a host name is unchanged and never matches."""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)
