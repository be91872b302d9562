from __future__ import annotations

import math

import pytest

from tidelog.broker.quotas.client_quotas import ClientQuotas
from tidelog.broker.quotas.limits import Client, Kind
from tidelog.broker.quotas.rates import LONGEST_MS
from tidelog.metadata.image import QuotaEntity

USER: QuotaEntity = (("user", "ANONYMOUS"),)
ANY_CLIENT: QuotaEntity = (("client-id", None),)
A, B = Client("ANONYMOUS", "a"), Client("ANONYMOUS", "b")


def quotas(entity: QuotaEntity = ANY_CLIENT, **limits: float) -> ClientQuotas:
    made = ClientQuotas()
    made.change({entity: limits})
    return made


def test_a_limit_of_any_client_is_each_ones_own_and_that_of_a_user_is_shared() -> None:
    each = quotas(producer_byte_rate=100.0)
    assert [each.produced(A, 1000, 0), each.produced(B, 1000, 0)] == [0, 0]
    assert each.produced(A, 100, 0) == 1000
    shared = quotas(USER, producer_byte_rate=100.0)
    assert [shared.produced(A, 1000, 0), shared.produced(B, 100, 0)] == [0, 1000]


def test_a_producer_waits_as_long_as_its_bytes_take() -> None:
    limited = quotas(producer_byte_rate=10.0)
    # 100,000 bytes in 10 s are 10,000 a second: (10,000 - 10) / 10 * 10 s.
    assert limited.produced(A, 100_000, 0) == 9_990_000
    assert limited.produced(A, 0, 12_000) == 0


def test_a_fetch_beyond_the_limit_is_not_counted() -> None:
    limited = quotas(consumer_byte_rate=100.0)
    assert limited.most_to_fetch(A) == 1000
    assert limited.fetched(A, 900, 0) == 0
    assert limited.fetched(A, 200, 0) == 1000
    assert limited.fetched(A, 100, 0) == 0
    assert quotas(producer_byte_rate=1.0).most_to_fetch(A) is None


def test_a_fetch_that_waits_for_its_time_is_not_counted_either() -> None:
    limited = quotas(consumer_byte_rate=100.0)
    assert limited.fetched(A, 900, 0, waits=True) == 0
    assert limited.fetched(A, 1000, 0) == 0


def test_a_batch_larger_than_all_windows_gets_through_once_in_all_of_them() -> None:
    limited = quotas(consumer_byte_rate=100.0)
    assert limited.fetched(A, 5000, 0) == 0
    assert limited.fetched(A, 5000, 5000) > 0
    assert limited.fetched(A, 5000, 11_000) == 0


def test_a_share_of_a_second_is_in_percent_and_waits_for_one_window_at_most() -> None:
    limited = quotas(request_percentage=10.0)
    # One second of work in ten is ten percent.
    assert limited.worked(A, 1_000_000_000, 0) == 0
    assert limited.worked(A, 50_000_000, 0) == 500
    assert limited.worked(A, 5_000_000_000, 0) == 1000


def test_other_limits_hold_at_once_for_what_was_used_before() -> None:
    limited = quotas(producer_byte_rate=100.0)
    assert limited.produced(A, 1000, 0) == 0
    limited.change({ANY_CLIENT: {"producer_byte_rate": 50.0}})
    assert limited.produced(A, 0, 0) == 10_000
    limited.change({})
    assert limited.produced(A, 1_000_000, 0) == 0
    assert not limited.for_clients


def test_connections_of_one_address_come_no_faster_than_they_may() -> None:
    limited = ClientQuotas()
    limited.change({(("ip", None),): {"connection_creation_rate": 1.0}})
    assert limited.for_hosts and not limited.for_clients
    assert [limited.connected("10.0.0.1", 0) for _ in range(12)] == [0] * 10 + [1000] * 2
    assert limited.connected("10.0.0.2", 0) == 0
    assert limited.connected("10.0.0.1", 11_000) == 0


def test_mutations_are_those_of_who_shares_the_limit() -> None:
    limited = quotas(USER, controller_mutation_rate=1.0)
    first = limited.mutations(A, 0, strict=True)
    assert first is not None and first.take(20)
    second = limited.mutations(B, 0, strict=True)
    assert second is not None and not second.take(1) and second.throttle_ms(0) == 9000
    assert quotas(producer_byte_rate=1.0).mutations(A, 0, strict=True) is None


def test_what_is_measured_can_be_looked_at() -> None:
    limited = quotas(producer_byte_rate=100.0)
    limited.produced(A, 2000, 0)
    limited.throttled(Kind.PRODUCE, A, 10_000, 0)
    limited.throttled(Kind.PRODUCE, A, 5000, 0)
    (seen,) = limited.observe(0)
    assert seen == (Kind.PRODUCE, Client("", "a"), 200.0, 7500.0)
    assert list(limited.observe(4_000_000)) == []


ALL = {kind.value: 1.0 for kind in Kind}


def waits(limited: ClientQuotas) -> list[int]:
    """How long a client waits who has used much: bytes in and out, time, partitions, connections."""
    change = limited.mutations(A, 1, strict=False)
    assert change is not None and change.take(1_000_000)
    return [
        limited.produced(A, 1_000_000, 1),
        limited.fetched(A, 1_000_000, 1, waits=True),
        limited.worked(A, 10**11, 1),
        change.throttle_ms(1),
        limited.connected("10.0.0.1", 1),
    ]


@pytest.mark.parametrize("limit", [math.nan, math.inf])
def test_a_limit_that_is_no_number_holds_nobody_up_and_is_nobody_elses(limit: float) -> None:
    limited = ClientQuotas()
    others: QuotaEntity = (("user", None),)
    limited.change({USER: dict.fromkeys(ALL, limit), others: ALL, (("ip", None),): {"connection_creation_rate": limit}})
    assert waits(limited) == [0] * 5
    assert limited.most_to_fetch(A) is None


def test_the_least_limit_that_a_number_can_say_is_one() -> None:
    limited = ClientQuotas()
    limited.change({USER: dict.fromkeys(ALL, 5e-324), (("ip", None),): {"connection_creation_rate": 5e-324}})
    assert waits(limited) == [LONGEST_MS, LONGEST_MS, 1000, LONGEST_MS, 1000]
