from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.console.payloads.decoding import DECODERS, MAX_PARSED, decode, masked, masked_text, whole_text

SIZE = 16_384


def test_json_is_shown_as_it_was_written() -> None:
    text = '{ "id": 9007199254740993, "price": 1.10 }'
    found = decode(text.encode(), "auto", SIZE)
    assert (found.decoder, found.text, found.cut, found.refused) == ("json", text, False, ())


def test_every_decoder_that_did_not_fit_says_why() -> None:
    found = decode(b"\x00\xff", "auto", SIZE)
    assert (found.decoder, found.text) == ("hex", "00ff")
    assert [name for name, reason in found.refused if reason] == ["json", "text", "msgpack"]
    assert decode(b"abc", "int", SIZE).refused == (("int", "an integer has 1, 2, 4 or 8 bytes, this has 3"),)


def test_text_and_integers_and_base64() -> None:
    assert decode("grün\n".encode(), "auto", SIZE).decoder == "text"
    assert decode((-5).to_bytes(8, "big", signed=True), "int", SIZE).text == "-5"
    assert decode(b"\x00\x01", "base64", SIZE).text == "AAE="
    assert decode(b"abc", "none", SIZE).text == ""
    assert decode(b"\x81\xa1a\x01", "auto", SIZE).text == '{"a":1}'


def test_a_long_text_is_cut_between_characters() -> None:
    found = decode("ä".encode() * 10, "auto", 5)
    assert (found.text, found.cut, found.size, found.decoder) == ("ää", True, 20, "text")


def test_long_json_is_not_parsed() -> None:
    found = decode(b'{"a": "' + b"x" * MAX_PARSED + b'"}', "auto", SIZE)
    assert (found.decoder, found.cut, len(found.text)) == ("text", True, SIZE)
    assert "not parsed" in dict(found.refused)["json"]


def test_control_characters_are_no_text() -> None:
    assert decode(b"a\x1b[31m", "auto", SIZE).decoder == "hex"


@pytest.mark.parametrize("name", sorted(DECODERS))
@given(data=st.binary(max_size=100))
def test_every_decoder_shows_any_bytes(name: str, data: bytes) -> None:
    found = decode(data, name, 16)
    assert found.size == len(data)
    json.dumps(found.as_json())


def test_masks_change_only_their_paths() -> None:
    found = masked(b'{"mail":"a@b","id":9007199254740993}', [("mail",)], SIZE)
    assert (found.masked, found.text) == (True, '{"mail":"***","id":9007199254740993}')


def test_what_cannot_be_masked_by_path_is_masked_whole() -> None:
    assert masked(b"plain text with a@b", [("mail",)], SIZE).text == ""
    assert masked(b'{"mail":"a@b"}', [()], SIZE).text == ""
    assert masked(b'"a@b"', [("mail",)], SIZE).text == '"***"'


def test_filters_see_masked_values_only() -> None:
    assert "a@b" not in (masked_text(b'{"mail":"a@b"}', [("mail",)]) or "")
    assert masked_text(None, [()]) is None


def test_filters_see_text_json_of_messagepack_or_hexadecimal() -> None:
    assert whole_text(b"abc") == "abc"
    assert whole_text(b"\x81\xa1a\x01") == '{"a":1}'
    assert whole_text(b"\x00\xff") == "00ff"
    assert whole_text(None) is None


def test_masks_hold_in_messagepack() -> None:
    assert masked(b"\x82\xa4mail\xa3a@b\xa1n\x01", [("mail",)], SIZE).text == '{"mail":"***","n":1}'
