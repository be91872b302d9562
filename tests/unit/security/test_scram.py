"""SASL SCRAM of the server: the example of RFC 7677, our own client, and everything that has to fail."""

from __future__ import annotations

import base64
import hmac
import itertools

import pytest

from tidelog.client.sasl import ScramConversation
from tidelog.client.settings import Sasl
from tidelog.metadata.image import ScramCredential
from tidelog.model.errors import ProtocolViolation
from tidelog.security.principal import KafkaPrincipal
from tidelog.security.sasl import AuthenticationFailed
from tidelog.security.scram import REFUSED, ScramMechanism, ScramServer, credential_of, salted_password, users
from tidelog.security.scram_strangers import Strangers

SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
CHALLENGE = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
PROOF = b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="


def stored(mechanism: ScramMechanism, password: str, iterations: int = 4096) -> ScramCredential:
    return credential_of(mechanism, salted_password(mechanism, password, SALT, iterations), SALT, iterations)


CREDENTIALS = {
    (user, mechanism): stored(mechanism, password)
    for (user, password), mechanism in itertools.product(
        {"user": "pencil", "a,b=c": "x", "äé": "ü"}.items(), ScramMechanism
    )
}  # fmt: skip


STRANGERS = {
    mechanism: Strangers(mechanism, mechanism.digest, lambda: b"secret", lambda: CREDENTIALS) for mechanism in ScramMechanism
}


def server(mechanism: ScramMechanism = ScramMechanism.SHA_256, nonce: str = NONCE) -> ScramServer:
    return ScramServer(mechanism, users(lambda name: CREDENTIALS.get((name, mechanism))), nonce, STRANGERS[mechanism])


def test_the_example_of_rfc_7677() -> None:
    exchange = server()
    assert exchange.answer(FIRST) == CHALLENGE
    assert exchange.answer(PROOF) == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    assert exchange.outcome is not None
    assert exchange.outcome.principal == KafkaPrincipal("User", "user")


@pytest.mark.parametrize("changed", [None, stored(ScramMechanism.SHA_256, "another")])
def test_a_credential_that_changes_during_the_login_does_not_let_in(changed: ScramCredential | None) -> None:
    known = {"user": CREDENTIALS["user", ScramMechanism.SHA_256]}
    exchange = ScramServer(ScramMechanism.SHA_256, users(known.get), NONCE, STRANGERS[ScramMechanism.SHA_256])
    assert exchange.answer(FIRST) == CHALLENGE
    del known["user"]
    if changed is not None:
        known["user"] = changed
    with pytest.raises(AuthenticationFailed) as failed:
        exchange.answer(PROOF)
    assert (exchange.outcome, "during the login" in failed.value.reason) == (None, True)


@pytest.mark.parametrize("mechanism", list(ScramMechanism))
@pytest.mark.parametrize(("user", "password"), [("user", "pencil"), ("a,b=c", "x"), ("äé", "ü")])
def test_our_client_logs_in_and_believes_the_server(mechanism: ScramMechanism, user: str, password: str) -> None:
    exchange = server(mechanism)
    client = ScramConversation(Sasl(mechanism.title, user, password), "abc")
    proof = client.answer(exchange.answer(client.first()))
    assert proof is not None
    assert client.answer(exchange.answer(proof)) is None
    assert exchange.outcome is not None
    assert exchange.outcome.principal.name == user


def login(exchange: ScramServer, user: str, password: str) -> AuthenticationFailed:
    client = ScramConversation(Sasl("SCRAM-SHA-256", user, password), "abc")
    proof = client.answer(exchange.answer(client.first()))
    assert proof is not None
    with pytest.raises(AuthenticationFailed) as failed:
        exchange.answer(proof)
    assert exchange.outcome is None
    return failed.value


def test_a_stranger_and_a_wrong_password_look_alike() -> None:
    wrong, stranger = login(server(), "user", "pen"), login(server(), "stranger", "pen")
    assert str(wrong) == str(stranger) == REFUSED
    assert "the password is wrong" in wrong.reason
    assert "no credential" in stranger.reason
    # The salt of a stranger stays the same: a second question tells no more than the first.
    first, second = (server(nonce=nonce).answer(b"n,,n=stranger,r=c").split(b",")[1:] for nonce in ("one", "two"))
    assert first == second
    assert server().answer(b"n,,n=other,r=c").split(b",")[1:] != first


@pytest.mark.parametrize(
    "token",
    [
        b"",
        b"n,,n=user",
        b"y,,n=user,r=abc",
        b"p=tls-unique,,n=user,r=abc",
        b"n,a=other,n=user,r=abc",
        b"n,,m=1,n=user,r=abc",
        b"n,,n=us=er,r=abc",
        b"n,,n=\xff,r=abc",
        b"n,,n=user,r=",
        b"n,,n=user,r=a\nb",
        b"n,,n=user,r=" + b"a" * 9000,
    ],
)
def test_first_messages_that_fail(token: bytes) -> None:
    with pytest.raises(AuthenticationFailed) as failed:
        server().answer(token)
    assert str(failed.value) == REFUSED


def test_extensions_are_read_over() -> None:
    assert server().answer(FIRST + b",foo=bar,tokenauth=false") == CHALLENGE


def test_a_token_is_no_user() -> None:
    exchange = server()
    exchange.answer(FIRST + b",tokenauth=true")
    with pytest.raises(AuthenticationFailed):
        exchange.answer(PROOF)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"k0,p=", b"k0x,p="),
        (b"r=rOprNGfwEbeRWgbNEkqO%", b"r=rOprNGfwEbeRWgbNEkqOrOprNGfwEbeRWgbNEkqO%"),
        (b")hNlF$k0", b""),
        (b"r=rOprNGfwEbeRWgbNEkqO", b"r="),
        (b"dHzb", b"eHzb"),
        (b"dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=", b""),
        (b"dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=", b"dHzb"),
        (b"dVQ=", b"dVQ"),
        (b"c=biws,", b""),
    ],
)
def test_final_messages_that_fail(old: bytes, new: bytes) -> None:
    """The nonce must be equal: a common beginning is not enough (CVE-2024-56128)."""
    assert old in PROOF
    exchange = server()
    exchange.answer(FIRST)
    with pytest.raises(AuthenticationFailed):
        exchange.answer(PROOF.replace(old, new))
    assert exchange.outcome is None
    with pytest.raises(AuthenticationFailed):
        exchange.answer(PROOF)


def test_a_credential_with_few_iterations_is_refused() -> None:
    weak = stored(ScramMechanism.SHA_256, "pencil", 1000)
    exchange = ScramServer(ScramMechanism.SHA_256, users(lambda name: weak), NONCE, STRANGERS[ScramMechanism.SHA_256])
    assert b"i=4096" in exchange.answer(FIRST)
    with pytest.raises(AuthenticationFailed):
        exchange.answer(PROOF)


def test_a_server_that_does_not_know_the_password_is_found_out() -> None:
    exchange = server()
    client = ScramConversation(Sasl("SCRAM-SHA-256", "user", "pencil"), "abc")
    proof = client.answer(exchange.answer(client.first()))
    assert proof is not None
    with pytest.raises(ProtocolViolation, match="signature is wrong"):
        client.answer(b"v=" + base64.b64encode(bytes(32)))


def test_a_stranger_costs_as_much_as_a_wrong_password(monkeypatch: pytest.MonkeyPatch) -> None:
    digest = hmac.digest
    calls: list[str] = []

    def counting(key: bytes, message: bytes, name: str) -> bytes:
        calls.append(name)
        return digest(key, message, name)

    monkeypatch.setattr(hmac, "digest", counting)

    def cost(user: str) -> list[int]:
        """The HMACs of the server's two steps."""
        exchange = server()
        calls.clear()
        exchange.answer(FIRST.replace(b"user", user.encode()))
        first = len(calls)
        with pytest.raises(AuthenticationFailed):
            exchange.answer(PROOF.replace(b"p=dH", b"p=dI"))
        return [first, len(calls) - first]

    assert cost("user") == cost("nobody")


def test_a_stranger_has_a_salt_like_that_of_the_users() -> None:
    salt = server().answer(FIRST.replace(b"user", b"nobody")).split(b",")[1][2:]
    assert len(base64.b64decode(salt)) == len(SALT)


def test_a_stored_credential_shows_no_key() -> None:
    credential = CREDENTIALS["user", ScramMechanism.SHA_256]
    assert repr(credential) == "ScramCredential(iterations=4096)"
