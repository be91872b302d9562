"""Names, other names and ends of certificates."""

from __future__ import annotations

import random

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import NameOID

from tests.certificates import Authority
from tidelog.model.der import DerError
from tidelog.security.certificates import organizational_units, parse_certificate

AUTHORITY = Authority()


def parsed(*parts: x509.NameAttribute | list[x509.NameAttribute]) -> str:
    sets = [x509.RelativeDistinguishedName(each if isinstance(each, list) else [each]) for each in parts]
    issued = AUTHORITY.issue(x509.Name(sets))
    return parse_certificate(issued.certificate.public_bytes(Encoding.DER)).subject


def of(kind: x509.ObjectIdentifier, value: str, form: _ASN1Type = _ASN1Type.UTF8String) -> x509.NameAttribute:
    return x509.NameAttribute(kind, value, form, _validate=False)


def test_a_name_is_written_most_specific_part_first() -> None:
    name = (
        of(NameOID.COUNTRY_NAME, "DE", _ASN1Type.PrintableString),
        of(NameOID.STATE_OR_PROVINCE_NAME, "Hessen"),
        of(NameOID.LOCALITY_NAME, "Köln"),
        of(NameOID.ORGANIZATION_NAME, "Tide"),
        of(NameOID.ORGANIZATIONAL_UNIT_NAME, "Log"),
        of(NameOID.DOMAIN_COMPONENT, "example", _ASN1Type.IA5String),
        of(NameOID.USER_ID, "u1"),
        of(NameOID.STREET_ADDRESS, "Weg 1"),
        of(NameOID.COMMON_NAME, "node"),
    )
    assert parsed(*name) == "CN=node,STREET=Weg 1,UID=u1,DC=example,OU=Log,O=Tide,L=Köln,ST=Hessen,C=DE"


def test_attributes_without_a_keyword_are_written_as_java_writes_them() -> None:
    email = of(NameOID.EMAIL_ADDRESS, "a@b", _ASN1Type.IA5String)
    assert parsed(email, of(NameOID.COMMON_NAME, "a")) == "CN=a,1.2.840.113549.1.9.1=#1603614062"
    assert parsed(of(NameOID.COMMON_NAME, "ab", _ASN1Type.UniversalString)).startswith("CN=#1c")


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("a,b+c", r"a\,b\+c"),
        ('x=y<z>;"\\', r"x\=y\<z\>\;\"\\"),
        (" lead", r"\ lead"),
        ("trail  ", r"trail\ \ "),
        ("#hash", r"\#hash"),
        ("nul\0l", r"nul\00l"),
        ("in the middle", "in the middle"),
    ],
)
def test_special_characters_are_escaped(value: str, written: str) -> None:
    assert parsed(of(NameOID.COMMON_NAME, value)) == f"CN={written}"


def test_a_part_with_several_attributes_and_an_empty_name() -> None:
    several = parsed([of(NameOID.COMMON_NAME, "a"), of(NameOID.USER_ID, "b")], of(NameOID.ORGANIZATION_NAME, "o"))
    assert several in ("O=o,CN=a+UID=b", "O=o,UID=b+CN=a")
    assert parsed() == ""


def test_other_names_and_the_end_are_read() -> None:
    first, second = AUTHORITY.issue("n", "a.example", "127.0.0.1"), AUTHORITY.issue("n", "127.0.0.1", "a.example")
    one, two = (parse_certificate(each.certificate.public_bytes(Encoding.DER)) for each in (first, second))
    assert one.alternative_names == two.alternative_names
    assert len(one.alternative_names) == 2
    assert one.not_after_ms == int(first.certificate.not_valid_after_utc.timestamp()) * 1000
    far = parse_certificate(AUTHORITY.issue("n", days=20_000).certificate.public_bytes(Encoding.DER))
    assert not far.alternative_names
    assert far.not_after_ms > 2_500_000_000_000  # after 2049 the time has another form


def test_damaged_certificates_are_refused_and_nothing_else_happens() -> None:
    rng = random.Random(2)
    good = AUTHORITY.issue("node", "a.example").certificate.public_bytes(Encoding.DER)
    refused = 0
    for _ in range(3000):
        data = bytearray(good)
        for _ in range(rng.choice([1, 2, 5])):
            data[rng.randrange(len(data))] = rng.randrange(256)
        data = data[: rng.choice([len(data), rng.randrange(len(data))])]
        try:
            parse_certificate(bytes(data))
        except DerError:
            refused += 1
    assert refused > 1500


def units(*parts: x509.NameAttribute | list[x509.NameAttribute]) -> list[str]:
    sets = [x509.RelativeDistinguishedName(each if isinstance(each, list) else [each]) for each in parts]
    issued = AUTHORITY.issue(x509.Name(sets))
    return organizational_units(issued.certificate.public_bytes(Encoding.DER))


def test_units_are_read_as_plain_text_in_every_form() -> None:
    unit = NameOID.ORGANIZATIONAL_UNIT_NAME
    assert units(of(NameOID.COMMON_NAME, "a")) == []
    name = (of(unit, "a,b=c"), of(unit, "Köln", _ASN1Type.BMPString), of(NameOID.COMMON_NAME, "OU=x"))
    assert units(*name) == ["a,b=c", "Köln"]
    assert units([of(unit, "one"), of(NameOID.COMMON_NAME, "a")], of(unit, "two", _ASN1Type.PrintableString)) == ["one", "two"]
    with pytest.raises(DerError, match="units"):
        units(of(unit, "ab", _ASN1Type.UniversalString))
    with pytest.raises(DerError):
        organizational_units(b"no certificate")
