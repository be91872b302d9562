from __future__ import annotations

import pytest

from tidelog.console.asking.acl_rows import as_row, described, entry_of

ROW = {
    "resource": "topic",
    "name": "orders",
    "pattern": "prefixed",
    "principal": "User:ann",
    "host": "*",
    "operation": "describe_configs",
    "permission": "allow",
}


def test_a_row_survives() -> None:
    assert as_row(entry_of(ROW)) == ROW
    assert described(entry_of(ROW)) == "allow User:ann from * to describe_configs topic orders (prefix)"


@pytest.mark.parametrize(
    "change",
    [
        {"resource": "any"},
        {"pattern": "match"},
        {"operation": "fly"},
        {"permission": "maybe"},
        {"principal": "ann"},
        {"name": ""},
        {"host": "x" * 2000},
        {"more": "x"},
    ],
)
def test_a_row_with_a_mistake_is_refused(change: dict[str, str]) -> None:
    with pytest.raises(ValueError):
        entry_of({**ROW, **change})
