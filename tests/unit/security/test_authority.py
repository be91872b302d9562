"""An authority and what it signs, checked by the package's own verifier and by OpenSSL's handshake."""

from __future__ import annotations

import builtins
import ipaddress
from datetime import UTC, datetime
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from tests.certificates import Authority as OtherAuthority
from tidelog.config.key_store_formats import certificates_of
from tidelog.model.errors import ConfigError
from tidelog.security.authority import Authority, Identity
from tidelog.security.certificates import parse_certificate

NOW_MS = 1_700_000_000_000
DAY_MS = 86_400_000
NOW = datetime.fromtimestamp(NOW_MS / 1000, UTC)


def made() -> Authority:
    return Authority.made("house", NOW_MS, 3650)


def loaded(identity: Identity) -> x509.Certificate:
    return x509.load_pem_x509_certificate(identity.certificate.encode())


def part(certificate: x509.Certificate, kind: Any) -> Any:
    return certificate.extensions.get_extension_for_class(kind).value


def verifier(trusted: str, at: datetime = NOW) -> PolicyBuilder:
    return PolicyBuilder().store(Store([x509.load_pem_x509_certificate(trusted.encode())])).time(at)


@pytest.mark.parametrize("name", [x509.DNSName("a.example.com"), x509.IPAddress(ipaddress.ip_address("10.0.0.1"))])
def test_a_chain_is_verified_for_each_of_its_names(name: x509.DNSName | x509.IPAddress) -> None:
    authority = made()
    issued = loaded(authority.issue("node-1", ["a.example.com", "10.0.0.1"], NOW_MS, 90))
    assert verifier(authority.certificate).build_server_verifier(name).verify(issued, [])[0] == issued


def test_a_chain_is_not_verified_for_another_name_time_or_authority() -> None:
    authority = made()
    issued = loaded(authority.issue("node-1", ["a.example.com"], NOW_MS, 90))
    good = x509.DNSName("a.example.com")
    later = datetime.fromtimestamp((NOW_MS + 91 * DAY_MS) / 1000, UTC)
    for refusing in (
        verifier(authority.certificate).build_server_verifier(x509.DNSName("b.example.com")),
        verifier(authority.certificate, later).build_server_verifier(good),
        verifier(made().certificate).build_server_verifier(good),
    ):
        with pytest.raises(VerificationError):
            refusing.verify(issued, [])


def test_an_authority_signs_and_a_node_does_not() -> None:
    authority = made()
    own, issued = loaded(authority.identity), loaded(authority.issue("node-1", ["localhost"], NOW_MS, 90))
    assert (part(own, x509.BasicConstraints).ca, part(own, x509.BasicConstraints).path_length) == (True, 0)
    assert (part(own, x509.KeyUsage).key_cert_sign, part(own, x509.KeyUsage).digital_signature) == (True, False)
    assert part(issued, x509.BasicConstraints).ca is False
    assert (part(issued, x509.KeyUsage).key_cert_sign, part(issued, x509.KeyUsage).digital_signature) == (False, True)
    assert set(part(issued, x509.ExtendedKeyUsage)) == {ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH}
    assert part(issued, x509.AuthorityKeyIdentifier).key_identifier == part(own, x509.SubjectKeyIdentifier).digest


def test_a_certificate_fits_its_key_and_carries_the_name_that_acls_know() -> None:
    issued = made().issue("node-1", ["localhost"], NOW_MS, 90)
    assert load_pem_private_key(issued.key.encode(), None).public_key() == loaded(issued).public_key()
    facts = parse_certificate(certificates_of(issued.certificate)[0])
    assert (facts.subject, facts.not_after_ms) == ("CN=node-1", NOW_MS + 90 * DAY_MS)


def test_a_kept_authority_goes_on_signing() -> None:
    authority = made()
    again = Authority.read(authority.identity)
    assert again.certificate == authority.certificate
    issued = loaded(again.issue("node-1", ["localhost"], NOW_MS, 90))
    verifier(authority.certificate).build_server_verifier(x509.DNSName("localhost")).verify(issued, [])


def test_a_renewed_certificate_has_the_same_names_and_another_key() -> None:
    authority = made()
    old = authority.issue("node-1", ["localhost", "127.0.0.1"], NOW_MS, 90)
    new = authority.renew(old.certificate, NOW_MS + 60 * DAY_MS, 90)
    before, after = (parse_certificate(certificates_of(each.certificate)[0]) for each in (old, new))
    assert (after.subject, after.alternative_names) == (before.subject, before.alternative_names)
    assert after.not_after_ms == before.not_after_ms + 60 * DAY_MS
    assert loaded(new).public_key() != loaded(old).public_key()
    assert loaded(new).serial_number != loaded(old).serial_number


def test_no_certificate_outlives_its_authority_and_none_begins_after_it() -> None:
    authority = Authority.made("house", NOW_MS, 10)
    assert loaded(authority.issue("node-1", ["localhost"], NOW_MS, 90)).not_valid_after_utc.timestamp() * 1000 == (
        NOW_MS + 10 * DAY_MS
    )
    with pytest.raises(ConfigError, match="the authority's own certificate ended at 2023-11-24"):
        authority.issue("node-1", ["localhost"], NOW_MS + 10 * DAY_MS, 90)


def test_what_another_authority_signed_is_not_renewed() -> None:
    for text in (made().issue("node-1", ["localhost"], NOW_MS, 90).certificate, OtherAuthority().issue().chain, "nothing"):
        with pytest.raises(ConfigError, match="no certificate that this authority has signed"):
            made().renew(text, NOW_MS, 90)


def test_a_key_that_belongs_to_another_certificate_is_refused() -> None:
    with pytest.raises(ConfigError, match="do not belong together"):
        Authority.read(Identity(made().certificate, made().identity.key))
    with pytest.raises(ConfigError, match="cannot be read"):
        Authority.read(Identity(made().certificate, "nothing"))


def test_names_that_no_certificate_can_hold_are_refused() -> None:
    with pytest.raises(ConfigError, match="no host name"):
        made().issue("node-1", ["bücher.example"], NOW_MS, 90)
    with pytest.raises(ConfigError, match="cannot be the name"):
        Authority.made("", NOW_MS, 10)


def test_without_the_package_the_error_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.partition(".")[0] == "cryptography":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ConfigError, match=r"pip install 'tidelog\[tls\]'"):
        Authority.made("house", NOW_MS, 10)
