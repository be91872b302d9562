"""Binds a listener's address, and says why that fails."""

from __future__ import annotations

import errno
import os
import socket

from tidelog.model.errors import ConfigError


def bind(name: str, host: str, port: int) -> socket.socket:
    """A socket bound to the address, not listening yet; an empty host means every interface. ConfigError when binding fails."""
    where = f"{name}://{host}:{port}"
    family, address = _resolve(where, host, port)
    try:
        listening = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        raise ConfigError(f"listener {where}: {error.strerror}") from error
    try:
        if os.name == "posix":
            # On Windows this option would let a second node take the port of the first.
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if address[0] == "::" else 1)
        listening.bind(address)
    except OSError as error:
        listening.close()
        raise unavailable(where, error) from error
    listening.setblocking(False)
    return listening


def unavailable(where: str, error: OSError) -> ConfigError:
    """Why an address cannot be listened on, and what to change."""
    if error.errno == errno.EADDRINUSE:
        return ConfigError(
            f"listener {where}: the port is in use. Stop what listens there, or choose another: --port, or 'listeners'."
        )
    return ConfigError(f"listener {where}: cannot listen there: {error.strerror}")


def _resolve(where: str, host: str, port: int) -> tuple[socket.AddressFamily, tuple[str, int]]:
    if not host:
        if socket.has_dualstack_ipv6():
            return socket.AF_INET6, ("::", port)
        return socket.AF_INET, ("0.0.0.0", port)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except socket.gaierror as error:
        raise ConfigError(f"listener {where}: host {host} is not known: {error.strerror}") from error
    # Like the JVM for a name with addresses of both kinds: IPv4 first.
    found.sort(key=lambda entry: entry[0] != socket.AF_INET)
    family, _, _, _, address = found[0]
    return family, (str(address[0]), port)
