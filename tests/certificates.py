"""Certificates for tests, made in memory: P-256, an authority and what it signs."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import NameOID

DAY = datetime.timedelta(days=1)


@dataclass(frozen=True)
class Issued:
    """A certificate with its key; ``chain`` is the PEM of the certificate."""

    certificate: x509.Certificate
    private: ec.EllipticCurvePrivateKey

    @property
    def chain(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    @property
    def key(self) -> str:
        return self.private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()

    @property
    def both(self) -> str:
        """What a PEM key store holds."""
        return self.key + self.chain

    def encrypted_key(self, password: str) -> str:
        return self.private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(password.encode())).decode()

    def pkcs12(self, password: str) -> bytes:
        return pkcs12.serialize_key_and_certificates(
            b"me", self.private, self.certificate, None, BestAvailableEncryption(password.encode())
        )


def named(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


class Authority:
    """Signs certificates."""

    def __init__(self, name: str = "authority") -> None:
        self._private = ec.generate_private_key(ec.SECP256R1())
        self._name = named(name)
        basic = x509.BasicConstraints(ca=True, path_length=None)
        self.certificate = self._built(self._name, self._private.public_key(), [(basic, True)]).sign(
            self._private, hashes.SHA256()
        )

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    def issue(
        self,
        name: str | x509.Name = "node",
        *hosts: str,
        days: float = 30,
        since_days: float = 1,
        more: tuple[tuple[Any, bool], ...] = (),
    ) -> Issued:
        """A certificate for a common name, or a whole name, and these host names or addresses."""
        private = ec.generate_private_key(ec.SECP256R1())
        extensions: list[tuple[Any, bool]] = [(x509.BasicConstraints(ca=False, path_length=None), True), *more]
        if hosts:
            extensions.append((x509.SubjectAlternativeName([_host(each) for each in hosts]), False))
        subject = named(name) if isinstance(name, str) else name
        built = self._built(subject, private.public_key(), extensions, days, since_days)
        return Issued(built.sign(self._private, hashes.SHA256()), private)

    def _built(
        self, subject: x509.Name, public: Any, extensions: list[tuple[Any, bool]], days: float = 30, since_days: float = 1
    ) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        built = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - since_days * DAY)
            .not_valid_after(now + days * DAY)
        )
        for extension, critical in extensions:
            built = built.add_extension(extension, critical)
        return built


def _host(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def java_trust_store(password: str, *authorities: Authority) -> bytes:
    """A PKCS12 trust store that Java reads, too."""
    entries = [pkcs12.PKCS12Certificate(each.certificate, b"ca%d" % number) for number, each in enumerate(authorities)]
    return pkcs12.serialize_java_truststore(entries, BestAvailableEncryption(password.encode()))
