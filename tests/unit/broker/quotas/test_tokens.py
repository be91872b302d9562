from __future__ import annotations

from tidelog.broker.quotas.rates import Windows
from tidelog.broker.quotas.tokens import MutationQuota, TokenBucket

WINDOWS = Windows(10, 1000)
BOUND = 5.0
"""So that a bucket holds 50."""


def quota(bucket: TokenBucket, now_ms: int, strict: bool = True) -> MutationQuota:
    return MutationQuota(bucket, BOUND, WINDOWS, strict=strict, now_ms=now_ms)


def test_a_bucket_is_full_at_first_flows_back_and_does_not_flow_over() -> None:
    bucket = TokenBucket()
    assert bucket.tokens(1_000_000, BOUND, WINDOWS) == 50
    bucket.take(30, 1_000_000, BOUND, WINDOWS)
    assert bucket.tokens(1_002_000, BOUND, WINDOWS) == 30
    assert bucket.tokens(1_100_000, BOUND, WINDOWS) == 50


def test_who_has_anything_left_takes_what_he_likes_and_then_waits() -> None:
    bucket = TokenBucket()
    first = quota(bucket, 0)
    assert first.take(110) and first.throttle_ms(0) == 0
    second = quota(bucket, 2000)
    # 50 - 110 + 2 * 5 = -50, which flow back in ten seconds.
    assert not second.take(1)
    assert second.throttle_ms(2000) == 10_000
    assert second.throttle_ms(5000) == 7000
    assert second.throttle_ms(20_000) == 0
    assert quota(bucket, 12_000).take(1)


def test_old_versions_are_not_refused_but_wait() -> None:
    bucket = TokenBucket()
    permissive = quota(bucket, 0, strict=False)
    assert permissive.take(60)
    assert permissive.throttle_ms(0) == 2000
    assert permissive.take(10)
    assert permissive.throttle_ms(500) == 3500


def test_less_than_a_moments_worth_is_refused_all_the_same() -> None:
    bucket = TokenBucket()
    bucket.take(50.001, 0, BOUND, WINDOWS)
    assert not quota(bucket, 0).take(1)
