"""The flags of the tool, before any broker is asked."""

import pytest
from click.testing import CliRunner

from tidelog.cli.tools.consumer_groups import command


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--list", "--describe"], "Give one action"),
        (["--describe", "--group", "g", "--all-groups"], "needs either --group or --all-groups"),
        (["--describe", "--group", "g", "--members", "--state"], "at most one"),
        (["--describe", "--group", "g", "--type"], "only be used with [list]"),
        (["--delete-offsets", "--group", "g"], "[topic]"),
        (["--reset-offsets", "--group", "g", "--topic", "t", "--to-latest", "--to-earliest"], "[to-earliest]"),
        (["--list"], "[bootstrap-server]"),
    ],
)
def test_flags_that_make_no_command_are_refused(words, message):
    done = CliRunner().invoke(command, words)
    assert done.exit_code == 2
    assert message in done.output


def test_a_pattern_is_validated_without_a_broker():
    assert CliRunner().invoke(command, ["--validate-regex", "a.*"]).output == "The regular expression `a.*` is valid.\n"
    wrong = CliRunner().invoke(command, ["--validate-regex", "a("])
    assert wrong.exit_code == 1
    assert "`a(` is invalid: " in wrong.output
