"""Which types a table's column takes, and which it would cut."""

from __future__ import annotations

from typing import Any

import pytest

types = pytest.importorskip("pyspark.sql.types", reason="the extra pipeline is not installed")

from tidelog.pipeline.sinks.widening import added, changed, grown, grows, holds  # noqa: E402


@pytest.mark.parametrize(
    ("column", "value", "fits"),
    [
        ("int", "int", True),
        ("bigint", "int", True),
        ("int", "bigint", False),
        ("int", "double", False),
        ("double", "float", True),
        ("double", "bigint", False),
        ("float", "double", False),
        ("string", "int", True),
        ("int", "string", False),
        ("decimal(12,4)", "decimal(10,2)", True),
        ("decimal(10,2)", "decimal(12,4)", False),
        ("decimal(12,2)", "decimal(12,4)", False),
        ("decimal(20,0)", "bigint", True),
        ("bigint", "decimal(10,0)", False),
    ],
)
def test_a_column_takes_what_it_can_hold_as_it_is(column: str, value: str, fits: bool) -> None:
    assert holds(column, value) is fits


@pytest.mark.parametrize(
    ("old", "new", "may"),
    [
        ("int", "bigint", True),
        ("float", "double", True),
        ("decimal(10,2)", "decimal(12,4)", True),
        ("int", "double", False),
        ("int", "decimal(20,0)", False),
        ("bigint", "int", False),
        ("int", "string", False),
    ],
)
def test_what_may_grow_is_what_delta_makes_wider(old: str, new: str, may: bool) -> None:
    assert grows(old, new) is may


def test_columns_are_compared_by_name_to_the_bottom() -> None:
    def struct(number: Any, inner: Any) -> Any:
        items = types.ArrayType(types.StructType([types.StructField("x", inner)]))
        return types.StructType([types.StructField("N", number), types.StructField("items", items)])

    table = struct(types.IntegerType(), types.IntegerType())
    wider, other = changed(table, struct(types.LongType(), types.DoubleType()).add("new", types.StringType()))
    assert wider == ["N (bigint in the rows, int in the table)"]
    assert other == ["items[].x (double in the rows, int in the table)"]
    assert changed(table, table) == ([], [])


def test_fields_inside_of_structs_lists_and_maps_are_found_by_their_path() -> None:
    def struct(**fields: Any) -> Any:
        return types.StructType([types.StructField(name, kind) for name, kind in fields.items()])

    whole, long, text = types.IntegerType(), types.LongType(), types.StringType()
    table = struct(n=whole, Place=struct(x=whole), items=types.ArrayType(struct(x=whole)), tags=types.MapType(text, whole))
    items = types.ArrayType(struct(x=long, y=struct(z=text)))
    rows = struct(n=long, place=struct(x=long, y=text), items=items, tags=types.MapType(text, long))
    assert added(table, rows) == [(("Place", "y"), "string"), (("items", "element", "y"), "struct<z:string>")]
    assert grown(table, rows) == [
        (("n",), "bigint"),
        (("Place", "x"), "bigint"),
        (("items", "element", "x"), "bigint"),
        (("tags", "value"), "bigint"),
    ]
    assert added(rows, table) == [] and grown(rows, table) == []
