import math

import pytest

from tidelog.config.quota_entities import CONNECTION_CREATION_RATE, PRODUCER_BYTE_RATE, REQUEST_PERCENTAGE, QuotaKey


@pytest.mark.parametrize(
    ("key", "limit"),
    [
        (PRODUCER_BYTE_RATE, 1.0),
        (PRODUCER_BYTE_RATE, 1.0000005),
        (PRODUCER_BYTE_RATE, float(2**63 - 1)),
        (CONNECTION_CREATION_RATE, 2147483647.0),
        (REQUEST_PERCENTAGE, 0.001),
        (REQUEST_PERCENTAGE, 1e300),
    ],
)
def test_limits_that_apache_kafka_takes_are_taken(key: QuotaKey, limit: float) -> None:
    assert key.problem(limit) is None


@pytest.mark.parametrize(
    ("key", "limit", "says"),
    [
        (PRODUCER_BYTE_RATE, 0.0, "more than 0"),
        (PRODUCER_BYTE_RATE, -1.0, "more than 0"),
        (REQUEST_PERCENTAGE, math.nan, "more than 0"),
        (PRODUCER_BYTE_RATE, math.nan, "more than 0"),
        (PRODUCER_BYTE_RATE, 1.5, "must be a whole number, and 1.5 is not"),
        (PRODUCER_BYTE_RATE, 1.9999999, "must be a whole number"),
        (CONNECTION_CREATION_RATE, 0.5, "must be a whole number"),
        (CONNECTION_CREATION_RATE, 2147483648.0, "2147483647 at most"),
        (PRODUCER_BYTE_RATE, math.inf, "9223372036854775807 at most"),
    ],
)
def test_limits_that_are_none_are_refused_by_name(key: QuotaKey, limit: float, says: str) -> None:
    problem = key.problem(limit)
    assert problem is not None and problem.startswith(key.name) and says in problem
