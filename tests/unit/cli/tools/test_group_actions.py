"""One action a call, and the tables that the tools of groups share."""

from __future__ import annotations

import click
import pytest

from tidelog.cli.tools import group_actions


def test_one_action_is_taken_and_two_or_none_are_refused() -> None:
    names = ("list", "reset_offsets")
    assert group_actions.one_action(names, {"list": True, "reset_offsets": False}) == "list"
    for given in (True, False):
        with pytest.raises(click.UsageError, match="--list, --reset-offsets"):
            group_actions.one_action(names, {"list": given, "reset_offsets": given})


def test_a_zero_is_a_value() -> None:
    assert group_actions.chosen(("to_offset", "to_latest"), {"to_offset": 0, "to_latest": False}) == ["to_offset"]


def test_groups_that_are_still_there_are_named_with_their_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    assert not group_actions.print_deleted("share", ["a", "b"], {"c": "it has members"})
    assert capsys.readouterr().out.splitlines() == [
        "",
        "Error: These share groups are still there:",
        "* Group 'c' could not be deleted due to: it has members",
        "",
        "Deleted share groups: 'a', 'b'",
    ]
    assert group_actions.print_deleted("share", ["a"], {})
    assert capsys.readouterr().out == "Deleted share groups: 'a'\n"


def test_exported_offsets_name_the_group_where_there_are_several(capsys: pytest.CaptureFixture[str]) -> None:
    row = {"group": "g", "topic": "t", "partition": 1, "new_offset": 7}
    for several in (False, True):
        group_actions.print_new_offsets([row], {"output": "table", "export": True}, several=several)
    assert capsys.readouterr().out == "t,1,7\ng,t,1,7\n"
