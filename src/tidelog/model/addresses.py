"""IP addresses. Python's ``ipaddress`` is loaded when the first one is read: a node that forwards nothing, limits no address and
connects to no other node needs none of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ipaddress import IPv4Address, IPv6Address


def ip_address(value: str | bytes) -> IPv4Address | IPv6Address:
    """The address in text or in network order. ValueError when it is none."""
    import ipaddress

    return ipaddress.ip_address(value)


def is_address(host: str) -> bool:
    """Whether ``host`` is an IP address, so that no name lookup is needed."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the host, an address (IPv6 in brackets or not) or a name. False for an empty one, which
    is every interface."""
    if host == "localhost":
        return True
    host = host.strip("[]")
    return is_address(host) and ip_address(host).is_loopback
