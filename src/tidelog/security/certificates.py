"""What an X.509 certificate says: the name of its owner, other names, and until when it is valid.

Names are written as Java's ``X500Principal.getName()`` does (RFC 2253), because ACLs, ``super.users`` and
``ssl.principal.mapping.rules`` are written for that text.
"""

from __future__ import annotations

import calendar
from typing import NamedTuple

from tidelog.model.der import OBJECT_ID, OCTET_STRING, SEQUENCE, SET, DerError, Element, children, object_id, whole

_UTC_TIME, _GENERALIZED_TIME = 0x17, 0x18
_KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "2.5.4.9": "STREET",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
"""The attributes for which RFC 2253 has a keyword; Java writes all others with their number and their bytes."""
_UTF8, _PRINTABLE, _TELETEX, _IA5, _GENERAL, _BMP = 0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E
_TEXTS = frozenset({_UTF8, _PRINTABLE, _TELETEX, _IA5, _GENERAL, _BMP})
_ORGANIZATIONAL_UNIT = "2.5.4.11"
_ESCAPED = frozenset(',=+<>#;"\\')
_ALTERNATIVE_NAMES = "2.5.29.17"
_VERSION, _EXTENSIONS = 0xA0, 0xA3


class Certificate(NamedTuple):
    """The facts of a certificate that matter here."""

    subject: str
    """The distinguished name, most specific part first."""
    alternative_names: frozenset[bytes]
    """In DER, for comparison."""
    not_after_ms: int
    """The end of its validity, in ms since 1970."""


def parse_certificate(der: bytes) -> Certificate:
    """The facts of a certificate in DER. DerError for what is no certificate."""
    try:
        fields = _fields(der)
        validity, subject = fields[3], fields[4]
        return Certificate(_name(subject), _alternative_names(fields[6:]), _time_ms(children(validity)[1]))
    except (IndexError, ValueError) as problem:
        raise DerError(f"a certificate cannot be read: {problem}") from None


def organizational_units(der: bytes) -> list[str]:
    """The organizational units (OU) in the owner's name, as plain text, in the order of the certificate. DerError for what is no
    certificate, and for a unit that is no text."""
    try:
        pairs = [children(pair) for each in children(_fields(der)[4]) for pair in children(each)]
        return [_text(value) for kind, value in pairs if object_id(kind) == _ORGANIZATIONAL_UNIT]
    except (IndexError, ValueError) as problem:
        raise DerError(f"the units in a certificate cannot be read: {problem}") from None


def _text(value: Element) -> str:
    if value.tag not in _TEXTS:
        raise DerError("a value is no text")
    return value.content.decode({_BMP: "utf-16-be", _TELETEX: "latin-1"}.get(value.tag, "utf-8"))


def _fields(der: bytes) -> list[Element]:
    """What is signed, from the serial number on."""
    fields = children(children(whole(der, SEQUENCE))[0])
    return fields[1:] if fields[0].tag == _VERSION else fields


def _name(sequence: Element) -> str:
    parts = []
    for each in children(sequence):
        if each.tag != SET:
            raise DerError("a name is no sequence of sets")
        parts.append("+".join(_attribute(pair) for pair in children(each)))
    return ",".join(reversed(parts))


def _attribute(pair: Element) -> str:
    kind, value = children(pair)
    number = object_id(kind)
    keyword = _KEYWORDS.get(number)
    if keyword is None or value.tag not in _TEXTS:
        return f"{keyword or number}=#{value.encoded.hex()}"
    return f"{keyword}={_escaped(value.content.decode('utf-8', 'replace'))}"


def _escaped(text: str) -> str:
    written = ["\\00" if each == "\0" else f"\\{each}" if each in _ESCAPED else each for each in text]
    whole_text = "".join(written)
    start = len(whole_text) - len(whole_text.lstrip(" \r"))
    end = len(whole_text.rstrip(" \r"))
    return "".join(f"\\{each}" if at < start or at >= end else each for at, each in enumerate(whole_text))


def _alternative_names(fields: list[Element]) -> frozenset[bytes]:
    for field in fields:
        if field.tag != _EXTENSIONS:
            continue
        for extension in children(children(field)[0]):
            parts = children(extension)
            if parts[0].tag == OBJECT_ID and object_id(parts[0]) == _ALTERNATIVE_NAMES and parts[-1].tag == OCTET_STRING:
                return frozenset(each.encoded for each in children(whole(parts[-1].content, SEQUENCE)))
    return frozenset()


def _time_ms(element: Element) -> int:
    text = element.content.decode("ascii")
    if element.tag == _UTC_TIME:
        text = ("19" if text[:2] >= "50" else "20") + text
    elif element.tag != _GENERALIZED_TIME:
        raise DerError("a time is expected")
    if len(text) != 15 or text[-1] != "Z":
        raise DerError(f"the time {text!r} is not in UTC with seconds")
    digits = int(text[:4]), int(text[4:6]), int(text[6:8]), int(text[8:10]), int(text[10:12]), int(text[12:14])
    return calendar.timegm(digits) * 1000
