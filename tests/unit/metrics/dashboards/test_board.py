from __future__ import annotations

from tidelog.metrics.dashboards.board import Dashboard, Query, Row, line, number


def test_lines_are_named_by_instance_unless_the_question_says_how() -> None:
    panel = line("title", "up", Query("down", "all"))
    assert [each.legend for each in panel.queries] == ["{{instance}}", "all"]


def test_the_questions_of_a_dashboard_are_those_of_all_its_panels() -> None:
    board = Dashboard(
        "uid", "title", "doc", (Row("one", (number("a", "x"), line("b", "y", "z"))), Row("two", (number("c", "w"),)))
    )
    assert board.queries == ("x", "y", "z", "w")
