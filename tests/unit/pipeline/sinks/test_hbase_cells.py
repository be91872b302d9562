"""Rows as HBase's cells: keys that cannot be taken for each other, values as Java writes them, and the same bytes each time."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tidelog.pipeline.sinks.base import SinkError
from tidelog.pipeline.sinks.hbase_cells import MAX_ROWS, Cells, packer, row_key

FARES = Cells({"zone": b"place:zone", "fare": b"d:fare"}, ("id",), "at", {"fare": "bigint"})


def rows_of(cells: Cells, *rows: dict[str, Any]) -> list[Any]:
    return [row for body, _ in cells.requests(rows) for row in json.loads(body)["Row"]]


def test_a_row_is_its_key_and_its_cells_with_its_own_date() -> None:
    (row,) = rows_of(FARES, {"id": "a", "zone": "nörd", "fare": 258, "at": 7})
    assert base64.b64decode(row["key"]) == b"a"
    cells = [(base64.b64decode(cell["column"]), cell["timestamp"], base64.b64decode(cell["$"])) for cell in row["Cell"]]
    assert cells == [(b"place:zone", 7, "nörd".encode()), (b"d:fare", 7, b"\0\0\0\0\0\0\1\2")]


def test_null_is_a_cell_without_bytes_so_that_it_hides_what_was_there() -> None:
    (row,) = rows_of(FARES, {"id": "a", "zone": None, "fare": None, "at": 7})
    assert [cell["$"] for cell in row["Cell"]] == ["", ""]


def test_a_marker_has_no_date_of_its_own() -> None:
    (row,) = rows_of(Cells({"last": b"b:last"}, ("row",)), {"row": "x", "last": "y"})
    assert "timestamp" not in row["Cell"][0]


def test_the_same_rows_are_the_same_bytes() -> None:
    rows = [{"id": str(number), "zone": "z", "fare": number, "at": number} for number in range(10)]
    assert list(FARES.requests(rows)) == list(FARES.requests(rows))


@pytest.mark.parametrize(("rows", "sizes"), [(0, []), (1, [1]), (MAX_ROWS, [MAX_ROWS]), (MAX_ROWS + 1, [MAX_ROWS, 1])])
def test_a_request_has_so_many_rows(rows: int, sizes: list[int]) -> None:
    made = ({"id": str(number), "zone": "z", "fare": 1, "at": 1} for number in range(rows))
    assert [count for _, count in FARES.requests(made)] == sizes


def test_a_request_ends_with_the_row_that_makes_it_large() -> None:
    made = [{"id": str(number), "zone": "z" * (600 << 10), "fare": 1, "at": 1} for number in range(3)]
    assert [count for _, count in FARES.requests(made)] == [2, 1]


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        ("boolean", True, "ff"), ("boolean", False, "00"), ("tinyint", -1, "ff"), ("smallint", 258, "0102"),
        ("int", -2, "fffffffe"), ("bigint", 1, "0000000000000001"), ("float", 1.5, "3fc00000"),
        ("double", -2.0, "c000000000000000"),
    ],
)  # fmt: skip
def test_numbers_are_packed_as_java_s_bytes_do_it(kind: str, value: Any, said: str) -> None:
    assert packer(kind)(value).hex() == said


def test_keys_of_several_columns_cannot_be_taken_for_each_other() -> None:
    assert row_key(["a", "bc"]) == b"a\0bc" != row_key(["ab", "c"])
    assert row_key([b"\0\1"]) == b"\0\1"
    with pytest.raises(SinkError, match="zero byte"):
        row_key(["a\0", "b"])


@pytest.mark.parametrize("values", [[""], ["x" * 32_768]])
def test_a_key_that_hbase_cannot_take_is_told(values: list[str]) -> None:
    with pytest.raises(SinkError, match="HBase takes 1 to 32767"):
        row_key(values)
