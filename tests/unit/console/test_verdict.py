"""The verdict for programs."""

from __future__ import annotations

from tidelog.console.verdict import Finding, Verdict


def test_the_json_has_each_part_and_null_where_there_is_none() -> None:
    finding = Finding("P1", "title", ("proof",), "advice")
    note = Finding("G7", "spare", (), "", "command", alarm=False)
    assert Verdict("g", "Stable", 3, 5.0004, None, notes=(note,), fine=("a",), unseen=("b",)).as_json() == {
        "group": "g",
        "state": "Stable",
        "lag": 3,
        "watched_seconds": 5.0,
        "primary": None,
        "contributing": [],
        "notes": [{"cause": "G7", "title": "spare", "evidence": [], "advice": "", "command": "command", "certain": True}],
        "fine": ["a"],
        "not_visible": ["b"],
    }
    primary = Verdict("g", "Stable", 0, 5, finding, (finding,)).as_json()
    assert primary["primary"] == primary["contributing"][0]
    assert primary["primary"] == {
        "cause": "P1",
        "title": "title",
        "evidence": ["proof"],
        "advice": "advice",
        "command": None,
        "certain": True,
    }
