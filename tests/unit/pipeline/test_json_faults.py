"""Where the syntax of a record breaks."""

from __future__ import annotations

import pytest

from tidelog.pipeline.json_faults import syntax_fault


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b'{"id": 1', "it is not JSON: expecting ',' delimiter at byte 8"),
        (b'{"id" 1}', "it is not JSON: expecting ':' delimiter at byte 6"),
        (b"garbage", "it is not JSON: expecting value at byte 0"),
        (b"", "it is not JSON: expecting value at byte 0"),
        ('{"name": "é", }'.encode(), "it is not JSON: expecting property name enclosed in double quotes at byte 15"),
        (b'{"name": "\xff"}', "it is not JSON: not UTF-8 at byte 10"),
        (b"[" * 100_000, "it is not JSON: nested too deeply"),
    ],
)
def test_the_byte_is_named_at_which_it_breaks(text: bytes, says: str) -> None:
    assert syntax_fault(text) == says


@pytest.mark.parametrize("text", [None, b'{"id": 1}', b" [1]", b'{"id": 1} behind'])
def test_what_is_right_has_no_fault(text: bytes | None) -> None:
    assert syntax_fault(text) is None
