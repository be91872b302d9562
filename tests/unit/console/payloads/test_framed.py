from __future__ import annotations

import pytest

from tidelog.console.payloads.decoding import decode, masked, masked_text, whole_text
from tidelog.console.payloads.framed import Refused, Schema, decoded


class One:
    """A registry with the schema 7, whose values are JSON."""

    def find(self, schema_id: int) -> Schema:
        if schema_id != 7:
            raise Refused(f"no schema {schema_id}")
        return Schema(7, "AVRO", lambda body: body.decode())


FRAMED = b"\0\0\0\0\x07" + b'{"mail":"a@b","n":1}'


def test_the_schema_is_found_by_the_id_before_the_value() -> None:
    text, schema = decoded(FRAMED, One())
    assert (text, schema.schema_id) == ('{"mail":"a@b","n":1}', 7)
    for raw in (b"", b"\0\0\0\0", b"\x01\0\0\0\x07x", b"\0\0\0\0\x08x"):
        with pytest.raises(Refused):
            decoded(raw, One())


def test_a_payload_with_a_schema_is_shown_by_it_first() -> None:
    found = decode(FRAMED, "auto", 100, One())
    assert (found.decoder, found.refused) == ("avro", ())
    assert found.as_json()["schema"] == {"id": 7, "type": "AVRO", "subject": None}
    other = decode(b"\0\0\0\0\x08x", "auto", 100, One())
    assert (other.decoder, dict(other.refused)["avro"]) == ("hex", "no schema 8")
    assert dict(decode(FRAMED, "avro", 100).refused)["avro"].startswith("the console has no schema registry")


def test_filters_and_masks_see_the_decoded_value() -> None:
    assert whole_text(FRAMED, One()) == '{"mail":"a@b","n":1}'
    assert masked(FRAMED, [("mail",)], 100, One()).text == '{"mail":"***","n":1}'
    assert masked_text(FRAMED, [("mail",)], One()) == '{"mail":"***","n":1}'
    assert masked(FRAMED, [("mail",)], 100).text == ""
