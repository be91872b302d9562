"""Stores of every format as PEM, and what is refused with which advice."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from tests.certificates import Authority, java_trust_store
from tidelog.config.key_store_formats import (
    KeyPair,
    StoreError,
    certificates_of,
    is_pem,
    pem_pair,
    read_key_store,
    read_trust_store,
)

STORES = Path(__file__).parents[2] / "golden" / "stores"
AUTHORITY = Authority()
NODE = AUTHORITY.issue("node", "localhost")


def fits(pair: KeyPair) -> bool:
    """Whether the key belongs to the first certificate."""
    key = load_pem_private_key(pair.key.encode(), pair.password.encode() if pair.password else None)
    return x509.load_pem_x509_certificate(pair.certificates.encode()).public_key() == key.public_key()


@pytest.mark.parametrize("form", ["key first", "certificate first", "with words between", "encrypted", "pkcs12", "jks"])
def test_a_key_pair_is_read_from_each_format(form: str) -> None:
    data, store_password, key_password = {
        "key first": (NODE.both.encode(), None, None),
        "certificate first": ((NODE.chain + NODE.key).encode(), None, None),
        "with words between": (f"Subject: CN=node\n{NODE.key}\nand\n{NODE.chain}".encode(), None, None),
        "encrypted": ((NODE.chain + NODE.encrypted_key("hush")).encode(), None, "hush"),
        "pkcs12": (NODE.pkcs12("secret"), "secret", None),
        "jks": ((STORES / "keys.jks").read_bytes(), "secret1", "secret2"),
    }[form]
    pair = read_key_store(data, "keys", store_password, key_password)
    assert fits(pair)
    assert "hush" not in repr(pair)
    assert pair.key not in repr(pair)


@pytest.mark.parametrize("form", ["pem", "pkcs12", "jks"])
def test_trusted_certificates_are_read_from_each_format(form: str) -> None:
    data, password, names = {
        "pem": ((AUTHORITY.pem + NODE.both).encode(), None, ["CN=authority", "CN=node"]),
        "pkcs12": (java_trust_store("secret", AUTHORITY), "secret", ["CN=authority"]),
        "jks": ((STORES / "trust.jks").read_bytes(), None, ["CN=authority"]),
    }[form]
    found = certificates_of(read_trust_store(data, "trust", password))
    assert [x509.load_der_x509_certificate(each).subject.rfc4514_string() for each in found] == names


def test_java_trusts_the_certificate_of_a_stores_own_key_too() -> None:
    assert len(certificates_of(read_trust_store((STORES / "keys.jks").read_bytes(), "keys", "secret1"))) == 1


@pytest.mark.parametrize(
    ("data", "password", "key_password", "said"),
    [
        (NODE.chain.encode(), None, None, "exactly one private key in PEM, but holds none"),
        ((NODE.both + NODE.key).encode(), None, None, "exactly one private key in PEM, but holds 2"),
        (NODE.key.encode(), None, None, "holds no certificate in PEM"),
        ((NODE.chain + NODE.encrypted_key("x")).encode(), None, None, r"is encrypted. Set ssl\.key\.password"),
        (b"\xff\xfe\x00", None, None, "neither PEM nor PKCS12 nor JKS"),
        (b"\xce\xce\xce\xce" + bytes(20), "x", None, "keytool -importkeystore"),
        (NODE.pkcs12("secret"), "wrong", None, "is the store's password right"),
        (java_trust_store("secret", AUTHORITY), "secret", None, "holds no key with its certificate"),
        ((STORES / "keys.jks").read_bytes(), "wrong", None, "password is wrong"),
        ((STORES / "keys.jks").read_bytes(), None, None, r"set ssl\.keystore\.password"),
        ((STORES / "keys.jks").read_bytes(), "secret1", None, "the password of the key 'node' is wrong"),
        ((STORES / "trust.jks").read_bytes(), "secret1", None, "exactly one private key, but holds: none"),
        (NODE.both.replace("MII", "M!!", 9).encode(), None, None, "not base64"),
    ],
)
def test_a_store_that_cannot_be_used_is_refused_with_the_reason(
    data: bytes, password: str | None, key_password: str | None, said: str
) -> None:
    with pytest.raises(StoreError, match=said):
        read_key_store(data, "node.keys", password, key_password)


@pytest.mark.parametrize("data", [b"", NODE.key.encode(), (STORES / "trust.jks").read_bytes()[:60]])
def test_a_trust_store_without_certificates_is_refused(data: bytes) -> None:
    with pytest.raises(StoreError, match="trust"):
        read_trust_store(data, "trust", None)


def test_openssls_own_trusted_form_is_refused_with_the_way_out() -> None:
    block = AUTHORITY.pem.replace("BEGIN CERTIFICATE", "BEGIN TRUSTED CERTIFICATE").replace(
        "END CERTIFICATE", "END TRUSTED CERTIFICATE"
    )
    with pytest.raises(StoreError, match="without -trustout"):
        read_trust_store(block.encode(), "trust", None)


def test_pkcs12_without_the_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [each for each in sys.modules if each.startswith("cryptography")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(StoreError, match=r"pip install 'tidelog\[tls\]'"):
        read_key_store(b"\x30\x00", "keys.p12", "secret", None)
    # The other formats need no package.
    assert read_key_store(NODE.both.encode(), "keys.pem", None, None).certificates == NODE.chain
    assert read_key_store((STORES / "keys.jks").read_bytes(), "keys.jks", "secret1", "secret2").password is None


def test_a_pair_may_come_as_two_texts() -> None:
    assert fits(pem_pair(NODE.chain, NODE.key, "the settings", "not needed"))
    assert is_pem(NODE.both.encode())
    assert not is_pem(NODE.pkcs12("secret"))
