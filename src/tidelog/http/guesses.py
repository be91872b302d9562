"""The brake on guessing passwords, in three bounded tables. An attempt counts as wrong until it is known to be right.

- By name and address: from the sixth wrong password on, each doubles the wait, up to a minute. It holds for that address only, so
  attempts from one lock a name out for no other.
- By address: twenty wrong passwords, then one in six seconds, whatever the names.
- By name: fifty wrong passwords from anywhere, then one in two seconds. One address alone cannot use that up.
"""

from __future__ import annotations

from collections import OrderedDict
from ipaddress import IPv6Address, ip_address
from typing import Final

FREE_FAILURES: Final = 5
LONGEST_WAIT_MS: Final = 60_000
FORGOTTEN_MS: Final = 3_600_000
"""How long after its last failure a name and address begins again."""
ADDRESS_BURST, ADDRESS_REFILL_MS = 20, 6_000
NAME_BURST, NAME_REFILL_MS = 50, 2_000
MAX_ENTRIES: Final = 10_000
"""Of each table; the one that was tried longest ago makes room."""


class Guesses:
    """Which attempts to log in are looked at. Times are wall-clock milliseconds; a clock that is set back lengthens no wait."""

    def __init__(self) -> None:
        self._pairs: OrderedDict[tuple[str, str], tuple[int, int]] = OrderedDict()
        self._addresses = Buckets(ADDRESS_BURST, ADDRESS_REFILL_MS)
        self._names = Buckets(NAME_BURST, NAME_REFILL_MS)

    def attempt(self, name: str, address: str, now_ms: int) -> int:
        """0: the attempt may be looked at, and counts as wrong. Otherwise how long it has to wait, and it does not count."""
        network = network_of(address)
        wait_ms = max(
            self._pair_wait_ms((name, network), now_ms),
            self._addresses.wait_ms(network, now_ms),
            self._names.wait_ms(name, now_ms),
        )
        if wait_ms == 0:
            failures, _ = self._pairs.pop((name, network), (0, 0))
            self._pairs[name, network] = (failures + 1, now_ms)
            if len(self._pairs) > MAX_ENTRIES:
                self._pairs.popitem(last=False)
            self._addresses.take(network, now_ms)
            self._names.take(name, now_ms)
        return wait_ms

    def succeeded(self, name: str, address: str) -> None:
        """The attempt was right: it does not count, and earlier ones of the same name and address are forgiven. Those of the
        address with other names are not: its own password must not buy anyone more guesses."""
        network = network_of(address)
        self._pairs.pop((name, network), None)
        self._addresses.give_back(network)
        self._names.give_back(name)

    def _pair_wait_ms(self, pair: tuple[str, str], now_ms: int) -> int:
        failures, last_ms = self._pairs.get(pair, (0, 0))
        if failures and now_ms - last_ms > FORGOTTEN_MS:
            del self._pairs[pair]
            return 0
        if failures < FREE_FAILURES:
            return 0
        pause_ms = min(LONGEST_WAIT_MS, 1000 << min(failures - FREE_FAILURES, 16))
        return min(pause_ms, max(0, last_ms + pause_ms - now_ms))


class Buckets:
    """A bucket by key: ``burst`` attempts at once, then one in ``refill_ms``. Kept is the time at which the bucket is full."""

    def __init__(self, burst: int, refill_ms: int) -> None:
        self._burst_ms = burst * refill_ms
        self._refill_ms = refill_ms
        self._full_ms: OrderedDict[str, int] = OrderedDict()

    def wait_ms(self, key: str, now_ms: int) -> int:
        full_ms = min(self._full_ms.get(key, 0), now_ms + self._burst_ms)
        return max(0, full_ms + self._refill_ms - self._burst_ms - now_ms)

    def take(self, key: str, now_ms: int) -> None:
        full_ms = min(self._full_ms.pop(key, 0), now_ms + self._burst_ms)
        self._full_ms[key] = max(full_ms, now_ms) + self._refill_ms
        if len(self._full_ms) > MAX_ENTRIES:
            self._full_ms.popitem(last=False)

    def give_back(self, key: str) -> None:
        if key in self._full_ms:
            self._full_ms[key] -= self._refill_ms


def network_of(address: str) -> str:
    """What counts as one address: an IPv4 address, or the 64 bits of an IPv6 network, whose hosts one person can have all of."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address[:64]
    if isinstance(found, IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return f"{int(found) >> 64:x}::/64"
    return str(found)
