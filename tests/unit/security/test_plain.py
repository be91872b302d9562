"""SASL PLAIN of the server."""

from __future__ import annotations

import hmac

import pytest

from tidelog.client.sasl import PlainConversation
from tidelog.client.settings import Sasl
from tidelog.security.plain import MAX_FIELD_BYTES, REFUSED, PlainServer, fixed_users
from tidelog.security.principal import KafkaPrincipal
from tidelog.security.sasl import AuthenticationFailed

CHECK = fixed_users({"alice": "secret", "älice": "pässwort"})


@pytest.mark.parametrize(("user", "password"), [("alice", "secret"), ("älice", "pässwort")])
def test_our_client_logs_in(user: str, password: str) -> None:
    server = PlainServer(CHECK)
    assert server.answer(PlainConversation(Sasl("PLAIN", user, password)).first()) == b""
    assert server.outcome is not None
    assert server.outcome.principal == KafkaPrincipal("User", user)


def test_a_user_may_name_itself_twice() -> None:
    server = PlainServer(CHECK)
    server.answer(b"alice\0alice\0secret")
    assert server.outcome is not None


@pytest.mark.parametrize(
    "token",
    [
        b"",
        b"\0alice\0wrong",
        b"\0nobody\0secret",
        b"\0alice\0",
        b"\0\0secret",
        b"bob\0alice\0secret",
        b"\0alice\0secret\0",
        b"alice\0secret",
        b"\0\xff\0secret",
        b"\0alice\0" + b"x" * 4 * MAX_FIELD_BYTES,
        bytes(512 * 1024),
    ],
)
def test_everything_else_fails_with_one_text(token: bytes) -> None:
    server = PlainServer(CHECK)
    with pytest.raises(AuthenticationFailed) as failed:
        server.answer(token)
    assert str(failed.value) == REFUSED
    assert "secret" not in failed.value.reason
    assert server.outcome is None


def test_the_comparison_does_not_depend_on_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[int, int]] = []
    compare = hmac.compare_digest

    def recording(one: bytes, two: bytes) -> bool:
        compared.append((len(one), len(two)))
        return compare(one, two)

    monkeypatch.setattr(hmac, "compare_digest", recording)
    for user, password in (("alice", "secret"), ("alice", "x"), ("nobody", "secret"), ("nobody", "y" * 100)):
        CHECK(user, password)
    assert compared == [(32, 32)] * 4
