from __future__ import annotations

from tidelog.broker.share_table import SHARE_APIS
from tidelog.broker.table import API_TABLE


def test_its_rows_are_in_the_one_table_and_in_order() -> None:
    keys = [row.key for row in SHARE_APIS]
    assert keys == sorted(set(keys))
    assert [row for row in API_TABLE if row in SHARE_APIS] == list(SHARE_APIS)
