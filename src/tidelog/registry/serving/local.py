"""A registry without login trusts this machine, but not what browsers on it run: a page of any site may send requests to it.

Such a request names its site (Origin, Sec-Fetch-Site), or comes under a name that its site's owner lets point here (DNS
rebinding); other clients send neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidelog.model.addresses import is_address, is_loopback
from tidelog.registry.errors import RegistryError

_OWN = (b"same-origin", b"none")


class Local:
    """``names``: under which requests may come, besides addresses and localhost."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = frozenset(name.lower() for name in names)

    def check(self, headers: Mapping[bytes, bytes]) -> None:
        """403 for a request that a page of another site sent."""
        host = headers.get(b"host", b"localhost")
        name = _name(host.decode("latin-1").lower())
        if not (is_loopback(name) or is_address(name.strip("[]")) or name in self._names):
            raise RegistryError(
                403,
                403,
                f"This registry has no login, so it is not served under the name {name[:100]!r}: use localhost, or start it with "
                "--advertise NAME:PORT.",
            )
        origin = headers.get(b"origin")
        foreign = origin is not None and origin.partition(b"://")[2] != host
        if foreign or headers.get(b"sec-fetch-site", b"none") not in _OWN:
            raise RegistryError(403, 403, "This registry has no login, so it takes no requests from pages of other sites.")


def _name(host: str) -> str:
    """The host without its port; an IPv6 address stays in brackets."""
    return host.partition("]")[0] + "]" if host.startswith("[") else host.partition(":")[0]
