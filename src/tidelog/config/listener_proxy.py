"""The load balancers of a listener: the networks whose connections begin with a PROXY header (``security.proxy_header``).

``listener.name.<listener>.tidelog.proxy.protocol.networks`` beats the bare option. A header counts only from these networks,
because it may name any client.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

from tidelog.model.errors import ConfigError

if TYPE_CHECKING:
    import ipaddress

OPTION = "tidelog.proxy.protocol.networks"
Network: TypeAlias = "ipaddress.IPv4Network | ipaddress.IPv6Network"


def proxy_networks(given: Mapping[str, str], listener: str) -> tuple[Network, ...]:
    """The networks of a listener's balancers; empty for a listener without any. ConfigError for what is no network."""
    own = f"listener.name.{listener.lower()}.{OPTION}"
    name = own if own in given else OPTION
    return tuple(_network(name, each) for each in map(str.strip, given.get(name, "").split(",")) if each)


def _network(name: str, text: str) -> Network:
    import ipaddress  # Only where a listener has balancers.

    try:
        found = ipaddress.ip_network(text)
    except ValueError as problem:
        raise ConfigError(
            f"{name} holds {text!r}, but must hold addresses or networks, such as 10.1.0.0/24 or 10.1.0.5 ({problem})."
        ) from None
    if not found.prefixlen:
        raise ConfigError(f"{name} holds {text}, so that every client could name any address. List the balancers.")
    return found
