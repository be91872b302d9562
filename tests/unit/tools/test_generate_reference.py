"""Pages and code that follow from the tables."""

from __future__ import annotations

from tidelog.broker.table import BROKER_APIS, CONTROLLER_APIS
from tidelog.config.options import INT, LOW, READ_ONLY, Between, Option
from tools.generate_reference import ROOT, api_rows, cell, default, effect, files, table


def test_what_is_checked_in_is_what_the_tables_give() -> None:
    for path, text in files().items():
        assert (ROOT / path).read_text(encoding="utf-8") == text, f"{path} is out of date: run make docs"


def test_a_cell_cannot_break_its_table() -> None:
    assert cell("a|b <c>\nd ``e``") == "a\\|b &lt;c> d `e`"
    assert table(("A", "B"), [("1", "2")]) == "| A | B |\n| --- | --- |\n| 1 | 2 |\n"


def test_an_option_without_effect_says_so_and_one_without_default_says_what_gives_it() -> None:
    option = Option("a.ms", INT, None, LOW, READ_ONLY, "Doc.", check=Between(0), inert="why", falls_back_to=(("a.hours", 1),))
    assert effect(option) == "Doc. *No effect: why.*"
    assert default(option) == "`a.hours`"


def test_every_request_of_brokers_and_controllers_says_what_it_is_for() -> None:
    for row in (*api_rows(BROKER_APIS), *api_rows(CONTROLLER_APIS)):
        assert len(row[-1]) > 20, row
