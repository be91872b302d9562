"""Tables at the end of the demo."""

from __future__ import annotations

from demo.books import Line
from demo.view import lines_table


def test_the_table_of_checks_names_its_columns() -> None:
    table = lines_table([Line("sent = acknowledged", 3, 3)])
    assert [column.header for column in table.columns] == ["holds", "statement", "left", "right"]
