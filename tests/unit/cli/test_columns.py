"""Tables as Kafka's tools lay them out."""

from tidelog.cli.columns import Column, table


def test_columns_are_as_wide_as_kafkas_and_wider_where_a_value_needs_it():
    columns = [Column("GROUP", "group", 8), Column("LAG", "lag", 4), Column("HOST", "host", 0, pad=False)]
    rows = [{"group": "g", "lag": None, "host": "/h"}, {"group": "a-long-name", "lag": 12345, "host": None}]
    assert table(columns, rows).splitlines() == ["GROUP       LAG   HOST", "g           -     /h", "a-long-name 12345 -"]


def test_a_table_without_rows_is_its_title():
    assert table([Column("GROUP", "group", 8), Column("X", "x", 2)], []) == "GROUP    X "
