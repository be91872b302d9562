"""JKS stores: those of ``tests/golden/stores`` were made by Java's keytool."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_der_private_key

from tidelog.config.jks import JksError, read_jks, unprotect

STORES = Path(__file__).parents[2] / "golden" / "stores"
KEYS, TRUST = (STORES / "keys.jks").read_bytes(), (STORES / "trust.jks").read_bytes()


def test_a_key_of_keytool_is_opened_with_its_own_password() -> None:
    (key,) = read_jks(KEYS, "secret1").keys
    plain = load_der_private_key(unprotect(key, "secret2"), None)
    certificate = x509.load_der_x509_certificate(key.chain[0])
    assert key.alias == "node"
    assert certificate.subject.rfc4514_string() == "CN=node,O=Tide"
    assert certificate.public_key() == plain.public_key()


def test_a_wrong_password_is_noticed_for_the_store_and_for_the_key() -> None:
    with pytest.raises(JksError, match="password is wrong, or the file is damaged"):
        read_jks(KEYS, "secret2")
    (key,) = read_jks(KEYS, None).keys
    with pytest.raises(JksError, match="the password of the key 'node' is wrong"):
        unprotect(key, "secret1")


def test_trusted_certificates_need_no_password() -> None:
    found = read_jks(TRUST, None)
    assert not found.keys
    (trusted,) = found.trusted
    assert x509.load_der_x509_certificate(trusted).subject.rfc4514_string() == "CN=authority"


def test_a_damaged_store_is_refused_and_nothing_else_happens() -> None:
    rng = random.Random(1)
    for _ in range(3000):
        data = bytearray(KEYS)
        for _ in range(rng.choice([1, 1, 4])):
            data[rng.randrange(4, len(data))] = rng.randrange(256)
        data = data[: rng.choice([len(data), rng.randrange(len(data))])]
        if data == KEYS:
            continue
        with pytest.raises(JksError):
            for key in read_jks(bytes(data), None).keys:
                unprotect(key, "secret2")
            read_jks(bytes(data), "secret1")
