from __future__ import annotations

import pytest

from tidelog.console.payloads.decoding import decode, masked, masked_text, whole_text
from tidelog.console.payloads.framed import Refused, Schema, found, message_indexes

GUID = "01020304-0506-0708-090a-0b0c0d0e0f10"
IN_HEADER = bytes(range(1, 17))


class One:
    """A registry with the schema 7 in Avro, and 8 in Protobuf; their values are JSON."""

    def find(self, schema: int | str) -> Schema:
        if schema == 9:
            return Schema(9, "PROTOBUF", lambda body: body[message_indexes(body)[1] :].decode())
        if schema not in (7, GUID):
            raise Refused(f"no schema {schema}")
        return Schema(7 if schema == 7 else None, "AVRO", lambda body: body.decode(), GUID if schema == GUID else None)


FRAMED = b"\0\0\0\0\x07" + b'{"mail":"a@b","n":1}'


def test_the_schema_is_found_by_the_id_before_the_value() -> None:
    schema, body = found(FRAMED, One())
    assert (body, schema.schema_id) == (b'{"mail":"a@b","n":1}', 7)
    for raw in (b"", b"\0\0\0\0", b"\x01\0\0\0\x07x", b"\0\0\0\0\x08x"):
        with pytest.raises(Refused):
            found(raw, One())


def test_a_payload_with_a_schema_is_shown_by_it_first() -> None:
    shown = decode(FRAMED, "auto", 100, One())
    assert (shown.decoder, shown.refused) == ("avro", ())
    assert shown.as_json()["schema"] == {"id": 7, "guid": None, "type": "AVRO", "subject": None}
    other = decode(b"\0\0\0\0\x08x", "auto", 100, One())
    assert (other.decoder, dict(other.refused)["schema"]) == ("hex", "no schema 8")
    assert dict(decode(FRAMED, "avro", 100).refused)["avro"].startswith("the console has no schema registry")


def test_filters_and_masks_see_the_decoded_value() -> None:
    assert whole_text(FRAMED, One()) == '{"mail":"a@b","n":1}'
    assert masked(FRAMED, [("mail",)], 100, One()).text == '{"mail":"***","n":1}'
    assert masked_text(FRAMED, [("mail",)], One()) == '{"mail":"***","n":1}'
    assert masked(FRAMED, [("mail",)], 100).text == ""


def test_a_header_says_the_schema_and_the_payload_is_the_value_alone() -> None:
    value = FRAMED[5:]
    shown = decode(value, "auto", 100, One(), b"\x01" + IN_HEADER)
    assert shown.as_json()["schema"] == {"id": None, "guid": GUID, "type": "AVRO", "subject": None}
    assert decode(value, "auto", 100, One(), b"\0\0\0\0\x07").decoder == "avro"
    protobuf = decode(value, "auto", 100, One(), b"\0\0\0\0\x09\x02\x04")
    assert (protobuf.decoder, protobuf.text) == ("protobuf", value.decode())
    assert whole_text(value, One(), b"\x01" + IN_HEADER) == value.decode()
    assert masked(value, [("mail",)], 100, One(), b"\x01" + IN_HEADER).text == '{"mail":"***","n":1}'


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"\x01",
        b"\x02" + IN_HEADER,
        b"\0\0\0\x07",
        b"\0\0\0\0\x07x",
        b"\0\0\0\0\x09",
        b"\0\0\0\0\x09\x04\x02",
        b"\0\0\0\0\x09\0\0",
    ],
)
def test_a_header_that_says_no_schema_is_refused(header: bytes) -> None:
    with pytest.raises(Refused):
        found(b"{}", One(), header)


def test_the_place_of_a_message_is_bounded() -> None:
    assert message_indexes(b"\0rest") == ((0,), 1)
    assert message_indexes(b"\x04\x02\x06") == ((1, 3), 3)
    for body in (b"", b"\x01", b"\x02", b"\x02\x01", b"\xfe\x01" + bytes(200), b"\x80" * 6):
        with pytest.raises(Refused):
            message_indexes(body)


def test_a_decoder_of_another_kind_refuses() -> None:
    assert dict(decode(FRAMED, "protobuf", 100, One()).refused)["protobuf"] == "its schema is of the kind AVRO"
    assert decode(FRAMED, "avro", 100, One()).decoder == "avro"


class Unknown:
    """A schema in Protobuf that does not know a field, and has an Any."""

    def find(self, schema: int | str) -> Schema:
        return Schema(1, "PROTOBUF", lambda body: '{"n":1,"#2":{"bytes":"c2VjcmV0"},"a":{"@type":"x","#value":"c2VjcmV0"}}')


def test_masks_hide_fields_that_the_schema_does_not_know() -> None:
    text = masked(b"\0\0\0\0\x01", [("mail",)], 100, Unknown()).text
    assert text == '{"n":1,"#2":"***","a":{"@type":"x","#value":"***"}}'
