"""GSSAPI's exchange with a made-up context. ``tests/kerberos`` has real tickets, a real KDC and other people's clients."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.security.gssapi import (
    MAX_STEPS,
    MAX_TOKEN_BYTES,
    NO_LAYER,
    NO_USER,
    OFFER,
    REFUSED,
    ContextRefused,
    GssapiServer,
)
from tidelog.security.kerberos_names import KerberosNames
from tidelog.security.principal import KafkaPrincipal
from tidelog.security.sasl import Authenticated, AuthenticationFailed

NOW_MS = 1_000_000
TAKEN = b"\x01\0\0\0"


class MadeUp:
    """A context that accepts ``ticket``, after as many ``more`` as it was made for, and seals by a mark. ``proves``: it has a
    last token of its own."""

    def __init__(self, principal: str = "ann@REALM", proves: bool = False, rounds: int = 0, lifetime_s: int | None = 60) -> None:
        self._principal, self._proves, self._rounds = principal, proves, rounds
        self.complete = False
        self.lifetime_s = lifetime_s

    def accept(self, token: bytes) -> bytes:
        if self._rounds:
            self._rounds -= 1
            return b"more"
        if token != b"ticket":
            raise ContextRefused("not a ticket")
        self.complete = True
        return b"proof" if self._proves else b""

    def initiator(self) -> str:
        return self._principal

    def wrap(self, message: bytes) -> bytes:
        assert self.complete
        return b"sealed:" + message

    def unwrap(self, message: bytes) -> bytes:
        assert self.complete
        if not message.startswith(b"sealed:"):
            raise ContextRefused("not sealed")
        return message.removeprefix(b"sealed:")


def server(**context: Any) -> GssapiServer:
    return GssapiServer(MadeUp(**context), KerberosNames(["DEFAULT"], "REALM").user, lambda: NOW_MS)


def test_a_client_that_asks_for_no_proof_gets_the_offer_with_its_ticket() -> None:
    exchange = server()
    assert exchange.answer(b"ticket") == b"sealed:" + OFFER
    assert exchange.outcome is None
    assert exchange.answer(b"sealed:" + TAKEN) is None
    assert exchange.outcome == Authenticated(KafkaPrincipal("User", "ann"), NOW_MS + 60_000)


def test_a_client_that_asks_for_a_proof_gets_it_first() -> None:
    exchange = server(proves=True, rounds=1)
    assert exchange.answer(b"x") == b"more"
    assert exchange.answer(b"ticket") == b"proof"
    assert exchange.answer(b"") == b"sealed:" + OFFER
    assert exchange.answer(b"sealed:" + TAKEN) is None
    assert exchange.outcome is not None


def test_the_service_of_another_node_is_the_user_of_its_first_part() -> None:
    exchange = server(principal="kafka/broker-2.example.com@REALM", lifetime_s=None)
    exchange.answer(b"ticket")
    exchange.answer(b"sealed:" + TAKEN)
    assert exchange.outcome == Authenticated(KafkaPrincipal("User", "kafka"), None)


@pytest.mark.parametrize("name", [b"", b"ann", b"root", b"kafka@localhost", b"\xff", b"x" * 1000])
@pytest.mark.parametrize("size", [b"\0\0\0", b"\1\0\0"])
def test_a_name_to_act_as_and_a_largest_message_have_no_effect(name: bytes, size: bytes) -> None:
    exchange = server()
    exchange.answer(b"ticket")
    exchange.answer(b"sealed:\x01" + size + name)
    assert exchange.outcome is not None
    assert exchange.outcome.principal == KafkaPrincipal("User", "ann")


@pytest.mark.parametrize(
    ("tokens", "text", "reason"),
    [
        ([b"nonsense"], REFUSED, "GSSAPI: not a ticket"),
        ([b""], REFUSED, "GSSAPI: not a ticket"),
        ([bytes(MAX_TOKEN_BYTES + 1)], REFUSED, f"a token of {MAX_TOKEN_BYTES + 1} bytes"),
        ([b"ticket", b""], REFUSED, "GSSAPI: not sealed"),
        ([b"ticket", TAKEN], REFUSED, "GSSAPI: not sealed"),
        ([b"ticket", b"sealed:" + TAKEN, b""], REFUSED, "a token after the end"),
        ([b"ticket", b"sealed:"], NO_LAYER, "'ann@REALM' asks for a security layer"),
        ([b"ticket", b"sealed:\x01\0\0"], NO_LAYER, "asks for a security layer"),
        *(
            ([b"ticket", b"sealed:" + bytes([layer]) + b"\0\0\0"], NO_LAYER, "asks for a security layer")
            for layer in (0, 2, 3, 4, 5, 7, 255)
        ),
    ],
)
def test_what_ends_an_exchange(tokens: list[bytes], text: str, reason: str) -> None:
    exchange = server()
    with pytest.raises(AuthenticationFailed) as failed:
        for token in tokens:
            exchange.answer(token)
    assert str(failed.value) == text
    assert reason in failed.value.reason
    if len(tokens) < 3:
        assert exchange.outcome is None


def test_after_the_proof_only_an_empty_message_follows() -> None:
    exchange = server(proves=True)
    exchange.answer(b"ticket")
    with pytest.raises(AuthenticationFailed, match=REFUSED):
        exchange.answer(b"sealed:" + TAKEN)


def test_a_context_that_does_not_come_to_an_end() -> None:
    exchange = server(rounds=100)
    for _ in range(MAX_STEPS):
        assert exchange.answer(b"x") == b"more"
    with pytest.raises(AuthenticationFailed) as failed:
        exchange.answer(b"x")
    assert "no ticket within" in failed.value.reason


@pytest.mark.parametrize("principal", ["ann@ELSEWHERE", "a/b/c@REALM", "WELLKNOWN/ANONYMOUS@WELLKNOWN:ANONYMOUS"])
def test_a_principal_without_a_user_name(principal: str) -> None:
    exchange = server(principal=principal)
    exchange.answer(b"ticket")
    with pytest.raises(AuthenticationFailed) as failed:
        exchange.answer(b"sealed:" + TAKEN)
    assert str(failed.value) == NO_USER
    assert repr(principal) in failed.value.reason
    assert exchange.outcome is None


@given(st.lists(st.one_of(st.binary(max_size=40), st.sampled_from([b"ticket", b"", b"sealed:"])), max_size=8), st.booleans())
def test_tokens_of_any_kind_let_no_client_in_that_has_not_both_messages(tokens: list[bytes], proves: bool) -> None:
    exchange = server(proves=proves)
    try:
        for token in tokens:
            exchange.answer(token)
    except AuthenticationFailed:
        pass
    if exchange.outcome is not None:
        assert b"ticket" in tokens
        assert any(token.startswith(b"sealed:\x01") for token in tokens)
