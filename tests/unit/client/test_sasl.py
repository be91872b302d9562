"""SASL conversations: the examples of the RFCs, and servers that lie."""

from __future__ import annotations

import pytest

from tidelog.client.sasl import (
    MAX_TICKET_BYTES,
    BearerConversation,
    GssapiConversation,
    PlainConversation,
    ScramConversation,
    conversation,
)
from tidelog.client.settings import Sasl
from tidelog.model.errors import ProtocolViolation
from tidelog.security.gssapi import GssapiServer
from tidelog.security.kerberos_names import KerberosNames

PENCIL = Sasl("SCRAM-SHA-256", "user", "pencil")
NONCE = "rOprNGfwEbeRWgbNEkqO"
FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
PROOF = b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
LAST = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_plain_says_name_and_password_once() -> None:
    talk = conversation(Sasl("PLAIN", "me", "pässword"), "n")
    assert isinstance(talk, PlainConversation)
    assert talk.first() == b"\0me\0" + "pässword".encode()
    assert talk.answer(b"") is None


def test_a_token_goes_out_once_and_a_refusal_is_acknowledged() -> None:
    talk = conversation(Sasl("OAUTHBEARER", "", "a.b.c"), "n")
    assert isinstance(talk, BearerConversation)
    assert talk.first() == b"n,,\x01auth=Bearer a.b.c\x01\x01"
    assert talk.answer(b"") is None
    refused = conversation(Sasl("OAUTHBEARER", "", "a.b.c"), "n")
    assert refused.answer(b'{"status":"invalid_token"}' + b" " * 10_000) == b"\x01"
    with pytest.raises(ProtocolViolation, match="invalid_token") as raised:
        refused.answer(b"")
    assert len(str(raised.value)) < 300


def test_scram_follows_the_example_of_rfc_7677() -> None:
    talk = conversation(PENCIL, NONCE)
    assert talk.first() == b"n,,n=user,r=" + NONCE.encode()
    assert talk.answer(FIRST) == PROOF
    assert talk.answer(LAST) is None


def test_a_delegation_token_is_named_as_one() -> None:
    talk = ScramConversation(Sasl("SCRAM-SHA-256", "user", "pencil", token=True), NONCE)
    assert talk.first() == b"n,,n=user,r=" + NONCE.encode() + b",tokenauth=true"
    answer = talk.answer(FIRST)
    assert answer is not None
    assert answer != PROOF, "the proof covers the first message"


def test_names_are_escaped_and_the_longer_digest_is_used() -> None:
    talk = ScramConversation(Sasl("SCRAM-SHA-512", "a=b,c", "p"), NONCE)
    assert talk.first() == b"n,,n=a=3Db=2Cc,r=" + NONCE.encode()
    answer = talk.answer(FIRST)
    assert answer is not None
    assert len(answer.split(b"p=")[1]) == 88


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (b"e=unknown-user", "unknown-user"),
        (FIRST.replace(b"rOprNG", b"xOprNG"), "does not continue ours"),
        (b"r=" + NONCE.encode() + b",s=QQ==,i=4096", "does not continue ours"),
        (FIRST.replace(b"4096", b"1"), "iterations, allowed are"),
        (FIRST.replace(b"4096", b"99999999"), "iterations, allowed are"),
        (FIRST.replace(b"W22Z", b"W2!Z"), "not base64"),
        (b"\xff", "not UTF-8"),
        (b"r" * 10000, "a SCRAM message of 10000 bytes"),
    ],
)
def test_a_server_that_does_not_follow_the_rules_is_not_answered(message: bytes, said: str) -> None:
    with pytest.raises(ProtocolViolation, match=said):
        ScramConversation(PENCIL, NONCE).answer(message)


def test_a_server_that_does_not_know_the_password_is_found_out() -> None:
    talk = ScramConversation(PENCIL, NONCE)
    talk.answer(FIRST)
    with pytest.raises(ProtocolViolation, match="does not know the password"):
        talk.answer(b"v=" + b"A" * 43 + b"=")


class Ticket:
    """The client's side of a context that seals by a mark. ``proves``: the broker has to prove itself with ``proof`` first."""

    first = b"ticket"

    def __init__(self, proves: bool = True) -> None:
        self.complete = not proves

    def step(self, token: bytes) -> bytes:
        if token != b"proof":
            raise ProtocolViolation("no proof")
        self.complete = True
        return b""

    def wrap(self, message: bytes) -> bytes:
        assert self.complete
        return b"sealed:" + message

    def unwrap(self, message: bytes) -> bytes:
        if not message.startswith(b"sealed:"):
            raise ProtocolViolation("not sealed")
        return message[7:]


class Acceptor(Ticket):
    """The server's side of the same."""

    lifetime_s = 60

    def __init__(self, proves: bool) -> None:
        super().__init__()
        self._proof = b"proof" if proves else b""

    def accept(self, token: bytes) -> bytes:
        self.complete = token == b"ticket"
        return self._proof

    def initiator(self) -> str:
        return "ann@REALM"


@pytest.mark.parametrize("proves", [True, False])
def test_a_ticket_is_shown_and_no_layer_agreed_on_with_the_server_of_a_node(proves: bool) -> None:
    talk = conversation(Sasl("GSSAPI", "", ""), "n", Ticket(proves))
    server = GssapiServer(Acceptor(proves), KerberosNames(["DEFAULT"], "REALM").user, lambda: 0)
    message: bytes | None = talk.first()
    sent = 0
    while message is not None:
        sent += 1
        answer = server.answer(message)
        message = talk.answer(answer or b"")
    assert sent == (3 if proves else 2)
    assert server.outcome is not None
    assert str(server.outcome.principal) == "User:ann"


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([b"sealed:\x01\0\0\0"], "no proof"),
        ([b"proof", b"\x01\0\0\0"], "not sealed"),
        ([b"proof", b"sealed:\x06\0\0\0"], "to be wrapped after the login"),
        ([b"proof", b"sealed:\x01"], "to be wrapped after the login"),
        ([b"p" * (MAX_TICKET_BYTES + 1)], "a GSSAPI message of 65537 bytes"),
    ],
)
def test_a_server_that_does_not_prove_itself_or_wants_a_layer_is_not_answered(messages: list[bytes], said: str) -> None:
    talk = GssapiConversation(Ticket())
    with pytest.raises(ProtocolViolation, match=said):
        for each in messages:
            assert talk.answer(each) == b""
