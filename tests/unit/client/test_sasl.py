"""SASL conversations: the examples of the RFCs, and servers that lie."""

from __future__ import annotations

import pytest

from tidelog.client.sasl import BearerConversation, PlainConversation, ScramConversation, conversation
from tidelog.client.settings import Sasl
from tidelog.model.errors import ProtocolViolation

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
