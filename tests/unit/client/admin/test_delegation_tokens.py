from __future__ import annotations

import pytest

from tests.unit.client.scripted import Table, answered
from tidelog.client.admin.delegation_tokens import DelegationToken, create, describe, expire, renew
from tidelog.client.connection import UnsupportedByBroker
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.create_delegation_token import CreateDelegationTokenResponse
from tidelog.protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenResponse,
)
from tidelog.protocol.messages.expire_delegation_token import ExpireDelegationTokenResponse
from tidelog.protocol.messages.renew_delegation_token import RenewDelegationTokenResponse

MADE = CreateDelegationTokenResponse(0, "User", "carol", "User", "ann", 1, 2, 3, "id", b"\x00\xff")


def test_a_token_is_made_for_its_own_user_or_for_another_one() -> None:
    table = Table(MADE)
    token = answered(create(["User:bob"], max_lifetime_ms=7), table)
    assert token == DelegationToken("id", b"\x00\xff", "User:carol", "User:ann", ("User:bob",), 1, 2, 3)
    assert token.password == "AP8="
    assert "xff" not in repr(token) and "AP8" not in repr(token)
    request = table.asked[0].request
    assert (request.owner_principal_name, request.max_lifetime_ms) == ("", 7)
    request.encode(1)
    assert [(each.principal_type, each.principal_name) for each in request.renewers] == [("User", "bob")]
    answered(create(owner="User:CN=c:d"), table)
    request = table.asked[1].request
    assert (request.owner_principal_type, request.owner_principal_name, request.max_lifetime_ms) == ("User", "CN=c:d", -1)
    with pytest.raises(UnsupportedByBroker):
        answered(create(owner="User:carol"), Table(MADE, version=2))


def test_ends_are_moved_by_the_secret() -> None:
    table = Table(RenewDelegationTokenResponse(0, 8), ExpireDelegationTokenResponse(0, 9))
    assert answered(renew(b"h"), table) == 8
    assert answered(expire(b"h", 5), table) == 9
    first, second = (each.request for each in table.asked)
    assert (first.hmac, first.renew_period_ms) == (b"h", -1)
    assert (second.hmac, second.expiry_time_period_ms) == (b"h", 5)


def test_tokens_are_described() -> None:
    renewer = DescribedDelegationTokenRenewer("User", "bob")
    described = DescribedDelegationToken("User", "ann", "", "", 1, 2, 3, "id", b"h", [renewer])
    table = Table(DescribeDelegationTokenResponse(tokens=[described]))
    assert answered(describe(), table) == [DelegationToken("id", b"h", "User:ann", "", ("User:bob",), 1, 2, 3)]
    assert table.asked[0].request.owners is None
    answered(describe(["User:a", "User:b"]), table)
    assert [each.principal_name for each in table.asked[1].request.owners] == ["a", "b"]


@pytest.mark.parametrize("call", [create(), renew(b""), expire(b""), describe()])
def test_refusals_are_raised(call: object) -> None:
    code = ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    table = Table(
        CreateDelegationTokenResponse(code),
        RenewDelegationTokenResponse(code),
        ExpireDelegationTokenResponse(code),
        DescribeDelegationTokenResponse(code),
    )
    with pytest.raises(KafkaError) as refused:
        answered(call, table)  # type: ignore[arg-type]
    assert refused.value.code is code


@pytest.mark.parametrize("text", ["ann", "", ":ann"])
def test_a_principal_has_a_type(text: str) -> None:
    with pytest.raises(KafkaError) as refused:
        answered(create([text]), Table(MADE))
    assert refused.value.code is ErrorCode.INVALID_REQUEST
