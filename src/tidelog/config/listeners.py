"""Listeners: where a node accepts connections, what it tells clients, and which protocol each listener name speaks.

The forms are Kafka's: ``PLAINTEXT://host:9092``, ``PLAINTEXT://:9092`` (every interface), ``NAME://[::1]:0`` (a free port).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from tidelog.model.errors import ConfigError

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_ENDPOINT: Final = re.compile(
    r"(?P<name>[A-Za-z0-9_.-]+)://(?:\[(?P<ipv6>[0-9A-Fa-f:.%A-Za-z]+)\]|(?P<host>[^\[\]:/?#]*)):(?P<port>[0-9]{1,5})"
)
_ADDRESS: Final = re.compile(r"(?:\[(?P<ipv6>[^\]]+)\]|(?P<host>[^\[\]:/]*)):(?P<port>[0-9]{1,5})")
ANY_HOSTS: Final = frozenset({"0.0.0.0", "::", "0:0:0:0:0:0:0:0"})


class EndPoint(NamedTuple):
    """One listener or one advertised address. ``host`` is empty for every interface and holds no brackets."""

    listener: str
    protocol: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.listener}://{address_text(self.host, self.port)}"


def address_text(host: str, port: int) -> str:
    """``host:port``, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse_address(option: str, text: str) -> tuple[str, int]:
    """Host (may be empty) and port of ``host:port`` or ``[v6]:port``."""
    found = _ADDRESS.fullmatch(text.strip())
    if found is None or int(found["port"]) > 65535:
        raise ConfigError(
            f"{option} is {text!r}, but must be host:port with a port from 0 to 65535; IPv6 addresses stand in brackets."
        )
    return found["ipv6"] or found["host"] or "", int(found["port"])


def parse_protocol_map(option: str, text: str) -> dict[str, str]:
    """Protocol by listener name from ``NAME:PROTOCOL,...``; names are upper case, as Kafka compares them."""
    result: dict[str, str] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, colon, protocol = (part.strip().upper() for part in item.partition(":"))
        if not colon or not name or protocol not in PROTOCOLS:
            raise ConfigError(
                f"{option} holds {item!r}, but must hold NAME:PROTOCOL, the protocol being one of {', '.join(PROTOCOLS)}."
            )
        if result.setdefault(name, protocol) != protocol:
            raise ConfigError(f"{option} gives listener {name} two protocols: {result[name]} and {protocol}.")
    return result


def parse_endpoints(option: str, items: Iterable[str], protocols: Mapping[str, str]) -> tuple[EndPoint, ...]:
    """The end points of ``listeners`` or ``advertised.listeners``; each name once, every name in the protocol map."""
    result: list[EndPoint] = []
    for item in items:
        found = _ENDPOINT.fullmatch(item)
        if found is None or int(found["port"]) > 65535:
            raise ConfigError(
                f"{option} holds {item!r}, but must hold NAME://host:port with a port from 0 to 65535 "
                "(no host for every interface, IPv6 addresses in brackets)."
            )
        name = found["name"].upper()
        protocol = protocols.get(name)
        if protocol is None:
            raise ConfigError(
                f"{option} names listener {name}, which is not in listener.security.protocol.map. Add {name}:PLAINTEXT to it."
            )
        result.append(EndPoint(name, protocol, found["ipv6"] or found["host"] or "", int(found["port"])))
    names = [point.listener for point in result]
    if len(set(names)) != len(names):
        raise ConfigError(f"{option} names a listener twice: {', '.join(names)}. Each listener needs a name of its own.")
    return tuple(result)


def check_listeners(endpoints: Iterable[EndPoint], served: Collection[str]) -> list[str]:
    """What is wrong with the listeners together: two on one port, or a protocol that is not ``served``."""
    problems: list[str] = []
    taken: dict[int, list[EndPoint]] = {}
    for point in endpoints:
        if point.protocol not in served:
            problems.append(
                f"listeners: {point} speaks {point.protocol}, which is not served yet. A node that took the connection in plain "
                "text would be open where you expect it closed; map the listener to PLAINTEXT or remove it."
            )
        if point.port == 0:
            continue
        for other in taken.setdefault(point.port, []):
            # Kafka lets an IPv4 and an IPv6 address share a port, and nothing else.
            if (":" in point.host) == (":" in other.host) or not point.host or not other.host:
                problems.append(f"listeners: {other} and {point} use the same port; each needs one of its own.")
        taken[point.port].append(point)
    return problems


def check_advertised(advertised: Iterable[EndPoint]) -> list[str]:
    """An address that says "every interface" is of no use to a client."""
    return [
        f"advertised.listeners: {point} is no address for a client. Give the host name by which clients reach this node."
        for point in advertised
        if point.host in ANY_HOSTS
    ]
