from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.security.oauthbearer import REFUSED, Bearer, OAuthBearerServer, TokenRefused
from tidelog.security.principal import KafkaPrincipal
from tidelog.security.sasl import Authenticated, AuthenticationFailed


def server() -> OAuthBearerServer:
    """Accepts the token "good", which belongs to alice."""

    def check(token: str) -> Bearer:
        if token != "good":
            raise TokenRefused("it is bad")
        return Bearer("alice", 5000)

    return OAuthBearerServer(check)


@pytest.mark.parametrize(
    "message",
    [
        b"n,,\x01auth=Bearer good\x01\x01",
        b"n,,\x01auth=bearer good\x01\x01",
        b"n,a=alice,\x01auth=Bearer good\x01\x01",
        b"n,,\x01auth=Bearer good\x01trace=a b c\x01\x01",
    ],
)
def test_a_good_token_opens_until_it_ends(message: bytes) -> None:
    exchange = server()
    assert exchange.answer(message) == b""
    assert exchange.outcome == Authenticated(KafkaPrincipal("User", "alice"), 5000)


def test_the_groups_of_a_token_are_those_of_the_client() -> None:
    exchange = OAuthBearerServer(lambda token: Bearer("alice", 5000, frozenset({"Group:staff"})))
    exchange.answer(b"n,,\x01auth=Bearer good\x01\x01")
    assert exchange.outcome is not None
    assert exchange.outcome.principal.groups == {"Group:staff"}


def test_a_bad_token_fails_in_three_steps() -> None:
    exchange = server()
    assert exchange.answer(b"n,,\x01auth=Bearer bad\x01\x01") == REFUSED.encode()
    assert exchange.outcome is None
    with pytest.raises(AuthenticationFailed) as failed:
        exchange.answer(b"\x01")
    assert str(failed.value) == REFUSED, "the client learns no reason"
    assert failed.value.reason == "OAUTHBEARER: it is bad"


def test_after_a_bad_token_a_good_one_is_too_late() -> None:
    exchange = server()
    exchange.answer(b"n,,\x01auth=Bearer bad\x01\x01")
    with pytest.raises(AuthenticationFailed, match="invalid_token"):
        exchange.answer(b"n,,\x01auth=Bearer good\x01\x01")
    assert exchange.outcome is None


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n,,\x01auth=Bearer good\x01" + b"a=b\x01" * 100 + b"\x01",
        b"n,,\x01auth=Bearer" + b" " * 100_000 + b"\x01\x01",
        b"\x01",
        b"auth=Bearer good",
        b"n,,\x01auth=Bearer good\x01",
        b"n,,auth=Bearer good\x01\x01",
        b"y,,\x01auth=Bearer good\x01\x01",
        b"p=tls-unique,,\x01auth=Bearer good\x01\x01",
        b"n,,\x01\x01",
        b"n,,\x01auth=Basic good\x01\x01",
        b"n,,\x01auth=Bearer good\x01auth=Bearer good\x01\x01",
        b"n,,\x01auth=Bearer two words\x01\x01",
        b"n,,\x01au_th=Bearer good\x01\x01",
        b"n,,\x01auth=Bearer good\x01\x01tail",
        b"n,,\x01auth=Bearer \xff\x01\x01",
        b"n,,\x01auth=Bearer " + b"a" * 70_000 + b"\x01\x01",
        b"n,,\x01auth=Bearer " + b"a" * 200_000 + b"\x01\x01",
    ],
)
def test_what_is_no_such_message_fails_at_once(message: bytes) -> None:
    with pytest.raises(AuthenticationFailed, match="cannot be read"):
        server().answer(message)


def test_a_client_cannot_act_as_another_user() -> None:
    exchange = server()
    with pytest.raises(AuthenticationFailed) as failed:
        exchange.answer(b"n,a=admin,\x01auth=Bearer good\x01\x01")
    assert "'alice' asks to act as 'admin'" in failed.value.reason
    assert exchange.outcome is None


@given(st.binary(max_size=200))
def test_no_message_without_the_token_opens(message: bytes) -> None:
    exchange = server()
    try:
        exchange.answer(b"n,,\x01auth=Bearer " + message)
    except AuthenticationFailed:
        assert exchange.outcome is None
    else:
        assert exchange.outcome is None or message.strip(b" ").startswith(b"good\x01")
