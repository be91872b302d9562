"""DER: what is read, and what is refused."""

from __future__ import annotations

import pytest

from tidelog.model.der import INTEGER, OBJECT_ID, SEQUENCE, DerError, Element, children, object_id, read, whole


def test_elements_are_read_with_short_and_long_lengths() -> None:
    data = b"\x30\x82\x00\x85" + b"\x04\x81\x80" + bytes(128) + b"\x05\x00"
    outer = whole(data, SEQUENCE)
    octets, null = children(outer)
    assert (octets.tag, octets.content, null) == (0x04, bytes(128), Element(0x05, b"", b"\x05\x00"))
    assert octets.encoded == b"\x04\x81\x80" + bytes(128)


@pytest.mark.parametrize(
    ("encoded", "text"),
    [
        (b"\x55\x04\x03", "2.5.4.3"),
        (b"\x2a\x86\x48\x86\xf7\x0d\x01\x09\x01", "1.2.840.113549.1.9.1"),
        (b"\x88\x37\x03", "2.999.3"),
        (b"\x09", "0.9"),
    ],
)
def test_object_identifiers_are_written_with_dots(encoded: bytes, text: str) -> None:
    assert object_id(Element(OBJECT_ID, encoded, b"")) == text


@pytest.mark.parametrize(
    "data", [b"", b"\x30", b"\x30\x02\x00", b"\x30\x80", b"\x30\x85\x01\x01\x01\x01\x01", b"\x1f\x81\x01\x00", b"\x30\x82\x01"]
)
def test_what_is_no_der_is_refused(data: bytes) -> None:
    with pytest.raises(DerError):
        read(data)


def test_bytes_behind_the_only_element_are_refused() -> None:
    with pytest.raises(DerError, match="1 bytes behind it"):
        whole(b"\x30\x00\x00", SEQUENCE)
    with pytest.raises(DerError, match="alone is expected"):
        whole(b"\x30\x00", INTEGER)


@pytest.mark.parametrize(
    "element", [Element(OBJECT_ID, b"", b""), Element(OBJECT_ID, b"\x86", b""), Element(INTEGER, b"\x05", b"")]
)
def test_what_is_no_object_identifier_is_refused(element: Element) -> None:
    with pytest.raises(DerError):
        object_id(element)
