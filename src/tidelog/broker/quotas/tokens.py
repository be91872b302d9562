"""Token buckets for controller mutations (KIP-599).

A bucket holds what all windows together allow, and starts full. A request takes one token per partition. While the bucket is not
negative, a request may take any number; what it takes too much has to flow back first.
"""

from __future__ import annotations

from tidelog.broker.quotas.rates import LONGEST_MS, Windows


class TokenBucket:
    """The tokens left to one client, or to several that share a limit; may be negative."""

    __slots__ = ("_tokens", "_updated_ms")

    def __init__(self) -> None:
        self._tokens: float | None = None
        self._updated_ms = 0

    def tokens(self, now_ms: int, bound: float, windows: Windows) -> float:
        """The current tokens."""
        most = windows.number * windows.size_ms / 1000 * bound
        if self._tokens is None:
            self._tokens = most
        else:
            self._tokens = min(most, self._tokens + bound * (now_ms - self._updated_ms) / 1000)
        self._updated_ms = now_ms
        return self._tokens

    def take(self, count: float, now_ms: int, bound: float, windows: Windows) -> None:
        """Take ``count`` tokens, even below zero."""
        self._tokens = self.tokens(now_ms, bound, windows) - count

    def wait_ms(self, now_ms: int, bound: float, windows: Windows) -> int:
        """Milliseconds until the bucket is no longer negative."""
        missing = -self.tokens(now_ms, bound, windows)
        if missing <= 0:
            return 0
        return LONGEST_MS if bound <= 0 else int(min(missing / bound * 1000 + 0.5, LONGEST_MS))


class MutationQuota:
    """The quota of one request. Strict: nothing is allowed while the bucket is negative. Otherwise all of it is, and the
    client is throttled."""

    __slots__ = ("_bound", "_bucket", "_now_ms", "_strict", "_wait_ms", "_windows")

    def __init__(self, bucket: TokenBucket, bound: float, windows: Windows, *, strict: bool, now_ms: int) -> None:
        self._bucket = bucket
        self._bound = bound
        self._windows = windows
        self._strict = strict
        self._now_ms = now_ms
        self._wait_ms = 0

    def take(self, partitions: int) -> bool:
        """Take tokens for this many partitions; whether the request may create or delete them."""
        bucket, now_ms, bound, windows = self._bucket, self._now_ms, self._bound, self._windows
        if self._strict:
            if bucket.tokens(now_ms, bound, windows) < 0:
                self._wait_ms = bucket.wait_ms(now_ms, bound, windows)
                return False
            bucket.take(partitions, now_ms, bound, windows)
            return True
        bucket.take(partitions, now_ms, bound, windows)
        self._wait_ms = bucket.wait_ms(now_ms, bound, windows)
        return True

    def throttle_ms(self, now_ms: int) -> int:
        """The remaining throttle time."""
        return max(0, self._wait_ms - (now_ms - self._now_ms))
