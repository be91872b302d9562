"""Contexts made of a listener's stores, and stores that cannot be used."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from tests.certificates import Authority, java_trust_store
from tests.unit.server.serving.tls_pairs import AUTHORITY, NODE, given, secured_pair, stored
from tidelog.config.key_store_formats import KeyPair
from tidelog.config.listener_tls import TlsSettings, tls_settings
from tidelog.model.errors import ConfigError
from tidelog.server.serving.tls_context import certificate_of, client_context, read_stores, server_context


def settings(more: dict[str, str] | None = None, **options: str) -> TlsSettings:
    return tls_settings(more or given(**options), "OUTSIDE", "SSL")


def files(folder: Path, form: str) -> dict[str, str]:
    """The stores of ``NODE`` in files of a format."""
    if form == "pkcs12":
        (folder / "node.p12").write_bytes(NODE.pkcs12("secret"))
        (folder / "trust.p12").write_bytes(java_trust_store("secret", AUTHORITY))
        return {
            "ssl.keystore.location": str(folder / "node.p12"),
            "ssl.keystore.password": "secret",
            "ssl.truststore.location": str(folder / "trust.p12"),
            "ssl.truststore.password": "secret",
        }
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(stored(folder, "node.pem", NODE.chain + NODE.encrypted_key("hush"))),
        "ssl.key.password": "hush",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(stored(folder, "trust.pem", AUTHORITY.pem)),
    }


@pytest.mark.parametrize("form", ["pem", "pkcs12", "texts"])
def test_both_ends_trust_each_other_by_the_same_stores(tmp_path: Path, form: str) -> None:
    found = settings({**(given() if form == "texts" else files(tmp_path, form)), "ssl.client.auth": "required"})
    stores = read_stores(found)
    one, two = secured_pair(server_context(found, stores), client_context(found, stores))
    assert one.getpeercert(True) == two.getpeercert(True)
    assert stores.pair is not None
    assert certificate_of(found, stores.pair).subject == "CN=node"
    one.close()
    two.close()


@pytest.mark.parametrize(
    ("auth", "mode"), [("none", ssl.CERT_NONE), ("requested", ssl.CERT_OPTIONAL), ("required", ssl.CERT_REQUIRED)]
)
def test_client_auth_versions_and_suites_reach_openssl(auth: str, mode: ssl.VerifyMode) -> None:
    suite = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"
    found = settings(client_auth=auth, cipher_suites=suite)
    context = server_context(found, read_stores(found))
    assert (context.verify_mode, context.maximum_version) == (mode, ssl.TLSVersion.TLSv1_2)
    assert "ECDHE-ECDSA-AES256-GCM-SHA384" in {each["name"] for each in context.get_ciphers()}
    assert context.options & ssl.OP_NO_RENEGOTIATION
    assert client_context(found, read_stores(found)).check_hostname
    unchecked = settings(endpoint_identification_algorithm="")
    assert not client_context(unchecked, read_stores(unchecked)).check_hostname


def test_without_a_trust_store_the_systems_authorities_are_trusted() -> None:
    more = {name: text for name, text in given().items() if "truststore" not in name}
    found = settings(more)
    assert read_stores(found).authorities is None
    assert client_context(found, read_stores(found)).verify_mode is ssl.CERT_REQUIRED


def test_an_intermediate_in_the_trust_store_is_enough_as_in_java() -> None:
    found = settings({**given(), "ssl.truststore.certificates": NODE.chain, "ssl.client.auth": "required"})
    stores = read_stores(found)
    one, two = secured_pair(server_context(found, stores), client_context(found, stores))
    one.close()
    two.close()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"ssl.keystore.key": Authority().issue().key}, "ssl.keystore.key or ssl.truststore.certificates cannot be used"),
        ({"ssl.keystore.key": "none"}, "exactly one private key"),
        ({"ssl.truststore.certificates": "none"}, "ssl.truststore.certificates holds no certificate"),
        ({"ssl.keystore.key": NODE.encrypted_key("hush"), "ssl.key.password": "canary"}, "is ssl.key.password right"),
        ({"ssl.keystore.certificate.chain": NODE.chain.replace("M", "A", 9)}, "cannot be"),
    ],
)
def test_stores_that_cannot_be_used_are_refused_with_the_setting(more: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        found = settings({**given(), **more})
        server_context(settings({**given(), **more, "ssl.client.auth": "required"}), read_stores(found))
    assert said in str(refused.value)
    assert "OUTSIDE" in str(refused.value)
    assert "canary" not in str(refused.value)


def test_a_file_that_is_missing_is_named() -> None:
    with pytest.raises(ConfigError, match=r"listener OUTSIDE: /nowhere\.pem cannot be read: No such file"):
        read_stores(settings({"ssl.keystore.type": "PEM", "ssl.keystore.location": "/nowhere.pem"}))


def test_a_damaged_certificate_is_named(tmp_path: Path) -> None:
    found = settings(files(tmp_path, "pem"))
    with pytest.raises(ConfigError, match=r"listener OUTSIDE: the key's certificate in .*node\.pem.* is damaged"):
        certificate_of(found, KeyPair("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n", NODE.key))
