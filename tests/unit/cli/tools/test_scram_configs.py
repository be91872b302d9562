"""SCRAM credentials as ``configs`` sets and shows them."""

from __future__ import annotations

import pytest

from tests.unit.cli.cluster_stand_in import StandIn
from tidelog.cli.refusal import CommandFailed
from tidelog.cli.tools.config_entities import Named
from tidelog.cli.tools.scram_configs import alter, are_credentials, describe
from tidelog.protocol.messages import alter_user_scram_credentials as altering
from tidelog.protocol.messages import describe_user_scram_credentials as describing
from tidelog.security.scram import ScramMechanism, salted_password

ALICE, ANYBODY, EVERYBODY = Named("users", "alice"), Named("users", ""), Named("users", None)


def session(*users: tuple[str, int, dict[int, int]], code: int = 0, message: str | None = None) -> StandIn:
    """Of a cluster with these users (name, error, iterations by mechanism), which answers changes so."""
    results = [
        describing.DescribeUserScramCredentialsResult(
            name, error, None, [describing.CredentialInfo(mechanism, iterations) for mechanism, iterations in infos.items()]
        )
        for name, error, infos in users
    ]
    changed = altering.AlterUserScramCredentialsResult("alice", code, message)
    return StandIn(
        {
            describing.DescribeUserScramCredentialsRequest: describing.DescribeUserScramCredentialsResponse(results=results),
            altering.AlterUserScramCredentialsRequest: altering.AlterUserScramCredentialsResponse(results=[changed]),
        }
    )


def test_a_credential_is_salted_before_it_leaves(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = session()
    alter(cluster, "alice", {"SCRAM-SHA-512": "iterations=8192,password=canary"}, ["SCRAM-SHA-256"])
    ((_, request),) = cluster.requests(altering.AlterUserScramCredentialsRequest)
    (given,) = request.upsertions
    assert (given.name, given.mechanism, given.iterations) == ("alice", 2, 8192)
    assert len(given.salt) == 24
    assert given.salted_password == salted_password(ScramMechanism.SHA_512, "canary", given.salt, 8192)
    assert [(each.name, each.mechanism) for each in request.deletions] == [("alice", 1)]
    assert capsys.readouterr().out == "Completed updating config for user alice.\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("password=", "the password is empty"),
        ("iterations=1,password=canary", "from 4096 to 16384"),
        ("name=bob,password=canary", "remove name"),
        ("canary", "'something else' is none of"),
    ],
)
def test_a_credential_that_cannot_be_read_is_not_sent(text: str, says: str) -> None:
    cluster = session()
    with pytest.raises(CommandFailed, match=says) as failed:
        alter(cluster, "alice", {"SCRAM-SHA-256": text}, [])
    assert "canary" not in str(failed.value)
    assert cluster.requests(altering.AlterUserScramCredentialsRequest) == []


def test_a_refusal_of_the_broker_ends_the_command() -> None:
    with pytest.raises(CommandFailed, match="RESOURCE_NOT_FOUND: nothing there"):
        alter(session(code=91, message="nothing there"), "alice", {}, ["SCRAM-SHA-256"])


def test_credentials_are_told_from_quotas() -> None:
    assert are_credentials([ALICE], ["SCRAM-SHA-256"])
    assert not are_credentials([ALICE], ["producer_byte_rate"])
    assert not are_credentials([Named("clients", "c")], ["SCRAM-SHA-256"])
    assert not are_credentials([ALICE, Named("clients", "c")], ["SCRAM-SHA-256"])
    with pytest.raises(CommandFailed, match="in two commands"):
        are_credentials([ALICE], ["SCRAM-SHA-256", "producer_byte_rate"])
    with pytest.raises(CommandFailed, match="in brackets"):
        are_credentials([ALICE], ["SCRAM-SHA-256", "password"])
    with pytest.raises(CommandFailed, match="--entity-name"):
        are_credentials([ANYBODY], ["SCRAM-SHA-256"])


def test_users_are_described_with_their_mechanisms(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = session(("alice", 0, {1: 4096, 2: 8192}), ("bob", 91, {}))
    (row,) = describe(cluster, [EVERYBODY], silent=False)
    assert row == {
        "entities": [{"entityType": "users", "entityName": "alice"}],
        "configs": [
            {"name": "SCRAM-SHA-256", "value": "iterations=4096"},
            {"name": "SCRAM-SHA-512", "value": "iterations=8192"},
        ],
    }
    said = capsys.readouterr().out
    assert said == (
        "SCRAM credential configs for user-principal 'alice' are SCRAM-SHA-256=iterations=4096, SCRAM-SHA-512=iterations=8192\n"
    )
    describe(cluster, [ALICE], silent=True)
    assert capsys.readouterr().out == ""
    asked = cluster.requests(describing.DescribeUserScramCredentialsRequest)
    assert [None if each.users is None else [user.name for user in each.users] for _, each in asked] == [None, ["alice"]]
    assert describe(cluster, [ANYBODY], silent=False) == []
    assert describe(cluster, [Named("clients", None)], silent=False) == []
