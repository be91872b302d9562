"""The flags of the tool, before any broker is asked."""

import pytest
from click.testing import CliRunner

from tidelog.cli.tools.groups import command


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "exactly one action: --list"),
        (["--list", "--consumer", "--protocol", "x"], 'Option "[consumer]" can\'t be used with option "[protocol]"'),
        (["--list", "--share", "--streams"], 'Option "[share]" can\'t be used with option "[streams]"'),
    ],
)
def test_flags_that_make_no_command_are_refused(words, message):
    done = CliRunner().invoke(command, ["--bootstrap-server", "b:1", *words])
    assert done.exit_code == 2
    assert message in done.output
