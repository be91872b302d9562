from __future__ import annotations

import pytest

from tidelog.broker.quotas.limits import LONGEST_CLIENT_ID, Client, Kind, Limit, Limits
from tidelog.metadata.image import QuotaEntity

RATE = "producer_byte_rate"


def entity(user: str | None = "-", client: str | None = "-") -> QuotaEntity:
    """``-``: not named; None: the default."""
    pairs = (("client-id", client), ("user", user))
    return tuple(pair for pair in pairs if pair[1] != "-")


ORDER: list[tuple[QuotaEntity, Client]] = [
    (entity("u", "c"), Client("u", "c")),
    (entity("u", None), Client("u", "c")),
    (entity("u"), Client("u", "")),
    (entity(None, "c"), Client("u", "c")),
    (entity(None, None), Client("u", "c")),
    (entity(None), Client("u", "")),
    (entity(client="c"), Client("", "c")),
    (entity(client=None), Client("", "c")),
]


@pytest.mark.parametrize("first", range(len(ORDER)))
def test_the_most_specific_limit_counts_and_is_shared_as_it_says(first: int) -> None:
    limits = Limits({each: {RATE: float(number)} for number, (each, _) in enumerate(ORDER) if number >= first})
    assert limits.of(Kind.PRODUCE, Client("u", "c")) == Limit(float(first), ORDER[first][1])


def test_limits_of_others_and_of_other_things_do_not_count() -> None:
    limits = Limits({entity("other", "c"): {RATE: 1.0}, entity("other"): {RATE: 1.0}, entity(client="d"): {RATE: 1.0}})
    assert limits.of(Kind.PRODUCE, Client("u", "c")) is None
    assert limits.of(Kind.FETCH, Client("other", "c")) is None
    assert limits.any_for_clients and not limits.any_for_hosts


def test_without_a_client_id_only_limits_of_users_count() -> None:
    nobody = Client("u", "")
    assert Limits({entity(client=None): {RATE: 1.0}, entity("u", None): {RATE: 1.0}}).of(Kind.PRODUCE, nobody) is None
    assert Limits({entity(None): {RATE: 3.0}}).of(Kind.PRODUCE, nobody) == Limit(3.0, nobody)


def test_a_host_has_its_own_limit_or_the_one_of_any_host() -> None:
    limits = Limits(
        {
            (("ip", "10.0.0.1"),): {"connection_creation_rate": 5.0},
            (("ip", "::ffff:10.0.0.2"),): {"connection_creation_rate": 6.0},
            (("ip", "0:0:0:0:0:0:0:1"),): {"connection_creation_rate": 7.0},
            (("ip", None),): {"connection_creation_rate": 9.0},
        }
    )
    assert [limits.of_host(host) for host in ("10.0.0.1", "10.0.0.2", "::1", "10.0.0.3")] == [5.0, 6.0, 7.0, 9.0]
    assert limits.any_for_hosts and not limits.any_for_clients
    assert Limits({}).of_host("10.0.0.1") is None


def test_what_is_not_known_is_not_a_limit() -> None:
    limits = Limits({entity("u"): {"beauty_rate": 1.0}, (("ip", "10.0.0.1"),): {RATE: 1.0}})
    assert not limits.any_for_clients and not limits.any_for_hosts


def test_the_end_of_a_long_client_id_does_not_count() -> None:
    """Usage is kept by client id, and clients make these up."""
    limits = Limits({entity(client=None): {RATE: 1.0}})
    long = "c" * LONGEST_CLIENT_ID
    for end in ("", "a", "b" * 30_000):
        assert limits.of(Kind.PRODUCE, Client("u", long + end)) == Limit(1.0, Client("", long))
