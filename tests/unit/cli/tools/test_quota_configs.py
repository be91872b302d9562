"""Quotas as ``configs`` sets and shows them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from tests.unit.cli.cluster_stand_in import StandIn
from tidelog.cli.refusal import CommandFailed
from tidelog.cli.tools.config_entities import Named
from tidelog.cli.tools.quota_configs import alter, as_java, describe
from tidelog.protocol.messages import alter_client_quotas as altering
from tidelog.protocol.messages import describe_client_quotas as describing

ALICE, ANYBODY = Named("users", "alice"), Named("users", "")
ANY_CLIENT, ANY_IP = Named("clients", ""), Named("ips", "")


def session(*present: tuple[dict[str, str | None], dict[str, float]], refusal: tuple[int, str | None] = (0, None)) -> StandIn:
    """Of a cluster that has these quotas, and refuses changes so."""
    entries = [
        describing.EntryData(
            entity=[describing.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
            values=[describing.ValueData(key=key, value=value) for key, value in limits.items()],
        )
        for entity, limits in present
    ]
    answer = altering.ResponseEntryData(error_code=refusal[0], error_message=refusal[1])
    return StandIn(
        {
            describing.DescribeClientQuotasRequest: describing.DescribeClientQuotasResponse(entries=entries),
            altering.AlterClientQuotasRequest: altering.AlterClientQuotasResponse(entries=[answer]),
        }
    )


def filters(asked: StandIn) -> list[tuple[str, int, str | None]]:
    """Of the only description that was asked for."""
    ((_, request),) = asked.requests(describing.DescribeClientQuotasRequest)
    assert request.strict
    return [(each.entity_type, each.match_type, each.match) for each in request.components]


def changes(asked: StandIn) -> tuple[list[tuple[str, str | None]], list[tuple[str, float, bool]]]:
    """Of the only change."""
    ((_, request),) = asked.requests(altering.AlterClientQuotasRequest)
    (entry,) = request.entries
    entity = [(each.entity_type, each.entity_name) for each in entry.entity]
    return entity, [(op.key, op.value, op.remove) for op in entry.ops]


def test_limits_are_set_in_one_request_and_others_deleted(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = session(({"user": "alice"}, {"producer_byte_rate": 5.0, "request_percentage": 1.0}))
    alter(cluster, [ALICE], {"consumer_byte_rate": "1e6"}, ["request_percentage"])
    assert filters(cluster) == [("user", 0, "alice")]
    expected = [("consumer_byte_rate", 1e6, False), ("request_percentage", 0.0, True)]
    assert changes(cluster) == ([("user", "alice")], expected)
    assert capsys.readouterr().out == "Completed updating config for user alice.\n"


@pytest.mark.parametrize(
    ("entities", "names", "says"),
    [
        ([ANY_IP], [("ip", None)], "Completed updating default config for ips in the cluster.\n"),
        ([ALICE, ANY_CLIENT], [("user", "alice"), ("client-id", None)], "Completed updating config for user alice.\n"),
        (
            [ANYBODY, ANY_CLIENT],
            [("user", None), ("client-id", None)],
            "Completed updating default config for users in the cluster.\n",
        ),
    ],
)
def test_the_end_is_told_by_the_first_entity(
    entities: list[Named], names: list[tuple[str, str | None]], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = session()
    key = "connection_creation_rate" if entities == [ANY_IP] else "request_percentage"
    alter(cluster, entities, {key: "7"}, [])
    assert changes(cluster) == (names, [(key, 7.0, False)])
    assert capsys.readouterr().out == says


@pytest.mark.parametrize(
    ("entities", "add", "delete", "says"),
    [
        ([ALICE], {"bogus": "1"}, [], "Only quota configs can be added for 'users'.*Unexpected config names: bogus"),
        ([ALICE], {"SCRAM-SHA512": "1"}, [], "for passwords SCRAM-SHA-256 and SCRAM-SHA-512"),
        ([ALICE], {}, ["bogus"], "Only quota configs can be deleted for 'users'"),
        ([ALICE], {"connection_creation_rate": "1"}, [], "Unexpected config names: connection_creation_rate"),
        ([ANY_IP], {"producer_byte_rate": "1"}, [], "Only connection quota configs can be added for 'ips'"),
        ([ALICE], {"producer_byte_rate": "x"}, [], "Quota producer_byte_rate takes a number: x"),
        ([ALICE], {}, ["producer_byte_rate"], r"Invalid config\(s\): producer_byte_rate"),
        ([ANY_CLIENT], {"SCRAM-SHA-512": "x"}, [], "Only quota configs can be added for 'clients'"),
    ],
)
def test_what_is_no_quota_is_refused_before_anything_is_changed(
    entities: list[Named], add: dict[str, str], delete: Sequence[str], says: str
) -> None:
    cluster = session()
    with pytest.raises(CommandFailed, match=says):
        alter(cluster, entities, add, delete)
    assert cluster.requests(altering.AlterClientQuotasRequest) == []


def test_a_refusal_is_told_in_the_words_of_the_broker() -> None:
    with pytest.raises(CommandFailed, match=r"^INVALID_REQUEST: producer_byte_rate must be more$"):
        alter(session(refusal=(42, "producer_byte_rate must be more")), [ALICE], {"producer_byte_rate": "0"}, [])


def test_quotas_are_shown_as_by_kafkas_tool_and_as_values(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = session(
        ({"client-id": "c", "user": "alice"}, {"consumer_byte_rate": 1e11, "producer_byte_rate": 100.0}),
        ({"client-id": None, "user": None}, {"request_percentage": 12.5}),
        ({"ip": "10.1.2.3"}, {"connection_creation_rate": 3.0}),
        ({"ip": None}, {"connection_creation_rate": 4.0}),
    )
    found = describe(cluster, [Named("users", None), Named("clients", "c")], silent=False)
    assert sorted(filters(cluster)) == [("client-id", 0, "c"), ("user", 2, None)]
    assert capsys.readouterr().out.splitlines() == [
        "Quota configs for user-principal 'alice', client-id 'c' are consumer_byte_rate=1.0E11, producer_byte_rate=100.0",
        "Quota configs for the default user-principal, the default client-id are request_percentage=12.5",
        "Quota configs for ip '10.1.2.3' are connection_creation_rate=3.0",
        "Quota configs for the default ip are connection_creation_rate=4.0",
    ]
    assert found[1] == {
        "entities": [{"entityType": "users", "entityName": None}, {"entityType": "clients", "entityName": None}],
        "configs": [{"name": "request_percentage", "value": 12.5}],
    }
    assert (describe(cluster, [ANY_IP], silent=True), capsys.readouterr().out) == (found, "")


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (100.0, "100.0"),
        (0.001, "0.001"),
        (0.00025, "2.5E-4"),
        (9_999_999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (-12_345_678.0, "-1.2345678E7"),
        (float(2**63), "9.223372036854776E18"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (math.nan, "NaN"),
    ],
)
def test_numbers_look_as_java_writes_them(number: float, text: str) -> None:
    assert as_java(number) == text
