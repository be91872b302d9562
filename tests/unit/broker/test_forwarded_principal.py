from __future__ import annotations

import random

import pytest

from tidelog.broker.forwarded_principal import Forwarded, sealed_principal, unsealed_principal
from tidelog.model.errors import ProtocolViolation
from tidelog.protocol.messages.default_principal_data import DefaultPrincipalData
from tidelog.security.principal import MOST_GROUPS, KafkaPrincipal, group_principals, with_groups

ANNA = KafkaPrincipal("User", "anna")
GROUPS = group_principals(["staff", "Köln", "a:b", "g" * 256])


@pytest.mark.parametrize("by_token", [False, True])
@pytest.mark.parametrize("groups", [frozenset(), GROUPS, group_principals(map(str, range(MOST_GROUPS)))])
def test_a_principal_arrives_with_its_groups(by_token: bool, groups: frozenset[str]) -> None:
    found = unsealed_principal(sealed_principal(Forwarded(with_groups(ANNA, groups), by_token)))
    assert found == (ANNA, by_token)
    assert found.principal.groups == groups


def test_a_principal_without_groups_has_the_bytes_of_kafka() -> None:
    expected = b"\0\0" + DefaultPrincipalData("User", "anna", True).encode(0)
    assert sealed_principal(Forwarded(ANNA, True)) == expected


def test_a_node_of_kafka_skips_the_groups() -> None:
    sealed = sealed_principal(Forwarded(with_groups(ANNA, GROUPS), False))
    found = DefaultPrincipalData.decode(memoryview(sealed)[2:], 0)
    assert (found.type, found.name, found.token_authenticated) == ("User", "anna", False)


def test_other_tags_are_skipped() -> None:
    plain = bytearray(sealed_principal(Forwarded(ANNA, False)))
    plain[-1] = 2
    found = unsealed_principal(bytes(plain + b"\x00\x02ab" + b"\x05\x00"))
    assert (found.principal, found.principal.groups) == (ANNA, frozenset())


@pytest.mark.parametrize("value", [b"", b"\x01", b"\x01\x05ab", b"\x01\x02*", b"\x01\x01", b"\xff\xff\x03", b"\x01\x02a\x00"])
def test_groups_that_cannot_be_read_are_refused(value: bytes) -> None:
    plain = bytearray(sealed_principal(Forwarded(ANNA, False)))
    plain[-1] = 1
    tag = b"\xe9\xe8\x01" + bytes([len(value)]) + value
    with pytest.raises(ProtocolViolation):
        unsealed_principal(bytes(plain + tag))


def test_mutated_bytes_are_read_or_refused() -> None:
    whole = sealed_principal(Forwarded(with_groups(ANNA, GROUPS), False))
    rng = random.Random(15)
    refused = 0
    for _ in range(3000):
        mutated = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            mutated[rng.randrange(len(mutated))] = rng.randrange(256)
        try:
            found = unsealed_principal(bytes(mutated[: rng.randint(1, len(mutated))]))
        except ProtocolViolation:
            refused += 1
        else:
            assert len(found.principal.groups) <= MOST_GROUPS
    assert refused > 1000
