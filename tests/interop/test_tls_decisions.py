"""Stores and names of certificates beside Java's own: keytool's stores, Kafka's engine factory, X500Principal."""

from __future__ import annotations

import base64
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import NameOID

from tests.certificates import Authority, java_trust_store
from tests.interop.java import JavaSide
from tidelog.config.key_store_formats import certificates_of
from tidelog.config.listener_tls import tls_settings
from tidelog.model.errors import ConfigError
from tidelog.security.certificates import parse_certificate
from tidelog.server.serving.tls_context import read_stores

pytestmark = pytest.mark.interop

NAMES = 300
KINDS = (
    NameOID.COMMON_NAME,
    NameOID.COUNTRY_NAME,
    NameOID.ORGANIZATION_NAME,
    NameOID.ORGANIZATIONAL_UNIT_NAME,
    NameOID.LOCALITY_NAME,
    NameOID.STATE_OR_PROVINCE_NAME,
    NameOID.STREET_ADDRESS,
    NameOID.DOMAIN_COMPONENT,
    NameOID.USER_ID,
    NameOID.EMAIL_ADDRESS,
    NameOID.SERIAL_NUMBER,
    NameOID.TITLE,
    NameOID.GIVEN_NAME,
)
TEXTS = (
    "node",
    "a b",
    " lead",
    "trail ",
    "a,b",
    "a+b",
    "x=y",
    'q"',
    "<>",
    "#1",
    "semi;colon",
    "back\\slash",
    "Köln",
    "日本",
    "é",
    "",
)
PRINTABLE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 '()+,-./:=?")
FORMS = (_ASN1Type.UTF8String, _ASN1Type.UTF8String, _ASN1Type.PrintableString, _ASN1Type.IA5String)


def random_name(rng: random.Random) -> x509.Name:
    def attribute() -> x509.NameAttribute:
        text = rng.choice(TEXTS) or "x"
        form = rng.choice(FORMS) if text.isascii() else _ASN1Type.UTF8String
        if form is _ASN1Type.PrintableString and not set(text) <= PRINTABLE:
            form = _ASN1Type.IA5String
        return x509.NameAttribute(rng.choice(KINDS), text, form, _validate=False)

    def part() -> x509.RelativeDistinguishedName:
        first = attribute()
        second = attribute()
        several = rng.random() < 0.2 and first.oid != second.oid
        return x509.RelativeDistinguishedName([first, second] if several else [first])

    return x509.Name([part() for _ in range(rng.choice([1, 2, 3, 5]))])


def test_names_are_written_as_java_writes_them(java: JavaSide) -> None:
    rng = random.Random(7)
    authority = Authority()
    certificates = [authority.issue(random_name(rng)).certificate.public_bytes(Encoding.DER) for _ in range(NAMES)]
    ours = [parse_certificate(each).subject for each in certificates]
    theirs = java.ask("certificate_names", certificates=[base64.b64encode(each).decode() for each in certificates])["results"]
    assert ours == theirs


def keytool(folder: Path, *args: str) -> None:
    try:
        subprocess.run(["keytool", *args], cwd=folder, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("keytool is not installed")


def made(folder: Path) -> dict[str, str]:
    """Stores by name: keytool's and ours."""
    authority = Authority()
    node = authority.issue("node", "localhost")
    pair = ("-genkeypair", "-keyalg", "EC", "-groupname", "secp256r1", "-alias", "me", "-dname", "CN=me", "-storepass", "secret")
    keytool(folder, *pair, "-keypass", "other1", "-storetype", "JKS", "-keystore", "keys.jks")
    keytool(folder, *pair, "-storetype", "PKCS12", "-keystore", "keys.p12")
    (folder / "authority.pem").write_text(authority.pem)
    for kind in ("JKS", "PKCS12"):
        imported = ("-importcert", "-noprompt", "-alias", "ca", "-file", "authority.pem", "-storepass", "secret")
        keytool(folder, *imported, "-storetype", kind, "-keystore", f"trust.{kind.lower()}")
    (folder / "ours.p12").write_bytes(node.pkcs12("secret"))
    (folder / "our-trust.p12").write_bytes(java_trust_store("secret", authority))
    (folder / "both.pem").write_text(f"words\n{node.chain}more words\n{node.key}")
    (folder / "encrypted.pem").write_text(node.chain + node.encrypted_key("hush"))
    (folder / "no-key.pem").write_text(node.chain)
    (folder / "two-keys.pem").write_text(node.both + node.key)
    (folder / "empty.pem").write_text("nothing")
    pkcs1 = node.private.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()).decode()
    (folder / "traditional.pem").write_text(node.chain + pkcs1)
    return {each.name: str(each) for each in folder.iterdir()} | {"key text": node.key, "chain text": node.chain}


def cases(at: dict[str, str]) -> dict[str, dict[str, str]]:
    def keys(name: str, kind: str = "", password: str = "", key_password: str = "") -> dict[str, str]:
        given = {"location": at[name], "type": kind, "password": password}
        found = {f"ssl.keystore.{what}": text for what, text in given.items() if text}
        return found | ({"ssl.key.password": key_password} if key_password else {})

    def trust(name: str, kind: str = "", password: str = "") -> dict[str, str]:
        given = {"location": at[name], "type": kind, "password": password}
        return {f"ssl.truststore.{what}": text for what, text in given.items() if text}

    texts = {"ssl.keystore.type": "PEM", "ssl.keystore.key": at["key text"], "ssl.keystore.certificate.chain": at["chain text"]}
    return {
        "jks": keys("keys.jks", "JKS", "secret", "other1"),
        "jks, wrong key password": keys("keys.jks", "JKS", "secret", "other2"),
        "jks, wrong password": keys("keys.jks", "JKS", "wrong1", "other1"),
        "jks without a password": keys("keys.jks", "JKS"),
        "pkcs12": keys("keys.p12", "PKCS12", "secret"),
        "pkcs12 called jks": keys("keys.p12", "JKS", "secret"),
        "pkcs12, wrong password": keys("keys.p12", "PKCS12", "wrong1"),
        "our pkcs12": keys("ours.p12", "PKCS12", "secret"),
        "password without a file": {"ssl.keystore.password": "secret"},
        "pem": keys("both.pem", "PEM"),
        "pem with a store password": keys("both.pem", "PEM", "secret"),
        "encrypted pem": keys("encrypted.pem", "PEM", "", "hush"),
        "encrypted pem without a password": keys("encrypted.pem", "PEM"),
        "pem without a key": keys("no-key.pem", "PEM"),
        "pem with two keys": keys("two-keys.pem", "PEM"),
        "texts": texts,
        "texts and a file": texts | {"ssl.keystore.location": at["both.pem"]},
        "texts without PEM": {name: text for name, text in texts.items() if "type" not in name},
        "key text alone": {name: text for name, text in texts.items() if "chain" not in name},
        "trusted jks": trust("trust.jks", "JKS", "secret"),
        "trusted jks without a password": trust("trust.jks", "JKS"),
        "trusted jks, wrong password": trust("trust.jks", "JKS", "wrong1"),
        "trusted pkcs12": trust("trust.pkcs12", "PKCS12", "secret"),
        "our trusted pkcs12": trust("our-trust.p12", "PKCS12", "secret"),
        "trusted pem": trust("authority.pem", "PEM"),
        "trusted pem with a password": trust("authority.pem", "PEM", "secret"),
        "trust store without a certificate": trust("empty.pem", "PEM"),
        "trusted text": {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": Path(at["authority.pem"]).read_text()},
    }


def ours(given: dict[str, str]) -> Any:
    """As ``Security.stores`` answers."""
    try:
        stores = read_stores(tls_settings(given, "SSL", "SSL"))
    except ConfigError:
        return False
    keys = [] if stores.pair is None else certificates_of(stores.pair.certificates)[:1]
    trusted = [] if stores.authorities is None else certificates_of(stores.authorities)
    return {name: [base64.b64encode(each).decode() for each in found] for name, found in (("keys", keys), ("trusted", trusted))}


def test_stores_are_taken_and_refused_as_by_kafkas_engine_factory(tmp_path: Path, java: JavaSide) -> None:
    named = cases(made(tmp_path))
    theirs = dict(zip(named, java.ask("stores", settings=list(named.values()))["results"], strict=True))
    found = {name: ours(given) for name, given in named.items()}
    different = {name: (found[name], theirs[name]) for name in named if found[name] != theirs[name]}
    # Java 17 does not open a key whose encryption names its own hash (PBES2 with SHA-256), as OpenSSL and cryptography write it.
    assert list(different) == ["encrypted pem"]
    assert different["encrypted pem"][1] is False
    assert sum(answer is False for answer in theirs.values()) >= 10


def test_a_key_in_openssls_own_form_is_taken_although_kafka_refuses_it(tmp_path: Path, java: JavaSide) -> None:
    at = made(tmp_path)
    given = {"ssl.keystore.type": "PEM", "ssl.keystore.location": at["traditional.pem"]}
    assert java.ask("stores", settings=[given])["results"] == [False]
    assert ours(given)["keys"]
