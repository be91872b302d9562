"""All quotas of one node: what was used is recorded, and who has used too much is told how long to wait.

What is recorded, and when, is Kafka's. A Produce counts with all its bytes; a Fetch with its records, and not at all when it
is answered with nothing because of its quota; a request with the share of a second that the loop spent on it. A client that waits
for its share of time waits for one window at most, for bytes as long as it takes.
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
"""Of a second."""


class Measured:
    """What one client, or several that share a limit, have used, and how long they were told to wait."""

    __slots__ = ("rate", "throttles", "waits_ms")

    def __init__(self) -> None:
        self.rate = SampledRate()
        self.waits_ms = SampledRate()
        self.throttles = SampledRate()


class Observed(NamedTuple):
    """For metrics: whose, of what, how much by the second, and how long a wait was on average."""

    kind: Kind
    client: Client
    rate: float
    throttle_ms: float


class ClientQuotas:
    """See the module."""

    __slots__ = ("_buckets", "_hosts", "_limits", "_measured", "_mutation_windows", "_windows")

    def __init__(self, windows: Windows = Windows(), mutation_windows: Windows = Windows()) -> None:
        self._windows = windows
        self._mutation_windows = mutation_windows
        self._limits = Limits({})
        self._measured: Usage[tuple[Kind, Client], Measured] = Usage(Measured)
        self._buckets: Usage[Client, TokenBucket] = Usage(TokenBucket)
        self._hosts: Usage[str, SampledRate] = Usage(SampledRate)

    def change(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        """Other limits from now on; what was used stays known."""
        self._limits = Limits(quotas)

    @property
    def for_clients(self) -> bool:
        """Whether requests have to be looked at."""
        return self._limits.any_for_clients

    @property
    def for_mutations(self) -> bool:
        """Whether some client may be limited in what it has controllers change."""
        return self._limits.any_of(Kind.MUTATION)

    @property
    def for_hosts(self) -> bool:
        """Whether new connections have to be looked at."""
        return self._limits.any_for_hosts

    def produced(self, client: Client, size: int, now_ms: int) -> int:
        """A Produce of ``size`` bytes came in: how many ms its client has to wait."""
        limit = self._limits.of(Kind.PRODUCE, client)
        if limit is None:
            return 0
        rate = self._measured.of((Kind.PRODUCE, limit.shared_by), now_ms).rate
        rate.record(size, now_ms, self._windows)
        return throttle_ms(rate.measure(now_ms, self._windows), limit.bound)

    def most_to_fetch(self, client: Client) -> int | None:
        """How much may be fetched at once without a wait for certain; more would never be answered."""
        limit = self._limits.of(Kind.FETCH, client)
        return None if limit is None or limit.bound == math.inf else int(limit.bound * self._windows.whole_s)

    def fetched(self, client: Client, size: int, now_ms: int, waits: bool = False) -> int:
        """``size`` bytes are to be sent: how many ms the client has to wait instead, and nothing is sent. ``waits``: it has to
        in any case.

        A batch that is larger than all windows together is sent to who was sent nothing in them: its reader would never get on.
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
        """The loop has spent ``ns`` on a request: how many ms its client has to wait."""
        limit = self._limits.of(Kind.REQUEST, client)
        if limit is None:
            return 0
        rate = self._measured.of((Kind.REQUEST, limit.shared_by), now_ms).rate
        rate.record(ns / _NS_PER_PERCENT, now_ms, self._windows)
        return min(throttle_ms(rate.measure(now_ms, self._windows), limit.bound), self._windows.size_ms)

    def mutations(self, client: Client, now_ms: int, *, strict: bool) -> MutationQuota | None:
        """What one request of this client may change; None: whatever it likes."""
        limit = self._limits.of(Kind.MUTATION, client)
        if limit is None:
            return None
        bucket = self._buckets.of(limit.shared_by, now_ms)
        return MutationQuota(bucket, limit.bound, self._mutation_windows, strict=strict, now_ms=now_ms)

    def connected(self, host: str, now_ms: int) -> int:
        """Somebody connects from this address: how many ms until this one, which is not served, is closed; 0: it is served."""
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
        """It was told to wait because of that quota; for metrics."""
        limit = self._limits.of(kind, client)
        if limit is not None and kind is not Kind.MUTATION:
            measured = self._measured.of((kind, limit.shared_by), now_ms)
            measured.waits_ms.record(wait_ms, now_ms, self._windows)
            measured.throttles.record(1, now_ms, self._windows)

    def observe(self, now_ms: int) -> Iterator[Observed]:
        """All that is measured now."""
        windows = self._windows
        self._measured.forget(now_ms)
        for (kind, client), measured in self._measured.items():
            times = measured.throttles.total(now_ms, windows)
            average = measured.waits_ms.total(now_ms, windows) / times if times > 0 else 0.0
            yield Observed(kind, client, measured.rate.measure(now_ms, windows).value, average)
