"""Where a request comes from, behind proxies that the operator names: for the audit, and for the brake on guessing."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Final

from tidelog.model.errors import ConfigError

Network = IPv4Network | IPv6Network
HEADER: Final = "x-forwarded-for"
MOST_HOPS: Final = 20


def networks(given: Sequence[str]) -> tuple[Network, ...]:
    """The addresses and networks of ``--proxy``. ConfigError."""
    found = []
    for each in given:
        try:
            found.append(ip_network(each))
        except ValueError as error:
            raise ConfigError(f"--proxy {each} must be an address or a network, such as 10.0.0.0/8: {error}.") from None
    return tuple(found)


def client_address(peer: str, forwarded: Sequence[str], proxies: Sequence[Network]) -> str:
    """The last address in the headers ``X-Forwarded-For`` that none of our proxies has; everything before it may be made up.

    ``peer``: whose connection it is. Only a proxy's headers count; without such an entry the address is the last proxy's."""
    address = peer
    hops = [hop.strip() for line in forwarded for hop in line.split(",")]
    for hop in reversed(hops[-MOST_HOPS:]):
        if not _is_one_of(address, proxies):
            return address
        try:
            address = str(ip_address(hop))
        except ValueError:
            return address
    return address


def _is_one_of(address: str, proxies: Sequence[Network]) -> bool:
    try:
        found = ip_address(address)
    except ValueError:
        return False
    return any(found in each for each in proxies)
