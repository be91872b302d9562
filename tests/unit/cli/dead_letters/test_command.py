"""Flags, before any broker is asked."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from tidelog.cli.tools.share_groups import command


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["list"], "[bootstrap-server]"),
        (["list", "--bootstrap-server", "a:1"], "Name the dead-letter topic"),
        (["count", "--bootstrap-server", "a:1", "--group", "a", "--group", "b"], "Name the dead-letter topic"),
        (["show", "dlq:0", "--bootstrap-server", "a:1"], "TOPIC:PARTITION:OFFSET"),
        (["replay", "dlq", "--bootstrap-server", "a:1", "--execute", "--dry-run"], "contradict"),
        (["replay", "dlq", "--bootstrap-server", "a:1", "--rate", "0"], "--rate"),
        (["replay", "dlq", "--bootstrap-server", "a:1", "--max-replays", "0"], "--max-replays"),
    ],
)
def test_flags_that_make_no_command_are_refused(words: list[str], message: str) -> None:
    done = CliRunner().invoke(command, ["dead-letters", *words])
    assert done.exit_code == 2
    assert message in done.output


def test_flags_of_the_tool_stand_for_no_command_of_ours() -> None:
    done = CliRunner().invoke(command, ["--group", "g", "--list", "dead-letters", "list", "dlq"])
    assert done.exit_code == 2
    assert "--group, --list: give the flags of dead-letters behind it" in done.output


def test_the_address_may_stand_before_it() -> None:
    done = CliRunner().invoke(command, ["--bootstrap-server", "127.0.0.1:1", "dead-letters", "list", "dlq"])
    assert done.exit_code == 1
    assert "127.0.0.1:1" in done.output


def test_the_help_names_the_commands() -> None:
    assert "dead-letters" in CliRunner().invoke(command, ["--help"]).output
    shown = CliRunner().invoke(command, ["dead-letters", "--help"]).output
    assert all(name in shown for name in ("list", "count", "show", "replay"))
