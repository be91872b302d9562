"""What is shown of a group."""

from types import SimpleNamespace

from tidelog.cli.tools import group_report
from tidelog.cli.tools.group_state import Committed, Group, Member


def test_lag_is_unknown_where_there_is_no_offset_or_no_leader(monkeypatch):
    member = Member("m", None, "c", "/h", (("t", 0), ("t", 1)))
    group = Group("g", "Stable", "range", (member,))
    monkeypatch.setattr(
        group_report, "committed", lambda session, group_id: {("t", 0): Committed(4, 2), ("t", 2): Committed(1, -1)}
    )
    ends = {("t", 0): SimpleNamespace(offset=9, error_code=0), ("t", 1): SimpleNamespace(offset=5, error_code=0)}
    _, rows = group_report.offsets(SimpleNamespace(list_offsets=lambda wanted, isolation_level=0: ends), group, True)
    shown = [(row["partition"], row["current_offset"], row["log_end_offset"], row["lag"], row["consumer_id"]) for row in rows]
    assert shown == [(0, 4, 9, 5, "m"), (1, None, 5, None, "m"), (2, 1, None, None, None)]
    assert [row["leader_epoch"] for row in rows] == [2, None, None]


def test_the_busiest_member_comes_first_and_static_ones_add_a_column():
    members = (Member("a", None, "c", "/h", ()), Member("b", "fixed", "c", "/h", (("t", 0),)))
    columns, rows = group_report.members(None, Group("g", "Stable", "range", members), False)
    assert [row["consumer_id"] for row in rows] == ["b", "a"]
    assert "GROUP-INSTANCE-ID" in [column.title for column in columns]
