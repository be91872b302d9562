"""Which limit holds for a client, and who shares it.

The most specific one counts, in Kafka's order: a user with a client id, the user with any client id, the user alone; the same
three for any user; then the client id alone, and any client id. A limit for users alone is shared by all clients of a user;
each of the others is that of one client id, or of one client id of one user. A limit for "any" is not shared by all of them: each
name has one like it.

Hosts have one limit, their own or that for any host. A host is named by its address: names are not looked up.
"""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from tidelog.config.quotas import (
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


class Kind(StrEnum):
    """What is limited, by the name under which it is set."""

    PRODUCE = PRODUCER_BYTE_RATE.name
    FETCH = CONSUMER_BYTE_RATE.name
    REQUEST = REQUEST_PERCENTAGE.name
    MUTATION = CONTROLLER_MUTATION_RATE.name


_KINDS = {kind.value: kind for kind in Kind}


class Client(NamedTuple):
    """Who asks. ``client_id`` is empty where the request has none."""

    user: str
    client_id: str


class Limit(NamedTuple):
    """``bound`` by the second, shared by all who come to the same ``shared_by``; an empty name there is everybody's."""

    bound: float
    shared_by: Client


class Limits:
    """The quotas of an image, as they are looked up."""

    __slots__ = ("_by_ip", "_by_kind", "_default_ip")

    def __init__(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        self._by_kind: dict[Kind, dict[QuotaEntity, float]] = {}
        self._by_ip: dict[str, float] = {}
        self._default_ip: float | None = None
        for entity, limits in quotas.items():
            for name, said in limits.items():
                # Apache Kafka's controllers let it pass, and its brokers make nobody wait for it.
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
        """Whether some client may be limited in anything."""
        return bool(self._by_kind)

    def any_of(self, kind: Kind) -> bool:
        """Whether some client may be limited in this."""
        return kind in self._by_kind

    @property
    def any_for_hosts(self) -> bool:
        """Whether some host may be limited."""
        return self._default_ip is not None or bool(self._by_ip)

    def of(self, kind: Kind, client: Client) -> Limit | None:
        """What limits this client, if anything does. Who has no client id is limited as a user only."""
        bounds = self._by_kind.get(kind)
        if bounds is None:
            return None
        user, name = client
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
        """How many connections a second may come from this address."""
        return self._by_ip.get(host, self._default_ip)


def _plain(host: str) -> str:
    """The address as a socket writes it; a name stays what it is, and no address is like it."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)
