"""Certificates and keys, in every form that settings can name, on real TLS."""

from __future__ import annotations

import os
import ssl
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from tests.certificates import Authority
from tests.unit.client.net.servers import tls_in_front_of
from tidelog.client.failures import NoConnection, NotAuthenticated
from tidelog.client.net.blocking import BrokerSocket
from tidelog.client.net.tls import material, tls_context
from tidelog.client.settings import ClientSettings, Tls, parse_settings
from tidelog.config.key_store_formats import LARGEST_STORE_BYTES
from tidelog.model.errors import ConfigError
from tidelog.protocol.messages.metadata import MetadataRequest
from tidelog.testing import Broker


def settings() -> ClientSettings:
    return parse_settings({"bootstrap.servers": "127.0.0.1:1"})


@pytest.mark.parametrize("tls", ["by file", "by text", "unchecked"])
def test_a_certificate_that_is_trusted_is_enough(certificate: Path, tls: str) -> None:
    given = {
        "by file": Tls(ca_file=str(certificate), verify_hostname=False),
        "by text": Tls(
            ca_text=certificate.read_text(), certificate_text=certificate.read_text(), key_text="", verify_hostname=False
        ),
        "unchecked": Tls(verify=False, certificate_file=str(certificate), key_file=str(certificate)),
    }[tls]
    with Broker() as broker, tls_in_front_of(broker, certificate) as port:
        connection = BrokerSocket(settings(), "127.0.0.1", port, tls_context(given))
        assert connection.ask(MetadataRequest(topics=[])).topics == []
        connection.close()


@pytest.mark.parametrize("name_only", [True, False])
def test_a_certificate_that_is_not_trusted_is_told_with_the_setting(certificate: Path, name_only: bool) -> None:
    tls = Tls(ca_file=str(certificate)) if name_only else Tls()
    told = r"is not trusted: .* Set ssl.ca.location"
    with (
        Broker() as broker,
        tls_in_front_of(broker, certificate) as port,
        pytest.raises(NotAuthenticated, match=told),
    ):
        BrokerSocket(settings(), "127.0.0.1", port, tls_context(tls))


def test_a_text_as_a_properties_file_writes_it_is_named_as_that(certificate: Path) -> None:
    escaped = certificate.read_text().replace("=", "\\=").replace("\n", "\\n")
    for tls in (
        Tls(ca_text=escaped),
        Tls(ca_text=escaped.replace("\\n", "\n") + "\\="),
        Tls(certificate_text=escaped, key_text=""),
    ):
        with pytest.raises(ConfigError, match="a PEM text has backslashes, as a properties file writes it"):
            tls_context(tls)


def test_a_backslash_beside_the_certificate_is_none_of_a_properties_file(certificate: Path) -> None:
    tls_context(Tls(ca_text="subject=O = Acme\\, Inc\n" + certificate.read_text()))


def test_certificates_that_cannot_be_read_are_told() -> None:
    with pytest.raises(ConfigError, match="cannot be used"):
        tls_context(Tls(ca_file="/nowhere.pem"))


@pytest.fixture(scope="module")
def stores(certificate: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Key store and trust store in PKCS12, password ``secret``."""
    pkcs12 = pytest.importorskip("cryptography.hazmat.primitives.serialization.pkcs12")
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, load_pem_private_key
    from cryptography.x509 import load_pem_x509_certificate

    data = certificate.read_bytes()
    key, shown = load_pem_private_key(data, None), load_pem_x509_certificate(data)
    folder = tmp_path_factory.mktemp("stores")
    keys, trust = folder / "keys.p12", folder / "trust.p12"
    secret = BestAvailableEncryption(b"secret")
    keys.write_bytes(pkcs12.serialize_key_and_certificates(b"me", key, shown, None, secret))
    trust.write_bytes(pkcs12.serialize_java_truststore([pkcs12.PKCS12Certificate(shown, b"ca")], secret))
    return keys, trust


def test_pkcs12_stores_are_read_with_their_passwords(certificate: Path, stores: tuple[Path, Path]) -> None:
    keys, trust = map(str, stores)
    tls = Tls(ca_file=trust, ca_password="secret", certificate_file=keys, store_password="secret", verify_hostname=False)
    with Broker() as broker, tls_in_front_of(broker, certificate) as port:
        connection = BrokerSocket(settings(), "127.0.0.1", port, tls_context(tls))
        assert connection.ask(MetadataRequest(topics=[])).topics == []
        connection.close()
    with pytest.raises(ConfigError, match="cannot be used"):
        tls_context(Tls(ca_file=trust, ca_password="wrong"))
    with pytest.raises(ValueError, match="holds no key"):
        material(Tls(certificate_file=trust, store_password="secret"))


def test_a_java_key_store_is_read_like_any_other() -> None:
    golden = Path(__file__).parents[3] / "golden" / "stores"
    trust, keys = str(golden / "trust.jks"), str(golden / "keys.jks")
    found = material(Tls(ca_file=trust, certificate_file=keys, key_file=keys, store_password="secret1", key_password="secret2"))
    assert found.authorities is not None
    assert found.authorities.startswith("-----BEGIN CERTIFICATE")
    context = tls_context(Tls(ca_file=trust, certificate_file=keys, store_password="secret1", key_password="secret2"))
    assert context.cert_store_stats()["x509"] == 1


def test_a_key_in_a_file_of_its_own_is_read(tmp_path: Path) -> None:
    node = Authority().issue("node")
    chain, key = tmp_path / "chain.pem", tmp_path / "key.pem"
    chain.write_text(node.chain)
    key.write_text(node.encrypted_key("hush"))
    found = Tls(certificate_file=str(chain), key_file=str(key), key_password="hush", verify=False)
    assert tls_context(found).verify_mode == ssl.CERT_NONE
    with pytest.raises(ConfigError, match="cannot be used"):
        tls_context(replace(found, key_password="wrong"))
    with pytest.raises(ConfigError, match="has more than"):
        key.write_bytes(bytes(LARGEST_STORE_BYTES + 1))
        tls_context(found)


def test_without_files_in_memory_a_key_is_in_a_private_file_during_the_call(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delattr(os, "memfd_create", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "files"))
    (tmp_path / "files").mkdir()
    both = tmp_path / "both.pem"
    both.write_text(Authority().issue("node").both)
    tls_context(Tls(certificate_file=str(both), key_file=str(both), verify=False))
    assert not list((tmp_path / "files").iterdir())


def test_only_the_versions_that_are_allowed_are_spoken() -> None:
    context = tls_context(Tls(verify=False, versions=("TLSv1.2",)))
    assert context.minimum_version == context.maximum_version


def test_a_listener_without_tls_is_told_with_the_setting() -> None:
    with Broker() as broker, pytest.raises(NoConnection, match=r"Is it a listener without TLS \(security\.protocol\)"):
        BrokerSocket(settings(), "127.0.0.1", broker.port, tls_context(Tls(verify=False)))
