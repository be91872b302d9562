"""The PROXY protocol, versions 1 and 2: a load balancer says before a connection's first byte which client it speaks for.

Only what stands before the client's bytes is read. Nothing here believes the header; ``server.serving.proxied`` asks for one only
where the peer is a listed balancer. Source: the specification of HAProxy (proxy-protocol.txt). Of version 2 the additional fields
(TLVs) are skipped.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Final, NamedTuple

LONGEST: Final = 4096
"""A header with all its additional fields, in bytes; the specification asks for 536 at least. Version 1 has at most 107."""
_LONGEST_LINE: Final = 107
_TEXT: Final = b"PROXY "
_BINARY: Final = b"\r\n\r\n\0\r\nQUIT\n"
_FIXED_BYTES: Final = 16
"""Of version 2: the signature, version and command, family and transport, and the length of what follows."""
_LOCAL, _PROXIED = 0x20, 0x21
_PORT = re.compile(r"0|[1-9][0-9]{0,4}")
_ADDRESS_BYTES: Final = {0x11: 4, 0x21: 16}
"""TCP over IPv4 and over IPv6."""
_UNSPECIFIED: Final = 0x00


class BadProxyHeader(Exception):
    """What came is no header; the text says why."""


class ProxyHeader(NamedTuple):
    """A whole header."""

    length: int
    """How many bytes it has; the client's own begin after them."""
    host: str | None
    """The client's address as text; None: the balancer speaks for itself (health checks) or does not know."""


def parse_header(data: bytes) -> ProxyHeader | None:
    """The header at the beginning of ``data``; None while it is not complete, and then all of ``data`` belongs to it.

    BadProxyHeader as soon as it cannot become one.
    """
    for start, parse in ((_TEXT, _line), (_BINARY, _binary)):
        if data[: len(start)] == start[: len(data)]:
            return parse(data)
    raise BadProxyHeader("the connection does not begin with a PROXY header")


def _line(data: bytes) -> ProxyHeader | None:
    end = data.find(b"\r\n", 0, _LONGEST_LINE)
    if end < 0:
        if len(data) >= _LONGEST_LINE:
            raise BadProxyHeader(f"a header of version 1 without an end within {_LONGEST_LINE} bytes")
        return None
    try:
        words = data[len(_TEXT) : end].decode("ascii").split(" ")
    except UnicodeDecodeError:
        raise BadProxyHeader("a header of version 1 that is not ASCII") from None
    if words[0] == "UNKNOWN":
        return ProxyHeader(end + 2, None)
    if len(words) != 5 or words[0] not in ("TCP4", "TCP6"):
        raise BadProxyHeader("a header of version 1 that is not: PROXY TCP4|TCP6 source destination port port")
    family, source, destination, *ports = words
    if not all(_PORT.fullmatch(each) and int(each) <= 65535 for each in ports):
        raise BadProxyHeader("a header of version 1 with a port that is no number up to 65535")
    hosts = [_address(each, 4 if family == "TCP4" else 6) for each in (source, destination)]
    return ProxyHeader(end + 2, hosts[0])


def _address(text: str, version: int) -> str:
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        found = None
    if found is None or found.version != version or "%" in text:
        raise BadProxyHeader(f"a header of version 1 with an address that is not of IPv{version}")
    return _host(found)


def _binary(data: bytes) -> ProxyHeader | None:
    if len(data) < _FIXED_BYTES:
        return None
    command, family, length = data[12], data[13], int.from_bytes(data[14:16])
    if command not in (_LOCAL, _PROXIED):
        raise BadProxyHeader(f"a header with version and command {command:#04x}; {_LOCAL:#04x} and {_PROXIED:#04x} are known")
    end = _FIXED_BYTES + length
    if end > LONGEST:
        raise BadProxyHeader(f"a header of {end} bytes; {LONGEST} are the most")
    # Two addresses and two ports.
    size = _ADDRESS_BYTES.get(family)
    if command == _PROXIED and family != _UNSPECIFIED and (size is None or length < 2 * size + 4):
        raise BadProxyHeader(f"a header for family and transport {family:#04x} with {length} bytes; TCP over IP is served")
    if len(data) < end:
        return None
    if command == _LOCAL or size is None:
        return ProxyHeader(end, None)
    return ProxyHeader(end, _host(ipaddress.ip_address(data[_FIXED_BYTES : _FIXED_BYTES + size])))


def _host(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str:
    """As the address of a connection without a balancer is written."""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)
