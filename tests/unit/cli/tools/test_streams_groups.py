"""The flags of the tool, before any broker is asked."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from tidelog.cli.tools.streams_groups import command


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--list", "--describe"], "Give one action"),
        (["--describe"], "needs either --group or --all-groups"),
        (["--describe", "--group", "g", "--members", "--state"], "--describe shows one thing"),
        (["--describe", "--group", "g", "--state", "Stable"], "only with --list"),
        (["--list", "--verbose"], "go with --describe"),
        (["--delete", "--group", "g", "--all-input-topics"], "--delete-offsets"),
        (["--delete", "--group", "g", "--execute"], "go with --reset-offsets"),
        (["--delete", "--group", "g", "--delete-internal-topic", "t"], "--reset-offsets --execute"),
        (["--describe", "--group", "g", "--delete-all-internal-topics"], "--delete, or --reset-offsets --execute"),
        (["--delete-offsets", "--group", "g"], "either --input-topic or --all-input-topics"),
        (["--reset-offsets", "--group", "g", "--all-input-topics", "--to-latest"], "either --execute or --dry-run"),
        (["--reset-offsets", "--group", "g", "--all-input-topics", "--dry-run"], "--to-earliest, --to-latest"),
        (["--reset-offsets", "--group", "g", "--to-latest", "--dry-run"], "--input-topic or --all-input-topics"),
        (["--list"], "[bootstrap-server]"),
    ],
)
def test_flags_that_make_no_command_are_refused(words: list[str], message: str) -> None:
    done = CliRunner().invoke(command, words)
    assert done.exit_code == 2
    assert message in done.output
