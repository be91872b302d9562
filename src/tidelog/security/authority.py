"""A certificate authority on the curve P-256, and the certificates that it signs, all in memory.

Needs the package ``cryptography``, the extra ``tls``; without it every function here raises ConfigError.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from tidelog.model.errors import ConfigError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey, EllipticCurvePublicKey
    from cryptography.x509 import Certificate, CertificateBuilder, ExtensionType, GeneralName, Name

NEEDS_PACKAGE = "certificates are made with the package cryptography: pip install 'tidelog[tls]'"
SKEW = timedelta(hours=1)
"""Certificates are valid from this long ago: the clocks of other machines may be slow."""


class Identity(NamedTuple):
    """A certificate and its key, both in PEM; the key is PKCS#8, not encrypted."""

    certificate: str
    key: str


class Authority:
    """Signs certificates that are valid until a time, and never for longer than its own."""

    def __init__(self, certificate: Certificate, key: EllipticCurvePrivateKey) -> None:
        self._certificate = certificate
        self._key = key

    @classmethod
    def made(cls, common_name: str, now_ms: int, days: int) -> Authority:
        """A new authority, which signs certificates of nodes and clients, and of no other authority. ConfigError."""
        _check_package()
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec

        key = ec.generate_private_key(ec.SECP256R1())
        name = _named(common_name)
        signs = [(x509.BasicConstraints(ca=True, path_length=0), True), (_usage(signs=True), True)]
        built = _builder(name, name, key.public_key(), now_ms, _at(now_ms) + timedelta(days=days), signs)
        built = built.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        return cls(built.sign(key, hashes.SHA256()), key)

    @classmethod
    def read(cls, identity: Identity) -> Authority:
        """The authority with this certificate and key. ConfigError when they are not PEM, or do not belong together."""
        _check_package()
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        try:
            certificate = x509.load_pem_x509_certificate(identity.certificate.encode())
            key = load_pem_private_key(identity.key.encode(), None)
        except (ValueError, TypeError) as problem:
            raise ConfigError(f"the authority's certificate or key cannot be read: {problem}.") from None
        if not isinstance(key, EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
            raise ConfigError("the authority's certificate and its key do not belong together.")
        return cls(certificate, key)

    @property
    def identity(self) -> Identity:
        """Its own certificate and key, to be kept."""
        return Identity(_pem(self._certificate), _key_pem(self._key))

    @property
    def certificate(self) -> str:
        """What clients and nodes trust, in PEM."""
        return _pem(self._certificate)

    def issue(self, common_name: str, hosts: Sequence[str], now_ms: int, days: int) -> Identity:
        """A new certificate for a server and a client of that name; ``hosts``: names and addresses that it is reached by."""
        from cryptography import x509

        names = x509.SubjectAlternativeName([_general_name(host) for host in hosts]) if hosts else None
        return self._issue(_named(common_name), names, now_ms, days)

    def renew(self, certificate: str, now_ms: int, days: int) -> Identity:
        """A certificate with a new key, for the name and the hosts of this one in PEM. ConfigError when another authority
        signed it."""
        from cryptography import x509
        from cryptography.exceptions import InvalidSignature

        try:
            old = x509.load_pem_x509_certificate(certificate.encode())
            old.verify_directly_issued_by(self._certificate)
        except (ValueError, TypeError, InvalidSignature):
            raise ConfigError("it holds no certificate that this authority has signed.") from None
        try:
            names = old.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except x509.ExtensionNotFound:
            names = None
        return self._issue(old.subject, names, now_ms, days)

    def _issue(self, subject: Name, names: ExtensionType | None, now_ms: int, days: int) -> Identity:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import ExtendedKeyUsageOID

        last = self._certificate.not_valid_after_utc
        if _at(now_ms) >= last:
            raise ConfigError(f"the authority's own certificate ended at {last:%Y-%m-%d %H:%M} UTC: it can sign no more.")
        key = ec.generate_private_key(ec.SECP256R1())
        parts: list[tuple[ExtensionType, bool]] = [
            (x509.BasicConstraints(ca=False, path_length=None), True),
            (_usage(signs=False), True),
            (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), False),
            (x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), False),
        ]
        if names is not None:
            parts.append((names, False))
        until = min(_at(now_ms) + timedelta(days=days), last)
        built = _builder(subject, self._certificate.subject, key.public_key(), now_ms, until, parts)
        return Identity(_pem(built.sign(self._key, hashes.SHA256())), _key_pem(key))


def _check_package() -> None:
    try:
        import cryptography  # noqa: F401
    except ImportError:
        raise ConfigError(f"{NEEDS_PACKAGE}.") from None


def _builder(
    subject: Name,
    issuer: Name,
    public: EllipticCurvePublicKey,
    now_ms: int,
    until: datetime,
    parts: list[tuple[ExtensionType, bool]],
) -> CertificateBuilder:
    from cryptography import x509

    built = x509.CertificateBuilder(issuer, subject, public, x509.random_serial_number(), _at(now_ms) - SKEW, until)
    for part, critical in parts:
        built = built.add_extension(part, critical=critical)
    return built


def _usage(*, signs: bool) -> ExtensionType:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _named(common_name: str) -> Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    try:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    except ValueError as problem:
        raise ConfigError(f"{common_name!r} cannot be the name in a certificate: {problem}.") from None


def _general_name(host: str) -> GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        pass
    try:
        return x509.DNSName(host)
    except ValueError as problem:
        raise ConfigError(f"{host!r} is no host name for a certificate: {problem}.") from None


def _at(now_ms: int) -> datetime:
    return datetime.fromtimestamp(now_ms // 1000, UTC)


def _pem(certificate: Certificate) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM).decode()


def _key_pem(key: EllipticCurvePrivateKey) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
