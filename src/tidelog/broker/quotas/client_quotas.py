"""All quotas of one node: records usage and computes throttle times.

What counts, and when, is the same as in Kafka. A Produce counts with all its bytes. A Fetch counts with its records, and not at
all when its quota makes the answer empty. A request counts with the share of a second that the loop spent on it. A request-time
throttle lasts one window at most, a byte throttle as long as it takes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tidelog.broker.quotas.limits import Client, Kind, Limits
from tidelog.broker.quotas.rates import SampledRate, Windows, throttle_ms
from tidelog.broker.quotas.tokens import MutationQuota, TokenBucket
from tidelog.broker.quotas.usage import Usage
from tidelog.metadata.image import QuotaEntity

_NS_PER_PERCENT = 10_000_000
"""One percent of a second."""


class Measured:
    """The usage and throttle times of one client, or of several that share a limit."""

    __slots__ = ("rate", "throttles", "waits_ms")

    def __init__(self) -> None:
        self.rate = SampledRate()
        self.waits_ms = SampledRate()
        self.throttles = SampledRate()


class Observed(NamedTuple):
    """For metrics: the rate per second of a client, and its average throttle time in ms."""

    kind: Kind
    client: Client
    rate: float
    throttle_ms: float


class ClientQuotas:
    __slots__ = ("_buckets", "_hosts", "_limits", "_measured", "_mutation_windows", "_windows")

    def __init__(self, windows: Windows = Windows(), mutation_windows: Windows = Windows()) -> None:
        self._windows = windows
        self._mutation_windows = mutation_windows
        self._limits = Limits({})
        self._measured: Usage[tuple[Kind, Client], Measured] = Usage(Measured)
        self._buckets: Usage[Client, TokenBucket] = Usage(TokenBucket)
        self._hosts: Usage[str, SampledRate] = Usage(SampledRate)

    def change(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        """Replace the limits; recorded usage is kept."""
        self._limits = Limits(quotas)

    @property
    def for_clients(self) -> bool:
        """Whether requests have to be metered."""
        return self._limits.any_for_clients

    @property
    def for_mutations(self) -> bool:
        """Whether some client has a limit on controller mutations."""
        return self._limits.any_of(Kind.MUTATION)

    @property
    def for_hosts(self) -> bool:
        """Whether new connections have to be metered."""
        return self._limits.any_for_hosts

    def produced(self, client: Client, size: int, now_ms: int) -> int:
        """Record a Produce of ``size`` bytes; returns the client's throttle time in ms."""
        limit = self._limits.of(Kind.PRODUCE, client)
        if limit is None:
            return 0
        rate = self._measured.of((Kind.PRODUCE, limit.shared_by), now_ms).rate
        rate.record(size, now_ms, self._windows)
        return throttle_ms(rate.measure(now_ms, self._windows), limit.bound)

    def most_to_fetch(self, client: Client) -> int | None:
        """The largest fetch that the quota can ever allow; a larger one would never be answered."""
        limit = self._limits.of(Kind.FETCH, client)
        return None if limit is None or limit.bound == math.inf else int(limit.bound * self._windows.whole_s)

    def fetched(self, client: Client, size: int, now_ms: int, waits: bool = False) -> int:
        """Record ``size`` bytes about to be sent; returns the throttle time in ms, and then nothing is sent. ``waits``: the
        client is throttled anyway.

        A batch larger than all windows together is sent to a client that received nothing in them; otherwise the reader could
        never progress.
        """
        limit = self._limits.of(Kind.FETCH, client)
        if limit is None:
            return 0
        windows, rate = self._windows, self._measured.of((Kind.FETCH, limit.shared_by), now_ms).rate
        is_first = rate.total(now_ms, windows) <= 0
        rate.record(size, now_ms, windows)
        wait_ms = throttle_ms(rate.measure(now_ms, windows), limit.bound)
        if is_first and not waits:
            return 0
        if wait_ms or waits:
            rate.record(-size, now_ms, windows)
        return wait_ms

    def worked(self, client: Client, ns: int, now_ms: int) -> int:
        """Record ``ns`` of loop time for a request; returns the client's throttle time in ms."""
        limit = self._limits.of(Kind.REQUEST, client)
        if limit is None:
            return 0
        rate = self._measured.of((Kind.REQUEST, limit.shared_by), now_ms).rate
        rate.record(ns / _NS_PER_PERCENT, now_ms, self._windows)
        return min(throttle_ms(rate.measure(now_ms, self._windows), limit.bound), self._windows.size_ms)

    def mutations(self, client: Client, now_ms: int, *, strict: bool) -> MutationQuota | None:
        """The mutation quota of one request of this client; None without a limit."""
        limit = self._limits.of(Kind.MUTATION, client)
        if limit is None:
            return None
        bucket = self._buckets.of(limit.shared_by, now_ms)
        return MutationQuota(bucket, limit.bound, self._mutation_windows, strict=strict, now_ms=now_ms)

    def connected(self, host: str, now_ms: int) -> int:
        """Record a new connection from this address. Returns 0 if it may be served; otherwise the delay in ms after which it
        is closed unserved."""
        bound = self._limits.of_host(host)
        if bound is None:
            return 0
        rate = self._hosts.of(host, now_ms)
        rate.record(1, now_ms, self._windows)
        wait_ms = min(throttle_ms(rate.measure(now_ms, self._windows), bound), self._windows.size_ms)
        if wait_ms:
            rate.record(-1, now_ms, self._windows)
        return wait_ms

    def throttled(self, kind: Kind, client: Client, wait_ms: int, now_ms: int) -> None:
        """Record a throttle time caused by that quota, for metrics."""
        limit = self._limits.of(kind, client)
        if limit is not None and kind is not Kind.MUTATION:
            measured = self._measured.of((kind, limit.shared_by), now_ms)
            measured.waits_ms.record(wait_ms, now_ms, self._windows)
            measured.throttles.record(1, now_ms, self._windows)

    def observe(self, now_ms: int) -> Iterator[Observed]:
        """All current measurements."""
        windows = self._windows
        self._measured.forget(now_ms)
        for (kind, client), measured in self._measured.items():
            times = measured.throttles.total(now_ms, windows)
            average = measured.waits_ms.total(now_ms, windows) / times if times > 0 else 0.0
            yield Observed(kind, client, measured.rate.measure(now_ms, windows).value, average)
